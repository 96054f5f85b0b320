"""``compact_range(force=True)``: what lies deepest is written anew as well, where it lies."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import plyvel
import pytest

import lsm
from lsm import picking
from lsm.manual import CompactionProgress
from lsm.options import LEVELS
from lsm.picking import pick_in_place
from tests.lsm.crew import Crew, Gate, Hooked, until
from tests.lsm.patience import patient
from tests.lsm.placing import numbers, random_version, table, version
from tests.lsm.refilterable import AFTER, STILL, counts, filters_of, made
from tests.lsm.test_background import at_work
from tests.lsm.test_picking import OPTIONS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each step take one table, and what has further versions of its keys."""
    monkeypatch.setattr(picking, "PIECE_FACTOR", 0)


def created(storage: Hooked) -> list[str]:
    """The tables that were written, in order."""
    return [
        path.rpartition("/")[2]
        for _, operation, path in storage.operations
        if operation == "create" and path.endswith(".ldb")
    ]


def flat(path: Path, **options: Any) -> dict[bytes, bytes]:
    """Make a database that has tables on its deepest level only."""
    expected = made(path, **options)
    with lsm.DB(path, **STILL | options) as db:
        db.compact_range()
        assert counts(db)[:2] == [0, 0]
        assert counts(db)[2] > 5
    return expected


# -- Once, and as they were ----------------------------------------------------------------


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("jobs", [1, 4])
@patient
def test_every_table_is_written_anew_once(path: Path, is_flat: bool, jobs: int) -> None:
    expected = flat(path) if is_flat else made(path)
    before = {each.name for each in path.glob("*.ldb")}
    storage = Hooked()
    options = STILL | {"filter_policy": AFTER, "max_background_jobs": jobs}
    with lsm.DB(path, storage=storage, **options) as db:
        db.compact_range()
        assert is_flat == (not created(storage)), "what lies deepest stays without force"
        with db.snapshot() as snapshot:
            storage.operations.clear()
            db.compact_range(force=True)
            assert dict(snapshot) == expected
        assert dict(db) == expected
        assert filters_of(db) == {("classic", "built")}
        live = sorted(each.name for each in path.glob("*.ldb"))
        assert sorted(created(storage)) == live, "and none of them twice"
        assert not before & set(live)
        assert len(live) == sum(counts(db))
    with lsm.DB(path, **STILL) as db:
        assert dict(db) == expected


@pytest.mark.usefixtures("one_by_one")
@patient
def test_only_what_has_keys_of_the_range(path: Path) -> None:
    expected = flat(path)
    with lsm.DB(path, **STILL) as db:
        view = db._store.opened_view()
        old = view.version.levels[2]
        within = {each.number for each in old if each.high >= b"0050" and each.low <= b"0090"}
        everything = {each.number for each in old}
        del view, old
        assert 0 < len(within) < len(everything)
        db.compact_range(start=b"0050", stop=b"0090", force=True)
        now = {each.number for each in db._store.opened_view().version.levels[2]}
        assert everything - now == within
        assert dict(db) == expected


@patient
def test_an_empty_database_has_nothing_to_write(path: Path) -> None:
    told: list[CompactionProgress] = []
    with lsm.DB(path, create_if_missing=True) as db:
        db.compact_range(force=True, progress=told.append)
        assert told[-1] == CompactionProgress(level=0, levels=1, read_bytes=0, total_bytes=0)
        wrong: Any = "yes"
        with pytest.raises(TypeError, match="force"):
            db.compact_range(force=wrong)


@patient
def test_tombstones_with_nothing_beneath_are_left_out(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True, **STILL) as db:
        for at in range(200):
            db.put(b"%04d" % at, b"v" * 40)
        with db.snapshot():
            for at in range(0, 200, 2):
                db.delete(b"%04d" % at)
            db.compact_range()
        expected = dict(db)
        assert len(expected) == 100

        def entries() -> int:
            return sum(each.num_entries or 0 for level in db.filters() for each in level.tables)

        assert entries() == 300
        db.compact_range()
        assert entries() == 300
        db.compact_range(force=True)
        assert entries() == 100
        assert dict(db) == expected
        for at in range(200):
            db.delete(b"%04d" % at)
        db.compact_range(force=True)
        assert counts(db) == [0] * LEVELS
        assert not dict(db)


# -- Versions of one key in two tables -----------------------------------------------------


def straddling(path: Path) -> None:
    """Have LevelDB write a tombstone and the versions beneath it to several tables of a level."""
    values = random.Random(7)
    options = {"max_file_size": 1 << 20, "write_buffer_size": 1 << 20}
    with plyvel.DB(str(path), create_if_missing=True, **options) as theirs:
        snapshots = []
        for _ in range(10):
            theirs.put(b"a", b"first")
            theirs.put(b"z", b"last")
            theirs.put(b"k", values.randbytes(300_000))
            snapshots.append(theirs.snapshot())
        theirs.delete(b"k")
        theirs.compact_range(start=b"", stop=b"zz")
        for snapshot in snapshots:
            snapshot.close()


BIG: dict[str, Any] = {"max_file_size": 1 << 20, "level_size_base": 1 << 40}


@pytest.mark.usefixtures("one_by_one")
@patient
def test_no_older_version_stays_behind_a_tombstone_that_is_left_out(path: Path) -> None:
    straddling(path)
    with lsm.DB(path, **BIG) as db:
        [tables] = [level for level in db._store.opened_view().version.levels if level]
        assert len(tables) > 2
        assert tables[0].high == tables[1].low == b"k", "it begins in one and goes on in another"
        del tables
        assert db.get(b"k") is None
        db.compact_range(force=True)
        assert db.get(b"k") is None
        assert dict(db) == {b"a": b"first", b"z": b"last"}
        assert sum(counts(db)) == 1


@pytest.mark.usefixtures("one_by_one")
@patient
def test_else_it_would_come_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test before this one is there for."""
    straddling(path)
    monkeypatch.setattr(picking, "_clean_cut", lambda made, level, tables: list(tables))
    with lsm.DB(path, **BIG) as db:
        db.compact_range(force=True)
        assert db.get(b"k") is not None


def test_what_is_picked_has_all_versions_of_its_keys(rng: random.Random) -> None:
    found = set()
    for _ in range(2000):
        made = random_version(rng)
        level = rng.randrange(1, LEVELS)
        older_than = rng.randrange(60)
        bounds = sorted(b"%02d" % rng.randrange(30) for _ in "ab")
        plan = pick_in_place(made, level, *bounds, older_than, OPTIONS)
        wanted = [each for each in made.overlapping(level, *bounds) if each.number < older_than]
        assert (plan is None) == (not wanted)
        if plan is None:
            continue
        taken = plan.inputs
        assert not plan.upper
        everything = made.levels[level]
        first = everything.index(taken[0])
        assert list(everything[first : first + len(taken)]) == taken, "they are side by side"
        assert wanted[0] in taken
        around = everything[max(0, first - 1) : first], everything[first + len(taken) :][:1]
        assert all(each.high < taken[0].low for each in around[0])
        assert all(taken[-1].high < each.low for each in around[1])
        found.add(
            (len(taken) > 1, level == LEVELS - 1, any(each.number >= older_than for each in taken))
        )
    assert len(found) > 5


def test_newer_tables_are_not_taken_along() -> None:
    level = [
        table(number, b"%d" % at, b"%d" % at, level=1) for at, number in enumerate((1, 2, 9, 3))
    ]
    plan = pick_in_place(version([], level), 1, None, None, 5, OPTIONS)
    assert plan is not None
    assert numbers(plan.inputs) == [1, 2]
    plan = pick_in_place(version([], level), 1, b"2", None, 5, OPTIONS)
    assert plan is not None
    assert numbers(plan.inputs) == [3]
    assert pick_in_place(version([], level), 1, b"2", b"2", 5, OPTIONS) is None


# -- How far it has come, and who is beside it ---------------------------------------------


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.usefixtures("one_by_one")
@patient
def test_progress_is_told_until_all_is_written(path: Path, is_flat: bool) -> None:
    expected = flat(path) if is_flat else made(path)
    told: list[CompactionProgress] = []
    with lsm.DB(path, **STILL) as db:
        size = sum(level.bytes for level in db.stats().levels)
        db.compact_range(force=True, progress=told.append)
        read = sum(level.read_bytes for level in db.stats().levels)
        assert dict(db) == expected
    for name in ("level", "read_bytes"):
        values = [getattr(each, name) for each in told]
        assert values == sorted(values), name
    assert {each.levels for each in told} == {2}
    assert all(each.level < each.levels for each in told)
    assert all(each.read_bytes <= each.total_bytes for each in told)
    assert told[0].read_bytes == 0
    assert told[-1].read_bytes == told[-1].total_bytes == read
    if is_flat:
        assert read == size == told[0].total_bytes
        assert len({each.read_bytes for each in told}) > 3


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("after", [0, 2])
@patient
def test_what_progress_raises_ends_it(path: Path, after: int) -> None:
    expected = flat(path)
    steps: list[int] = []

    def stop(_: CompactionProgress) -> None:
        if len(steps) == after:
            raise KeyError("enough")
        steps.append(1)

    with lsm.DB(path, **STILL) as db:
        with pytest.raises(KeyError, match="enough"):
            db.compact_range(force=True, progress=stop)
        db.wait_until_idle()
        assert dict(db) == expected
        assert db.stats().background_error is None
        assert len(list(path.glob("*.ldb"))) == sum(counts(db))
        db.compact_range(force=True)
        assert dict(db) == expected


@patient
def test_nobody_comes_into_the_gaps_of_what_is_merged(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True, **STILL) as db:
        for key in (b"a", b"x"):
            db.put(key, b"1")
            db.put(key + b"9", b"1")
            db.flush()
        assert counts(db)[:3] == [0, 0, 2]
    gate, first = Gate("create", ".ldb"), threading.Lock()

    def hold(operation: str, name: str) -> None:
        if operation == "create" and name.endswith(".ldb") and first.acquire(blocking=False):
            gate(operation, name)

    options = STILL | {
        "max_background_jobs": 4,
        "max_file_size": 1 << 20,
        "level_size_base": 1024,
        "level0_compact_files": 1,
    }
    with lsm.DB(path, storage=Hooked(hold), **options) as db:
        with Crew() as crew:
            crew.start(lambda: db.compact_range(force=True))
            gate.wait()
            for key in (b"k", b"m"):
                db.put(key, bytes(1000))
            db.flush()
            until(lambda: counts(db)[0] == 0 and len(at_work("compaction")) == 1)
            assert counts(db)[:3] == [0, 1, 2], "it waits to go further down"
            gate.open()
        db.wait_until_idle()
        assert counts(db)[:2] == [0, 0]
        assert db.stats().background_error is None
        assert list(db.iterator(include_value=False)) == [b"a", b"a9", b"k", b"m", b"x", b"x9"]
    with lsm.DB(path, **STILL) as db:
        assert len(dict(db)) == 6


@patient
def test_it_goes_on_beside_whoever_writes_and_merges(path: Path) -> None:
    expected = made(path)
    options = STILL | {
        "max_background_jobs": 4,
        "level_size_base": 4000,
        "level_size_ratio": 2,
        "level0_compact_files": 2,
        "write_buffer_size": 4000,
    }
    with lsm.DB(path, **options) as db:
        with Crew() as crew:
            for _ in range(2):
                crew.start(lambda: [db.compact_range(force=True) for _ in range(3)])
            crew.start(lambda: [db.refilter() for _ in range(5)])
            for number in range(1500):
                key, value = b"%04d" % (number * 7 % 200), b"%d " % number * 10
                db.put(key, value)
                expected[key] = value
        assert dict(db) == expected
        assert db.stats().background_error is None
        db.wait_until_idle()
        db.put(b"last", expected.setdefault(b"last", b"of all"))
        db.flush()  # whoever was reading until now had files kept
        db.wait_until_idle()
        assert len(list(path.glob("*.ldb"))) == sum(counts(db))
