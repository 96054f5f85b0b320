"""Compactions that somebody asks for: how far they have come, and what ends them."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm import picking
from lsm.manual import CompactionProgress, ManualCompaction, bytes_to_read
from lsm.options import TIB
from tests.lsm.crew import PATIENCE, Crew, Gate, Hooked, until
from tests.lsm.patience import patient
from tests.lsm.placing import table, version

STILL: dict[str, Any] = {
    "level_size_base": TIB,
    "compression": None,
    "max_file_size": 2000,
    "level0_compact_files": 1000,
    "level0_slow_files": 1000,
    "level0_stop_files": 1000,
}


def entries(turn: int) -> dict[bytes, bytes]:
    """Keys that no other turn has, over the same range."""
    return {b"%04d %d" % (number, turn): b"%d" % turn * 40 for number in range(200)}


def made(path: Path) -> dict[bytes, bytes]:
    """Make a database with eight tables on each level from 0 to 2, one above the other."""
    written: dict[bytes, bytes] = {}
    with lsm.DB(path, create_if_missing=True, **STILL) as db:
        for turn in range(3):
            for number, (key, value) in enumerate(entries(turn).items(), 1):
                db.put(key, value)
                if number % 25 == 0:
                    db.flush()
            written |= entries(turn)
        assert tables(db) == [8, 8, 8, 0, 0, 0, 0]
    return written


def tables(db: lsm.DB) -> list[int]:
    return [level.tables for level in db.stats().levels]


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no levels merged at once, however small they are."""
    monkeypatch.setattr(picking, "AT_ONCE_FACTOR", 0)


@pytest.mark.parametrize("at_once", [False, True])
@patient
def test_progress_is_told_in_the_calling_thread_until_all_is_read(
    at_once: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not at_once:
        request.getfixturevalue("one_by_one")
    written, told = made(tmp_path / "db"), []

    def tell(progress: CompactionProgress) -> None:
        told.append((threading.get_ident(), progress))

    with lsm.DB(tmp_path / "db", **STILL) as db:
        db.compact_range(progress=tell)
        assert tables(db)[:2] == [0, 0]
        assert tables(db)[2] > 5
        assert dict(db) == written
        read = db.stats().levels[1].read_bytes + db.stats().levels[2].read_bytes
        assert (db.stats().compactions == 1) == at_once
    assert {thread for thread, _ in told} == {threading.get_ident()}
    progress = [each for _, each in told]
    assert {each.levels for each in progress} == {2}
    assert [each.level for each in progress] == sorted(each.level for each in progress)
    assert [each.read_bytes for each in progress] == sorted(each.read_bytes for each in progress)
    assert progress[0].read_bytes == 0
    assert progress[-1].read_bytes == progress[-1].total_bytes == read
    # Nothing was dropped, so that it was known from the beginning.
    assert all(0.8 * read < each.total_bytes < 1.2 * read for each in progress)
    assert len({each.read_bytes for each in progress}) > (1 if at_once else 2)


def test_every_level_is_read_with_all_from_above() -> None:
    levels = [
        [table(1, b"a", b"c", size=1)],
        [table(2, b"a", b"c", level=1, size=10)],
        [table(3, b"b", b"b", level=2, size=100), table(4, b"x", b"z", level=2, size=9999)],
        [table(5, b"c", b"d", level=3, size=1000)],
    ]
    made = version(*levels)
    upper = ManualCompaction(0, b"a", b"d")
    assert bytes_to_read(made, upper, 1, 0) == 1 + 10
    assert bytes_to_read(made, upper, 3, 0) == (1 + 10) + (11 + 100) + (111 + 1000)
    assert bytes_to_read(made, ManualCompaction(2, b"b", b"d"), 3, 0) == 100 + 1000
    assert bytes_to_read(made, ManualCompaction(2, b"c", b"d"), 3, 0) == 0  # nothing goes there


def test_levels_that_are_merged_at_once_are_read_once() -> None:
    levels = [
        [table(1, b"a", b"c", size=1)],
        [table(2, b"a", b"c", level=1, size=10)],
        [table(3, b"b", b"b", level=2, size=100)],
        [table(4, b"c", b"d", level=3, size=1000)],
    ]
    made = version(*levels)
    upper, lower = ManualCompaction(0, b"a", b"d"), ManualCompaction(1, b"a", b"d")
    assert bytes_to_read(made, upper, 3, 1111) == 1111
    assert bytes_to_read(made, upper, 3, 1110) == 111 + 1111
    assert bytes_to_read(made, upper, 3, 110) == 11 + 111 + 1111
    assert bytes_to_read(made, upper, 1, 1111) == 11
    assert bytes_to_read(made, lower, 3, 1111) == 110 + 1110


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("after", [0, 1, 2])
@patient
def test_what_progress_raises_ends_it_and_nothing_is_lost(after: int, tmp_path: Path) -> None:
    written, told = made(tmp_path / "db"), []

    def stop(progress: CompactionProgress) -> None:
        if len(told) == after:
            raise KeyError("enough")
        told.append(progress)

    with lsm.DB(tmp_path / "db", **STILL) as db:
        with pytest.raises(KeyError, match="enough"):
            db.compact_range(progress=stop)
        db.wait_until_idle()
        before = tables(db)
        assert before[0] + before[1] > 0
        assert dict(db) == written
        assert db.stats().background_error is None
        assert len(list((tmp_path / "db").glob("*.ldb"))) == sum(before)
        db.put(b"more", b"")
        db.compact_range()
        assert tables(db)[:2] == [0, 0]
        assert dict(db) == written | {b"more": b""}


@patient
def test_who_ends_it_need_not_wait_for_the_thread_that_is_at_it(tmp_path: Path) -> None:
    written = made(tmp_path / "db")
    gate = Gate("create", ".ldb")

    def hold(operation: str, path: str) -> None:
        if threading.current_thread().name == "lsm-compaction":
            gate(operation, path)

    calls = itertools.count()

    def stop(_: CompactionProgress) -> None:
        if next(calls):  # it has begun
            gate.wait()
            raise KeyboardInterrupt

    with lsm.DB(tmp_path / "db", storage=Hooked(hold), **STILL) as db:
        with pytest.raises(KeyboardInterrupt):
            db.compact_range(progress=stop)
        assert db.stats().running_compactions == 1
        gate.open()
        db.wait_until_idle()
        assert db.stats().running_compactions == 0
        assert db.stats().compactions == 0
        assert tables(db)[:3] == [8, 8, 8]
        assert len(list((tmp_path / "db").glob("*.ldb"))) == 24
        assert dict(db) == written
        assert db.stats().background_error is None


@patient
def test_one_that_ends_lets_the_next_one_go_on(tmp_path: Path) -> None:
    written = made(tmp_path / "db")
    waiting, queued = threading.Event(), threading.Event()

    def stop(_: CompactionProgress) -> None:
        waiting.set()
        assert queued.wait(PATIENCE)
        raise KeyError("enough")

    def ended() -> None:
        with pytest.raises(KeyError):
            db.compact_range(progress=stop)

    with lsm.DB(tmp_path / "db", **STILL) as db:
        with Crew() as crew:
            crew.start(ended)
            assert waiting.wait(PATIENCE)
            crew.start(db.compact_range)
            until(lambda: len(db._store.background._manual) == 2 or tables(db)[:2] == [0, 0])
            queued.set()
        assert tables(db)[:2] == [0, 0]
        assert dict(db) == written


def test_progress_is_a_function(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        wrong: Any = "often"
        with pytest.raises(TypeError, match="progress is a function, or None, not str"):
            db.compact_range(progress=wrong)
        told: list[CompactionProgress] = []
        db.compact_range(progress=told.append)
        assert told[-1] == CompactionProgress(level=0, levels=1, read_bytes=0, total_bytes=0)


@patient
def test_closing_ends_it_with_progress_too(tmp_path: Path) -> None:
    made(tmp_path / "db")
    with lsm.DB(tmp_path / "db", **STILL) as db, pytest.raises(RuntimeError, match="closed"):
        db.compact_range(progress=lambda _: db.close())
    with lsm.DB(tmp_path / "db", **STILL) as db:
        assert len(dict(db)) == 600
