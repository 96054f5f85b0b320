"""Repairing: nothing that can be read is lost, and of every key the newest version is found."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import shutil
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm.comparator import BYTEWISE
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.filenames import Kind
from lsm.disk.log import LogWriter
from lsm.errors import ComparatorError, CorruptionError, LockedError, NotADatabaseError
from lsm.kernels.python.batch import encode_batch
from lsm.repair import LOST, UNREADABLE, Report, repair
from lsm.storage import FileSystem, Storage
from policies import create
from policies.levels import LevelPolicies
from tests.effort import examples
from tests.lsm.forging import manifest_of
from tests.lsm.independent_table import contents_of, forge, internal_key, parse
from tests.lsm.simulated import PowerLost, SimulatedStorage, Tails

TINY = """
[engine]
write_buffer_size = "4 KiB"
max_file_size = "2 KiB"
block_size = 256
level_size_base = "8 KiB"
level_size_ratio = 3
"""

Model = dict[bytes, bytes]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A configuration under which a few hundred entries fill several levels."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def name_of(number: int) -> bytes:
    return b"key%04d" % number


def write(db: Any, model: Model, rng: random.Random, count: int, keys: int = 400) -> None:
    """So many puts and deletes, a fifth of them deletes."""
    for _ in range(count):
        key = name_of(rng.randrange(keys))
        if rng.random() < 0.2:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = rng.randbytes(30)
            db.put(key, model[key])


def filled(
    path: Path | str,
    tiny: str | None,
    rng: random.Random,
    storage: Storage | None = None,
    **options: Any,
) -> Model:
    """A database with several levels, tombstones, and entries in its log."""
    model: Model = {}
    options |= {"config": tiny, "storage": storage}
    with lsm.DB(path, create_if_missing=True, **options) as db:
        write(db, model, rng, 900)
        db.wait_until_idle()
        write(db, model, rng, 100)
        db.flush()
        db.wait_until_idle()
    with lsm.DB(path, **options) as db:  # which removes the last tables that were replaced
        write(db, model, rng, 10)  # fewer than either kernel's memtable takes
        db.put(b"last", b"one", sync=True)
    return model | {b"last": b"one"}


def check(path: Path | str, model: Model, storage: Storage | None = None, **options: Any) -> None:
    """Scans and lookups, of whatever is found first, both give the model."""
    with lsm.DB(path, storage=storage, **options) as db:
        assert dict(db) == model
        for key in {*model, *(name_of(number) for number in range(0, 400, 3))}:
            assert db.get(key) == model.get(key), key


def tables(path: Path) -> list[Path]:
    return sorted([*path.glob("*.ldb"), *path.glob("*.sst")])


def forget(path: Path | str, *kinds: Kind, storage: Storage | None = None) -> None:
    """Remove all files of these kinds."""
    storage = storage or FileSystem()
    for name in storage.list(str(path)):
        parsed = filenames.parse(name)
        if parsed and parsed[0] in kinds:
            storage.remove(f"{path}/{name}")


def placed(path: Path) -> dict[int, NewFile]:
    """The tables that the manifest names, by their numbers."""
    manifest = lsm.manifest.Manifest(FileSystem(), str(path), lsm.comparator.BYTEWISE)
    manifest.recover()
    return {
        table.number: NewFile(table.level, table.number, table.size, table.smallest, table.largest)
        for table in manifest.current.tables()
    }


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def spoil(file: Path, at: int) -> None:
    """Flip the bits of a byte."""
    overwrite(file, at, bytes((file.read_bytes()[at] ^ 0xFF,)))


# ---- What is found afterwards ----------------------------------------------------------------


WORK = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 200)),
        st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 200)),
        st.tuples(st.just("delete"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("compact part"), st.integers(0, 30), st.integers(0, 30)),
        st.sampled_from(["flush", "compact", "wait", "reopen", "walk"]).map(lambda w: (w, 0, 0)),
    ),
    max_size=120,
)
Work = list[tuple[str, int, int]]


def worked(work: Work, storage: SimulatedStorage, *, kill: bool, **options: Any) -> Model:
    """Do the work on a database, and close or abandon it."""
    model: Model = {}
    walkers = []
    options["storage"] = storage
    db = lsm.DB("db", create_if_missing=True, **options)
    for serial, (what, one, other) in enumerate(work):
        key = name_of(one)
        if what == "put":
            model[key] = b"%d" % serial * other
            db.put(key, model[key])
        elif what == "delete":
            db.delete(key)
            model.pop(key, None)
        elif what == "compact part":
            db.compact_range(start=key, stop=name_of(other))
        elif what == "walk":  # it keeps the files that it may still have to read
            walkers.append(db.iterator())
        elif what == "reopen":
            db.close()
            db = lsm.DB("db", **options)
        else:
            {"flush": db.flush, "compact": db.compact_range, "wait": db.wait_until_idle}[what]()
    if kill:
        storage.stop_after(0)
    with contextlib.suppress(PowerLost):
        db.close()
    return model


def check_and_go_on(model: Model, storage: SimulatedStorage, config: str) -> None:
    check("db", model, storage, config=config)
    with lsm.DB("db", storage=storage, config=config) as db:
        for number in range(0, 31, 2):
            model[name_of(number)] = b"new"
            db.put(name_of(number), b"new")
        assert dict(db) == model
        db.compact_range()
        assert dict(db) == model


@given(work=WORK, again=st.booleans())
@examples(80)
def test_a_database_without_manifest_is_repaired_to_what_it_was(
    tiny: str, work: Work, again: bool
) -> None:
    storage = SimulatedStorage()
    work = [step for step in work if step[0] != "walk"]
    model = worked(work, storage, kill=False, config=tiny, write_buffer_size=600)
    forget("db", Kind.CURRENT, Kind.MANIFEST, storage=storage)
    for _ in range(2 if again else 1):
        assert repair("db", storage=storage, config=tiny).losses == ()
    check_and_go_on(model, storage, tiny)


@given(work=WORK, without_current=st.booleans(), spoil=st.booleans())
@examples(80)
def test_a_database_that_was_killed_is_repaired_to_what_it_was(
    tiny: str, work: Work, without_current: bool, spoil: bool
) -> None:
    storage = SimulatedStorage()
    model = worked(work, storage, kill=True, config=tiny, write_buffer_size=600)
    storage = storage.kill()
    if without_current:
        forget("db", Kind.CURRENT, storage=storage)
    if spoil:  # all that a table has can still be read then
        names = [name for name in storage.list("db") if name.endswith(".ldb")]
        for name in names[::3]:
            cut(storage, f"db/{name}")
    repair("db", storage=storage, config=tiny)
    check_and_go_on(model, storage, tiny)


@pytest.mark.parametrize(
    "gone", [(), (Kind.CURRENT,), (Kind.MANIFEST,), (Kind.CURRENT, Kind.MANIFEST)], ids=repr
)
def test_many_tables_on_many_levels_are_repaired(
    path: Path, tiny: str, rng: random.Random, gone: tuple[Kind, ...]
) -> None:
    model = filled(path, tiny, rng)
    assert len({new.level for new in placed(path).values()}) > 1
    before = tables(path)
    forget(path, *gone)
    report = repair(path)
    assert report.losses == ()
    assert report.tables_kept + report.tables_rewritten == len(before)
    assert report.logs_replayed == 1
    assert {int(file.stem) for file in tables(path)} == placed(path).keys()
    check(path, model)


def test_a_sound_database_keeps_its_tables_where_they_are(
    path: Path, tiny: str, rng: random.Random
) -> None:
    model = filled(path, tiny, rng)
    before, contents = placed(path), {file: file.read_bytes() for file in tables(path)}
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten) == (len(contents), 0)
    after = placed(path)
    assert before.items() <= after.items()
    assert [new.level for number, new in after.items() if number not in before] == [0]
    assert {file: file.read_bytes() for file in contents} == contents
    check(path, model)


def test_tables_that_do_not_overlap_are_kept_without_any_manifest(path: Path) -> None:
    model = {name_of(number): b"value" for number in range(300)}
    with lsm.DB(path, create_if_missing=True) as db:
        for start in range(0, 300, 100):
            for number in range(start, start + 100):
                db.put(name_of(number), b"value")
            db.flush()
    before = {file: file.read_bytes() for file in tables(path)}
    forget(path, Kind.CURRENT, Kind.MANIFEST)
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten) == (3, 0)
    assert {file: file.read_bytes() for file in tables(path)} == before
    assert {new.level for new in placed(path).values()} == {1}
    check(path, model)


def test_what_is_merged_lies_on_a_level_that_has_room_for_it(
    path: Path, tiny: str, rng: random.Random
) -> None:
    filled(path, tiny, rng)
    forget(path, Kind.MANIFEST)
    repair(path)
    found = placed(path).values()
    (level,) = {new.level for new in found}
    assert sum(new.size for new in found) <= (8 << 10) * 3 ** (level - 1)
    assert level > 1
    assert len(found) > 4
    ordered = sorted(found, key=lambda new: new.smallest)
    for one, other in pairwise(ordered):
        assert one.largest[:-8] < other.smallest[:-8]


def forged_table(entries: Iterable[tuple[bytes, int, bytes | None]]) -> bytes:
    """A table of one block: keys, sequence numbers, and values that are None to delete."""
    pairs = [
        (internal_key(key, sequence, int(value is not None)), value or b"")
        for key, sequence, value in entries
    ]
    return forge([(pairs[-1][0], contents_of(pairs))])


def forged_database(path: Path, levels: dict[int, tuple[int, bytes]]) -> None:
    """A database of tables: by their numbers their levels and what they consist of."""
    path.mkdir()
    added = []
    for number, (level, data) in levels.items():
        (path / filenames.table_name(number)).write_bytes(data)
        pairs = parse(data).pairs
        added.append(NewFile(level, number, len(data), pairs[0][0], pairs[-1][0]))
    edit = Edit(
        comparator=BYTEWISE.name,
        log_number=0,
        next_file_number=max(levels) + 2,
        last_sequence=1000,
        added=added,
    )
    manifest = filenames.manifest_name(max(levels) + 1)
    (path / manifest).write_bytes(manifest_of(edit))
    (path / filenames.CURRENT).write_text(f"{manifest}\n")


OLD = forged_table([(b"a", 1, b"old"), (b"b", 9, b"deep"), (b"c", 2, b"old")])
NEW = forged_table([(b"a", 7, b"new"), (b"c", 8, None)])


@pytest.mark.parametrize(
    "levels",
    [
        {5: (0, NEW), 6: (0, OLD)},
        {5: (1, OLD), 6: (2, NEW)},
        {6: (1, OLD), 5: (2, NEW)},
        {5: (2, NEW), 6: (0, OLD)},
        {5: (0, OLD), 6: (0, NEW)},
        {5: (2, OLD), 6: (1, NEW)},
    ],
)
@pytest.mark.parametrize("with_manifest", [True, False])
def test_sequence_numbers_tell_which_version_is_newest(
    path: Path, levels: dict[int, tuple[int, bytes]], with_manifest: bool
) -> None:
    forged_database(path, levels)
    if not with_manifest:
        forget(path, Kind.MANIFEST, Kind.CURRENT)
    repair_again = [repair(path), repair(path)]
    assert repair_again[1].tables_rewritten == 0
    with lsm.DB(path) as db:
        assert [db.get(key) for key in (b"a", b"b", b"c")] == [b"new", b"deep", None]
        assert list(db) == [(b"a", b"new"), (b"b", b"deep")]


def test_tables_of_one_level_that_overlap_are_merged(path: Path) -> None:
    forged_database(path, {5: (1, OLD), 6: (1, NEW)})
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten) == (0, 2)
    with lsm.DB(path) as db:
        assert list(db) == [(b"a", b"new"), (b"b", b"deep")]
        assert db.get(b"c") is None


def test_a_key_whose_versions_are_split_between_two_tables_of_a_level_is_kept_so(
    path: Path,
) -> None:
    upper = forged_table([(b"a", 1, b"a"), (b"m", 9, b"new")])
    lower = forged_table([(b"m", 4, b"old"), (b"z", 2, b"z")])
    forged_database(path, {5: (2, lower), 6: (2, upper)})
    assert repair(path).tables_kept == 2
    with lsm.DB(path) as db:
        assert db.get(b"m") == b"new"
    forget(path, Kind.MANIFEST)
    assert repair(path).tables_rewritten == 2
    with lsm.DB(path) as db:
        assert db.get(b"m") == b"new"
        assert len(list(db)) == 3


def test_a_key_at_the_border_of_two_tables_is_no_gap(path: Path) -> None:
    one = forged_table([(b"a", 1, b"a"), (b"m", 4, b"old")])
    other = forged_table([(b"m", 9, None), (b"z", 2, b"z")])
    forged_database(path, {6: (0, one), 5: (0, other)})
    repair(path)
    with lsm.DB(path) as db:
        assert db.get(b"m") is None
        assert dict(db) == {b"a": b"a", b"z": b"z"}


def test_what_is_written_afterwards_is_newer_than_all(path: Path) -> None:
    forged_database(path, {5: (1, forged_table([(b"a", 5000, b"old"), (b"b", 1, b"b")]))})
    forget(path, Kind.MANIFEST)
    repair(path)
    with lsm.DB(path) as db:
        db.put(b"a", b"newer")
        assert db.get(b"a") == b"newer"
        db.compact_range()
        assert dict(db) == {b"a": b"newer", b"b": b"b"}


def test_what_the_manifest_says_of_sequence_numbers_counts(path: Path) -> None:
    forged_database(path, {5: (1, OLD)})
    repair(path)
    with lsm.DB(path) as db:
        assert db._store.manifest.last_sequence == 1000


def test_no_number_of_a_file_is_given_out_again(path: Path, rng: random.Random) -> None:
    model = filled(path, None, rng)
    (path / "000900.log").write_bytes(b"")
    (path / "MANIFEST-000950").write_bytes(b"")
    repair(path)
    assert min(int(name.name[9:]) for name in path.glob("MANIFEST-*")) > 950
    assert max(placed(path)) > 950
    check(path, model)


# ---- Deletions stay --------------------------------------------------------------------------


def with_leftovers(path: Path) -> list[Path]:
    """A database whose tombstones are gone for good, and a table that is older and still there.

    All keys were put, and those of even numbers were deleted.
    """
    with lsm.DB(path, create_if_missing=True) as db:
        for number in range(100):
            db.put(name_of(number), b"value")
        db.compact_range()
        leftover = tables(path)
        walker = db.iterator()  # holds the table while others replace it
        next(walker)
        for number in range(0, 100, 2):
            db.delete(name_of(number))
        db.compact_range()
        db.wait_until_idle()
    live = placed(path)
    for file in tables(path):
        if int(file.stem) not in live and file not in leftover:
            file.unlink()
    assert set(leftover) < set(tables(path))
    return leftover


def test_a_table_that_others_have_replaced_brings_nothing_back(path: Path) -> None:
    leftover = with_leftovers(path)
    report = repair(path)
    assert (report.tables_replaced, report.tables_lost, report.losses) == (len(leftover), 0, ())
    with lsm.DB(path) as db:
        assert [key for key, _ in db] == [name_of(number) for number in range(1, 100, 2)]
    assert all((path / LOST / file.name).exists() for file in leftover)


def loaded(path: Path) -> tuple[Model, Model, Path]:
    """What a database held before a bulk load and after it; and itself, as it was before.

    The tables of the load, which no manifest there names, are there, too.
    """
    before = {name_of(number): b"before" for number in range(0, 300, 2)}
    load = {name_of(number): b"load %d" % number for number in range(0, 300, 3)}
    with lsm.DB(path, create_if_missing=True, max_file_size=1024, block_size=64) as db:
        for key, value in before.items():
            db.put(key, value)
        db.flush()
        db.close()
        killed = Path(shutil.copytree(path, f"{path}-killed"))
    with lsm.DB(path) as db:
        assert lsm.bulk.load(db, load.items()).tables > 1
    for table in {each.name for each in tables(path)} - {each.name for each in tables(killed)}:
        shutil.copy(path / table, killed)
    return before, before | load, killed


def test_a_load_that_did_not_end_is_left_out_whole(path: Path) -> None:
    before, _, killed = loaded(path)
    report = repair(killed)
    assert report.tables_replaced > 1
    assert report.losses == ()
    check(killed, before)


def test_a_load_that_ended_is_kept(path: Path) -> None:
    _, after, _ = loaded(path)
    assert repair(path).tables_replaced == 0
    check(path, after)


@pytest.mark.parametrize("manifest", ["gone", "damaged"])
def test_a_load_is_kept_where_nobody_knows_whether_it_ended(path: Path, manifest: str) -> None:
    _, after, killed = loaded(path)
    if manifest == "gone":
        forget(killed, Kind.MANIFEST, Kind.CURRENT)
    else:
        [file] = killed.glob("MANIFEST-*")
        spoil(file, file.stat().st_size - 1)
    repair(killed)
    check(killed, after)


def test_no_interruption_brings_back_what_others_have_replaced(path: Path) -> None:
    with_leftovers(path)
    original = SimulatedStorage()
    original.make_directory("db")
    for name in os.listdir(path):
        put(original, f"db/{name}", (path / name).read_bytes())
    step, stopped = 0, True
    while stopped:
        storage = original.kill()
        storage.stop_after(step)
        with contextlib.suppress(PowerLost):
            repair("db", storage=storage)
        stopped = storage.stopped
        for after in (storage.kill(), storage.crash()):
            repair("db", storage=after)
            with lsm.DB("db", storage=after) as db:
                assert [key for key, _ in db] == [name_of(n) for n in range(1, 100, 2)]
        step += 1


def test_a_table_whose_replacement_is_damaged_is_used(path: Path) -> None:
    leftover = with_leftovers(path)
    (replacement,) = set(tables(path)) - set(leftover)
    replacement.write_bytes(b"")
    report = repair(path)
    assert (report.tables_replaced, report.tables_lost, report.tables_kept) == (0, 1, 1)
    with lsm.DB(path) as db:
        assert [key for key, _ in db] == [name_of(number) for number in range(100)]


def test_a_replacement_that_was_replaced_itself_may_be_gone(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        for round in range(3):
            for number in range(round, 100, 2):
                db.delete(name_of(number))
            for number in range(100):
                db.put(b"other%d" % number, b"%d" % round)
            if round == 0:
                db.put(name_of(1), b"value")
            db.flush()
            if round == 0:
                kept = {file: file.read_bytes() for file in tables(path)}
            db.compact_range()
    live = placed(path)
    for file in tables(path):
        if int(file.stem) not in live:
            file.unlink()
    for file, data in kept.items():
        file.write_bytes(data)
    assert repair(path).tables_replaced == 1
    with lsm.DB(path) as db:
        assert db.get(name_of(1)) is None
        assert len(list(db)) == 100


def test_a_log_whose_tables_are_sound_is_not_replayed(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"a", b"a")
        db.put(b"k", b"v")
        (log,) = path.glob("*.log")
        kept = log.read_bytes()
        db.flush()
        db.delete(b"k")
        db.compact_range()
    assert not log.exists()
    log.write_bytes(kept)
    report = repair(path)
    assert report.logs_replayed == 1
    with lsm.DB(path) as db:
        assert dict(db) == {b"a": b"a"}
    assert (path / LOST / log.name).read_bytes() == kept


def test_a_log_whose_table_is_damaged_is_replayed(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"a", b"a")
        (log,) = path.glob("*.log")
        kept = log.read_bytes()
        db.flush()
    log.write_bytes(kept)
    tables(path)[0].write_bytes(b"nothing")
    assert repair(path).logs_replayed == 2
    with lsm.DB(path) as db:
        assert dict(db) == {b"a": b"a"}


def test_a_table_that_has_moved_is_not_replaced(path: Path) -> None:
    forged_database(path, {5: (1, OLD)})
    manifest = lsm.manifest.Manifest(FileSystem(), str(path), lsm.comparator.BYTEWISE)
    manifest.recover()
    (new,) = placed(path).values()
    manifest.apply(Edit(deleted=[(1, 5)], added=[NewFile(2, 5, *attrs.astuple(new)[2:])]))
    manifest.close()
    report = repair(path)
    assert (report.tables_kept, report.tables_replaced) == (1, 0)
    assert [new.level for new in placed(path).values()] == [2]


@pytest.mark.parametrize(("previous", "replayed"), [(7, [b"a", b"k"]), (0, [b"a"])])
def test_the_previous_log_that_a_manifest_of_old_names_is_replayed(
    path: Path, previous: int, replayed: list[bytes]
) -> None:
    forged_database(path, {5: (1, forged_table([(b"a", 1, b"a")]))})
    for log in path.glob("MANIFEST-*"):
        file = FileSystem().create(str(log))
        edit = Edit(log_number=9, previous_log_number=previous, next_file_number=20)
        edit.last_sequence = 50
        edit.added.append(NewFile(1, 5, 0, internal_key(b"a", 1), internal_key(b"a", 1)))
        LogWriter(file).add(edit.encode())
        file.close()
    for number in (7, 8):
        file = FileSystem().create(str(path / filenames.log_name(number)))
        LogWriter(file).add(encode_batch(number, [(b"k" if number == 7 else b"gone", b"")]))
        file.close()
    repair(path)
    with lsm.DB(path) as db:
        assert [key for key, _ in db] == replayed


def test_a_deletion_outlasts_the_repair_that_merged_it(path: Path) -> None:
    forged_database(path, {5: (0, forged_table([(b"b", 1, b"old")])), 6: (0, NEW)})
    forget(path, Kind.MANIFEST)
    repair(path)
    (path / "000003.ldb").write_bytes(forged_table([(b"a", 1, b"x"), (b"c", 1, b"back?")]))
    forget(path, Kind.MANIFEST)
    repair(path)
    with lsm.DB(path) as db:
        assert dict(db) == {b"a": b"new", b"b": b"old"}
        assert db.get(b"c") is None


# ---- Damage ----------------------------------------------------------------------------------


def entries_of(blocks: Iterable[Any]) -> set[bytes]:
    """The user keys in blocks."""
    return {key[:-8] for block in blocks for key, _ in block.pairs}


def bottom(path: Path, rng: random.Random, **options: Any) -> tuple[Model, Path]:
    """A database of one table with many blocks."""
    model = {name_of(number): rng.randbytes(40) for number in range(400)}
    with lsm.DB(path, create_if_missing=True, block_size=512, **options) as db:
        for key, value in model.items():
            db.put(key, value)
        db.compact_range()
    (table,) = tables(path)
    return model, table


def without(model: Model, keys: Iterable[bytes]) -> Model:
    return {key: value for key, value in model.items() if key not in set(keys)}


@pytest.mark.parametrize("which", [0, 7, -1])
def test_of_a_damaged_block_only_its_keys_are_lost(
    path: Path, rng: random.Random, which: int
) -> None:
    model, table = bottom(path, rng)
    damaged = parse(table.read_bytes()).blocks[which]
    spoil(table, damaged.offset + damaged.size // 2)
    bytes_before = table.read_bytes()
    with lsm.DB(path) as db, pytest.raises(CorruptionError, match=r"repair_db\(\)"):
        list(db)
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten, report.tables_lost) == (0, 1, 0)
    (loss,) = report.losses
    assert loss.startswith(
        f"{table}: the data block at bytes {damaged.offset} to {damaged.end - 5}"
    )
    assert "repair" not in loss
    check(path, without(model, entries_of([damaged])))
    kept = Path(f"{table}{UNREADABLE}")
    assert report.unreadable == (str(kept),)
    assert kept.read_bytes() == bytes_before
    assert {new.level for new in placed(path).values()} == {2}


def test_damage_leaves_the_other_tables_as_they_are(
    path: Path, tiny: str, rng: random.Random
) -> None:
    model = filled(path, tiny, rng)
    before = placed(path)
    deepest = max(before.values(), key=lambda new: (new.level, new.number))
    file = path / filenames.table_name(deepest.number)
    spoil(file, 10)
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten) == (len(before) - 1, 1)
    after = placed(path)
    del before[deepest.number]
    assert before.items() <= after.items()
    *of_the_log, rewritten = sorted(
        new.level for number, new in after.items() if number not in before
    )
    assert (set(of_the_log), rewritten) == ({0}, deepest.level)
    with lsm.DB(path) as db:
        found = dict(db)
        assert {key: value for key, value in found.items() if model.get(key) != value} == {}
        assert len(found) > len(model) - 20


def test_damage_on_level_0_does_not_put_old_versions_before_new_ones(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True, block_size=64, compression=None) as db:
        for value in (b"oldest", b"older", b"old", b"newer", b"newest"):
            for number in range(20):
                db.put(name_of(number), value * 3)
            db.flush()
    levels = {number: new.level for number, new in placed(path).items()}
    assert sorted(levels.values()) == [0, 0, 0, 1, 2]
    older = sorted(number for number, level in levels.items() if level == 0)[1]
    spoil(path / filenames.table_name(older), 3)
    report = repair(path)
    assert len(report.losses) == 1
    assert (report.tables_kept, report.tables_rewritten) == (2, 3)
    check(path, {name_of(number): b"newest" * 3 for number in range(20)})


@pytest.mark.parametrize("policy", [None, "leveldb", "classic"])
@pytest.mark.parametrize("where", ["footer", "magic", "index", "both"])
def test_without_footer_or_index_every_block_is_found(
    path: Path, rng: random.Random, where: str, policy: str | None
) -> None:
    chosen = None if policy is None else create(policy)
    model, table = bottom(path, rng, filter_policy=chosen)
    size = table.stat().st_size
    if where in ("footer", "both"):
        overwrite(table, size - 48, bytes(40))
    if where == "magic":
        spoil(table, size - 1)
    if where in ("index", "both"):
        spoil(table, parse_index(table, size))
    report = repair(path)
    assert (report.tables_rewritten, report.tables_lost, report.losses) == (1, 0, ())
    check(path, model)


def parse_index(table: Path, size: int) -> int:
    """A place in the index block, which lies before the footer."""
    return size - 48 - 20


def test_without_an_index_large_blocks_are_found(path: Path, rng: random.Random) -> None:
    model = {name_of(number): rng.randbytes(100_000) for number in range(5)}
    with lsm.DB(path, create_if_missing=True) as db:
        for key, value in model.items():
            db.put(key, value)
        db.flush()
    (table,) = tables(path)
    spoil(table, table.stat().st_size - 1)
    assert repair(path).losses == ()
    check(path, model)


def test_without_an_index_the_filter_of_leveldb_is_not_taken_for_data(
    path: Path, rng: random.Random
) -> None:
    plyvel = pytest.importorskip("plyvel")
    for bits in (0, 10):
        model = {b"%d" % number: rng.randbytes(20) for number in range(10 if bits else 1)}
        with plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=bits) as db:
            for key, value in model.items():
                db.put(key, value)
            db.compact_range()
        (table,) = tables(path)
        spoil(table, table.stat().st_size - 1)
        assert repair(path).losses == ()
        with lsm.DB(path) as opened:
            assert dict(opened) == model
        lsm.destroy_db(path)
        for file in (path / LOST).iterdir():
            file.unlink()


@pytest.mark.parametrize("share", [0.03, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("zeros", [False, True])
def test_of_a_table_that_is_cut_off_the_blocks_before_the_cut_are_found(
    path: Path, rng: random.Random, share: float, zeros: bool
) -> None:
    model, table = bottom(path, rng)
    whole = parse(table.read_bytes())
    size = len(whole.data)
    cut = int(whole.blocks[-1].end * share)
    table.write_bytes(whole.data[:cut] + bytes(size - cut if zeros else 0))
    if not zeros:
        with pytest.raises(CorruptionError, match=r"repair_db\(\)"), lsm.DB(path) as db:
            list(db)
    report = repair(path)
    kept = [block for block in whole.blocks if block.end <= cut]
    assert len(report.losses) == 1
    assert (report.tables_rewritten, report.tables_lost) == ((1, 0) if kept else (0, 1))
    check(path, {key: model[key] for key in entries_of(kept)})


def test_without_an_index_and_with_a_damaged_block_the_blocks_before_it_are_found(
    path: Path, rng: random.Random
) -> None:
    model, table = bottom(path, rng)
    whole = parse(table.read_bytes())
    spoil(table, len(whole.data) - 1)
    spoil(table, whole.blocks[5].offset)
    report = repair(path)
    (loss,) = report.losses
    assert loss == (
        f"{table}: without its index it can be read up to byte {whole.blocks[5].offset} "
        f"of {len(whole.data)}"
    )
    check(path, {key: model[key] for key in entries_of(whole.blocks[:5])})


def test_a_table_of_which_nothing_can_be_read_is_lost_and_kept_where_it_is(
    path: Path, rng: random.Random
) -> None:
    _, table = bottom(path, rng)
    garbage = rng.randbytes(5000)
    table.write_bytes(garbage)
    report = repair(path)
    assert (report.tables_kept, report.tables_rewritten, report.tables_lost) == (0, 0, 1)
    assert len(report.losses) == 1
    check(path, {})
    assert Path(f"{table}{UNREADABLE}").read_bytes() == garbage


def test_a_table_without_entries_is_set_aside(path: Path) -> None:
    path.mkdir()
    (path / "000005.ldb").write_bytes(forge([]))
    report = repair(path)
    assert (report.tables_lost, report.tables_kept) == (1, 0)
    assert report.losses == (f"{path}/000005.ldb: no entries can be found in it",)
    check(path, {})


@pytest.mark.parametrize("with_manifest", [True, False])
def test_a_missing_table_is_reported_where_a_manifest_names_it(
    path: Path, tiny: str, rng: random.Random, with_manifest: bool
) -> None:
    filled(path, tiny, rng)
    gone = tables(path)[3]
    gone.unlink()
    with pytest.raises(CorruptionError, match=r"repair_db\(\)"):
        lsm.DB(path)
    if not with_manifest:
        forget(path, Kind.MANIFEST)
    report = repair(path)
    assert report.tables_lost == with_manifest
    assert [str(gone) in loss and "missing" in loss for loss in report.losses] == (
        [True] * with_manifest
    )
    with lsm.DB(path) as db:
        found = dict(db)
        assert {key: db.get(key) for key in found} == found


def test_a_filter_that_is_damaged_is_written_anew(path: Path, rng: random.Random) -> None:
    model, table = bottom(path, rng)
    whole = parse(table.read_bytes())
    (filter,) = [block for key, block in whole.meta.items() if b"filter." in key]
    spoil(table, filter.offset + 30)
    with lsm.DB(path, paranoid_checks=True) as db, pytest.raises(CorruptionError):
        db.get(name_of(3))
    report = repair(path)
    assert (report.tables_rewritten, report.losses) == (1, ())
    check(path, model, paranoid_checks=True)
    with lsm.DB(path) as db:
        assert [table.state for level in db.filters() for table in level.tables] == ["built"]


@pytest.mark.parametrize("block", ["properties", "metaindex"])
def test_what_else_is_damaged_besides_data_is_written_anew(
    path: Path, rng: random.Random, block: str
) -> None:
    model, table = bottom(path, rng)
    whole = parse(table.read_bytes())
    place = whole.metaindex if block == "metaindex" else whole.meta[b"lsm.properties"]
    spoil(table, place.offset + 1)
    report = repair(path)
    assert (report.tables_rewritten, report.losses) == (1, ())
    check(path, model, paranoid_checks=True)


def block_of(*entries: tuple[bytes, int, int]) -> bytes:
    return contents_of([(internal_key(*entry), b"value of " + entry[0]) for entry in entries])


def test_an_index_that_misleads_is_written_anew(path: Path) -> None:
    blocks = [
        (internal_key(b"a", 3), block_of((b"a", 3, 1), (b"c", 4, 1))),  # c is behind its index key
        (internal_key(b"e", 1), block_of((b"d", 1, 1), (b"e", 1, 1))),
    ]
    for index in (blocks, [(internal_key(b"d", 1), blocks[0][1]), blocks[1]]):
        forged_database(path, {5: (1, forge(index))})
        report = repair(path)
        assert (report.tables_rewritten, report.losses) == (1, ())
        with lsm.DB(path) as db:
            assert [db.get(key) for key in (b"a", b"c", b"d", b"e")] == [
                b"value of a",
                b"value of c",
                b"value of d",
                b"value of e",
            ]
        lsm.destroy_db(path)
        for file in (path / LOST).iterdir():
            file.unlink()
        (path / LOST).rmdir()
        path.rmdir()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (block_of((b"f", 3, 1), (b"e", 4, 1)), "do not ascend"),
        (block_of((b"e", 3, 1), (b"e", 4, 1)), "do not ascend"),
        (block_of((b"a", 3, 1), (b"e", 4, 1)), "do not follow"),
        (block_of((b"e", 3, 7)), "unknown kind"),
        (contents_of([]), "no entries"),
        (contents_of([(b"short", b"")]), "malformed"),
        (b"", "no room"),
    ],
)
def test_a_block_that_is_no_data_is_lost_though_its_checksum_is_right(
    path: Path, bad: bytes, reason: str
) -> None:
    blocks = [
        (internal_key(b"b", 1), block_of((b"a", 3, 1), (b"b", 1, 1))),
        (internal_key(b"f", 1), bad),
        (internal_key(b"h", 1), block_of((b"g", 1, 1), (b"h", 1, 1))),
    ]
    path.mkdir()
    (path / "000005.ldb").write_bytes(forge(blocks))
    report = repair(path)
    (loss,) = report.losses
    assert reason in loss
    assert loss.startswith(f"{path}/000005.ldb: the data block at byte ")
    with lsm.DB(path) as db:
        assert [key for key, _ in db] == [b"a", b"b", b"g", b"h"]


def test_a_version_that_is_there_twice_is_no_damage(path: Path) -> None:
    path.mkdir()
    twice = [(internal_key(b"a", 3), b"two"), (internal_key(b"a", 3), b"one")]
    (path / "000005.ldb").write_bytes(forge([(twice[0][0], contents_of(twice))]))
    assert repair(path).tables_kept == 1
    with lsm.DB(path) as db:
        assert db.get(b"a") in (b"one", b"two")


def test_no_byte_of_a_table_and_no_cut_breaks_a_repair(path: Path, rng: random.Random) -> None:
    model, table = bottom(path, rng)
    data = table.read_bytes()
    for _ in range(20):
        lsm.destroy_db(path)
        path.mkdir(exist_ok=True)
        bad = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        (path / "000005.ldb").write_bytes(bad[: rng.choice([len(bad), rng.randrange(len(bad))])])
        repair(path)
        with lsm.DB(path, paranoid_checks=True) as db:
            assert dict(db).items() <= model.items()


# ---- Logs ------------------------------------------------------------------------------------


def logged(path: Path, rng: random.Random, count: int = 400) -> tuple[Model, Path]:
    """A database with all it has in its log: about 80 KB, three blocks."""
    model = {name_of(number): rng.randbytes(180) for number in range(count)}
    with lsm.DB(path, create_if_missing=True) as db:
        for key, value in model.items():
            db.put(key, value)
    (log,) = path.glob("*.log")
    return model, log


def test_a_log_is_replayed_past_damage(path: Path, rng: random.Random) -> None:
    model, log = logged(path, rng)
    spoil(log, 40_000)
    with pytest.raises(CorruptionError, match=r"repair_db\(\)"):
        lsm.DB(path, paranoid_checks=True)
    report = repair(path)
    assert all(loss.startswith(f"{log}, byte ") for loss in report.losses)
    assert "checksum" in report.losses[0]
    with lsm.DB(path) as db:
        found = dict(db)
    assert found.items() <= model.items()
    missing = sorted(model.keys() - found.keys())
    # From the damaged record on to the end of its block, and what reaches into the next one.
    assert missing == [name_of(n) for n in range(int(missing[0][3:]), int(missing[-1][3:]) + 1)]
    assert 100 < len(missing) < 130
    assert name_of(0) in found
    assert name_of(399) in found


def test_a_torn_record_at_the_tail_is_no_loss(path: Path, rng: random.Random) -> None:
    model, log = logged(path, rng, 20)
    log.write_bytes(log.read_bytes()[:-3])
    assert repair(path).losses == ()
    check(path, without(model, [name_of(19)]))


def test_a_record_that_is_no_batch_is_passed_over(path: Path, rng: random.Random) -> None:
    model, _ = logged(path, rng, 20)
    file = FileSystem().create(str(path / "000900.log"))
    writer = LogWriter(file)
    writer.add(encode_batch(1000, [(b"one", b"1")]))
    writer.add(b"no batch at all")
    writer.add(encode_batch(1001, [(b"two", b"2"), (b"one", None)]))
    file.close()
    report = repair(path)
    (loss,) = report.losses
    assert loss.startswith(f"{path}/000900.log: the record that ends at byte ")
    check(path, model | {b"two": b"2"})
    with lsm.DB(path) as db:
        assert db._store.manifest.last_sequence == 1002


def test_the_logs_order_does_not_count_their_sequence_numbers_do(path: Path) -> None:
    path.mkdir()
    for number, batch in {7: (100, b"new"), 8: (50, b"old"), 9: (60, b"older")}.items():
        file = FileSystem().create(str(path / filenames.log_name(number)))
        LogWriter(file).add(encode_batch(batch[0], [(b"k", batch[1]), (b"%d" % number, b"")]))
        file.close()
    for write_buffer_size in (1, 1000):
        forget(path, Kind.TABLE)
        assert repair(path, write_buffer_size=write_buffer_size).logs_replayed == 3
        with lsm.DB(path) as db:
            assert dict(db) == {b"k": b"new", b"7": b"", b"8": b"", b"9": b""}
            assert db.get(b"k") == b"new"
        forget(path, Kind.MANIFEST, Kind.LOG)
        for file in (path / LOST).glob("*.log"):
            file.rename(path / file.name)


def test_a_long_log_takes_no_more_memory_than_the_write_buffer(
    path: Path, rng: random.Random
) -> None:
    model, _ = logged(path, rng)
    repair(path, write_buffer_size=20_000)
    levels = [new.level for new in placed(path).values()]
    # Of what a buffer may take, entries of the readable kernel take more.
    assert levels == [0] * (5 if lsm.KERNEL == "native" else 8)
    check(path, model)


# ---- Manifests -------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["begin", "middle", "cut", "garbage", "empty"])
def test_a_damaged_manifest_is_made_anew(
    path: Path, tiny: str, rng: random.Random, damage: str
) -> None:
    model = filled(path, tiny, rng)
    (manifest,) = path.glob("MANIFEST-*")
    data = manifest.read_bytes()
    if damage in ("begin", "middle"):
        spoil(manifest, 9 if damage == "begin" else len(data) // 2)
        with pytest.raises(CorruptionError, match=r"repair_db\(\)"):
            lsm.DB(path)
    else:
        wrong = {"cut": data[: len(data) // 2], "garbage": rng.randbytes(999), "empty": b""}
        manifest.write_bytes(wrong[damage])
    assert repair(path).losses == () or damage in ("middle", "cut")
    check(path, model)


def test_the_manifest_that_current_names_is_asked_else_the_newest(path: Path) -> None:
    forged_database(path, {5: (0, NEW), 6: (1, OLD)})
    (sound,) = path.glob("MANIFEST-*")
    empty = Edit(log_number=1, next_file_number=2, last_sequence=0)
    for other in ("MANIFEST-000003", "MANIFEST-000900"):
        file = FileSystem().create(str(path / other))
        LogWriter(file).add(empty.encode())
        file.close()
    assert repair(path).tables_rewritten == 0
    assert sorted(file.name for file in (path / LOST).iterdir()) == [
        "MANIFEST-000003",
        sound.name,
        "MANIFEST-000900",
    ]
    (path / "CURRENT").write_bytes(b"nonsense")
    assert repair(path).tables_rewritten == 0
    with lsm.DB(path) as db:
        assert dict(db) == {b"a": b"new", b"b": b"deep"}


# ---- Names -----------------------------------------------------------------------------------


def test_tables_of_old_names_are_kept(path: Path, rng: random.Random) -> None:
    model, table = bottom(path, rng)
    old = table.rename(table.with_suffix(".sst"))
    forget(path, Kind.MANIFEST)
    assert repair(path).tables_kept == 1
    assert tables(path) == [old]
    check(path, model)


def test_tables_under_names_that_nobody_looks_for_are_copied(path: Path) -> None:
    path.mkdir()
    (path / "000005.ldb").write_bytes(OLD)
    (path / "000005.sst").write_bytes(NEW)
    (path / "7.ldb").write_bytes(forged_table([(b"z", 1, b"z")]))
    report = repair(path)
    assert report.losses == ()
    assert (path / LOST / "000005.sst").read_bytes() == NEW
    with lsm.DB(path) as db:
        assert dict(db) == {b"a": b"new", b"b": b"deep", b"z": b"z"}


def test_what_is_not_the_databases_is_left_alone(path: Path, rng: random.Random) -> None:
    model = filled(path, None, rng)
    for name in ("000777.ldb", "000778.log", "MANIFEST-000779"):
        (path / name).mkdir()
        (path / name / "mine").write_bytes(b"mine")
    (path / "notes.txt").write_bytes(b"mine")
    forget(path, Kind.CURRENT)
    assert repair(path).losses == ()
    assert (path / "000777.ldb" / "mine").read_bytes() == b"mine"
    assert (path / "000778.log" / "mine").read_bytes() == b"mine"
    assert (path / "notes.txt").read_bytes() == b"mine"
    with lsm.DB(path, read_only=True) as db:
        assert dict(db) == model


@pytest.mark.parametrize(
    ("name", "kept"),
    [("000005.log", f"{LOST}/000005.log"), ("000005.ldb", f"000005.ldb{UNREADABLE}")],
)
def test_nothing_that_was_kept_is_ever_replaced(path: Path, name: str, kept: str) -> None:
    contents = set()
    for number in range(3):
        lsm.destroy_db(path)
        path.mkdir(exist_ok=True)
        (path / name).write_bytes(b"garbage %d" % number)
        contents.add(b"garbage %d" % number)
        repair(path)
    there = sorted(path.glob(f"{kept}*"))
    assert [str(file) for file in there] == [f"{path}/{kept}{n}" for n in ("", ".1", ".2")]
    assert {file.read_bytes() for file in there} == contents


def test_where_nothing_has_to_be_set_aside_there_is_no_lost(path: Path) -> None:
    path.mkdir()
    (path / "000005.ldb").write_bytes(NEW)
    assert repair(path).tables_kept == 1
    assert not (path / LOST).exists()


# ---- LevelDB ---------------------------------------------------------------------------------


def of_leveldb(path: Path, rng: random.Random) -> Model:
    plyvel = pytest.importorskip("plyvel")
    model: Model = {}
    with plyvel.DB(
        str(path),
        create_if_missing=True,
        write_buffer_size=64 << 10,
        max_file_size=1 << 20,
        bloom_filter_bits=10,
    ) as db:
        write(db, model, rng, 6000)
        db.compact_range(start=name_of(0), stop=name_of(150))
        write(db, model, rng, 2000)
    return model


def leveldb_has(path: Path, model: Model) -> None:
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(path), bloom_filter_bits=10, paranoid_checks=True) as db:
        assert dict(db.iterator(verify_checksums=True)) == model
        for number in range(400):
            assert db.get(name_of(number)) == model.get(name_of(number))
        db.compact_range()
        assert dict(db) == model


@pytest.mark.parametrize("gone", [(), (Kind.CURRENT,), (Kind.MANIFEST,)], ids=repr)
def test_leveldb_opens_its_database_that_we_have_repaired(
    path: Path, rng: random.Random, gone: tuple[Kind, ...]
) -> None:
    model = of_leveldb(path, rng)
    forget(path, *gone)
    report = repair(path, bloom_filter_bits=10)
    assert report.losses == ()
    assert report.tables_kept > 0 or Kind.MANIFEST in gone
    check(path, model)
    leveldb_has(path, model)


def test_leveldb_opens_our_database_that_we_have_repaired(
    path: Path, tiny: str, rng: random.Random
) -> None:
    model = filled(path, tiny, rng, compression="snappy")
    forget(path, Kind.MANIFEST)
    lsm.repair_db(path)
    leveldb_has(path, model)


def test_we_open_our_database_that_leveldb_has_repaired(path: Path, rng: random.Random) -> None:
    plyvel = pytest.importorskip("plyvel")
    with lsm.DB(path, create_if_missing=True) as db:
        model = {name_of(number): rng.randbytes(20) for number in range(300)}
        for key, value in model.items():
            db.put(key, value)
        db.compact_range()
        db.put(b"last", b"one")
    model[b"last"] = b"one"
    forget(path, Kind.MANIFEST)
    plyvel.repair_db(str(path))
    check(path, model)
    assert repair(path).losses == ()
    check(path, model)


def test_a_damaged_table_of_leveldb_is_read_and_leveldb_goes_on(
    path: Path, rng: random.Random
) -> None:
    plyvel = pytest.importorskip("plyvel")
    model = {name_of(number): rng.randbytes(40) for number in range(400)}
    with plyvel.DB(str(path), create_if_missing=True, block_size=512) as db:
        for key, value in model.items():
            db.put(key, value)
        db.compact_range()
    (table,) = tables(path)
    damaged = parse(table.read_bytes()).blocks[4]
    spoil(table, damaged.offset)
    assert repair(path).tables_rewritten == 1
    left = without(model, entries_of([damaged]))
    leveldb_has(path, left)
    check(path, left)


# ---- Power losses and failures ---------------------------------------------------------------


def damaged_in_many_ways(tiny: str, rng: random.Random) -> tuple[SimulatedStorage, Model]:
    """A database that needs a merge, has a table without its footer, and a log."""
    storage = SimulatedStorage()
    model: Model = {}
    with lsm.DB("db", create_if_missing=True, config=tiny, storage=storage) as db:
        write(db, model, rng, 180, keys=80)
        db.wait_until_idle()
        write(db, model, rng, 10, keys=80)
        db.put(b"last", b"one", sync=True)
    model[b"last"] = b"one"
    names = [name for name in storage.list("db") if name.endswith(".ldb")]
    cut(storage, f"db/{names[-1]}")
    return storage, model


def cut(storage: SimulatedStorage, path: str) -> None:
    """Take a table's footer, and so its index, away."""
    data = storage.read(path)
    put(storage, path, data[:-10])


def put(storage: Storage, path: str, data: bytes) -> None:
    file = storage.create(path)
    file.append(data)
    file.sync()
    file.close()
    storage.sync_directory("db")


def everything(storage: Storage) -> set[bytes]:
    """The contents of all files, wherever they are now."""
    found = set()
    for directory in ("db", f"db/{LOST}"):
        if storage.exists(directory):
            names = (name for name in storage.list(directory) if name != LOST)
            found |= {storage.read(f"{directory}/{name}") for name in names}
    return found


@pytest.mark.parametrize("with_manifest", [True, False])
def test_a_repair_that_loses_power_anywhere_is_repeated_without_loss(
    tiny: str, rng: random.Random, with_manifest: bool
) -> None:
    original, model = damaged_in_many_ways(tiny, rng)
    if not with_manifest:
        forget("db", Kind.MANIFEST, Kind.CURRENT, storage=original)
    original = original.kill().crash()
    there = {
        original.read(f"db/{name}")
        for name in original.list("db")
        if (parsed := filenames.parse(name)) and parsed[0] in (Kind.TABLE, Kind.LOG)
    }
    tails: list[Tails] = ["clean", "zero", "garbage"]
    stopped = True
    step = 0
    while stopped:
        storage = original.kill()
        storage.stop_after(step)
        with contextlib.suppress(PowerLost):
            repair("db", storage=storage, config=tiny)
        stopped = storage.stopped
        for after in (storage.kill(), storage.crash(), storage.crash(rng, tails=rng.choice(tails))):
            assert after.list("db")
            again = repair("db", storage=after, config=tiny)
            assert not [loss for loss in again.losses if "missing" in loss]
            with lsm.DB("db", storage=after, config=tiny) as db:
                assert dict(db) == model, step
                assert {key: db.get(key) for key in model} == model
        if storage.kill().list("db"):
            clean = storage.kill()
            repair("db", storage=clean, config=tiny)
            assert there <= everything(clean)
        step += 1
    assert step > 40


def test_who_opens_after_a_repair_that_lost_power_finds_the_old_state_or_the_new(
    tiny: str, rng: random.Random
) -> None:
    storage = SimulatedStorage()
    model = filled("db", tiny, rng, storage)
    original = storage.kill().crash()
    step, stopped = 0, True
    while stopped:
        storage = original.kill()
        storage.stop_after(step)
        with contextlib.suppress(PowerLost):
            repair("db", storage=storage, config=tiny)
        stopped = storage.stopped
        for after in (storage.kill(), storage.crash(), storage.crash(rng)):
            with lsm.DB("db", storage=after, config=tiny) as db:
                assert dict(db) == model
        step += 1
    assert step > 10


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_repair_that_fails_leaves_what_was_there_and_nothing_else(
    tiny: str, rng: random.Random, error: int
) -> None:
    original, model = damaged_in_many_ways(tiny, rng)
    forget("db", Kind.MANIFEST, storage=original)
    counter = original.kill()
    repair("db", storage=counter, config=tiny)
    chances = [
        index
        for index, (operation, at) in enumerate(counter.operations)
        if operation in ("append", "sync", "create", "sync_directory", "rename")
        and not at.startswith("db/lsm-")
    ]
    names = {name for name in original.list("db") if not name.startswith("lsm-")}
    before = {name: original.read(f"db/{name}") for name in names}
    for chance in sorted(rng.sample(chances, 12)):
        storage = original.kill()
        storage.fail(lambda _what, _path, index, at=chance: index == at, error)
        with pytest.raises(lsm.IOError):
            repair("db", storage=storage, config=tiny)
        storage.mend()
        committed = any(
            operation == "create" and "MANIFEST" in at for operation, at in storage.operations
        )
        if not committed:
            left = {name for name in storage.list("db") if not name.startswith("lsm-")}
            assert {name: storage.read(f"db/{name}") for name in left} == before
        repair("db", storage=storage, config=tiny)
        with lsm.DB("db", storage=storage, config=tiny) as db:
            assert dict(db) == model


def failing_reads(storage: SimulatedStorage, name: str, error: int) -> None:
    storage.fail(lambda what, at, _index: what in ("read", "map") and at == f"db/{name}", error)


def test_what_the_device_cannot_read_is_kept(tiny: str, rng: random.Random) -> None:
    storage = SimulatedStorage()
    filled("db", tiny, rng, storage)
    table = next(name for name in storage.list("db") if name.endswith(".ldb"))
    log = next(name for name in storage.list("db") if name.endswith(".log"))
    for name in (table, log):
        failing_reads(storage, name, errno.EIO)
    report = repair("db", storage=storage, config=tiny)
    assert [name in loss for name, loss in zip((table, log), report.losses, strict=True)] == [
        True,
        True,
    ]
    assert report.tables_lost == 1
    assert log in storage.list(f"db/{LOST}")
    assert f"{table}{UNREADABLE}" in storage.list("db")
    with lsm.DB("db", storage=storage, config=tiny) as db:
        assert len(list(db)) > 100


@pytest.mark.parametrize("suffix", [".ldb", ".log"])
def test_what_may_not_be_read_is_not_lost(tiny: str, rng: random.Random, suffix: str) -> None:
    storage = SimulatedStorage()
    model = filled("db", tiny, rng, storage)
    before = storage.list("db")
    file = next(name for name in before if name.endswith(suffix))
    failing_reads(storage, file, errno.EACCES)
    with pytest.raises(lsm.IOError, match=file):
        repair("db", storage=storage, config=tiny)
    assert storage.list("db") == before
    storage.mend()
    with lsm.DB("db", storage=storage, config=tiny) as db:
        assert dict(db) == model


# ---- The lock --------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("use", [lsm.repair_db, lsm.destroy_db])
def test_a_database_in_use_is_refused(
    path: Path, rng: random.Random, use: Callable[[Path], None], read_only: bool
) -> None:
    model = filled(path, None, rng)
    before = sorted(os.listdir(path))
    with lsm.DB(path, read_only=read_only) as db:
        inside = sorted(os.listdir(path))
        with pytest.raises(LockedError):
            use(path)
        assert sorted(os.listdir(path)) == inside
        assert dict(db) == model
    assert set(before) & set(os.listdir(path))
    use(path)


def test_a_database_is_locked_while_it_is_repaired_and_free_afterwards(tiny: str) -> None:
    storage = SimulatedStorage()
    with lsm.DB("db", create_if_missing=True, storage=storage) as db:
        db.put(b"k", b"v")
    refused = []

    def meddle(what: str, _path: str, _index: int) -> bool:
        if what == "append" and not refused:
            refused.append(True)
            with pytest.raises(LockedError):
                lsm.DB("db", storage=storage)
        return False

    storage.fail(meddle)
    lsm.repair_db("db", storage=storage)
    assert refused
    storage.fail(lambda what, _path, _index: what == "append")
    with pytest.raises(lsm.IOError):
        lsm.repair_db("db", storage=storage)
    storage.mend()
    with lsm.DB("db", storage=storage) as db:
        assert dict(db) == {b"k": b"v"}


# ---- Comparators -----------------------------------------------------------------------------


def backwards(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def reverse_order(path: Path, tiny: str, rng: random.Random) -> Model:
    return filled(path, tiny, rng, comparator=backwards, comparator_name=b"backwards")


@pytest.mark.parametrize("gone", [(), (Kind.MANIFEST,)], ids=repr)
def test_a_database_of_another_order_is_repaired_in_its_order(
    path: Path, tiny: str, rng: random.Random, gone: tuple[Kind, ...]
) -> None:
    model = reverse_order(path, tiny, rng)
    spoiled = tables(path)[0]
    spoil(spoiled, spoiled.stat().st_size - 1)
    forget(path, *gone)
    report = repair(path, comparator=backwards, comparator_name=b"backwards")
    assert report.losses == ()
    check(path, model, comparator=backwards, comparator_name=b"backwards")
    with lsm.DB(path, comparator=backwards, comparator_name=b"backwards") as db:
        assert [key for key, _ in db] == sorted(model, reverse=True)


@pytest.mark.parametrize("damage", [False, True])
def test_another_comparator_than_a_manifest_names_is_refused(
    path: Path, tiny: str, rng: random.Random, damage: bool
) -> None:
    model = reverse_order(path, tiny, rng)
    (manifest,) = path.glob("MANIFEST-*")
    if damage:
        spoil(manifest, manifest.stat().st_size - 3)
        (path / "CURRENT").unlink()
    before = {file: file.read_bytes() for file in path.iterdir()}
    with pytest.raises(ComparatorError, match="'backwards'.*comparator_name="):
        repair(path)
    assert {file: file.read_bytes() for file in path.iterdir()} == before
    repair(path, comparator=backwards, comparator_name=b"backwards")
    check(path, model, comparator=backwards, comparator_name=b"backwards")


# ---- Options and filters ---------------------------------------------------------------------


def filters_of(path: Path) -> dict[int, set[tuple[str, str]]]:
    """By level, the policies of tables and what became of their filters."""
    with lsm.DB(path, read_only=True) as db:
        return {
            level.level: {(table.policy, table.state) for table in level.tables}
            for level in db.filters()
            if level.tables
        }


def test_tables_are_written_under_the_options_the_database_has_kept(
    path: Path, rng: random.Random
) -> None:
    _, table = bottom(path, rng, filter_policy=create("cuckoo"), compression=None)
    kept = (path / "lsm-options.toml").read_bytes()
    seed = (path / "lsm-seed").read_bytes()
    spoil(table, 5)
    repair(path)
    assert (path / "lsm-options.toml").read_bytes() == kept
    assert (path / "lsm-seed").read_bytes() == seed
    assert filters_of(path) == {2: {("cuckoo", "built")}}
    whole = parse(tables(path)[0].read_bytes())
    assert seed in whole.meta[b"fullfilter.cuckoo"].contents
    assert {block.kind for block in whole.blocks} == {0}
    assert len(whole.blocks) > 30


def test_keywords_say_how_tables_are_written(path: Path, rng: random.Random) -> None:
    _, table = bottom(path, rng)
    spoil(table, 5)
    repair(path, block_size=4096, compression=b"snappy", filter_policy=create("classic"))
    assert filters_of(path) == {2: {("classic", "built")}}
    assert len(parse(tables(path)[0].read_bytes()).blocks) < 10


def test_a_configuration_says_how_tables_are_written(path: Path, rng: random.Random) -> None:
    _, table = bottom(path, rng)
    spoil(table, 5)
    config = path.parent / "lsm.toml"
    config.write_text('[filters]\npolicy = "none"\n[filters.level.2]\npolicy = "blocked"\n')
    repair(path, config=config)
    assert filters_of(path) == {2: {("blocked", "built")}}


def test_every_table_has_its_levels_filter(path: Path, rng: random.Random) -> None:
    levels = LevelPolicies.from_config(
        {
            "filters": {
                "policy": "none",
                "level": {"0": {"policy": "classic"}, "1": {"policy": "blocked"}},
            }
        }
    )
    with lsm.DB(path, create_if_missing=True, filter_policy=levels) as db:
        for _ in range(3):
            write(db, {}, rng, 100)
            db.flush()
        write(db, {}, rng, 100)
    repair(path)
    assert filters_of(path)[0] == {("classic", "built")}
    forget(path, Kind.MANIFEST)
    repair(path)
    assert filters_of(path) == {1: {("blocked", "built")}}


def test_a_seed_that_is_gone_is_made_anew(path: Path, rng: random.Random) -> None:
    model, table = bottom(path, rng)
    (path / "lsm-seed").unlink()
    (path / "lsm-options.toml").unlink()
    spoil(table, table.stat().st_size - 1)
    repair(path)
    check(path, model)
    assert len((path / "lsm-seed").read_bytes()) == 8


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"compression": "garbage"}, ValueError),
        ({"create_if_missing": True}, TypeError),
        ({"block_size": -1}, ValueError),
        ({"comparator": backwards}, ValueError),
        ({"config": "/nowhere/lsm.toml"}, Exception),
    ],
)
@pytest.mark.parametrize("use", [repair, lsm.repair_db])
def test_wrong_options_are_refused_before_anything_is_touched(
    path: Path, use: Callable[..., Any], options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        use(path, **options)
    assert not path.exists()


# ---- What it says ----------------------------------------------------------------------------


def test_a_report_counts_and_every_table_is_told_of(
    path: Path, tiny: str, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path, tiny, rng)
    files = tables(path)
    deepest = max(placed(path).values(), key=lambda new: new.level)
    damaged = path / filenames.table_name(deepest.number)
    spoil(damaged, 20)
    with caplog.at_level(logging.INFO, "lsm"):
        assert lsm.repair_db(path) is None
    told = [record.getMessage() for record in caplog.records]
    for file in files:
        assert [line for line in told if line.startswith(f"{file}: ") and "entries" in line], file
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings[0].startswith(f"{damaged}: the data block at byte")
    assert warnings[1:] == [
        f"{damaged}: kept, for not all of it can be read, as {damaged}{UNREADABLE}"
    ]
    assert told[-1].startswith(f"{path}: repaired: {len(files) - 1} tables kept, 1 rewritten, ")
    assert told[-1].endswith("0 lost, 1 logs replayed, 1 losses")


def test_a_report_is_a_value() -> None:
    report = Report(
        tables_kept=1,
        tables_rewritten=2,
        tables_replaced=3,
        tables_lost=4,
        logs_replayed=5,
        losses=("x",),
    )
    assert str(report) == (
        "1 tables kept, 2 rewritten, 3 left out as replaced, 4 lost, 5 logs replayed, 1 losses"
    )
    with pytest.raises(AttributeError):
        report.tables_kept = 2  # type: ignore[misc]


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "no CURRENT": lambda path: (path / "CURRENT").unlink(),
    "CURRENT without newline": lambda path: (path / "CURRENT").write_bytes(b"MANIFEST-000001"),
    "CURRENT names no manifest": lambda path: (path / "CURRENT").write_bytes(b"000005.ldb\n"),
    "empty CURRENT": lambda path: (path / "CURRENT").write_bytes(b""),
    "no manifest": lambda path: next(path.glob("MANIFEST-*")).unlink(),
    "empty manifest": lambda path: next(path.glob("MANIFEST-*")).write_bytes(b""),
    "damaged manifest": lambda path: spoil(next(path.glob("MANIFEST-*")), 30),
    "no table": lambda path: tables(path)[0].unlink(),
    "empty table": lambda path: tables(path)[0].write_bytes(b""),
    "cut table": lambda path: os.truncate(tables(path)[0], 1000),
    "damaged table": lambda path: spoil(tables(path)[0], 100),
    "no table at all": lambda path: tables(path)[0].write_bytes(bytes(5000)),
    "damaged log": lambda path: spoil(next(path.glob("*.log")), 100),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_who_follows_the_advice_of_an_error_can_go_on(
    path: Path, rng: random.Random, damage: str
) -> None:
    model = {name_of(number): rng.randbytes(40) for number in range(300)}
    with lsm.DB(path, create_if_missing=True) as db:
        for key, value in model.items():
            db.put(key, value)
        db.compact_range()
        for number in range(10):
            db.put(b"late%d" % number, b"late")
            model[b"late%d" % number] = b"late"
    DAMAGES[damage](path)
    with (
        pytest.raises(lsm.Error, match=r"lsm\.repair_db\(\)"),
        lsm.DB(path, paranoid_checks=True) as db,
    ):
        list(db)
    lsm.repair_db(path)
    with lsm.DB(path, paranoid_checks=True) as db:
        assert dict(db).items() <= model.items()
        assert bool(list(db)) or "table" in damage
        db.put(b"and goes", b"on")
        db.compact_range()
        assert db.get(b"and goes") == b"on"


# ---- Directories -----------------------------------------------------------------------------


def test_a_directory_is_made_but_not_the_one_above_it(tmp_path: Path) -> None:
    with pytest.raises(NotADatabaseError, match="above it"):
        repair(tmp_path / "not" / "there")
    assert not (tmp_path / "not").exists()
    assert repair(tmp_path / "new") == Report(
        tables_kept=0,
        tables_rewritten=0,
        tables_replaced=0,
        tables_lost=0,
        logs_replayed=0,
        losses=(),
    )
    with lsm.DB(tmp_path / "new") as db:
        assert list(db) == []


# ---- Destroying ------------------------------------------------------------------------------


def test_destroying_removes_the_databases_files_and_no_others(
    path: Path, rng: random.Random
) -> None:
    filled(path, None, rng)
    repair(path)
    ours = [
        "000900.sst",
        "000901.dbtmp",
        "LOG",
        "LOG.old",
        "lsm-options.toml.dbtmp",
        "lsm-seed.dbtmp",
        "lsm-heat",
        "lsm-heat.dbtmp",
    ]
    foreign = ["notes.txt", "lsm.toml", "x.ldb", "000902.ldb.bak", "LOCK.old", "other.dbtmp"]
    for name in ours + foreign:
        (path / name).write_bytes(b"")
    (path / "000903.ldb").mkdir()
    lost = sorted(os.listdir(path / LOST))
    assert lsm.destroy_db(path) is None
    assert sorted(os.listdir(path)) == sorted([*foreign, LOST, "000903.ldb"])
    assert sorted(os.listdir(path / LOST)) == lost != []


def test_destroying_begins_with_current_and_ends_with_the_lock() -> None:
    storage = SimulatedStorage()
    with lsm.DB("db", create_if_missing=True, storage=storage) as db:
        db.put(b"k", b"v")
        db.flush()
    start = len(storage.operations)
    lsm.destroy_db("db", storage=storage)
    removed = [at for what, at in storage.operations[start:] if what == "remove"]
    assert (removed[0], removed[-1]) == ("db/CURRENT", "db/LOCK")
    assert not storage.exists("db")
    lsm.destroy_db("db", storage=storage)


def test_destroying_that_fails_keeps_others_out_no_longer() -> None:
    storage = SimulatedStorage()
    lsm.DB("db", create_if_missing=True, storage=storage).close()
    storage.fail(lambda what, at, _index: what == "remove" and "MANIFEST" in at)
    with pytest.raises(lsm.IOError):
        lsm.destroy_db("db", storage=storage)
    storage.mend()
    lsm.destroy_db("db", storage=storage)
    assert not storage.exists("db")


def test_what_cannot_be_listed_is_no_missing_directory() -> None:
    storage = SimulatedStorage()
    lsm.DB("db", create_if_missing=True, storage=storage).close()
    storage.fail(lambda what, _at, _index: what == "list", errno.EACCES)
    with pytest.raises(lsm.IOError):
        lsm.destroy_db("db", storage=storage)
