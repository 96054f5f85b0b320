"""Tables of any store, from a path to what its filters do and what damage does to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lsm
import policies
from filters.errors import FilterError
from filters.families import every
from lsm.errors import CorruptionError
from lsm.survey.damage import damage
from lsm.survey.found import FilterFound
from lsm.survey.look import files_of, look
from lsm.survey.measure import measure
from tests.effort import spread
from tests.lsm.survey.foreign_tables import (
    PEBBLE_MAGIC,
    forge,
    keys_of,
    pebble_fuse_of,
    pebble_lines_of,
    signed_window_of,
    windows_of,
    write_leveldbs,
    write_rocksdbs,
)

KEYS = keys_of(60)
FULL = b"fullfilter.rocksdb.BuiltinBloomFilter"


def ours(path: Path, policy: str, **options: Any) -> Path:
    options["filter_policy"] = policies.create(policy)
    with lsm.DB(path / "db", create_if_missing=True, **options) as db:
        for key in KEYS:
            db.put(key, b"value" * 3)
        db.flush()
    (table,) = files_of(path / "db")
    return Path(table)


def forged(path: Path, name: bytes, filter: bytes, **form: Any) -> Path:
    table = path / "forged.sst"
    table.write_bytes(forge(KEYS, [(name, filter)], **form))
    return table


TABLES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "leveldb": ("LevelDB", lambda path: write_leveldbs(path / "db", KEYS)),
    "rocksdb": ("RocksDB", lambda path: write_rocksdbs(path / "a.sst", KEYS)),
    "older": ("RocksDB", lambda path: write_rocksdbs(path / "a.sst", KEYS, version=4)),
    "partitioned": ("RocksDB", lambda path: write_rocksdbs(path / "a.sst", KEYS, partitioned=True)),
    "unguarded": (
        "RocksDB",
        lambda path: write_rocksdbs(path / "a.sst", KEYS, checksum="no_checksum"),
    ),
    "windows": (
        "RocksDB",
        lambda path: forged(
            path, b"filter.rocksdb.BuiltinBloomFilter", windows_of([signed_window_of(KEYS)])
        ),
    ),
    "lines": (
        "Pebble",
        lambda path: forged(path, FULL, pebble_lines_of(KEYS, 2), magic=PEBBLE_MAGIC, version=4),
    ),
    "fuse": (
        "Pebble",
        lambda path: forged(
            path, b"fullfilter.binaryfuse", pebble_fuse_of(KEYS, 12), magic=PEBBLE_MAGIC, version=4
        ),
    ),
    "ours by blocks": ("lsm", lambda path: ours(path, "leveldb", filter_layout="block")),
    "ours": ("lsm", lambda path: ours(path, "blocked")),
}


@pytest.mark.parametrize("name", TABLES)
def test_no_key_is_denied_and_each_flip_that_hides_one_is_found(name: str, tmp_path: Path) -> None:
    store, write = TABLES[name]
    path = write(tmp_path)
    before = path.read_bytes()
    found = look(path)
    assert (found.store, found.kind, found.problems) == (store, "table", ())
    assert len(found.filters) > 0
    for each in found.filters:
        measured = measure(each, 500, seed=1)
        assert measured.keys
        assert measured.denied == 0
        assert measured.absent == 500
        stored = each.reader.to_bytes()
        exact = damage(each)
        assert exact.is_exact
        assert exact.is_guarded == (name != "unguarded")
        own = list(keys_in(each))
        for bit in spread(range(8 * len(stored)), 150, 1500):
            changed = bytearray(stored)
            changed[bit >> 3] ^= 1 << (bit & 7)
            assert exact.hides(bit) == denies(each.reader, bytes(changed), own), bit
        if exact.offset is not None:
            assert before[exact.offset : exact.offset + len(stored)] == stored
    assert path.read_bytes() == before


def keys_in(filter: FilterFound) -> Iterator[bytes]:
    assert filter.keys is not None
    return filter.keys()


def denies(reader: Any, data: bytes, keys: list[bytes]) -> bool:
    try:
        changed = type(reader).from_bytes(data)
    except (FilterError, CorruptionError):
        return False
    return not all(changed.might_contain(key) for key in keys)


@pytest.mark.parametrize("policy", [name for name, each in every().items() if each.policy])
def test_every_policy_of_ours_is_measured(policy: str, tmp_path: Path) -> None:
    (each,) = look(ours(tmp_path, policy)).filters
    measured = measure(each, 500, seed=1)
    assert (measured.keys, measured.denied) == (len(KEYS), 0)
    exact = damage(each)
    assert exact.is_exact
    assert exact.is_guarded


def test_keys_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    """Long after looking, as long as somebody has what was found."""
    found = look(write_leveldbs(tmp_path / "db", KEYS))
    assert [key for each in found.filters for key in keys_in(each)] == KEYS
