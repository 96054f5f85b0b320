"""The engine's benchmark measures what it says, believes no wrong answer, and shows it all.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from benchmarks.engine import EnginePart, engines, latency, memory, reads, shown
from benchmarks.engine.bench import Bench, check_values
from benchmarks.engine.benches import Benches
from benchmarks.engine.cases import Case, Figures, Group, all_cases
from benchmarks.engine.data import LEVELS, Data
from benchmarks.engine.engine import Engine
from benchmarks.engine.engines import ALL, BLOCKED, PLYVEL, ROCKSDICT, all_engines
from benchmarks.engine.ours import LEVELDB, OURS, Ours
from benchmarks.engine.settings import DEFAULT, FULL, QUICK, Settings
from benchmarks.engine.steps import Step
from benchmarks.engine.targets import TARGETS
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.filled_levels import STILL, check_shape, dealt, fill, tables_per_level
from benchmarks.parts import Size
from benchmarks.record import Record
from benchmarks.rows import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Row

ROOT = Path(__file__).parents[2]
KEYS = 1000
TINY = Settings(sizes=(KEYS,), repeats=1, batch=100, probes=50, ranges=5, puts=20, sync_puts=2)
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
    return attrs.evolve(TINY, seed=test_seed)


@pytest.fixture
def bench(tmp_path: Path, settings: Settings) -> Iterator[Bench]:
    scale = attrs.evolve(settings.scale(KEYS), writes=1, merges=1)
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


def judged_rows(
    target: str | None, ours: Sequence[float], peer: Sequence[float], bench: Bench
) -> dict[str, Row]:
    taken = {BLOCKED: ours} | ({PLYVEL: peer} if peer else {})
    bench.scale = attrs.evolve(bench.scale, judged=True)
    case = Case(GROUP, "a row", "us", lambda bench: Figures(taken), (BLOCKED, PLYVEL), target)
    return {row.subject: row for row in case.rows(bench)}


@needs_plyvel
@pytest.mark.parametrize(
    ("target", "ours", "peer", "verdict"),
    [
        ("absent", [9, 4, 5], [1, 2], MET),
        ("absent", [9, 5, 4.01], [1, 2], MISSED),
        ("replay", [7, 5], [0.1], MET),
        ("replay", [7, 5.01], [100], MISSED),
        (None, [7], [1], INFORMATION),
    ],
)
def test_the_best_is_held_against_the_target(
    target: str | None, ours: list[float], peer: list[float], verdict: str, bench: Bench
) -> None:
    rows = judged_rows(target, ours, peer, bench)
    assert rows[BLOCKED].verdict == verdict
    assert rows[BLOCKED].ratio == min(ours) / min(peer)
    assert rows[PLYVEL].verdict == INFORMATION
    assert (rows[PLYVEL].target, rows[PLYVEL].ratio) == (None, None)


def test_without_plyvel_only_absolute_targets_are_judged(bench: Bench) -> None:
    bench.engines.pop(PLYVEL, None)
    bench.missing[PLYVEL] = "peer plyvel is not installed"
    rows = judged_rows("absent", [1], [], bench)
    assert (rows[BLOCKED].verdict, rows[BLOCKED].value) == (NOT_MEASURED, 1)
    assert "plyvel is not installed" in rows[BLOCKED].reason
    assert (rows[PLYVEL].verdict, rows[PLYVEL].reason) == (NOT_MEASURED, bench.missing[PLYVEL])
    assert judged_rows("replay", [1], [], bench)[BLOCKED].verdict == MET
    assert judged_rows(None, [1], [], bench)[BLOCKED].verdict == INFORMATION


def test_only_ours_is_held_to_targets(bench: Bench) -> None:
    bench.scale = attrs.evolve(bench.scale, judged=True)
    taken = dict.fromkeys(ALL, (1.0,))
    case = Case(GROUP, "a row", "us", lambda bench: Figures(taken), INSTALLED, "replay")
    rows = list(case.rows(bench))
    assert [row.subject for row in rows if row.target is not None] == list(OURS)


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
    cases = all_cases(DEFAULT.scale(DEFAULT.judged_at))
    assert {case.target for case in cases} - {None} == set(TARGETS)
    assert DEFAULT.judged_at in DEFAULT.sizes
    assert not any(QUICK.scale(keys).judged for keys in QUICK.sizes)


def test_among_very_many_keys_less_is_measured_but_what_counts() -> None:
    every, large = (all_cases(FULL.scale(keys)) for keys in (FULL.judged_at, FULL.large))
    assert FULL.large in FULL.sizes
    assert {case.row(1).id for case in large} < {case.row(1).id for case in every}
    assert {case.target for case in large} >= {"load", "absent", "present", "iteration", "opening"}


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
    keys = [key for key, _ in data.in_order]
    assert engine.many_getter(db)(keys) == [value for _, value in data.in_order]
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
    assert name not in bench.read(reads.SNAPSHOT)


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

    def counting(self: Any) -> Any:
        options = own(self)
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
        measured = row.subject in INSTALLED and "memory" not in row.name
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
    assert len(missing) == 5
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

    assert seconds(QUICK) <= 14 < seconds(DEFAULT) <= 220 < seconds(FULL) <= 1200


def test_a_table_has_a_column_for_every_engine() -> None:
    def row(subject: str, value: float | None, **more: Any) -> Row:
        return Row(part="engine", group="Writing", name="a put", subject=subject, unit="us",
                   at={"n": 5}, value=value, **more)  # fmt: skip

    rows = [
        row(BLOCKED, 2.0, ratio=2.0, target=TARGETS["load"], verdict=MET),
        row(PLYVEL, 1.0),
        row("lmdb", None, verdict=NOT_MEASURED),
        attrs.evolve(row(BLOCKED, 9.0), at={"n": 6}),
    ]
    *_, line = table = list(shown.markdown(rows, 5))
    assert len(table) == 3
    assert line == "| writing: a put, us | 2 (2.00) |  | 1 |  | not measured | <= 6 | met |"
    assert table[0].count("|") == table[1].count("|") == line.count("|") == len(ALL) + 4


def test_the_page_has_the_rows_of_the_record() -> None:
    """Every row with a million keys stands in docs/engine-speed.md as the record has it."""
    record = Record.read(ROOT / "docs/results/record.json")
    page = (ROOT / "docs/engine-speed.md").read_text()
    stated = [line for line in page.splitlines() if line.startswith("|")]
    assert stated == list(shown.markdown(record.of("engine"), DEFAULT.judged_at))
    assert len(stated) == 2 + len(all_cases(DEFAULT.scale(DEFAULT.judged_at)))
    assert record.head["date"][:10] in page
    assert f"{DEFAULT.judged_at:,} random keys" in page
    assert not [row.id for row in record.of("engine") if row.verdict == FAILED]


def test_the_engines_are_those_of_the_page() -> None:
    page = (ROOT / "docs/engine-speed.md").read_text()
    for name in engines.ALL[2:]:
        assert name in page, name
