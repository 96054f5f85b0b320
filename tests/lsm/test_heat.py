"""Heat: which tables absent keys are looked for in."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import random
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lsm
from lsm import heat, kernels
from lsm.disk import heat_file
from lsm.storage import FileSystem, Storage
from policies import BlockedPolicy, FilterPolicy, LevelPolicies
from tests.lsm.forking import Child
from tests.lsm.simulated import MUTATIONS, SimulatedStorage, Tails

PATH = "db"
FILTERS: list[FilterPolicy | None] = [None, BlockedPolicy(bits_per_key=2)]


# Files of tables are those of the kernel that was chosen at the start: the compiled one takes no
# others.
KERNELS = [name for name in kernels.available() if name in ("python", lsm.KERNEL)]


@pytest.fixture(params=KERNELS)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Each kernel, for a while the one that databases are on."""
    kernel: ModuleType = kernels.load(request.param)
    monkeypatch.setattr(kernels, "_chosen", kernel)
    return kernel


def opened(storage: Storage, **options: Any) -> lsm.DB:
    return lsm.DB(PATH, storage=storage, **({"create_if_missing": True} | options))


def counted(db: lsm.DB) -> dict[int, tuple[int, int]]:
    """By table, how many lookups came by whose key it has not, and whose key it has."""
    tables = db._store.opened_view().version.tables()
    return {each.number: (each.file.missed, each.file.found) for each in tables}


def missed(db: lsm.DB) -> dict[int, int]:
    """The first of these alone."""
    return {number: missed for number, (missed, _) in counted(db).items()}


def two_runs(filters: FilterPolicy | None, storage: Storage | None = None) -> lsm.DB:
    """Two tables that overlap from key 100 to key 199, of even keys."""
    db = opened(storage or SimulatedStorage(), filter_policy=filters)
    for first, last in ((0, 200), (100, 300)):
        for number in range(first, last, 2):
            db.put(b"%03d" % number, b"%d" % first)
        db.flush()
    return db


@pytest.mark.parametrize("filters", FILTERS, ids=["no filter", "filter"])
@pytest.mark.parametrize("way", ["get", "get_many", "snapshot"])
def test_a_table_counts_the_lookups_that_come_by_and_do_not_find_their_key(
    engine: ModuleType, filters: FilterPolicy | None, way: str
) -> None:
    with two_runs(filters) as db:
        reader = db.snapshot() if way == "snapshot" else db

        def ask(first: int, last: int) -> list[tuple[int, int]]:
            before = counted(db)
            keys = [b"%03d" % number for number in range(first, last, 2)]
            for _ in range(2):
                if way == "get_many":
                    reader.get_many(keys)
                else:
                    for key in keys:
                        reader.get(key)
            after = sorted(counted(db).items())
            return [(one - before[at][0], other - before[at][1]) for at, (one, other) in after]

        assert [len(level) for level in db._store.opened_view().version.levels[:3]] == [0, 1, 1]
        assert ask(101, 199) == [(98, 0), (98, 0)], "absent, and both tables have the range"
        assert ask(1, 99) == [(98, 0), (0, 0)], "the newer begins behind it"
        assert ask(199, 299) == [(0, 0), (100, 0)], "the deeper ends before it"
        assert ask(301, 399) == [(0, 0), (0, 0)], "no table has the range"
        assert ask(100, 200) == [(0, 0), (0, 100)], "found in the newer"
        assert ask(0, 100) == [(0, 100), (0, 0)], "found in the deeper, which alone has the range"


@pytest.mark.parametrize("filters", FILTERS, ids=["no filter", "filter"])
def test_whoever_looks_only_at_where_a_lookup_goes_counts_nothing(
    engine: ModuleType, filters: FilterPolicy | None
) -> None:
    with two_runs(filters) as db:
        for number in range(101, 199, 2):
            db.explain(b"%03d" % number)
            db.might_contain(b"%03d" % number)
            db.explain(b"%03d" % (number - 1))
        assert set(counted(db).values()) == {(0, 0)}


def test_a_key_that_is_too_new_for_a_snapshot_is_in_the_table_all_the_same(
    engine: ModuleType,
) -> None:
    levels = LevelPolicies.uniform(BlockedPolicy(bits_per_key=10))
    with opened(SimulatedStorage(), filter_policy=levels) as db:
        snapshot = db.snapshot()
        for number in range(100):
            db.put(b"%03d" % number, b"")
        db.flush()
        assert [snapshot.get(b"%03d" % number) for number in range(100)] == [None] * 100
        assert snapshot.get_many([b"%03d" % number for number in range(100)]) == [None] * 100
        assert set(counted(db).values()) == {(0, 200)}


def test_the_counts_are_numbers_to_read_and_to_set(engine: ModuleType) -> None:
    file = engine.TableFile(7, 100)
    assert (file.missed, file.found) == (0, 0)
    file.missed, file.found = 1 << 40, 3
    file.missed >>= 1
    assert (file.missed, file.found) == (1 << 39, 3)


# ---- Kept in the directory

HEAT = f"{PATH}/lsm-heat"
Counts = dict[int, int]


def written(storage: Storage, path: str | Path = PATH) -> Counts:
    """What each of some tables has counted when the database is closed."""
    with lsm.DB(path, create_if_missing=True, storage=storage) as db:
        for first in (0, 100, 200):
            for number in range(first, first + 100, 2):
                db.put(b"%03d" % number, b"v")
            db.flush()
        for turn, number in enumerate(range(1, 300, 2)):
            for _ in range(1 + turn % 3):
                db.get(b"%03d" % number)
        return missed(db)


def in_heat(storage: SimulatedStorage) -> list[str]:
    """What was done with the file."""
    return [name for name, path in storage.operations if path.startswith(HEAT)]


@pytest.mark.usefixtures("kept_heat")
def test_counts_survive_reopening_and_go_on() -> None:
    storage = SimulatedStorage()
    counts = written(storage)
    assert len(counts) == 3
    assert min(counts.values()) > 90
    assert storage.list(PATH).count("lsm-heat") == 1
    for turn in range(3):
        with opened(storage) as db:
            assert missed(db) == {number: count + turn for number, count in counts.items()}
            for key in (b"001", b"101", b"201"):
                db.get(key)
    assert heat_file.decode(storage.read(HEAT)) == {n: (c + 3, 0) for n, c in counts.items()}


def test_no_file_is_there_where_nobody_wants_heat() -> None:
    storage = SimulatedStorage()
    written(storage)
    assert in_heat(storage) == []
    with opened(storage) as db:
        assert set(missed(db).values()) == {0}
        db.compact_range()
    assert in_heat(storage) == []


@pytest.mark.usefixtures("kept_heat")
def test_what_has_not_changed_is_not_written() -> None:
    storage = SimulatedStorage()
    with opened(storage) as db:
        db.put(b"a", b"1")
        db.flush()
    assert in_heat(storage) == ["map", "exists"], "nobody has asked"
    written(storage)
    storage.operations.clear()
    with opened(storage) as db:
        db.get(b"400")
        db.put(b"more", b"1")
    with opened(storage, read_only=True, create_if_missing=False) as db:
        assert set(missed(db).values()) > {0}
        for number in range(300):
            db.get(b"%03d" % number)
    assert set(in_heat(storage)) == {"map"}


@pytest.mark.usefixtures("kept_heat")
def test_a_compaction_and_a_flush_hand_over_and_the_background_saves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heat, "_MOST_A_TABLE", 100)
    monkeypatch.setattr(heat, "_LEAST_TABLES", 1)
    storage = SimulatedStorage()
    with two_runs(None, storage) as db:
        for _ in range(3):
            for number in range(101, 199, 2):
                db.get(b"%03d" % number)
        assert set(missed(db).values()) == {3 * 49}
        assert in_heat(storage) == ["map", "exists"]
        db.put(b"100", b"")
        db.put(b"198", b"")
        db.flush()
        newest = max(missed(db))
        assert sum(missed(db).values()) <= 300, "they are halved together"
        assert missed(db)[newest] >= 49
        assert heat_file.decode(storage.read(HEAT)) == counted(db)
        before = max(missed(db).values())
        db.compact_range()
        assert list(missed(db).values()) == [pytest.approx(before, rel=0.5)]


@pytest.mark.usefixtures("kept_heat")
def test_tables_that_the_file_does_not_know_begin_with_what_others_have_seen() -> None:
    """They were written before a crash: what was saved last is older."""
    storage = SimulatedStorage()
    counts = written(storage)
    with opened(storage) as db:
        db.put(b"000", b"")
        db.put(b"098", b"")
        db.flush()
        newest = max(missed(db))
        after = storage.crash()
    with opened(after) as db:
        found = missed(db)
        assert found.pop(newest) == counts[min(counts)]
        assert found == counts


@pytest.mark.usefixtures("kept_heat")
def test_whatever_is_wrong_with_the_file_costs_the_heat_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = SimulatedStorage()
    counts = written(storage)
    whole = storage.read(HEAT)
    bad = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    bad += [whole[:at] for at in range(len(whole))]
    for data in bad:
        storage.replace(HEAT, data, f"{HEAT}.dbtmp")
        caplog.clear()
        with opened(storage) as db:
            assert set(missed(db).values()) == {0}
            assert [key for key, _ in db] == [b"%03d" % number for number in range(0, 300, 2)]
        [record] = caplog.records
        assert record.levelname == "WARNING"
        assert f"{HEAT}: all tables begin without heat: CorruptionError" in record.message
        assert storage.read(HEAT) == data, "nothing was asked that could be written"
    with opened(storage) as db:
        db.get(b"001")
    with opened(storage) as db:
        assert missed(db) == {number: int(number == min(counts)) for number in counts}


@pytest.mark.usefixtures("kept_heat")
def test_a_file_that_is_too_large_is_not_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = SimulatedStorage()
    written(storage)
    monkeypatch.setattr(heat_file, "MOST_BYTES", 10)
    opened(storage).close()
    assert re.search(r"without heat: .*has \d+ bytes, allowed are 10", caplog.text)


@pytest.mark.usefixtures("kept_heat")
@pytest.mark.parametrize("operation", ["create", "append", "sync", "rename"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_a_file_that_cannot_be_written_stays_as_it_was(
    operation: str, error: int, caplog: pytest.LogCaptureFixture
) -> None:
    storage = SimulatedStorage()
    counts = written(storage)
    storage.fail(lambda name, path, _: name == operation and path.startswith(HEAT), error)
    with opened(storage) as db:
        db.get(b"001")
        db.put(b"more", b"1")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{HEAT}: the heat of tables is not kept: " in caplog.text
    storage.mend()
    with opened(storage) as db:
        assert missed(db).items() >= counts.items()
        assert db.get(b"more") == b"1"
        assert "lsm-heat.dbtmp" not in storage.list(PATH)


@pytest.mark.usefixtures("kept_heat")
@pytest.mark.parametrize("operation", ["map", "exists"])
def test_a_file_that_cannot_be_read_is_as_good_as_none(
    operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = SimulatedStorage()
    written(storage)
    if operation == "exists":
        storage.remove(HEAT)
    storage.fail(lambda name, path, _: name in ("map", operation) and path == HEAT)
    with opened(storage) as db:
        assert set(missed(db).values()) == {0}
    assert "all tables begin without heat: IOError" in caplog.text


@pytest.mark.usefixtures("kept_heat")
def test_a_loss_of_power_leaves_the_old_file_or_the_new_one(rng: random.Random) -> None:
    storage, lost = SimulatedStorage(), []
    before = written(storage)

    def note(operation: str, path: str, index: int) -> bool:
        if operation in MUTATIONS:
            tails: Tails = rng.choice(("clean", "zero", "garbage"))
            lost.extend([storage.crash(), storage.crash(rng, tails=tails), storage.kill()])
        return False

    storage.fail(note)
    with opened(storage) as db:
        db.get(b"001")
        after = missed(db)
    lost.append(storage.crash())
    assert len(lost) > 12
    found = []
    for each in lost:
        with opened(each) as db:
            found.append(missed(db))
            assert db.get(b"000") == b"v"
    assert all(each in (before, after) for each in found)
    assert (found[0], found[-1]) == (before, after)


@pytest.mark.usefixtures("kept_heat")
def test_an_opening_that_fails_leaves_the_file_as_it_was() -> None:
    storage = SimulatedStorage()
    written(storage)
    before = storage.read(HEAT)
    start = len(storage.operations)
    opened(storage, block_size=2048).close()
    steps = len(storage.operations) - start
    for step in range(steps):
        after = storage.kill()
        after.fail(lambda _, path, index, step=step: index == step)
        with contextlib.suppress(lsm.Error):
            opened(after, block_size=1024 + step).close()
        assert after.kill().read(HEAT) == before


@pytest.mark.usefixtures("kept_heat")
def test_a_new_database_that_cannot_be_opened_leaves_no_file() -> None:
    for step in itertools.count():
        storage = SimulatedStorage()
        storage.fail(lambda _, path, index, step=step: index == step)
        try:
            opened(storage).close()
        except lsm.Error:
            assert not storage.exists(HEAT)
        if len(storage.operations) <= step:
            break
    assert step > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.usefixtures("kept_heat")
def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.put(b"c", b"1")
        db.flush()
        db.get(b"b")
        child = Child.fork()
        if child.is_this:
            child.end(db.close)
        child.check()
        assert not (tmp_path / "db" / "lsm-heat").exists()
    assert (tmp_path / "db" / "lsm-heat").exists()


@pytest.mark.usefixtures("kept_heat")
def test_leveldb_opens_the_directory_and_leaves_the_file(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = tmp_path / "db"
    counts = written(FileSystem(), path)
    before = (path / "lsm-heat").read_bytes()
    with plyvel.DB(str(path), paranoid_checks=True) as db:
        assert db.get(b"000") == b"v"
        db.put(b"more", b"1")
        db.compact_range()
    assert (path / "lsm-heat").read_bytes() == before
    with lsm.DB(path) as db:
        assert db.get(b"more") == b"1"
        assert set(missed(db)) != set(counts)
    plyvel.destroy_db(str(path))
    assert (path / "lsm-heat").exists(), "of which LevelDB knows nothing"
    lsm.destroy_db(path)
    assert not path.exists()
