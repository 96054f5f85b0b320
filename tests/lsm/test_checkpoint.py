"""Checkpoints: whole and of one moment, or not there, whatever goes on or wrong meanwhile."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import plyvel
import pytest

import lsm
from lsm.checkpoint import CheckpointProgress
from lsm.disk import heat_file
from lsm.storage import FileSystem
from tests.effort import by_effort
from tests.lsm.crew import Crew, Gate, Hooked, until
from tests.lsm.interrupting import Stepwise, chosen, interrupted_at, points
from tests.lsm.patience import patient
from tests.lsm.refilterable import files
from tests.lsm.simulated import MUTATIONS, SimulatedStorage

Contents = dict[bytes, bytes]

SMALL: dict[str, Any] = {
    "write_buffer_size": 20_000,
    "max_file_size": 8_000,
    "block_size": 1000,
    "level0_compact_files": 2,
    "level_size_base": 30_000,
    "level_size_ratio": 3,
}
"""Options under which much is flushed and compacted."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def ours(path: Path, **options: Any) -> Contents:
    """What we find in a database that must not have lost anything."""
    with lsm.DB(path, paranoid_checks=True, **options) as db:
        assert db.stats().log_losses == ()
        found = dict(db)
        assert {key: db.get(key) for key in found} == found
        return found


def theirs(path: Path, **options: Any) -> Contents:
    """What LevelDB finds."""
    with plyvel.DB(str(path), paranoid_checks=True, **options) as db:
        return dict(db.iterator(verify_checksums=True))


def filled(path: Path, count: int = 400, **options: Any) -> lsm.DB:
    """An open database with tables on two levels, and entries that only the log has."""
    db = lsm.DB(path, create_if_missing=True, **{**SMALL, **options})
    fill(db, count)
    return db


def fill(db: lsm.DB, count: int) -> None:
    """Write tables, and then some entries, so few that nothing goes on in the background."""
    for turn in range(2):
        for number in range(0, count, turn + 1):
            db.put(b"%05d" % number, b"%d " % turn * 40)
        db.flush()
    db.wait_until_idle()
    for number in range(0, count, count // 5):
        db.put(b"%05d" % number, b"only in the log")
        db.delete(b"%05d" % (number + 1))


# -- One moment ----------------------------------------------------------------------------


@attrs.define(eq=False)
class Line:
    """Batches that are written one after the other, each with its number in every entry.

    ``begun`` and ``done`` are when they were, by a clock that all lines share.
    """

    name: bytes
    clock: Iterator[int]
    begun: list[int] = attrs.field(factory=list)
    done: list[int] = attrs.field(factory=list)

    def write(self, db: lsm.DB, rng: random.Random) -> None:
        self.begun.append(next(self.clock))
        number = len(self.begun)
        with db.write_batch(sync=rng.random() < 0.01) as batch:
            for key in self.keys(number):
                batch.put(key, b"%d" % number + bytes(rng.randrange(200)))
        self.done.append(next(self.clock))

    def keys(self, number: int) -> list[bytes]:
        return [self.name + b" last", *(self.name + b" %d" % (number % at) for at in (17, 59))]

    def check(self, found: Contents, least: int, most: int) -> int:
        """See that exactly the first batches are there, so many at least and at most."""
        there = {
            key: int(value.rstrip(b"\0")) for key, value in found.items() if key[:1] == self.name
        }
        last = there.get(self.name + b" last", 0)
        assert least <= last <= most
        expected = {key: number for number in range(1, last + 1) for key in self.keys(number)}
        assert there == expected
        return last


@patient
def test_under_load_it_is_the_database_at_one_moment(
    path: Path, copy: Path, rng: random.Random
) -> None:
    clock, enough, turn = itertools.count(), threading.Event(), threading.Lock()
    lines = [Line(name, clock) for name in (b"a", b"b", b"c")]
    with lsm.DB(path, create_if_missing=True, max_background_jobs=3, **SMALL) as db, Crew() as crew:

        def write(line: Line, shared: bool, seed: float) -> None:
            luck = random.Random(seed)
            while not enough.is_set():
                with turn if shared else nullcontext():
                    line.write(db, luck)

        for line, shared in zip([*lines, lines[2]], (False, False, True, True), strict=True):
            crew.start(write, line, shared, rng.random())
        try:
            for _ in range(by_effort(8, 100, 1000)):
                before = [len(line.done) for line in lines]
                report = db.checkpoint(copy, flush=rng.random() < 0.2)
                after = [len(line.begun) for line in lines]
                check_lines(copy, lines, before, after, rng)
                assert Path(report.path) == copy
                shutil.rmtree(copy)
        finally:
            enough.set()
        crew.join()
        assert db.stats().flushes > 1
        for line in lines:
            line.check(dict(db), len(line.done), len(line.done))


def check_lines(
    copy: Path, lines: list[Line], least: list[int], most: list[int], rng: random.Random
) -> None:
    openings = [ours, theirs]
    rng.shuffle(openings)
    found = [opening(copy) for opening in openings]
    assert found[0] == found[1]
    counts = [
        line.check(found[0], low, high) for line, low, high in zip(lines, least, most, strict=True)
    ]
    # Nothing that is in it was begun after something that is not in it was done.
    begun = [line.begun[count - 1] for line, count in zip(lines, counts, strict=True) if count]
    missing = [line.done[count:][:1] for line, count in zip(lines, counts, strict=True)]
    assert all(max(begun, default=-1) < done for first in missing for done in first)


@pytest.mark.parametrize("flush", [False, True])
def test_all_of_a_database_that_rests_is_in_it(path: Path, copy: Path, flush: bool) -> None:
    with filled(path) as db:
        before, expected = files(path), dict(db)
        report = db.checkpoint(copy, flush=flush)
        if not flush:
            assert files(path) == before
        tables = [each.name for each in path.glob("*.ldb")]
        assert report.tables_linked == len(tables) > 3
        assert report.tables_copied == 0
        assert (report.log_bytes == 0) == flush
        there = [each for each in copy.iterdir() if each.suffix in (".ldb", ".log")]
        assert report.bytes == sum(each.stat().st_size for each in there)
        assert sorted(each.name for each in copy.glob("*.ldb")) == sorted(tables)
        assert all(os.path.samefile(path / name, copy / name) for name in tables)
        linked = {each.name for each in copy.iterdir() if each.stat().st_nlink > 1}
        assert linked == set(tables), "nothing that is written to"
        with lsm.DB(copy, read_only=True) as reader:
            assert reader._store.last_visible == db._store.last_visible == report.sequence
    assert ours(copy) == theirs(copy) == expected


def test_what_only_the_log_has_is_in_it(path: Path, copy: Path) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        empty = copy.with_name("empty")
        assert db.checkpoint(empty).bytes == 0
        for number in range(1000):
            db.put(b"%d" % number, bytes(100))
        report = db.checkpoint(copy)
        assert (report.tables_linked, report.tables_copied) == (0, 0)
        assert report.sequence == 1000
        assert report.log_bytes == report.bytes == sum(map(len, logs(path)))
        db.put(b"later", b"")
    assert ours(copy) == theirs(copy) == {b"%d" % number: bytes(100) for number in range(1000)}
    assert ours(empty) == theirs(empty) == {}


def logs(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in sorted(path.glob("*.log"))]


def test_both_go_on_and_neither_knows_of_the_other(path: Path, copy: Path) -> None:
    db, expected = filled(path), {}
    with db:
        expected = dict(db)
        db.checkpoint(copy)
        before = files(copy)
        fill(db, 300)
        db.compact_range(force=True)
        changed = dict(db)
        assert files(copy) == before
        with lsm.DB(copy) as other:
            assert dict(other) == expected
            own = {each.name: each.read_bytes() for each in path.glob("*.ldb")}
            fill(other, 200)
            other.compact_range(force=True)
            rewritten = dict(other)
            assert {each.name: each.read_bytes() for each in path.glob("*.ldb")} == own
        assert dict(db) == changed
    lsm.destroy_db(path)
    assert not path.exists()
    assert ours(copy) == theirs(copy) == rewritten


def test_the_database_outlives_its_checkpoints(path: Path, copy: Path) -> None:
    with filled(path) as db:
        expected = dict(db)
        for _ in range(3):
            db.checkpoint(copy)
            lsm.destroy_db(copy)
            assert not copy.exists()
        assert dict(db) == expected
        again = db.checkpoint(copy)
    with lsm.DB(copy) as other:
        second = other.checkpoint(copy.with_name("second"))
        assert second.tables_linked >= again.tables_linked
    assert ours(path) == ours(copy) == ours(copy.with_name("second")) == expected


# -- What is beside the data ---------------------------------------------------------------


def test_options_secret_and_heat_are_taken_along(path: Path, copy: Path) -> None:
    budget = {"filter_budget": "9 bits/key", "filter_heat": True}
    with filled(path, **budget) as db:
        for number in range(400):
            db.get(b"%05d x" % number)
        expected = dict(db)
        db.checkpoint(copy)
        store = db._store
        asked = {it.number: (it.file.missed, it.file.found) for it in store.view.version.tables()}
        assert any(map(any, asked.values()))
        assert heat_file.decode((copy / "lsm-heat").read_bytes()) == asked
    for name in ("lsm-options.toml", "lsm-seed"):
        assert (copy / name).read_bytes() == (path / name).read_bytes()
    with lsm.DB(copy, read_only=True) as db:
        assert db._store.options.filters.rule is not None
        found = db._store.view.version.tables()
        assert {it.number: (it.file.missed, it.file.found) for it in found} == asked
    assert ours(copy) == theirs(copy) == expected
    names = {each.name for each in copy.iterdir()} - {each.name for each in path.iterdir()}
    assert not {each for each in names if each.startswith("lsm-")}


def backwards(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def test_a_comparator_goes_with_it(path: Path, copy: Path) -> None:
    order: dict[str, Any] = {"comparator": backwards, "comparator_name": b"backwards"}
    with filled(path, **order) as db:
        expected = list(db)
        db.checkpoint(copy)
    with pytest.raises(lsm.ComparatorError):
        lsm.DB(copy)
    with lsm.DB(copy, **order) as db:
        assert list(db) == expected == sorted(expected, reverse=True)
    with plyvel.DB(str(copy), **order) as other:
        assert list(other) == expected


def test_tables_keep_the_names_that_old_releases_gave_them(path: Path, copy: Path) -> None:
    with filled(path) as db:
        expected = dict(db)
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))
    with lsm.DB(path, **SMALL) as db:
        db.checkpoint(copy)
    assert list(copy.glob("*.sst"))
    assert ours(copy) == theirs(copy) == expected


# -- Files that cannot be linked -----------------------------------------------------------


class Unlinkable(FileSystem):
    """Links nothing, or only so many files."""

    def __init__(self, number: int, most: int = 0):
        self.number = number
        self.most = most

    def link(self, old: str, new: str) -> None:
        if self.most == 0:
            raise lsm.IOError(self.number, os.strerror(self.number), old, None, new)
        self.most -= 1
        super().link(old, new)


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP])
@pytest.mark.parametrize("most", [0, 2])
def test_where_files_cannot_be_linked_they_are_copied(
    path: Path, copy: Path, number: int, most: int
) -> None:
    with filled(path, storage=Unlinkable(number, most)) as db:
        expected = dict(db)
        report = db.checkpoint(copy)
        assert report.tables_linked == most
        assert report.tables_copied == len(list(path.glob("*.ldb"))) - most > 2
        for table in path.glob("*.ldb"):
            assert (copy / table.name).read_bytes() == table.read_bytes()
    assert sum(each.stat().st_nlink > 1 for each in copy.iterdir()) == most
    assert ours(copy) == theirs(copy) == expected


def test_any_other_failure_to_link_is_told(path: Path, copy: Path) -> None:
    with filled(path, storage=Unlinkable(errno.ENOSPC, 2)) as db:
        with pytest.raises(lsm.IOError, match="No space left") as info:
            db.checkpoint(copy)
        assert info.value.errno == errno.ENOSPC
        assert not copy.exists()


def test_a_table_that_is_copied_has_the_size_it_had(path: Path, copy: Path) -> None:
    with filled(path, storage=Unlinkable(errno.EXDEV)) as db:
        table = next(path.glob("*.ldb"))
        os.truncate(table, table.stat().st_size - 1)
        with pytest.raises(lsm.CorruptionError, match=f"{table.name}: has .* bytes, and should"):
            db.checkpoint(copy)
        assert not copy.exists()


# -- Where it may be -----------------------------------------------------------------------


@pytest.mark.parametrize("there", ["file", "hidden", "lock", "database"])
def test_nobodys_place_is_taken(path: Path, copy: Path, there: str) -> None:
    with filled(path, 50) as db:
        if there == "database":
            with lsm.DB(copy, create_if_missing=True) as other:
                other.put(b"a", b"1")
        else:
            copy.mkdir()
            (copy / {"file": "notes.txt", "hidden": ".keep", "lock": "LOCK"}[there]).touch()
        before = files(copy)
        with pytest.raises(lsm.IOError, match=f"has '{min(before)}'") as info:
            db.checkpoint(copy)
        assert info.value.errno == errno.ENOTEMPTY
        assert info.value.filename == str(copy)
        assert files(copy) == before


def test_what_somebody_puts_there_at_that_moment_is_found(path: Path, copy: Path) -> None:
    def arrive(operation: str, where: str) -> None:
        if (operation, where) == ("lock", f"{copy}/LOCK"):
            (copy / "notes.txt").touch()

    db = filled(path, 50, storage=Hooked(arrive))
    with db, pytest.raises(lsm.IOError, match=r"has 'notes\.txt'"):
        db.checkpoint(copy)
    assert set(files(copy)) == {"notes.txt"}


def test_an_empty_directory_is_used_and_left_empty_by_a_failure(path: Path, copy: Path) -> None:
    copy.mkdir()
    with filled(path, 50) as db:
        with pytest.raises(ZeroDivisionError):
            db.checkpoint(copy, progress=lambda _: 1 // 0)
        assert list(copy.iterdir()) == []
        expected = dict(db)
        db.checkpoint(f"{copy}/")
    assert ours(copy) == expected


def test_a_path_that_leads_to_no_directory_is_refused(
    path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(path, 50) as db:
        before = sorted(copy.parent.rglob("*"))
        with pytest.raises(lsm.NotADatabaseError, match="the directory above it does not exist"):
            db.checkpoint(copy / "deeper")
        with pytest.raises(lsm.NotADatabaseError, match="empty"):
            db.checkpoint("")
        with pytest.raises(TypeError, match="'path' is a path"):
            db.checkpoint(3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="'path' cannot be a path"):
            db.checkpoint("\ud800")
        assert sorted(copy.parent.rglob("*")) == before
        copy.write_bytes(b"a file")
        with pytest.raises(lsm.IOError, match="Not a directory"):
            db.checkpoint(copy)
        assert copy.read_bytes() == b"a file"
        monkeypatch.chdir(path.parent)
        assert db.checkpoint(b"relative").path == str(path.with_name("relative"))


def test_it_is_not_put_into_the_database_itself(path: Path, copy: Path) -> None:
    with filled(path, 50) as db:
        copy.symlink_to(path)
        before = files(path)
        for wrong in (path, path / "copy", copy, copy / "copy", path / ".." / "db" / "x" / "y"):
            with pytest.raises(ValueError, match="within the database's own directory"):
                db.checkpoint(wrong)
        assert files(path) == before
        db.checkpoint(path.with_name("db2"))  # whose name only begins so
        assert ours(path.with_name("db2")) == dict(db)


# -- Who asks for it -----------------------------------------------------------------------


def test_who_reads_may_take_one_and_changes_nothing(path: Path, copy: Path) -> None:
    with filled(path) as db:
        expected = dict(db)
        shutil.copytree(path, path.with_name("killed"))
    killed = path.with_name("killed")
    before = files(killed)
    with lsm.DB(killed, read_only=True) as reader:
        with pytest.raises(lsm.ReadOnlyError, match="read_only"):
            reader.checkpoint(copy, flush=True)
        assert not copy.exists()
        report = reader.checkpoint(copy)
        assert report.log_bytes > 0
        assert report.sequence == reader._store.last_visible
    assert files(killed) == before
    assert ours(copy) == theirs(copy) == expected


def test_who_reads_leveldbs_takes_one_of_it(path: Path, copy: Path) -> None:
    expected = {b"%d" % number: bytes(number % 300) for number in range(3000)}
    with plyvel.DB(str(path), create_if_missing=True, write_buffer_size=70_000) as db:
        for key, value in expected.items():
            db.put(key, value)
    with lsm.DB(path, read_only=True) as reader:
        report = reader.checkpoint(copy)
        assert report.tables_linked > 1
        assert report.log_bytes > 0
    assert not [each.name for each in copy.iterdir() if each.name.startswith("lsm-")]
    assert theirs(copy) == ours(copy) == expected


@pytest.mark.parametrize("damage", ["torn", "flipped"])
def test_of_a_damaged_log_it_has_what_was_read(path: Path, copy: Path, damage: str) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        for number in range(100):
            db.put(b"%03d" % number, bytes(50))
        (log,) = path.glob("*.log")
        data = bytearray(log.read_bytes())
    if damage == "torn":
        del data[-20:]
    else:
        data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with lsm.DB(path, read_only=True) as reader:
        expected = dict(reader)
        reader.checkpoint(copy)
    assert 40 < len(expected) < 100
    assert theirs(copy) == ours(copy) == expected


def test_a_closed_database_has_none(path: Path, copy: Path) -> None:
    with filled(path, 50) as db:
        pass
    with pytest.raises(RuntimeError, match="Database is closed"):
        db.checkpoint(copy)
    assert not copy.exists()


def test_progress_is_told_and_what_it_raises_leaves_nothing(path: Path, copy: Path) -> None:
    told: list[CheckpointProgress] = []
    with filled(path) as db:
        tables, size = len(list(path.glob("*.ldb"))), sum(it.bytes for it in db.stats().levels)
        db.checkpoint(copy, progress=told.append)
        assert [each.tables for each in told] == list(range(tables + 1))
        assert {(each.total_tables, each.total_bytes) for each in told} == {(tables, size)}
        assert [told[0].bytes, told[-1].bytes] == [0, size]
        shutil.rmtree(copy)
        before = files(path)
        for after in range(tables + 1):

            def stop(it: CheckpointProgress, after: int = after) -> None:
                if it.tables == after:
                    raise KeyError("enough")

            with pytest.raises(KeyError, match="enough"):
                db.checkpoint(copy, progress=stop)
            assert not copy.exists()
        with pytest.raises(TypeError, match="progress is a function"):
            db.checkpoint(copy, progress="often")  # type: ignore[arg-type]
        assert files(path) == before


def test_closing_ends_it(path: Path, copy: Path) -> None:
    storage = Hooked()
    db = filled(path, storage=storage)
    with pytest.raises(RuntimeError, match="Database is closed"):
        db.checkpoint(copy, progress=lambda it: db.close() if it.tables == 2 else None)
    assert not copy.exists()
    assert sum(operation == "link" for _, operation, _ in storage.operations) == 2


def test_in_the_middle_of_a_load_it_has_nothing_of_it(path: Path, copy: Path) -> None:
    with filled(path) as db:
        expected = dict(db)

        def pairs() -> Iterator[tuple[bytes, bytes]]:
            for number in range(10_000):
                if number == 9000:
                    db.checkpoint(copy)
                yield b"x%05d" % number, bytes(10)

        lsm.bulk.load(db, pairs())
        after = copy.with_name("after")
        db.checkpoint(after)
        assert ours(after) == theirs(after) == dict(db)
    assert ours(copy) == theirs(copy) == expected


# -- Who works beside it -------------------------------------------------------------------


@patient
def test_nobody_waits_for_it_and_what_it_needs_stays_until_it_has_it(
    path: Path, copy: Path
) -> None:
    gate, done = Gate("link", ".ldb"), threading.Event()
    storage = Hooked(gate)
    with filled(path, storage=storage) as db, Crew() as crew:
        expected = dict(db)
        old = {each.name for each in path.glob("*.ldb")}

        def take() -> None:
            db.checkpoint(copy)
            done.set()

        crew.start(take)
        gate.wait()
        db.put(b"meanwhile", b"1", sync=True)
        fill(db, 400)
        db.compact_range(force=True)
        assert not done.is_set()
        assert old <= {each.name for each in path.glob("*.ldb")}
        assert db.get(b"meanwhile") == b"1"
        gate.open()
        crew.join()
        until(lambda: len(list(path.glob("*.ldb"))) == sum(it.tables for it in db.stats().levels))
    assert ours(copy) == theirs(copy) == expected


@patient
def test_a_log_that_is_flushed_before_it_is_opened_is_done_without(path: Path, copy: Path) -> None:
    gate = Gate("map", ".log")
    with filled(path, storage=Hooked(gate)) as db, Crew() as crew:
        expected = dict(db)
        crew.start(db.checkpoint, copy)
        gate.wait()
        db.flush()
        db.put(b"later", b"1")
        gate.open()
        crew.join()
        assert ours(copy) == theirs(copy) == {**expected, b"later": b"1"}


@patient
def test_two_at_once_into_one_directory_leave_one(path: Path, copy: Path) -> None:
    gate = Gate("link", ".ldb")
    with filled(path, storage=Hooked(gate)) as db, Crew() as crew:
        crew.start(db.checkpoint, copy)
        gate.wait()
        with pytest.raises(lsm.IOError):
            db.checkpoint(copy)
        with pytest.raises(plyvel.IOError):
            plyvel.DB(str(copy), create_if_missing=True)
        with pytest.raises(lsm.LockedError):
            lsm.DB(copy, create_if_missing=True)
        gate.open()
        crew.join()
        assert ours(copy) == dict(db)


# -- What fails ----------------------------------------------------------------------------

DIRECTORY, COPY = "/db", "/copy"


def simulated(storage: SimulatedStorage, count: int = 60, **options: Any) -> lsm.DB:
    """A small database in memory, with tables, and entries in the log that were not synced."""
    sizes = {"write_buffer_size": 4000, "max_file_size": 2000, "block_size": 400}
    return filled(Path(DIRECTORY), count, storage=storage, **{**sizes, **options})


def is_whole(storage: SimulatedStorage, expected: Contents) -> bool:
    """Whether a checkpoint opens, which is whole then; and nothing but one that does not open."""
    if not storage.exists(COPY):
        return False
    try:
        db = lsm.DB(COPY, storage=storage, paranoid_checks=True)
    except lsm.NotADatabaseError:
        assert "CURRENT" not in storage.list(COPY)
        return False
    with db:
        assert dict(db) == expected
        db.put(b"more", b"1")
        db.compact_range()
        assert dict(db) == {**expected, b"more": b"1"}
    return True


def test_all_is_durable_before_current_leads_to_it() -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        start = len(storage.operations)
        db.checkpoint(COPY)
        done = [each for each in storage.operations[start:] if each[0] in MUTATIONS]
    last = done.index(("rename", f"{COPY}/CURRENT"))
    assert done[last + 1 :] == [("sync_directory", COPY)]
    assert ("sync_directory", "/") in done[:last]
    made = {path for what, path in done[:last] if what == "create"}
    assert made <= {path for what, path in done[:last] if what == "sync"}
    named = [at for at, (what, _) in enumerate(done[:last]) if what in ("create", "link")]
    temporary = max(named)  # that which is renamed
    assert done[temporary][1].endswith(".dbtmp")
    assert ("sync_directory", COPY) in done[named[-2] : temporary]


@pytest.mark.parametrize(("number", "partial"), [(errno.EIO, False), (errno.ENOSPC, True)])
@patient
def test_whatever_fails_nothing_is_left_of_it_and_nothing_happens_to_the_database(
    number: int, partial: bool
) -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        expected, start = dict(db), len(storage.operations)
        db.checkpoint(COPY)
        operations = storage.operations[start:]
        assert {what for what, _ in operations} >= {"link", "create", "append", "sync", "rename"}
        lsm.destroy_db(COPY, storage=storage)
        for place, (what, path) in enumerate(operations):
            storage.fail(at(len(storage.operations) + place), number, partial=partial)
            print(what, path)  # shown if nobody was told of its failure
            with pytest.raises(lsm.Error):
                db.checkpoint(COPY)
            storage.mend()
            assert not storage.exists(COPY), (what, path)
            assert db.stats().background_error is None
            assert dict(db) == expected
        db.put(b"more", b"1", sync=True)
        expected[b"more"] = b"1"
        db.checkpoint(COPY)
        assert is_whole(storage, expected)
    with lsm.DB(DIRECTORY, storage=storage) as db:
        assert dict(db) == expected


def at(place: int) -> Callable[[str, str, int], bool]:
    """True for the operation at one place."""
    return lambda _what, _path, index: index == place


@patient
def test_where_all_fails_from_some_operation_on_what_opens_is_whole() -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        expected, start = dict(db), len(storage.operations)
        db.checkpoint(COPY)
        total = len(storage.operations) - start
        lsm.destroy_db(COPY, storage=storage)
        whole = 0
        for place in range(0, total, by_effort(2, 1, 1)):
            first = len(storage.operations) + place
            storage.fail(lambda _what, _path, index, first=first: index >= first)
            with pytest.raises(lsm.Error):
                db.checkpoint(COPY)
            storage.mend()
            for after in (storage.crash(), storage.kill()):
                whole += is_whole(after, expected)
            assert dict(db) == expected
            remove_all(storage)
        assert whole < total


def remove_all(storage: SimulatedStorage) -> None:
    """Clear the place, as who runs out of room does by hand."""
    if storage.exists(COPY):
        for name in storage.list(COPY):
            storage.remove(f"{COPY}/{name}")
        storage.remove_directory(COPY)


@patient
def test_a_loss_of_power_at_any_point_leaves_it_whole_or_no_database(rng: random.Random) -> None:
    storage, left = SimulatedStorage(), []

    def note(operation: str, _path: str, _index: int) -> bool:
        if operation in MUTATIONS:
            seeds = [random.Random(rng.random()) for _ in range(by_effort(2, 6, 20))]
            left.append([storage.crash(), *map(storage.crash, seeds), storage.kill()])
        return False

    with simulated(storage) as db:
        db.put(b"sure", b"1", sync=True)
        expected = dict(db)
        storage.fail(note)
        db.checkpoint(COPY)
        storage.mend()
        assert is_whole(storage.crash(), expected), "what is done survives"
    found = [is_whole(after, expected) for moment in left for after in moment]
    assert any(found)
    assert not all(found)
    for moment in left[:: by_effort(9, 1, 1)]:
        for after in moment:
            with lsm.DB(DIRECTORY, storage=after) as db:
                assert dict(db) == expected


@patient
def test_a_loss_of_power_while_it_is_taken_back_leaves_it_whole_or_no_database(
    rng: random.Random,
) -> None:
    storage = SimulatedStorage()
    with simulated(storage, 20) as db:
        expected, start = dict(db), len(storage.operations)
        db.checkpoint(COPY)
        total = len(storage.operations) - start
        lsm.destroy_db(COPY, storage=storage)
        found: list[bool] = []
        for place in range(total - 1, 0, -by_effort(3, 1, 1)):
            left: list[SimulatedStorage] = []
            first = len(storage.operations) + place

            def note(
                operation: str, _path: str, index: int, left: Any = left, at: int = first
            ) -> bool:
                if operation in MUTATIONS and index > at:
                    left.extend((storage.crash(), *map(storage.crash, luck(rng)), storage.kill()))
                return index == at

            storage.fail(note)
            with pytest.raises(lsm.Error):
                db.checkpoint(COPY)
            storage.mend()
            found += [is_whole(after, expected) for after in left]
            assert not storage.exists(COPY)
        assert found.count(True) > 0
        assert found.count(False) > found.count(True)


def luck(rng: random.Random) -> list[random.Random]:
    return [random.Random(rng.random()) for _ in range(by_effort(2, 8, 30))]


def test_a_database_that_has_stopped_writing_can_still_be_saved() -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        storage.fail(lambda what, path, _: what == "sync" and path.endswith(".log"))
        with pytest.raises(lsm.SyncError):
            db.put(b"not there", b"1", sync=True)
        storage.mend()
        with pytest.raises(lsm.ReadOnlyError):
            db.put(b"refused", b"1")
        expected = dict(db)
        assert b"not there" not in expected
        db.checkpoint(COPY)
        assert is_whole(storage.crash(), expected)


def test_what_a_failed_sync_has_taken_from_the_log_is_not_passed_over() -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        storage.fail(lambda what, path, _: what == "sync" and path.endswith(".log"))
        with pytest.raises(lsm.SyncError):
            db.put(b"not there", b"1", sync=True)
        storage.mend()
        (log,) = [name for name in storage.list(DIRECTORY) if name.endswith(".log")]
        storage._file(f"{DIRECTORY}/{log}").data[60:90] = bytes(30)
        with pytest.raises(lsm.CorruptionError, match=f"{log}: of .* only .* can be read back"):
            db.checkpoint(COPY)
        assert not storage.exists(COPY)


def test_part_of_a_record_that_failed_is_not_in_it() -> None:
    storage = SimulatedStorage()
    with simulated(storage) as db:
        expected = dict(db)
        storage.fail(lambda what, *_: what == "append", errno.ENOSPC, partial=True)
        with pytest.raises(lsm.IOError):
            db.put(b"torn", b"1" * 100)
        storage.mend()
        db.checkpoint(COPY)
        assert is_whole(storage.crash(), expected)


# -- Interruptions -------------------------------------------------------------------------


def small(path: Path) -> lsm.DB:
    """A database of two tables and some entries in the log, each write of which takes steps."""
    db = lsm.DB(path, create_if_missing=True, storage=Stepwise(), **SMALL)
    for number in range(60):
        db.put(b"%02d" % (number % 40), b"%d" % number)
        if number in (19, 39):
            db.flush()
    return db


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@patient
def test_an_interruption_leaves_nothing_or_all_of_it(
    path: Path, copy: Path, error: type[BaseException], rng: random.Random
) -> None:
    with small(path) as db:
        expected = dict(db)
        total = points(lambda: db.checkpoint(copy))
        shutil.rmtree(copy)
        whole = 0
        for number in chosen(total, by_effort(60, 400, None), rng):
            outcome = interrupted_at(number, lambda: db.checkpoint(copy), error)
            assert outcome.where is not None
            if copy.exists():
                assert ours(copy) == expected, outcome.where
                whole += 1
                shutil.rmtree(copy)
            assert dict(db) == expected
            del outcome
        assert whole < total // 2
        db.put(b"more", b"1", sync=True)
        db.checkpoint(copy)
        assert ours(copy) == dict(db)


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@patient
def test_a_signal_handler_may_write_in_its_midst(
    path: Path, copy: Path, rng: random.Random
) -> None:
    with small(path) as db:
        total = points(lambda: db.checkpoint(copy))
        shutil.rmtree(copy)
        found = set()
        for number in chosen(total, by_effort(40, 300, None), rng):
            before = dict(db)
            key = b"by a handler %d" % number

            def write(key: bytes = key) -> None:
                with db.write_batch() as batch:
                    batch.put(key, b"1")
                    batch.put(b"00", key)

            outcome = interrupted_at(number, lambda: db.checkpoint(copy), call=write)
            assert outcome.raised is None
            after = {**before, key: b"1", b"00": key}
            assert dict(db) == after
            copied = ours(copy)
            assert copied in (before, after)
            assert theirs(copy) == copied
            found.add(copied == after)
            shutil.rmtree(copy)
        assert found == {False, True}
