"""Several compactions at once, and a flush beside them: who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm import background
from lsm.background import Background
from lsm.errors import IOError
from lsm.loading import Load
from lsm.options import TIB
from lsm.pace import Speed
from tests.lsm.crew import PATIENCE, Crew, Gate, Hooked, is_in, until
from tests.lsm.patience import patient

RANGES = (b"a", b"m", b"x")
STILL: dict[str, Any] = {"level_size_base": TIB, "compression": None, "max_background_jobs": 4}
FULL: dict[str, Any] = STILL | {"level_size_base": 1024, "level_size_ratio": 100}


def entries(first: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
    return [(first + b"%02d" % number, value) for number in range(30)]


def made(path: Path) -> dict[bytes, bytes]:
    """Make a database with three tables on level 2, and one above each, that overlap no other."""
    expected = {}
    with lsm.DB(path, create_if_missing=True, **STILL) as db:
        for value in (b"old" * 20, b"new" * 20):
            for first in RANGES:
                for key, _ in entries(first, value):
                    db.put(key, value)
                    expected[key] = value
                db.flush()
        assert [level.tables for level in db.stats().levels[:3]] == [0, 3, 3]
    return expected


def only_compactions(hook: Callable[[str, str], object]) -> Callable[[str, str], None]:
    """Call this for what compactions do."""

    def call(operation: str, path: str) -> None:
        if threading.current_thread().name == "lsm-compaction":
            hook(operation, path)

    return call


def at_create(hook: Callable[[], object]) -> Callable[[str, str], None]:
    """Call this when a compaction is about to create a table."""
    return only_compactions(
        lambda operation, path: operation == "create" and path.endswith(".ldb") and hook()
    )


def at_work(kind: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"lsm-{kind}"]


def compacting() -> list[threading.Thread]:
    return at_work("compaction")


@patient
def test_compactions_that_do_not_touch_run_at_once(tmp_path: Path) -> None:
    expected = made(tmp_path / "db")
    together = threading.Barrier(len(RANGES))
    storage = Hooked(at_create(lambda: together.wait(PATIENCE)))
    with lsm.DB(tmp_path / "db", storage=storage, **FULL) as db:
        db.wait_until_idle()
        assert db.stats().compactions == 3
        assert dict(db) == expected
        assert db.stats().background_error is None
    with lsm.DB(tmp_path / "db", **STILL) as db:
        assert dict(db) == expected


@pytest.mark.parametrize("at_most", [1, 2, 3])
@patient
def test_there_are_no_more_jobs_than_were_asked_for(at_most: int, tmp_path: Path) -> None:
    expected = made(tmp_path / "db")
    working: set[str] = set()
    most: list[int] = []

    def note(operation: str, path: str) -> None:
        """Of every table that is created and not yet synced somebody is at work."""
        if not path.endswith(".ldb"):
            return
        if operation == "create":
            working.add(path)
            most.append(len(working))
        elif operation == "sync":
            working.discard(path)

    options = FULL | {"max_background_jobs": at_most, "level0_compact_files": 1}
    with lsm.DB(tmp_path / "db", storage=Hooked(note), **options) as db:
        for value in range(20):
            for key in (b"a00", b"m00", b"x00"):
                db.put(key, b"%d" % value)
                expected[key] = b"%d" % value
            db.flush()
        db.wait_until_idle()
        assert dict(db) == expected
    assert max(most) <= at_most


@patient
def test_a_flush_goes_on_beside_compactions(tmp_path: Path) -> None:
    expected = made(tmp_path / "db")
    gate = Gate("create", ".ldb")
    with lsm.DB(tmp_path / "db", storage=Hooked(only_compactions(gate)), **FULL) as db:
        gate.wait()
        db.put(b"b", b"1")  # nothing there overlaps it, but who knows what the compactions write
        db.flush()
        assert [level.tables for level in db.stats().levels[:3]] == [1, 3, 3]
        gate.open()
        db.wait_until_idle()
        assert dict(db) == expected | {b"b": b"1"}


@patient
def test_a_manual_compaction_waits_for_what_touches_it_and_for_nothing_else(
    tmp_path: Path,
) -> None:
    expected = made(tmp_path / "db")
    with lsm.DB(tmp_path / "db", read_only=True, **STILL) as db:
        view = db._store.view
        assert view is not None
        first = view.version.levels[1][0].number
        del view
    gate = Gate("map", f"{first:06}.ldb")
    with lsm.DB(tmp_path / "db", storage=Hooked(only_compactions(gate)), **FULL) as db:
        gate.wait()
        with Crew() as crew:
            crew.start(lambda: db.compact_range(start=b"m", stop=b"n"))
            crew.join()
            waiting = crew.start(lambda: db.compact_range(start=b"a", stop=b"b"))
            until(lambda: is_in(waiting, "compact_level"))
            until(lambda: db.stats().levels[1].tables == 1)
            gate.open()
        db.wait_until_idle()
        assert db.stats().levels[1].tables == 0
        assert dict(db) == expected


@patient
def test_a_compaction_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    expected = made(tmp_path / "db")
    together, first, told = threading.Barrier(3), threading.Lock(), threading.Event()

    def fail_one() -> None:
        if told.is_set():
            return
        together.wait(PATIENCE)
        if first.acquire(blocking=False):
            raise IOError(28, "no room", "a table")
        assert told.wait(PATIENCE)

    with lsm.DB(tmp_path / "db", storage=Hooked(at_create(fail_one)), **FULL) as db:
        until(lambda: db.stats().background_error)
        told.set()
        until(lambda: not compacting())
        assert "no room" in str(db.stats().background_error)
        assert db.stats().compactions == 2
        assert dict(db) == expected
        db.resume()
        db.wait_until_idle()
        assert db.stats().compactions == 3
        assert dict(db) == expected
        live = sum(level.tables for level in db.stats().levels)
        assert len(list((tmp_path / "db").glob("*.ldb"))) == live


@pytest.fixture
def ages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a compaction wait for the next table for as long as it takes."""
    monkeypatch.setattr(background, "_LONGEST_AWAITING_SECONDS", 1e6)


def brisk(path: Path, **options: Any) -> lsm.DB:
    """A database whose tables come faster than they are merged, as far as it knows."""
    db = lsm.DB(path, create_if_missing=True, **options)
    for drain in (db._store.work.flushing, db._store.work.relieving):
        drain.speed = Speed(amount=1.0, seconds=1e12)
    return db


def flush_tables(db: lsm.DB, count: int) -> None:
    """Write tables of which each overlaps all others, and the first goes below level 0."""
    for number in range(count):
        db.put(b"a", b"%d" % number)
        db.put(b"z", b"%d" % number)
        db.flush()


def somebody_awaits_tables() -> bool:
    return any(is_in(each, "_await_tables") for each in compacting())


@pytest.mark.usefixtures("ages")
@patient
def test_tables_that_come_fast_are_merged_together(tmp_path: Path) -> None:
    with brisk(tmp_path / "db") as db:
        flush_tables(db, 2 + 8)
        db.wait_until_idle()
        assert db.stats().compactions == 1
        assert db.stats().levels[0].tables == 0
    with brisk(tmp_path / "slow", level0_slow_files=5) as db:
        flush_tables(db, 2 + 5)
        db.wait_until_idle()
        assert db.stats().compactions == 1


@pytest.mark.usefixtures("ages")
@patient
def test_tables_that_come_slowly_are_merged_when_they_are_due(tmp_path: Path) -> None:
    with brisk(tmp_path / "db") as db:
        flush_tables(db, 2 + 3)
        db._store.work.flushing.speed, db._store.work.relieving.speed = Speed(), Speed()
        flush_tables(db, 1)
        db.wait_until_idle()
        assert db.stats().compactions == 1
    with brisk(tmp_path / "alone", max_background_jobs=1) as db:  # flushes would have to wait
        flush_tables(db, 2 + 4)
        db.wait_until_idle()
        assert db.stats().compactions == 1


@pytest.mark.usefixtures("ages")
@patient
def test_who_asks_for_a_compaction_does_not_wait_for_further_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with brisk(tmp_path / "db") as db:
        flush_tables(db, 2 + 4)
        until(somebody_awaits_tables)
        db.compact_range()
        assert db.stats().levels[0].tables == 0
    wait_until_alone = Background.wait_until_alone

    def wait_when_all_is_quiet(self: Background, load: Load) -> None:
        """Begin when the flush before the load can wake nobody any more."""
        until(lambda: not at_work("flush") and somebody_awaits_tables())
        wait_until_alone(self, load)

    monkeypatch.setattr(Background, "wait_until_alone", wait_when_all_is_quiet)
    with brisk(tmp_path / "loaded") as db:
        flush_tables(db, 2 + 4)
        assert lsm.bulk.load(db, [(b"x", b"y")]) is not None
        assert db.get(b"x") == b"y"
    with brisk(tmp_path / "closed") as db:
        flush_tables(db, 2 + 4)
        until(somebody_awaits_tables)
        assert db.stats().levels[0].tables == 4
    until(lambda: not compacting())


@patient
def test_closing_stops_all_of_them(tmp_path: Path) -> None:
    expected = made(tmp_path / "db")
    gate, together = Gate("create", ".ldb"), threading.Barrier(4)

    def hold(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".ldb"):
            together.wait(PATIENCE)
            gate(operation, path)

    db = lsm.DB(tmp_path / "db", storage=Hooked(only_compactions(hold)), **FULL)
    together.wait(PATIENCE)
    with Crew() as crew:
        crew.start(db.close)
        until(lambda: db.closed)
        gate.open()
    assert not compacting()
    with lsm.DB(tmp_path / "db", **STILL) as db:
        assert dict(db) == expected
        assert [level.tables for level in db.stats().levels[:3]] == [0, 3, 3]
        assert len(list((tmp_path / "db").glob("*.ldb"))) == 6
