"""The engine's benchmark measures what it says, believes no wrong answer, and shows it all.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
import policies
from benchmarks.engine import (
    EnginePart,
    crowd,
    engines,
    idle,
    latency,
    loading,
    memory,
    peak,
    reads,
    shown,
    threads,
)
from benchmarks.engine.bench import Bench, check_values
from benchmarks.engine.benches import Benches
from benchmarks.engine.case import Case, Figures, Group
from benchmarks.engine.cases import all_cases
from benchmarks.engine.cases_of_writing import aims_of
from benchmarks.engine.data import LEVELS, THREADS, Data
from benchmarks.engine.engine import Engine
from benchmarks.engine.engines import ALL, BLOCKED, PLYVEL, ROCKSDICT, all_engines
from benchmarks.engine.ours import LEVELDB, OURS, PLUG_IN, Ours
from benchmarks.engine.plug_in import PythonBloom
from benchmarks.engine.settings import DEFAULT, FULL, QUICK, Settings
from benchmarks.engine.steps import Step
from benchmarks.engine.targets import (
    FEW,
    IDLE,
    LARGE,
    MANY,
    ONE_OF_EACH,
    ONE_THREAD,
    OURS_OTHERWISE,
    TARGETS,
)
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.filled_levels import STILL, check_shape, dealt, fill, tables_per_level
from benchmarks.parts import Size
from benchmarks.record import Record
from benchmarks.rows import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Row
from tests.effort import examples

ROOT = Path(__file__).parents[2]
KEYS = 1000
TINY = Settings(
    sizes=(KEYS,), repeats=1, batch=100, probes=50, ranges=5, puts=20, sync_puts=2,
    crowd_seconds=0.01,
)  # fmt: skip
GROUP = Group("A heading", "what is measured")
INSTALLED = tuple(all_engines()[0])
needs_plyvel = pytest.mark.skipif(PLYVEL not in INSTALLED, reason="needs plyvel")
needs_rocksdict = pytest.mark.skipif(ROCKSDICT not in INSTALLED, reason="needs rocksdict")
every_engine = pytest.mark.parametrize("name", INSTALLED)


def elsewhere(*_: object) -> None:
    raise UnavailableError("other processes take their time")


@pytest.fixture
def settings(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr("benchmarks.engine.bench.memory.taken", elsewhere)
    monkeypatch.setattr("benchmarks.engine.bench.peak.while_loading", elsewhere)
    monkeypatch.setattr(idle, "STILL", 0.01)
    return attrs.evolve(TINY, seed=test_seed)


@pytest.fixture
def bench(tmp_path: Path, settings: Settings) -> Iterator[Bench]:
    scale = attrs.evolve(settings.scale(KEYS), writes=1, loads=1)
    with Bench(scale, tmp_path / "bench") as made:
        yield made
    assert not list(tmp_path.iterdir())


def rows_of(settings: Settings, directory: Path, *, only: str = "") -> list[Row]:
    """All rows of a run, or those of the units with this in their names."""
    part = EnginePart()
    units = [unit for unit in part.units(settings) if only in unit.key]
    with part.bench(settings, directory) as benches:
        return [row for unit in units for row in unit.run(benches)]


def without_answers(name: str) -> Callable[..., Any]:
    """A function that makes getters which find nothing, for one engine; the others' own."""
    own = {each: type(engine).getter for each, engine in all_engines()[0].items()}

    def getter(self: Engine, db: Any) -> Callable[[bytes], bytes | None]:
        return (lambda key: None) if self.name == name else own[self.name](self, db)

    return getter


def break_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = without_answers(name)
    for kind in (Engine, *(type(engine) for engine in all_engines()[0].values())):
        if "getter" in vars(kind):
            monkeypatch.setattr(kind, "getter", broken)


def held_rows(
    target: str | None, taken: dict[str, Sequence[float]], bench: Bench, **more: Any
) -> dict[str, Row]:
    """The rows of targets, by whom ours is held against; with a million keys, as it seems."""
    bench.scale = attrs.evolve(bench.scale, keys=MANY, judged=True)
    case = Case(GROUP, "a row", "us", lambda bench: Figures(taken, **more), ALL, target)
    rows = list(case.rows(bench))
    assert all(row.target is None for row in rows[: len(ALL)])
    return {str(row.at.get("beside", "")): row for row in rows[len(ALL) :]}


@pytest.mark.parametrize(
    ("target", "ours", "peer", "verdict", "aim"),
    [
        ("absent", [9, 4, 5], [20, 21], MET, False),
        ("absent", [2.4, 5], [20, 21], MET, True),
        ("absent", [9, 5, 4.01], [20, 21], MISSED, False),
        ("opening", [7, 8], [7], MET, False),
        ("opening", [7.01, 8], [7], MISSED, False),
    ],
)
def test_the_best_is_held_against_the_target(
    target: str, ours: list[float], peer: list[float], verdict: str, aim: bool, bench: Bench
) -> None:
    bench.missing.clear()
    row = held_rows(target, {BLOCKED: ours, PLYVEL: peer}, bench)[PLYVEL]
    assert (row.verdict, row.reaches_aim) == (verdict, aim)
    assert row.ratio == min(ours) / min(peer)
    assert (row.subject, row.peer, row.value) == (BLOCKED, PLYVEL, min(ours))
    assert shown.standing(row) == (f"{verdict}, and the aim" if aim else verdict)


def test_a_limit_of_ours_alone_needs_no_peer(bench: Bench) -> None:
    assert held_rows("replay", {BLOCKED: [7, 5]}, bench)[""].verdict == MET
    assert held_rows("replay", {BLOCKED: [7, 5.01], PLYVEL: [100]}, bench)[""].verdict == MISSED
    assert held_rows(None, {BLOCKED: [1]}, bench) == {}


def test_threads_are_held_against_one_of_ours_and_aim_for_what_plyvel_gains(bench: Bench) -> None:
    for together, verdict, aim in (([10.0], MET, False), ([10.1], MISSED, False), ([5], MET, True)):
        taken = {BLOCKED: together, ONE_THREAD: [10.0, 12.0]}
        row = held_rows("threads", taken, bench, aims={ONE_THREAD: 1.9})[ONE_THREAD]
        assert (row.verdict, row.reaches_aim) == (verdict, aim)
        assert row.ratio == 10 / min(together)


def test_a_peer_that_is_missing_or_failed_leaves_the_others_judged(bench: Bench) -> None:
    bench.missing = {PLYVEL: "peer plyvel is not installed"}
    bench.failed = {ROCKSDICT: "rocksdict answers wrongly"}
    taken = dict.fromkeys((BLOCKED, ROCKSDICT, "lmdb"), (1.0,))
    rows = held_rows("absent", taken, bench)
    assert list(rows) == [PLYVEL, ROCKSDICT, "lmdb"]
    for name, why in (PLYVEL, "plyvel is not installed"), (ROCKSDICT, "rocksdict answers wrongly"):
        assert (rows[name].verdict, rows[name].value) == (NOT_MEASURED, 1.0)
        assert why in rows[name].reason
    assert rows["lmdb"].verdict == MISSED
    bench.failed = {BLOCKED: "lsm, blocked answers wrongly"}
    assert {row.verdict for row in held_rows("absent", taken, bench).values()} == {FAILED}


def test_who_is_beside_plyvel_has_a_ratio_and_no_target(bench: Bench) -> None:
    taken = {name: [2.0, 3.0] for name in (*OURS, "lmdb")} | {PLYVEL: [1.0]}
    case = Case(GROUP, "a row", "us", lambda bench: Figures(taken), tuple(taken), "absent")
    rows = {row.subject: row for row in case.rows(bench)}
    assert list(rows) == list(taken)  # and no targets, with so few keys
    assert all(row.ratio == (None if name == PLYVEL else 2.0) for name, row in rows.items())
    assert {row.verdict for row in rows.values()} == {INFORMATION}


def test_every_target_is_held_beside_somebody_who_is_there() -> None:
    for bars in TARGETS.values():
        assert len({bar.peer for bar in bars}) == len(bars) > 0
        for bar in bars:
            assert bar.peer in (*ALL[len(OURS) :], *OURS_OTHERWISE, "")
            assert bar.aim is None or bar.aim < bar.must
            assert (bar.peer in (ONE_THREAD, ONE_OF_EACH)) == bar.at_least
            assert f"{bar.must:g}" in bar.target("a row").wording


def test_what_is_not_available_costs_its_row_only(bench: Bench) -> None:
    case = Case(GROUP, "a row", "us", lambda bench: elsewhere(), OURS)  # type: ignore
    assert [(row.subject, row.verdict, row.reason) for row in case.rows(bench)] == [
        (name, NOT_MEASURED, "other processes take their time") for name in OURS
    ]
    assert not bench.failed


def test_every_target_has_a_row_and_every_row_a_name_of_its_own() -> None:
    for settings in (QUICK, DEFAULT, FULL):
        units = EnginePart().units(settings)
        assert len({unit.key for unit in units}) == len(units)
    cases = all_cases(DEFAULT.scale(MANY))
    assert {case.target for case in cases} - {None} == {target for target, _ in TARGETS}
    assert {keys for _, keys in TARGETS} == set(DEFAULT.judged_at) <= set(FULL.sizes)
    assert set(DEFAULT.sizes) == {FEW, MANY} < set(FULL.sizes)
    assert not any(case.bars(QUICK.scale(keys)) for case in cases for keys in QUICK.sizes)


def test_among_very_many_keys_less_is_measured_but_what_counts() -> None:
    every, large = (all_cases(FULL.scale(keys)) for keys in (MANY, FULL.large))
    assert FULL.large in FULL.sizes
    assert {case.row(1).id for case in large} < {case.row(1).id for case in every}
    assert {case.target for case in large} >= {"load", "absent", "present", "iteration", "opening"}
    held = {target for target, keys in TARGETS if keys == LARGE}
    assert held == {case.target for case in large if case.bars(FULL.scale(LARGE))}
    assert held >= {"sustained", "longest batch", "amplification", "memory while loading"}


def test_a_step_is_taken_once_and_fails_again_at_once() -> None:
    class Steps:
        taken = 0

        @Step
        def good(self) -> int:
            self.taken += 1
            return 7

        @Step
        def bad(self) -> int:
            self.taken += 1
            raise WrongAnswersError("no")

    steps = Steps()
    assert steps.good == steps.good == 7
    for _ in range(2):
        with pytest.raises(WrongAnswersError, match="no"):
            _ = steps.bad
    assert steps.taken == 2


def test_engines_take_turns_and_those_that_failed_have_none(bench: Bench) -> None:
    names = [engine.name for _, engine in bench.in_turn(2)]
    assert names == [*INSTALLED, *reversed(INSTALLED)]
    assert [engine.name for _, engine in bench.in_turn(1, (OURS[1],))] == [OURS[1]]
    with bench.attempt(bench.engines[OURS[1]]):
        raise ZeroDivisionError("of its own")
    assert bench.failed == {OURS[1]: "ZeroDivisionError: of its own"}
    assert not list(bench.in_turn(3, (OURS[1],)))


def test_percentiles_are_those_of_what_was_taken() -> None:
    taken = latency.Latencies(range(1000), 1.0)
    assert [taken.percentile(each) for each in (50, 99, 99.9, 100)] == [500, 990, 999, 999]


def test_lookups_go_on_until_the_work_is_done_and_are_compared() -> None:
    values = {b"a": b"1", b"b": b"2"}
    asked: list[bytes] = []

    def get(key: bytes) -> bytes:
        asked.append(key)
        return values[key]

    def work() -> None:
        while len(asked) < 200:
            pass

    def until_asked() -> None:
        while not asked:
            pass

    taken = latency.during(work, get, values, list(values))
    assert len(taken.nanoseconds) == len(asked) >= 200
    assert list(taken.nanoseconds) == sorted(taken.nanoseconds)
    asked.clear()
    with pytest.raises(WrongAnswersError, match="b'a' is wrong"):
        latency.during(until_asked, lambda key: get(key) and b"2", values, list(values))


def test_an_error_of_the_work_is_not_lost() -> None:
    with pytest.raises(ZeroDivisionError):
        latency.during(lambda: 1 / 0, lambda key: b"1", {b"a": b"1"}, [b"a"])


def test_prefixes_are_those_of_ten_keys_or_more(test_seed: int) -> None:
    data = Data(attrs.evolve(TINY, seed=test_seed).scale(3000))
    for prefix, first in data.first_of.items():
        assert first == [pair for pair in data.in_order if pair[0].startswith(prefix)][:10]
        assert len(first) == 10
    assert set(data.prefixes) <= set(data.first_of)
    assert data.runs.keys() == {1, 2, 3, 4, 5}


# -- Writing -------------------------------------------------------------------------------


def test_a_load_is_timed_by_the_batch_and_until_nothing_is_left_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("benchmarks.engine.loading.time.perf_counter", lambda: now)

    class Slow(Ours):
        def put_batch(self, db: Any, pairs: Any) -> None:
            nonlocal now
            now += len(pairs)

        def settle(self, db: Any) -> float:
            nonlocal now
            now += 7.0
            return 0.5  # of which nothing went on any more

    batches = [[(b"", b"")] * count for count in (2, 5, 1)]
    assert loading.load(Slow(BLOCKED), None, batches) == loading.Load(8.0, 14.5, 5.0)


def test_who_cannot_be_asked_is_watched_until_nothing_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle, "STILL", 0.0)
    monkeypatch.setattr(idle, "BETWEEN_LOOKS", 0.0)
    seen = iter([1, 2, None, None, 3, 4, 4, 5])
    assert idle.wait_until_still(lambda: next(seen)) >= 0
    assert list(seen) == [5]
    done = iter([False, True, False, True, True, False])
    idle.wait_until(lambda: next(done))
    assert list(done) == [False]


def test_threads_that_work_or_wait_for_the_disk_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "TASKS", tmp_path / "none")
    assert idle.foreign_threads() == ()
    monkeypatch.setattr(idle, "TASKS", tmp_path)
    mine = str(threading.get_native_id())
    for name, state, taken in ((mine, "R", 5), ("1", "S", 17), ("2", "S", 4)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(f"{name} (a (b) c) {state} 1 2")
        (tmp_path / name / "schedstat").write_text(f"{taken} 2 3")
    assert idle.foreign_threads() == {("1", "17"), ("2", "4")}
    for state in "RD":
        (tmp_path / "2" / "stat").write_text(f"2 (low) {state} 1 2")
        assert idle.foreign_threads() is None
    (tmp_path / "2" / "stat").unlink()
    assert idle.foreign_threads() is None


def test_files_that_grow_or_go_move(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    before = idle.sizes_of_files(tmp_path)
    assert before == {("a", 3)} == idle.sizes_of_files(tmp_path)
    (tmp_path / "a").write_bytes(b"1234")
    assert idle.sizes_of_files(tmp_path) == {("a", 4)}
    assert idle.sizes_of_files(tmp_path / "gone") is None


@every_engine
def test_what_has_settled_has_nothing_left_to_do(
    name: str, tmp_path: Path, settings: Settings
) -> None:
    """Write buffers so small that the background has to work for the whole load."""
    data = Data(attrs.evolve(settings, batch=100).scale(20 * KEYS))
    engine = all_engines()[0][name]
    db = engine.open(tmp_path / "db", create=True, write_buffer_size=1 << 16)
    for pairs in data.batches:
        engine.put_batch(db, pairs)
    assert engine.settle(db) >= 0
    tables, files = engine.tables_per_level(db), idle.sizes_of_files(tmp_path / "db")
    assert not tables or tables[0] < 4
    assert engine.settle(db) >= 0
    assert engine.tables_per_level(db) == tables
    if name != ROCKSDICT:  # which goes on writing what it does to its LOG
        assert idle.sizes_of_files(tmp_path / "db") == files
    engine.close(db)


def test_loads_are_told_with_all_that_came_of_them_and_leave_nothing(bench: Bench) -> None:
    assert set(bench.sustained) == set(bench.sustained_uncompressed) | ({"lmdb"} & set(INSTALLED))
    for found in (bench.sustained, bench.sustained_uncompressed):
        for name, (load,) in found.items():
            assert 0 < load.longest <= load.calls <= load.idle + 0.01, name
            assert (load.amplification is None) == (name == "lmdb")
            assert (load.merging is not None) == (found is bench.sustained_uncompressed)
    assert not bench.failed
    assert not [path for path in bench._root.rglob("*") if path.is_file()]


def test_among_very_many_keys_one_load_serves_all(bench: Bench) -> None:
    bench.scale = attrs.evolve(bench.scale, large=True)
    del bench.engines[LEVELDB]
    assert bench.loaded == {
        name: [load.calls for load in some] for name, some in bench.sustained.items()
    }
    assert set(bench.merged) == set(bench.sustained)
    assert not bench.failed


@needs_plyvel
def test_a_load_that_loses_values_is_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    break_answers(PLYVEL, monkeypatch)
    assert BLOCKED in bench.sustained
    assert "plyvel has lost" in bench.failed[PLYVEL]
    assert PLYVEL not in bench.sustained_uncompressed


def test_an_aim_in_seconds_is_one_in_times_plyvels() -> None:
    assert aims_of({PLYVEL: [0.2, 0.1]}, 0.05) == {PLYVEL: 0.5}
    assert aims_of({PLYVEL: [0.01]}, 0.05) == {PLYVEL: 1.0}  # what must be comes first
    assert aims_of({BLOCKED: [0.01]}, 0.05) == {}


def test_what_ours_is_held_against_in_other_circumstances_is_no_peer(bench: Bench) -> None:
    row = held_rows("p99 while merging", {BLOCKED: [6.0], IDLE: [2.0]}, bench)[IDLE]
    assert (row.verdict, row.ratio) == (MET, 3.0)
    taken = {BLOCKED: [2.0, 2.1], ONE_OF_EACH: [1.9, 3.0]}
    row = held_rows("crowd", taken, bench)[ONE_OF_EACH]
    assert (row.verdict, row.ratio) == (MISSED, 0.95)


def test_a_crowd_works_together_until_the_time_is_up() -> None:
    """Each waits in its first piece until all others are in theirs."""
    together, said = threading.Barrier(5), threading.Event()

    def worker(count: int) -> crowd.Worker:
        def some() -> int:
            if not said.is_set():
                together.wait(timeout=60)
                said.set()
            return count

        return some

    done = crowd.work([worker(1), worker(1)], [worker(100)] * 3, 0.0)
    assert done.puts >= 2
    assert done.gets >= 300
    assert done.gets % 100 == 0
    assert done.seconds > 0


def test_an_error_in_a_crowd_ends_it_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        crowd.work([lambda: 1], [lambda: 1 // 0], 3600)


def test_a_crowd_puts_and_gets_what_it_was_given() -> None:
    class Told(Ours):
        def __init__(self) -> None:
            super().__init__(BLOCKED)
            self.put: set[tuple[bytes, bytes]] = set()
            self.asked: set[bytes] = set()

        def putter(self, db: Any, *, sync: bool) -> Callable[[bytes, bytes], object]:
            return lambda key, value: self.put.add((key, value))

        def getter(self, db: Any) -> Callable[[bytes], bytes | None]:
            return lambda key: self.asked.add(key)

    engine, pairs = Told(), [(b"%d" % at, b"v") for at in range(500)]
    keys = [key for key, _ in pairs[:300]]
    while len(engine.put) < 500 or len(engine.asked) < 300:
        crowd.of_each(engine, None, 3, pairs, keys, 0.01)
    assert engine.put == set(pairs)
    assert engine.asked == set(keys)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc's malloc_trim()")
def test_what_a_process_no_longer_needs_is_not_counted_as_its_own() -> None:
    pieces = [bytes(50_000) for _ in range(2000)]
    full = memory.resident()
    del pieces[:-1]  # the last one keeps the heap from shrinking by itself
    trimmed = memory.trimmed()
    assert full is not None
    assert trimmed is not None
    assert trimmed.own < full.own - 80_000_000


@pytest.mark.skipif(memory.resident() is None, reason="needs RssAnon")
def test_the_peak_of_a_load_is_that_of_another_process(
    tmp_path: Path, test_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = attrs.evolve(TINY, seed=test_seed, batch=1000).scale(40 * KEYS)
    most = peak.while_loading(BLOCKED, tmp_path / "db", scale)
    assert 1 << 20 < most < 256 << 20
    with lsm.DB(tmp_path / "db") as db:
        assert sum(1 for _ in db) == scale.keys
    with pytest.raises(RuntimeError, match="KeyError"):
        peak.while_loading("no engine", tmp_path / "other", scale)
    monkeypatch.setattr(memory, "STATUS", tmp_path / "none")
    with pytest.raises(UnavailableError, match="does not tell"):
        peak.while_loading(BLOCKED, tmp_path / "db", scale)


def test_entries_that_are_made_as_they_are_needed_are_like_the_others(test_seed: int) -> None:
    first, *rest = peak.batches(250, 100, test_seed)
    assert not first
    assert [len(pairs) for pairs in rest] == [100, 100, 50]
    pairs = [pair for some in rest for pair in some]
    assert len({key for key, _ in pairs}) == 250
    assert {(len(key), len(value), value[:50] == value[50:]) for key, value in pairs} == {
        (16, 100, True)
    }


def test_lookups_while_everything_is_merged_have_their_like_with_nothing_going_on(
    bench: Bench,
) -> None:
    bench.scale = attrs.evolve(bench.scale, disturbances=2)
    for name, (found, again) in bench.disturbed.items():
        assert again.merging.nanoseconds, name
        assert found.merging.nanoseconds, name
        assert found.idle.nanoseconds, name
        assert found.idle.seconds >= found.merging.seconds
    assert not bench.failed


def test_a_crowd_changes_no_answer(bench: Bench) -> None:
    assert [set(done) for done in bench.crowded.values()] == 2 * [
        set(INSTALLED) & set(engines.ONE_OF_OURS)
    ]
    for name, store in bench.stores.items():
        check_values(store.engine, store.db, bench.data.pairs)
        assert name not in bench.failed


# -- Engines -------------------------------------------------------------------------------


@every_engine
def test_every_engine_gives_every_right_answer(name: str, tmp_path: Path, test_seed: int) -> None:
    """Asked for everything there is, and for a key before and behind all others."""
    data = Data(attrs.evolve(TINY, seed=test_seed).scale(KEYS))
    engine = all_engines()[0][name]
    db = engine.open(tmp_path / "db", create=True)
    for pairs in data.batches:
        engine.put_batch(db, pairs)
    check_values(engine, db, data.pairs)
    engine.compact(db)
    assert list(engine.items(db)) == data.in_order
    assert list(engine.items(db, reverse=True)) == data.in_order[::-1]
    keys, values = ([pair[at] for pair in data.in_order] for at in (0, 1))
    assert list(engine.keys(db)) == list(engine.keys(db, reverse=True))[::-1] == keys
    assert list(engine.values(db)) == list(engine.values(db, reverse=True))[::-1] == values
    assert engine.many_getter(db)(keys) == values
    some = [data.absent[0], keys[-1], data.absent[1], keys[0]]
    assert engine.many_getter(db)(some) == [None, values[-1], None, values[0]]
    assert engine.many_getter(db)(data.absent) == [None] * len(data.absent)
    prefix = keys[-1][:1]
    assert list(engine.prefix_iterator(db)(prefix)) == [
        pair for pair in data.in_order if pair[0].startswith(prefix)
    ]
    assert engine.getter(db)(b"\0") is None
    assert engine.getter(db)(b"\xff" * 17) is None
    get = engine.snapshot_getter(db)
    put = engine.putter(db, sync=False)
    put(keys[0], b"another value")
    assert get(keys[0]) == data.in_order[0][1]
    assert get(data.absent[0]) is None
    assert engine.getter(db)(keys[0]) == b"another value"
    del get, put
    engine.close(db)
    again = engine.open(tmp_path / "db", durable=True)
    engine.putter(again, sync=True)(keys[0], b"a third one")
    assert engine.getter(again)(keys[0]) == b"a third one"
    engine.close(again)
    assert engine.disk_bytes(tmp_path / "db") > 50 * KEYS


@every_engine
def test_an_engine_that_finds_nothing_is_not_timed_and_the_others_are(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(bench.stores) == set(INSTALLED)
    break_answers(name, monkeypatch)
    assert set(bench.read(reads.ABSENT)) == set(INSTALLED)
    assert set(bench.read(reads.PRESENT)) == set(INSTALLED) - {name}
    assert list(bench.failed) == [name]
    assert bench.failed[name].startswith(f"{name} answers wrongly 50 of 50 times")
    assert name not in bench.read(reads.SNAPSHOT_PRESENT)


@needs_plyvel
def test_lost_values_are_noticed_after_puts_and_replay(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_answers(PLYVEL, monkeypatch)
    assert PLYVEL not in bench.single_puts(bench.data.pairs[:3], sync=False) or bench.failed
    assert "plyvel has lost" in bench.failed.pop(PLYVEL)
    assert BLOCKED in bench.replayed
    assert "plyvel has lost" in bench.failed[PLYVEL]


def test_databases_are_merged_into_one_level(bench: Bench) -> None:
    """Or else plyvel would not have been asked in the way it understands."""
    for name, found in bench.merged.items():
        assert found[-1].disk_bytes > 50 * KEYS, name
        assert (found[-1].amplification is None) == (not bench.engines[name].has_levels)
    for name, store in bench.stores.items():
        levels = store.engine.tables_per_level(store.db)
        assert sum(map(bool, levels)) == bench.engines[name].has_levels, name
        assert not any(levels[:1]), name


@needs_plyvel
def test_what_leveldb_wrote_is_the_sum_of_all_levels() -> None:
    stats = (
        b"                               Compactions\n"
        b"Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n"
        b"--------------------------------------------------\n"
        b"  0        1        2         0        0        26\n"
        b"  2        9       17         1       34        31\n"
    )

    class Database:
        def get_property(self, name: bytes) -> bytes:
            assert name == b"leveldb.stats"
            return stats

        def close(self) -> None:
            pass

    assert all_engines()[0][PLYVEL].close(Database()) == 57 << 20


@needs_rocksdict
def test_what_rocksdb_wrote_is_the_size_of_all_its_tables(tmp_path: Path, bench: Bench) -> None:
    rocks = all_engines()[0][ROCKSDICT]
    db = rocks.open(tmp_path / "written", create=True)
    rocks.put_batch(db, bench.data.pairs)
    rocks.compact(db)
    written = rocks.close(db)
    assert written == rocks.disk_bytes(tmp_path / "written") > 50 * KEYS
    for file in (tmp_path / "written").iterdir():
        file.unlink()
    (tmp_path / "written").rmdir()


@needs_rocksdict
@pytest.mark.parametrize("filled", [False, True])
def test_rocksdb_has_its_filters_after_it_was_opened_again(
    filled: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rocksdict forgets them unless it is told again, for its column family."""
    rocks = bench.engines[ROCKSDICT]
    counted: list[Any] = []
    own = type(rocks).options

    def counting(self: Any, **more: Any) -> Any:
        options = own(self, **more)
        options.enable_statistics()
        counted.append(options)
        return options

    path = bench.path("filtered", rocks)
    if filled:
        rocks.fill(path, bench.data.runs)
        monkeypatch.setattr(type(rocks), "options", counting)
        db = rocks.open_filled(path)
    else:
        first = rocks.open(path, create=True)
        rocks.put_batch(first, bench.data.pairs)
        rocks.compact(first)
        rocks.close(first)
        monkeypatch.setattr(type(rocks), "options", counting)
        db = rocks.open(path)
    get = rocks.getter(db)
    assert [get(key) for key in bench.data.absent] == [None] * len(bench.data.absent)
    told = counted[-1].get_statistics().splitlines()
    useful = next(line for line in told if line.startswith("rocksdb.bloom.filter.useful"))
    assert int(useful.split()[-1]) > 0.9 * len(bench.data.absent)
    rocks.close(db)


def test_memory_is_told_where_the_system_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    monkeypatch.setattr(memory, "STATUS", status)
    assert memory.resident() is None
    status.write_text("Name:\tpython\nRssAnon:\t     108 kB\nRssFile:\t    1640 kB\n")
    assert memory.resident() == memory.Memory(108 << 10, 1640 << 10)
    status.write_text("Name:\tpython\n")
    assert memory.resident() is None
    with pytest.raises(UnavailableError, match="does not tell"):
        memory.taken(OURS[0], tmp_path, [b"a"])


@pytest.mark.skipif(memory.resident() is None, reason="needs RssAnon")
def test_memory_is_that_of_another_process(tmp_path: Path, rng: Any) -> None:
    pairs = [(rng.randbytes(16), rng.randbytes(500)) for _ in range(4000)]
    engine = all_engines()[0][BLOCKED]
    db = engine.open(tmp_path / "db", create=True)
    engine.put_batch(db, pairs)
    engine.close(db)
    taken = memory.taken(BLOCKED, tmp_path / "db", [key for key, _ in pairs])
    assert 1 << 20 < taken.own < 64 << 20


# -- Levels that are filled ----------------------------------------------------------------


@every_engine
def test_levels_are_filled_and_stay_so_whatever_is_read(name: str, bench: Bench) -> None:
    """LevelDB by itself would merge them after a hundred lookups."""
    store = bench.filled[name]
    if not store.engine.has_levels:
        assert store is bench.stores[name]
        return
    tables = store.engine.tables_per_level(store.db)
    assert [bool(count) for count in tables[: LEVELS + 1]] == [False] + [True] * LEVELS
    assert not any(tables[LEVELS + 1 :])
    get = store.engine.getter(store.db)
    for _ in range(20):
        assert all(get(key) is None for key in bench.data.absent)
    assert all(get(key) == value for key, value in bench.data.pairs)
    for read in (reads.ABSENT, reads.PRESENT):
        assert name in bench.read_filled(read)
    assert store.engine.tables_per_level(store.db) == tables
    assert not bench.failed


def test_tables_that_moved_cost_the_engine_its_rows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.filled
    monkeypatch.setattr(Ours, "tables_per_level", lambda self, db: [0, 0, 1, 1, 1, 1, 0])
    bench.read_filled(reads.ABSENT)
    assert set(bench.failed) == set(OURS)
    assert (
        "was to have tables on the levels [1, 2, 3, 4, 5], and has [0, 0, 1"
        in (bench.failed[BLOCKED])
    )


def test_pairs_are_dealt_to_levels_that_grow() -> None:
    pairs = [(bytes([at % 256, at // 256]), b"") for at in range(1000)]
    runs = dealt(pairs, 5, 3.5)
    assert list(runs) == [1, 2, 3, 4, 5]
    assert [pair for run in runs.values() for pair in run] == pairs
    sizes = [len(run) for run in runs.values()]
    assert all(3 < lower / upper < 4 for upper, lower in pairwise(sizes))
    with pytest.raises(ValueError, match="7 levels cannot be filled; allowed are 1 to 6"):
        dealt(pairs, 7, 2)


def test_a_filled_database_is_one_like_any_other(tmp_path: Path, rng: Any) -> None:
    pairs = [(rng.randbytes(8), rng.randbytes(20)) for _ in range(600)]
    runs = {2: pairs[:200], 4: pairs[100:]}
    newer = [(key, b"newer") for key, _ in pairs[100:150]]
    runs[1] = newer
    expected = dict(pairs) | dict(newer)
    with lsm.DB(tmp_path, create_if_missing=True, max_file_size=4096, **STILL) as db:
        fill(db, runs)
        counts = tables_per_level(db)
        assert [bool(count) for count in counts] == [False, True, True, False, True, False, False]
        assert counts[4] > 3
        assert [table.written_for_level for table in db.filters()[4].tables] == [4] * counts[4]
        assert list(db) == sorted(expected.items())
        db.put(pairs[0][0], b"newest")
        expected[pairs[0][0]] = b"newest"
        with pytest.raises(ValueError, match="is not empty: levels are filled in a new database"):
            fill(db, runs)
    with lsm.DB(tmp_path) as db:
        assert list(db) == sorted(expected.items())
        db.compact_range()
        assert list(db) == sorted(expected.items())
        with pytest.raises(ValueError, match="level 1 has 0 tables with 0 keys, and was to have"):
            check_shape(db, runs)


def test_a_run_has_each_key_once(tmp_path: Path) -> None:
    told = "level 3 was to have b'a' twice: keys must differ"
    with (
        lsm.DB(tmp_path, create_if_missing=True, **STILL) as db,
        pytest.raises(ValueError, match=told),
    ):
        fill(db, {3: [(b"a", b"1"), (b"a", b"2")]})


def test_levels_that_are_not_there_are_not_filled(tmp_path: Path) -> None:
    with lsm.DB(tmp_path, create_if_missing=True) as db:
        for level in (0, 7):
            with pytest.raises(ValueError, match=f"level {level} cannot be filled; allowed are 1"):
                fill(db, {level: [(b"a", b"b")]})


# -- All of it -----------------------------------------------------------------------------


def test_every_row_is_measured_and_shown(tmp_path: Path, settings: Settings) -> None:
    rows = rows_of(settings, tmp_path)
    assert not list(tmp_path.iterdir())
    cases = all_cases(settings.scale(KEYS))
    assert [(row.group, row.name, row.subject) for row in rows] == [
        (case.group.title, case.name, name) for case in cases for name in case.engines
    ]
    told = "\n".join(EnginePart().text(rows))
    few = "\n".join(EnginePart().summary([attrs.evolve(rows[0], at={"n": 5}), *rows]))
    assert few.startswith(f"\nThe engine beside others, {KEYS:,} entries")
    assert few.count(" key, five levels") == (4 if PLYVEL in INSTALLED else 2)
    assert not list(EnginePart().summary([]))
    for row in rows:
        assert row.name in told
        assert row.at == {"n": KEYS}
        measured = row.subject in (*INSTALLED, PLUG_IN) and "memory" not in row.name
        assert (row.value is not None) == measured, row
        assert row.verdict == (INFORMATION if measured else NOT_MEASURED), row.reason
        if measured and row.subject != PLYVEL and PLYVEL in INSTALLED and row.peer:
            assert row.ratio == min(row.repeats) / min(row.peer_repeats)
        assert Row.from_dict(json.loads(json.dumps(row.as_dict()))).id == row.id


def test_a_large_size_is_measured_with_fewer_rows(tmp_path: Path, settings: Settings) -> None:
    few = attrs.evolve(settings, large=KEYS, repeats=3)
    rows = rows_of(few, tmp_path)
    assert [(row.group, row.name, row.subject) for row in rows] == [
        (case.group.title, case.name, name)
        for case in all_cases(few.scale(KEYS))
        for name in case.engines
    ]
    assert not [row.id for row in rows if row.verdict == FAILED]
    repeats = {row.name: len(row.repeats) for row in rows if row.subject == BLOCKED}
    assert repeats[reads.FORWARDS.name] == 1
    assert repeats[reads.PRESENT.name] == 3
    assert LEVELDB not in {row.subject for row in rows}


def test_one_row_alone_finds_what_it_needs(tmp_path: Path, settings: Settings) -> None:
    """As after a run that was stopped: the rows before it are not measured again."""
    whole = rows_of(settings, tmp_path, only="the slowest get")
    assert [row.subject for row in whole if row.value is None] == [
        name for name in ("rocksdict", "plyvel") if name not in INSTALLED
    ]
    assert all(row.value for row in rows_of(settings, tmp_path, only="compact_range()/")
               if row.subject in INSTALLED)  # fmt: skip


def test_one_size_after_the_other_has_databases(tmp_path: Path, settings: Settings) -> None:
    with Benches(settings, tmp_path) as benches:
        small = benches.of(KEYS)
        assert small is benches.of(KEYS)
        small.open(small.engines[BLOCKED], small.path("one", small.engines[BLOCKED]), create=True)
        assert benches.of(2 * KEYS).scale.keys == 2 * KEYS
        assert [path.name for path in tmp_path.iterdir()] == [f"{2 * KEYS}"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, ZeroDivisionError])
def test_whatever_happens_nothing_is_left(
    interrupt: type[BaseException],
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[Engine, Any]] = []
    own = Bench._kept

    def kept(self: Bench, engine: Engine, path: Path, db: Any) -> Any:
        opened.append((engine, db))
        return own(self, engine, path, db)

    def put_batch(self: Engine, db: Any, pairs: Any) -> None:
        raise interrupt

    monkeypatch.setattr(Bench, "_kept", kept)
    monkeypatch.setattr(Ours, "put_batch", put_batch, raising=False)
    if interrupt is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            rows_of(settings, tmp_path, only="put in a batch")
    else:
        rows = rows_of(settings, tmp_path, only="put in a batch")
        assert {row.subject for row in rows if row.verdict == FAILED} == set(OURS)
    assert opened
    assert all(db.closed for engine, db in opened if isinstance(db, lsm.DB))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["plyvel", "rocksdict", "lmdb"])
def test_a_missing_engine_has_rows_that_say_so(
    module: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    rows = rows_of(settings, tmp_path, only="get of a")
    missing = [row for row in rows if row.subject == module]
    assert len(missing) == (10 if module == PLYVEL else 8)  # it is beside the plug-in, too
    for row in missing:
        assert row.verdict == NOT_MEASURED
        assert f"peer {module} is not installed: pip install {module}" in row.reason
    assert all(row.value is not None for row in rows if row.subject in OURS)
    if module == PLYVEL:
        assert all(row.ratio is None and not row.peer for row in rows)
    assert "pip install" in "\n".join(EnginePart().text(rows))


def test_a_wrong_engine_is_failed_and_closed(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_answers(OURS[0], monkeypatch)
    rows = rows_of(settings, tmp_path, only="put, one by one")
    found = {row.subject: row for row in rows}
    assert found[OURS[0]].verdict == FAILED
    assert found[OURS[0]].reason.startswith("lsm, blocked has lost the value of")
    assert found[OURS[0]].value is None
    assert all(row.value is not None for name, row in found.items() if name in INSTALLED[1:])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keys", [999, 20_000_001])
def test_sizes_out_of_range_are_refused(keys: int) -> None:
    options = argparse.Namespace(seed=1, entries=[5000, keys])
    with pytest.raises(ValueError, match=f"--entries is out of range: {keys:,}; allowed are 1,000"):
        EnginePart().settings(Size.QUICK, options)


def test_the_settings_are_those_that_were_asked_for() -> None:
    parser = argparse.ArgumentParser()
    EnginePart().add_arguments(parser)
    for size, settings in ((Size.QUICK, QUICK), (Size.DEFAULT, DEFAULT), (Size.FULL, FULL)):
        options = parser.parse_args([])
        options.seed = 9
        assert EnginePart().settings(size, options) == attrs.evolve(settings, seed=9)
    options = parser.parse_args(["--entries", "5000", "--entries", "2000"])
    options.seed = 1
    assert EnginePart().settings(Size.QUICK, options).sizes == (2000, 5000)


def test_seconds_are_told_before_and_grow_with_the_size() -> None:
    def seconds(settings: Settings) -> float:
        return sum(unit.seconds for unit in EnginePart().units(settings))

    assert seconds(QUICK) <= 12 < seconds(DEFAULT) <= 500 < seconds(FULL) <= 1800


def test_a_table_has_a_column_for_every_engine() -> None:
    def row(subject: str, value: float | None, **more: Any) -> Row:
        return Row(part="engine", group="Writing", name="a put", subject=subject, unit="us",
                   at={"n": 5}, value=value, **more)  # fmt: skip

    rows = [
        row(BLOCKED, 2.0, ratio=2.0),
        row(PLYVEL, 1.0),
        row("lmdb", None, verdict=NOT_MEASURED),
        attrs.evolve(row(BLOCKED, 9.0), at={"n": 6}),
    ]
    *_, line = table = list(shown.markdown(rows, 5))
    assert len(table) == 3
    assert line == "| writing: a put, us | 2 (2.00) |  | 1 |  | not measured |  |"
    assert table[0].count("|") == table[1].count("|") == line.count("|") == len(ALL) + 3


@pytest.fixture
def judged(bench: Bench) -> list[Row]:
    """A question that is held to three targets, of which one is met, one missed, one unknown."""
    bench.missing = {"lmdb": "peer lmdb is not installed: pip install lmdb"}
    taken = {BLOCKED: [24.0], PLYVEL: [210.0], ROCKSDICT: [50.0]}
    return list(held_rows("absent", taken, bench).values())


def test_targets_are_told_with_both_times_the_ratio_and_the_verdict(judged: list[Row]) -> None:
    told = [line.split() for line in EnginePart().text(judged)]
    assert ["a", "row,", "us", "1,000,000", "24", "plyvel", "210", "0.114", "<=", "0.2", "0.12",
            "met,", "and", "the", "aim"] in told  # fmt: skip
    assert ["24", "rocksdict", "50", "0.48", "<=", "0.4", "0.25", "MISSED"] in told
    assert ["24", "lmdb", "<=", "0.15", "0.08", "not", "measured"] in told


def test_the_page_tells_users_the_ratio_to_each_peer_and_no_target(judged: list[Row]) -> None:
    """Of two groups with rows of one name, that which was held to targets."""
    beside = {BLOCKED: 24.0, PLYVEL: 210.0, ROCKSDICT: 50.0}
    rows = [
        attrs.evolve(judged[0], group=group, subject=name, value=times * value, at={"n": MANY})
        for group, times in (("One", 2.0), ("Two", 1.0))
        for name, value in beside.items()
    ]
    head, _, line = shown.markdown_beside([*rows, *judged])
    assert head == "| what | keys | ours | x plyvel | x rocksdict | x lmdb |"
    assert line == "| a row | 1,000,000 | 24 us | 0.114 | 0.48 |  |"


def test_growth_is_told_beside_the_smallest_of_three_sizes() -> None:
    sizes = (20_000, 100_000, 1_000_000)
    rows = [
        Row(part="engine", group=group, name="a get", subject=name, at={"n": n}, unit="ns",
            value=value)
        for name, values in ((BLOCKED, (100, 150, 200)), (PLYVEL, (50, 100, 400)))
        for n, value in zip(sizes, values, strict=True)
        for group in ("Looking up, compacted", "Writing")
    ]  # fmt: skip
    rows.sort(key=lambda row: row.at["n"])
    told = "\n".join(EnginePart().text(rows))
    assert "lsm, blocked" in (grown := told[told.index("Growth") :])
    assert [line.split()[-3:] for line in grown.splitlines()[2:]] == [
        ["1", "1.5", "2"], ["1", "2", "8"]
    ]  # fmt: skip
    assert "Growth" not in "\n".join(EnginePart().text(rows[:8]))


def test_the_page_has_the_rows_of_the_record() -> None:
    """Every row with a million keys stands in docs/engine-speed.md as the record has it."""
    record = Record.read(ROOT / "docs/results/engine.json")
    page = (ROOT / "docs/engine-speed.md").read_text()
    stated = [line for line in page.splitlines() if line.startswith("|")]
    rows, beside = (
        list(shown.markdown(record.of("engine"), MANY)),
        list(shown.markdown_beside(record.of("engine"))),
    )
    assert stated == [*rows, *beside]
    assert len(beside) > 40
    assert len(rows) == 2 + len(all_cases(DEFAULT.scale(MANY)))
    assert record.head["date"][:10] in page
    assert f"the engine's kernel: {record.head['kernel']['engine']}" in page
    assert f"{MANY:,} random keys" in page
    assert not [row.id for row in record.of("engine") if row.verdict == FAILED]


def test_the_engines_are_those_of_the_page() -> None:
    page = (ROOT / "docs/engine-speed.md").read_text()
    for name in (*engines.ALL[2:], PLUG_IN):
        assert name in page, name


# -- A plug-in, threads --------------------------------------------------------------------


def test_a_plug_in_has_a_name_only_while_it_is_measured(bench: Bench) -> None:
    known = policies.available()
    assert set(bench.plugged) == {PLUG_IN} | ({PLYVEL} & set(INSTALLED))
    assert PythonBloom.name in policies.available()
    assert set(bench.read_plugged(reads.ABSENT)) == set(bench.plugged)
    filters = bench.plugged[PLUG_IN].db.filters()
    told = {table.policy for level in filters for table in level.tables}
    assert told == {PythonBloom.name}
    bench.__exit__()
    bench._root.mkdir()
    assert policies.available() == known


@examples(40)
@given(keys=st.sets(st.binary(max_size=20), max_size=50), foreign=st.binary(max_size=9))
def test_the_plug_in_denies_no_key(keys: set[bytes], foreign: bytes) -> None:
    policy = PythonBloom()
    filter = policy.create_filter(sorted(keys))
    assert all(policy.key_may_match(key, filter) for key in keys)
    assert policy.key_may_match(b"key", foreign) in (True, False)


def test_the_plug_in_rejects_most_absent_keys(rng: Any) -> None:
    keys, absent = ([rng.randbytes(16) for _ in range(2000)] for _ in range(2))
    policy = PythonBloom()
    filter = policy.create_filter(keys)
    assert len(filter) == 2500
    assert sum(policy.key_may_match(key, filter) for key in absent) < 60  # 16 are expected


@examples(40)
@given(keys=st.lists(st.binary(), max_size=30), count=st.integers(1, 6))
def test_keys_are_dealt_to_threads_evenly(keys: list[bytes], count: int) -> None:
    found = list(threads.dealt(keys, count))
    assert sorted(key for some in found for key in some) == sorted(keys)
    assert max(map(len, found)) - min(map(len, found)) <= 1 == len({count, len(found)})


def test_every_thread_asks_for_its_keys_while_the_others_do() -> None:
    """Each waits in the middle until all have come so far."""
    asked: list[tuple[int, bytes]] = []
    together = threading.Barrier(3)

    def getter() -> Callable[[bytes], None]:
        def get(key: bytes) -> None:
            together.wait(timeout=60)
            asked.append((threading.get_ident(), key))

        return get

    assert threads.seconds(getter, [[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]]) > 0
    assert len({name for name, _ in asked}) == 3
    assert sorted(key for _, key in asked) == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_what_a_thread_raises_is_not_lost() -> None:
    with pytest.raises(ZeroDivisionError):
        threads.seconds(lambda: lambda key: 1 // 0, [[b"a"], []])  # type: ignore


def test_threads_are_timed_alone_and_together_after_right_answers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(bench.stores) == set(INSTALLED)
    break_answers(LEVELDB, monkeypatch)
    assert [set(taken) for taken in bench.threaded.values()] == 2 * [set(INSTALLED) - {LEVELDB}]
    assert list(bench.threaded) == [1, THREADS]
    assert list(bench.failed) == [LEVELDB]


@every_engine
def test_what_is_not_compressed_takes_more_room(name: str, bench: Bench) -> None:
    if name not in engines.ONE_OF_OURS or not bench.engines[name].has_levels:
        return
    engine = bench.engines[name]
    assert bench.uncompressed[name].levels == {LEVELS}
    whole = engine.disk_bytes(bench.path("uncompressed", engine))
    assert whole > 1.4 * engine.disk_bytes(bench.merged_path(engine))
    assert whole > 116 * KEYS
