"""The manifest: what it was told it still knows after it is read again."""

from __future__ import annotations

import gc
import random

import pytest

from lsm.comparator import BYTEWISE, CustomComparator
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE, PUT, pack, rank
from lsm.disk.log import LogReader, LogWriter
from lsm.errors import ComparatorError, CorruptionError
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
    low, high = sorted(pack(rng.randbytes(3), rank(rng.randrange(99), PUT)) for _ in "ab")
    return NewFile(rng.randrange(LEVELS), manifest.new_file_number(), rng.randrange(999), low, high)


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


def written(storage: SimulatedStorage, *edits: Edit) -> None:
    """A manifest of these edits in place of the one that is there."""
    file = storage.create("db/MANIFEST-000001")
    log = LogWriter(file)
    for edit in edits:
        log.add(edit.encode())
    file.close()


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


def test_sequence_numbers_have_56_bits(storage: SimulatedStorage) -> None:
    written(storage, WHOLE, Edit(last_sequence=MAX_SEQUENCE))
    assert recovered(storage).last_sequence == MAX_SEQUENCE
    written(storage, WHOLE, Edit(last_sequence=MAX_SEQUENCE + 1))
    with pytest.raises(CorruptionError, match="last sequence number is"):
        recovered(storage)


def test_later_edits_win_and_numbers_in_use_are_reserved(storage: SimulatedStorage) -> None:
    key = pack(b"k", rank(1, PUT))
    edits = [
        Edit(added=[NewFile(0, 20, 10, key, key), NewFile(1, 21, 10, key, key)]),
        Edit(deleted=[(0, 20)], added=[NewFile(2, 20, 10, key, key)]),
        Edit(deleted=[(1, 21), (6, 99)], log_number=40, previous_log_number=39),
    ]
    written(storage, WHOLE, *edits)
    manifest = recovered(storage)
    assert [(each.level, each.number) for each in manifest.current.tables()] == [(2, 20)]
    assert (manifest.log_number, manifest.previous_log_number) == (40, 39)
    assert manifest.new_file_number() == 41
