"""The manifest: what it was told it still knows after it is read again."""

from __future__ import annotations

import gc
import random

import pytest

from lsm.comparator import BYTEWISE, CustomComparator
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE, PUT, pack, rank_of
from lsm.disk.log import LogReader, LogWriter
from lsm.errors import ComparatorError, CorruptionError, Error
from lsm.manifest import Manifest
from lsm.options import LEVELS
from tests.lsm.simulated import SimulatedStorage


@pytest.fixture
def storage() -> SimulatedStorage:
    """A directory with the manifest of an empty database."""
    storage = SimulatedStorage()
    storage.make_directory("db")
    Manifest.create(storage, "db", BYTEWISE)
    return storage


def recovered(storage: SimulatedStorage) -> Manifest:
    manifest = Manifest(storage, "db", BYTEWISE)
    manifest.recover()
    return manifest


def state(manifest: Manifest) -> tuple[object, ...]:
    tables = [
        (each.level, each.number, each.size, each.smallest, each.largest)
        for each in manifest.current.tables()
    ]
    return (
        sorted(tables),
        manifest.log_number,
        manifest.last_sequence,
        manifest.compact_pointers,
    )


def new_file(manifest: Manifest, rng: random.Random) -> NewFile:
    """A table that overlaps no other."""
    number = manifest.new_file_number()
    low, high = (b"%04d" % number + end for end in sorted(rng.randbytes(3) for _ in "ab"))
    newest, oldest = rank_of(rng.randrange(50, 99), PUT), rank_of(rng.randrange(50), PUT)
    bounds = pack(low, newest), pack(high, oldest)
    return NewFile(rng.randrange(LEVELS), number, rng.randrange(999), *bounds)


def test_it_is_found_again_as_it_was_whenever_it_is_opened(
    storage: SimulatedStorage, rng: random.Random
) -> None:
    manifest = recovered(storage)
    live: list[NewFile] = []
    for number in range(60):
        edit = Edit(added=[new_file(manifest, rng) for _ in range(rng.randrange(3))])
        gone = rng.sample(live, min(len(live), rng.randrange(3)))
        edit.deleted = [(each.level, each.number) for each in gone]
        if rng.random() < 0.5:
            edit.compact_pointers = [(rng.randrange(LEVELS), pack(rng.randbytes(2), -257))]
        if rng.random() < 0.3:
            edit.log_number = manifest.new_file_number()
        manifest.last_sequence += rng.randrange(100)
        version = manifest.apply(edit)
        live = [each for each in live if each not in gone] + edit.added
        assert version is manifest.current
        assert {each.number for each in version.tables()} == {each.number for each in live}
        again = recovered(storage.crash())
        assert state(again) == state(manifest)
        assert all(again.next_file_number > each.number for each in live)
        if rng.random() < 0.2:
            manifest.close()
            used = manifest.next_file_number
            manifest = recovered(storage)
            assert manifest.next_file_number >= used or number == 0


def test_a_table_that_moves_is_the_same_file(storage: SimulatedStorage, rng: random.Random) -> None:
    manifest = recovered(storage)
    new = new_file(manifest, rng)
    manifest.apply(Edit(added=[new]))
    (placed,) = manifest.current.tables()
    level = (new.level + 1) % LEVELS
    moved = NewFile(level, new.number, new.size, new.smallest, new.largest)
    edit = Edit(deleted=[(new.level, new.number)], added=[moved])
    manifest.apply(edit, [placed.file])
    (again,) = manifest.current.tables()
    assert again.file is placed.file
    assert again.level == level
    assert state(recovered(storage)) == state(manifest)


def test_tables_live_as_long_as_somebody_holds_their_version(
    storage: SimulatedStorage, rng: random.Random
) -> None:
    manifest = recovered(storage)
    new = new_file(manifest, rng)
    held = manifest.apply(Edit(added=[new]))
    manifest.apply(Edit(deleted=[(new.level, new.number)]))
    gc.collect()
    assert manifest.live_files() == {new.number}
    del held
    gc.collect()
    assert manifest.live_files() == set()


def test_numbers_are_never_given_twice(storage: SimulatedStorage) -> None:
    manifest = recovered(storage)
    first = manifest.new_file_number()
    manifest.reserve(first + 10)
    assert manifest.new_file_number() == first + 11
    manifest.reserve(first)
    assert manifest.new_file_number() == first + 12


def test_each_opening_begins_a_manifest_and_the_old_one_holds_until_then(
    storage: SimulatedStorage,
) -> None:
    before = storage.read("db/CURRENT")
    manifest = recovered(storage)
    assert storage.read("db/CURRENT") == before
    manifest.apply(Edit())
    current = storage.read("db/CURRENT").decode()
    assert current == f"MANIFEST-{manifest.number:06}\n"
    manifest.apply(Edit())
    assert storage.read("db/CURRENT").decode() == current
    first, *_ = LogReader(storage.read(f"db/{current.strip()}"), "").records()
    assert Edit.decode(first, LEVELS).comparator == BYTEWISE.name


def test_another_comparator_is_refused(storage: SimulatedStorage) -> None:
    manifest = Manifest(storage, "db", CustomComparator("mine", lambda one, other: 0))
    with pytest.raises(ComparatorError, match="leveldb.BytewiseComparator.*'mine'"):
        manifest.recover()


def written(storage: SimulatedStorage, *edits: Edit) -> list[int]:
    """A manifest of these edits in place of the one that is there; where their records begin."""
    file = storage.create("db/MANIFEST-000001")
    log, starts = LogWriter(file), []
    for edit in edits:
        starts.append(log.offset)
        log.add(edit.encode())
    file.close()
    return starts


WHOLE = Edit(log_number=5, next_file_number=9, last_sequence=7)


@pytest.mark.parametrize("missing", ["log_number", "next_file_number", "last_sequence"])
def test_a_manifest_says_all_of_its_numbers(missing: str, storage: SimulatedStorage) -> None:
    numbers = {"log_number": 5, "next_file_number": 9, "last_sequence": 7}
    numbers.pop(missing)
    written(storage, Edit(**numbers))
    words = missing.replace("_", " ")
    with pytest.raises(
        CorruptionError, match=f"MANIFEST-000001.*no record has the {words}.*repair"
    ):
        recovered(storage)


def key(user_key: bytes, sequence: int = 1) -> bytes:
    return pack(user_key, rank_of(sequence, PUT))


def added(level: int, number: int, low: bytes, high: bytes, size: int = 10) -> Edit:
    return Edit(added=[NewFile(level, number, size, low, high)])


A, B, C = key(b"a"), key(b"b"), key(b"c")
BEYOND = filenames.LAST_NUMBER + 1

# Records that no writer makes, behind one that has all numbers; and what is said of the last one.
FORGED: dict[str, tuple[list[Edit], str]] = {
    "log number": ([Edit(log_number=BEYOND)], f"the log number is {BEYOND}, the highest"),
    "previous log number": ([Edit(previous_log_number=2**64 - 1)], "previous log number is"),
    "next file number": ([Edit(next_file_number=2**64 - 1)], "next file number is"),
    "last sequence number": ([Edit(last_sequence=MAX_SEQUENCE + 1)], "last sequence is"),
    "number of a table": ([added(3, BEYOND, A, B)], f"number of a table is {BEYOND}"),
    "bounds in disorder": ([added(0, 8, B, A)], "table 8 of level 0.*end before"),
    "versions in disorder": (
        [added(2, 8, key(b"a", 3), key(b"a", 4))],
        "table 8 of level 2.*'a' @ 4",
    ),
    "a table twice": ([added(1, 8, A, B), added(1, 8, A, B)], "table 8 is added.*already"),
    "a table at two levels": ([added(1, 8, A, B), added(2, 8, A, B)], "to level 2.*of level 1"),
    "a table twice in one record": (
        [Edit(added=[NewFile(level, 8, 10, A, B) for level in (0, 3)])],
        "to level 3.*of level 0",
    ),
    "tables that overlap": (
        [added(4, 8, B, C), added(4, 9, A, key(b"bb"))],
        "tables 9 and 8 of level 4",
    ),
    "one table within another": ([added(4, 8, B, B), added(4, 9, A, C)], "tables 9 and 8"),
    "a newer version behind an older one": (
        [added(1, 8, A, key(b"b", 5)), added(1, 9, key(b"b", 6), C)],
        "tables 8 and 9 of level 1 overlap",
    ),
    "a move that leaves the table": (
        [added(1, 8, A, B), Edit(deleted=[(2, 8)], added=[NewFile(2, 8, 10, A, B)])],
        "table 8 is added to level 2",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_no_writer_makes_is_refused_with_its_place(
    what: str, storage: SimulatedStorage
) -> None:
    edits, said = FORGED[what]
    start = written(storage, WHOLE, *edits)[-1]
    message = f"db/MANIFEST-000001: the record at byte {start}: .*{said}.*repair_db"
    with pytest.raises(CorruptionError, match=message):
        recovered(storage)


def test_a_record_that_is_none_is_refused_with_its_place(storage: SimulatedStorage) -> None:
    starts = written(storage, WHOLE, Edit(compact_pointers=[(7, A)]))
    with pytest.raises(CorruptionError, match=f"record at byte {starts[-1]}: .*level 7.*repair_db"):
        recovered(storage)


def test_the_highest_numbers_are_read_and_none_above_is_given_out(
    storage: SimulatedStorage,
) -> None:
    last = filenames.LAST_NUMBER
    written(
        storage,
        Edit(log_number=last - 1, next_file_number=last, last_sequence=MAX_SEQUENCE),
        added(1, last - 2, A, B, size=2**64 - 1),
        Edit(compact_pointers=[(6, key(b"nowhere"))]),
    )
    manifest = recovered(storage)
    assert manifest.last_sequence == MAX_SEQUENCE
    assert manifest.new_file_number() == last
    with pytest.raises(Error, match=f"db: the numbers of files are used up, {last}.*repair_db"):
        manifest.new_file_number()


def test_tables_that_share_a_key_lie_in_the_order_of_its_versions(
    storage: SimulatedStorage,
) -> None:
    """As LevelDB may cut them, and in whatever order the manifest names them."""
    written(
        storage,
        WHOLE,
        added(1, 8, key(b"k", 4), key(b"k", 4)),
        added(1, 7, key(b"k", 3), key(b"p")),
        added(1, 9, key(b"k", 8), key(b"k", 5)),
        added(1, 6, A, key(b"k", 9)),
    )
    assert [table.number for table in recovered(storage).current.levels[1]] == [6, 9, 8, 7]


def test_a_live_table_s_number_is_not_given_out_again(storage: SimulatedStorage) -> None:
    written(storage, WHOLE, added(1, 30, A, B))
    assert recovered(storage).new_file_number() == 31


@pytest.mark.parametrize("number", [BEYOND, 2**63 - 1])
def test_current_names_no_manifest_beyond_the_highest(
    number: int, storage: SimulatedStorage
) -> None:
    storage.replace("db/CURRENT", f"MANIFEST-{number}\n".encode(), "db/1.dbtmp")
    with pytest.raises(CorruptionError, match=f"db/CURRENT: names manifest {number}.*repair_db"):
        recovered(storage)


def test_later_edits_win_and_numbers_in_use_are_reserved(storage: SimulatedStorage) -> None:
    edits = [
        Edit(added=[NewFile(0, 20, 10, A, A), NewFile(1, 21, 10, A, A)]),
        Edit(deleted=[(0, 20)], added=[NewFile(2, 20, 10, A, A)]),
        Edit(deleted=[(1, 21), (6, 99)], log_number=40, previous_log_number=39),
    ]
    written(storage, WHOLE, *edits)
    manifest = recovered(storage)
    assert [(each.level, each.number) for each in manifest.current.tables()] == [(2, 20)]
    assert (manifest.log_number, manifest.previous_log_number) == (40, 39)
    assert manifest.new_file_number() == 41
