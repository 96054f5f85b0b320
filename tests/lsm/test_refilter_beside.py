"""Refiltering beside flushes, compactions and loads: who waits for whom, and what is newer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm import background, compaction, drift
from lsm.background import Background
from lsm.errors import IOError, SyncError
from lsm.options import TIB
from lsm.refiltering import Refiltering, RefilterPlan, RefilterReport
from lsm.version import Version
from tests.lsm.crew import PATIENCE, Crew, Gate, Hooked, is_in, until
from tests.lsm.patience import patient
from tests.lsm.refilterable import AFTER, BEFORE, STILL, counts, filters_of, made, numbers

CHANGED: dict[str, Any] = STILL | {"filter_policy": AFTER, "max_background_jobs": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def stacked(path: Path, **options: Any) -> None:
    """Make a database with three tables of the same keys on level 0, and one beneath on two."""
    given: dict[str, Any] = STILL | {"filter_policy": BEFORE} | options
    with lsm.DB(path, create_if_missing=True, **given) as db:
        for number in range(5):
            write(db, b"%d" % number)
        assert counts(db)[:3] == [3, 1, 1]


def write(db: lsm.DB, value: bytes) -> None:
    """A table that overlaps all others, with this value for all of its keys."""
    for key in (b"a", b"k", b"z"):
        db.put(key, value)
    db.flush()


def check_newest(path: Path, db: lsm.DB, value: bytes) -> None:
    """All keys have this value, now and when it is opened again."""
    expected = dict.fromkeys((b"a", b"k", b"z"), value)
    assert dict(db) == expected
    assert [db.get(key) for key in expected] == list(expected.values())
    db.close()
    with lsm.DB(path, **STILL) as again:
        assert dict(again) == expected
        again.compact_range()
        assert dict(again) == expected


def of_thread(name: str, hook: Callable[[str, str], object]) -> Callable[[str, str], None]:
    """Call this for what threads of this name do."""

    def call(operation: str, path: str) -> None:
        if threading.current_thread().name == name:
            hook(operation, path)

    return call


def pausing() -> list[threading.Thread]:
    """The threads that keep to a pace just now."""
    return [
        each
        for each in threading.enumerate()
        if each.name in ("lsm-compaction", "lsm-background") and is_in(each, "_pause_refiltering")
    ]


# -- Level 0: which table is newer ---------------------------------------------------------


@pytest.mark.parametrize("flushes", [1, 3])
@patient
def test_what_is_flushed_while_level_0_is_copied_is_newer(path: Path, flushes: int) -> None:
    stacked(path)
    gate = Gate("create", ".ldb")
    storage = Hooked(of_thread("lsm-compaction", gate))
    with lsm.DB(path, storage=storage, **CHANGED) as db:
        with Crew() as crew:
            crew.start(lambda: db.refilter(levels=[0]))
            gate.wait()
            for number in range(flushes):
                write(db, b"newer %d" % number)
            assert counts(db)[0] == 3 + flushes
            gate.open()
        assert db.stats().refiltered == 3
        assert counts(db)[0] == 3 + flushes
        check_newest(path, db, b"newer %d" % (flushes - 1))


@pytest.mark.parametrize("has_number", [False, True])
@patient
def test_level_0_waits_for_a_flush_that_has_begun(
    path: Path, has_number: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacked(path)
    gate = Gate("create", ".ldb")
    if not has_number:
        flush = compaction.flush

        def later(*args: Any, **others: Any) -> Any:
            gate("create", ".ldb")
            return flush(*args, **others)

        monkeypatch.setattr(compaction, "flush", later)
    with lsm.DB(path, storage=Hooked(of_thread("lsm-flush", gate)), **CHANGED) as db:
        with Crew() as crew:
            crew.start(lambda: write(db, b"newer"))
            gate.wait()
            asked = crew.start(lambda: db.refilter(levels=[0]), name="asked")
            until(lambda: is_in(asked, "refilter"))
            assert db.stats().running_compactions == 0
            gate.open()
        assert db.stats().refiltered == 4, "it has become one of those whose order is to stay"
        assert {each.policy for each in db.filters()[0].tables} == {"classic"}
        check_newest(path, db, b"newer")


class Watched:
    """A lock that tells who comes to it while somebody has it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.awaited = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            if threading.current_thread().name == "lsm-flush":
                self.awaited.set()
            self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()


@patient
def test_who_decides_with_a_version_from_before_a_flush_finds_it_under_way(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the tables of that version would get numbers above its own."""
    stacked(path)
    gate = Gate("create", ".ldb")
    with lsm.DB(path, storage=Hooked(of_thread("lsm-flush", gate)), **CHANGED) as db, Crew() as it:
        work = db._store.background
        work._lock = lock = Watched()  # type: ignore[assignment]
        it.start(lambda: write(db, b"newer"))
        gate.wait()
        tree = drift.find(db._store)
        request = Refiltering.of(tree, [each for each in tree.drifted if each.level == 0])
        flushed, decide = db.stats().flushes, Background._next

        def late(self: Background, version: Version) -> Any:
            gate.open()
            until(lambda: lock.awaited.is_set() or db.stats().flushes > flushed)
            return decide(self, version)

        with monkeypatch.context() as patch:
            patch.setattr(Background, "_next", late)
            work._refilterings.append(request)
            task = work._begin()
            request.is_withdrawn = True
        assert task is None or not isinstance(task.plan, RefilterPlan)
        work._refilterings.clear()
    with lsm.DB(path, **CHANGED) as db:
        db.refilter()
        check_newest(path, db, b"newer")


# -- Beside compactions --------------------------------------------------------------------


@patient
def test_what_a_compaction_takes_is_skipped_and_said(path: Path) -> None:
    expected = made(path)
    gate = Gate("create", ".ldb")
    reports: list[RefilterReport] = []
    with lsm.DB(path, storage=Hooked(of_thread("lsm-compaction", gate)), **CHANGED) as db:
        with Crew() as crew:
            crew.start(lambda: reports.append(db.refilter()))
            gate.wait()
            asked = crew.start(lambda: db.compact_range(start=b"0060", stop=b"0090"))
            until(lambda: is_in(asked, "compact_level"))
            gate.open()
        [report] = reports
        assert report.skipped
        assert {each.reason for each in report.skipped} == {
            "it was merged, moved or written anew since"
        }
        assert len(report.tables) + len(report.skipped) == 13
        assert report.left == 0
        assert filters_of(db) == {("classic", "built")}
        assert dict(db) == expected


@patient
def test_where_compactions_are_always_due_refiltering_has_its_turns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = STILL | {"filter_policy": BEFORE}
    with lsm.DB(path, create_if_missing=True, **given) as db:
        for value in (b"old" * 20, b"new" * 20):
            for number in range(30):
                db.put(b"%02d" % number, value)
                db.put(b"%02d+" % number, value)
                db.flush()
        assert counts(db)[:3] == [0, 30, 30]
    begun: list[bool] = []
    begin = Background._begin

    def noted(self: Background) -> Any:
        task = begin(self)
        if task is not None:
            begun.append(isinstance(task.plan, RefilterPlan))
        return task

    monkeypatch.setattr(Background, "_begin", noted)
    gate = Gate("create", ".ldb")
    full = CHANGED | {"level_size_base": 1024, "max_background_jobs": 1}
    with lsm.DB(path, storage=Hooked(of_thread("lsm-background", gate)), **full) as db:
        gate.wait()
        with Crew() as crew:
            crew.start(db.refilter)
            until(lambda: bool(db._store.background._refilterings))
            gate.open()
        db.wait_until_idle()
        assert set(dict(db).values()) == {b"new" * 20}
        assert filters_of(db) == {("classic", "built")}
    while_due = begun[: len(begun) - begun[::-1].index(False)]
    assert while_due.count(False) > 10
    turns = [at for at, is_refiltering in enumerate(while_due) if is_refiltering]
    assert turns[0] == background._MOST_BEFORE_REFILTERING
    assert all(
        later - turn > background._MOST_BEFORE_REFILTERING for turn, later in pairwise(turns)
    )


@patient
def test_a_table_that_was_moved_is_not_taken_for_what_it_was(path: Path) -> None:
    """Nothing may be known of filters on the level that it has come to."""
    with lsm.DB(path, create_if_missing=True, filter_policy=BEFORE, **STILL) as db:
        for key in (b"a", b"m", b"x"):
            db.put(key, b"1")
            db.put(key + b"9", b"1")
            db.flush()
        assert counts(db)[:3] == [0, 0, 3]
    with lsm.DB(path, filter_budget="12 bits/key", **STILL) as db:
        store = db._store
        tree = drift.find(store)
        request = Refiltering.of(tree, tree.tables)
        before = store.opened_view().version
        tables = [attrs_moved(table) for table in before.levels[2]]
        moved = Version([(), (), (), tables, (), (), ()])
        assert request.next_plan(moved, (), True) is None
        assert request.next_plan(before, (), True) is not None


def attrs_moved(table: Any) -> Any:
    """The placement of the same file a level deeper."""
    moved = type(table)(*(getattr(table, name) for name in type(table).__slots__[:8]))
    moved.level += 1
    return moved


@patient
def test_whoever_asks_each_table_is_copied_once(path: Path) -> None:
    expected = made(path)
    reports: list[RefilterReport] = []
    with lsm.DB(path, **CHANGED | {"max_background_jobs": 4}) as db:
        with Crew() as crew:
            for _ in range(3):
                crew.start(lambda: reports.append(db.refilter()))
        done = [table.number for report in reports for table in report.tables]
        assert len(done) == len(set(done)) == db.stats().refiltered == 13
        assert dict(db) == expected


# -- Pace ----------------------------------------------------------------------------------


class Clock:
    """Time that goes on when somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 0.001
        return self.now


@pytest.mark.parametrize("jobs", [1, 4])
@patient
def test_a_pace_is_kept_while_nothing_else_is_due(
    path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    clock = Clock()
    monkeypatch.setattr(background, "time", clock)
    monkeypatch.setattr(background, "_LONGEST_LOOKING_AWAY_SECONDS", 0.0)
    with lsm.DB(path, **CHANGED | {"max_background_jobs": jobs}) as db:
        data = db.refilter(dry_run=True).bytes - 13 * 1000  # without what is not copied
        start = clock.now
        db.refilter(bytes_per_second=10_000)
        assert clock.now - start >= data / 10_000
        assert db.stats().refiltered == 13


@pytest.mark.parametrize("jobs", [1, 2, 4])
@patient
def test_a_flush_does_not_wait_for_a_pace(path: Path, jobs: int) -> None:
    expected = made(path)
    with lsm.DB(path, **CHANGED | {"max_background_jobs": jobs}) as db, Crew() as crew:

        def until_closed() -> None:
            with pytest.raises(RuntimeError, match="closed"):
                db.refilter(bytes_per_second=1)

        crew.start(until_closed)
        until(pausing)
        db.put(b"more", b"1")
        db.flush()
        assert dict(db) == expected | {b"more": b"1"}
        db.close()


@pytest.mark.parametrize("jobs", [1, 2, 4])
@patient
def test_a_compaction_does_not_wait_for_the_pace_of_what_it_needs(path: Path, jobs: int) -> None:
    expected = made(path)
    with lsm.DB(path, **CHANGED | {"max_background_jobs": jobs}) as db:
        reports: list[RefilterReport] = []
        with Crew() as crew:
            crew.start(lambda: reports.append(db.refilter(bytes_per_second=1)))
            until(pausing)
            db.compact_range()
            assert counts(db)[:2] == [0, 0]
        assert len(reports[0].tables) + len(reports[0].skipped) == 13
        assert dict(db) == expected


@pytest.mark.parametrize("jobs", [1, 2, 4])
@patient
def test_a_full_level_0_does_not_wait_for_the_pace_of_its_own_tables(path: Path, jobs: int) -> None:
    stacked(path)
    options = CHANGED | {"max_background_jobs": jobs, "level0_compact_files": 4}
    with lsm.DB(path, **options) as db:
        with Crew() as crew:
            crew.start(lambda: db.refilter(levels=[0], bytes_per_second=1))
            until(pausing)
            write(db, b"newer")
            until(lambda: counts(db)[0] == 0)
        check_newest(path, db, b"newer")


# -- In the background ---------------------------------------------------------------------


FOLLOWING: dict[str, Any] = CHANGED | {"refilter_bytes_per_second": TIB}


@pytest.mark.parametrize("jobs", [1, 2, 4])
@patient
def test_filters_follow_while_nothing_else_is_to_be_done(path: Path, jobs: int) -> None:
    expected = made(path)
    with lsm.DB(path, **FOLLOWING | {"max_background_jobs": jobs}) as db:
        db.wait_until_idle()
        assert filters_of(db) == {("classic", "built")}
        assert db.stats().refiltered == 13
        assert dict(db) == expected
        old = numbers(db)
        db.put(b"more", b"1")
        db.flush()
        db.wait_until_idle()
        assert db.stats().refiltered == 13
        assert numbers(db)[1] == old[1]
    with lsm.DB(path, **CHANGED) as db:  # without a pace they are left alone
        db.wait_until_idle()
        assert db.stats().refiltered == 0


@patient
def test_nobody_looks_again_unless_something_came_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    looks: list[object] = []
    find = drift.find

    def counted(*args: Any) -> Any:
        looks.append(args)
        return find(*args)

    monkeypatch.setattr(drift, "find", counted)
    for flushes, expected in ((0, 1), (2, 2)):
        with lsm.DB(path, **STILL | {"filter_policy": BEFORE}) as db:
            db.refilter()
        looks.clear()
        gate = Gate("create", ".ldb")
        with lsm.DB(path, storage=Hooked(of_thread("lsm-compaction", gate)), **FOLLOWING) as db:
            gate.wait()
            for number in range(flushes):
                write(db, b"%d" % number)
            gate.open()
            db.wait_until_idle()
            assert len(looks) == expected
            assert filters_of(db) == {("classic", "built")}


@patient
def test_what_could_not_be_helped_is_not_tried_again(path: Path) -> None:
    made(path)
    with lsm.DB(path, read_only=True, **STILL) as db:
        number = numbers(db)[2][1]
    file = path / f"{number:06}.ldb"
    data = bytearray(file.read_bytes())
    data[50] ^= 1
    file.write_bytes(data)
    tries: list[str] = []

    def note(operation: str, name: str) -> None:
        if operation == "map" and name == str(file):
            tries.append(name)

    with lsm.DB(path, storage=Hooked(of_thread("lsm-compaction", note)), **FOLLOWING) as db:
        db.wait_until_idle()
        assert len(tries) == 1
        assert filters_of(db) == {("blocked", "built"), ("classic", "built")}
        for value in (b"1", b"2"):
            write(db, value)
            db.wait_until_idle()
        assert len(tries) == 1
        assert db.stats().background_error is None
        assert [each.number for each in db.refilter().skipped] == [number], "who asks is told"


@pytest.mark.parametrize("jobs", [1, 2, 4])
@patient
def test_a_load_does_not_wait_for_what_may_be_done_any_time(path: Path, jobs: int) -> None:
    expected = made(path)
    options = FOLLOWING | {"max_background_jobs": jobs, "refilter_bytes_per_second": 1}
    with lsm.DB(path, **options) as db:
        until(pausing)
        pairs = [(b"x%04d" % at, b"1") for at in range(500)]
        assert lsm.bulk.load(db, pairs).entries == 500
        assert dict(db) == expected | dict(pairs)
        until(pausing)
    with lsm.DB(path, **CHANGED) as db:
        assert dict(db) == expected | dict(pairs)


@patient
def test_one_that_was_asked_for_goes_on_behind_a_load(path: Path) -> None:
    expected = made(path)
    with lsm.DB(path, **CHANGED) as db:
        entered, leave = threading.Event(), threading.Event()

        def pairs() -> Any:
            yield b"x", b"1"
            entered.set()
            assert leave.wait(PATIENCE)
            yield b"y", b"1"

        with Crew() as crew:
            crew.start(lsm.bulk.load, db, pairs())
            assert entered.wait(PATIENCE)
            asked = crew.start(db.refilter)
            until(lambda: is_in(asked, "refilter"))
            assert not db.stats().refiltered
            leave.set()
        assert filters_of(db) == {("classic", "built")}
        assert dict(db) == expected | {b"x": b"1", b"y": b"1"}


@patient
def test_closing_does_not_wait_for_a_pace(path: Path) -> None:
    expected = made(path)
    with lsm.DB(path, **FOLLOWING | {"refilter_bytes_per_second": 1}) as db:
        until(pausing)
    assert not pausing()
    with lsm.DB(path, **CHANGED) as db:
        assert dict(db) == expected
        assert len(list(path.glob("*.ldb"))) == 13


# -- Failures ------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["create", "append", "map"])
@patient
def test_a_failure_that_may_pass_ends_it_and_stops_nobody(path: Path, operation: str) -> None:
    expected = made(path)
    failing = [True]

    def fail(attempted: str, name: str) -> None:
        if failing and attempted == operation and name.endswith(".ldb"):
            raise IOError(28, "no room", name)

    storage = Hooked(of_thread("lsm-compaction", fail))
    with lsm.DB(path, storage=storage, **CHANGED) as db:
        for _ in range(2):
            with pytest.raises(IOError, match="no room"):
                db.refilter()
            assert db.stats().background_error is None
            assert len(list(path.glob("*.ldb"))) == 13
            db.put(b"more", b"1")
        failing.clear()
        assert len(db.refilter().tables) == 13
        assert dict(db) == expected | {b"more": b"1"}


@patient
def test_a_failure_of_the_manifest_is_told_and_passes(path: Path) -> None:
    expected = made(path)
    failing = [True]

    def fail(attempted: str, name: str) -> None:
        if failing and attempted == "append" and "MANIFEST" in name:
            raise IOError(28, "no room", name)

    storage = Hooked(of_thread("lsm-compaction", fail))
    with lsm.DB(path, storage=storage, **CHANGED) as db:
        with pytest.raises(lsm.Error, match="no room"):
            db.refilter()
        failing.clear()
        db.resume()
        db.refilter()
        assert filters_of(db) == {("classic", "built")}
        assert dict(db) == expected
        assert len(list(path.glob("*.ldb"))) == sum(counts(db))


@patient
def test_a_failed_sync_of_a_copy_stops_writing_like_any_other(path: Path) -> None:
    expected = made(path)

    def fail(attempted: str, name: str) -> None:
        if attempted == "sync" and name.endswith(".ldb"):
            raise SyncError(5, "cannot sync", name)

    storage = Hooked(of_thread("lsm-compaction", fail))
    with lsm.DB(path, storage=storage, **CHANGED) as db:
        with pytest.raises(lsm.ReadOnlyError, match="cannot sync"):
            db.refilter()
        assert dict(db) == expected
    with lsm.DB(path, **CHANGED) as db:
        assert len(db.refilter().tables) == 13
        assert dict(db) == expected
