"""Tables of every store: what they say of themselves, and every key that was put into them."""

from __future__ import annotations

import bz2
import itertools
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cramjam
import pytest

import lsm
from lsm.errors import CorruptionError
from lsm.survey.source import Source
from lsm.survey.table import Table, is_one
from tests.effort import spread
from tests.lsm import independent_table as independent
from tests.lsm.independent_table import TRAILER, contents_of, internal_key, varint
from tests.lsm.peak_memory import at_most
from tests.lsm.survey.foreign_tables import (
    CHECKSUMS,
    COMPRESSIONS,
    PEBBLE_MAGIC,
    VERSIONS,
    forge,
    keys_of,
    stored,
    write_leveldbs,
    write_rocksdbs,
)

# Written by LevelDB's own builder of tables, by LevelDB through plyvel, and by RocksDB 10.4.2.
GOLDEN = Path(__file__).parents[2] / "golden" / "foreign"
KEYS = keys_of(300)
LEVELDB_MAGIC = 0xDB47_7524_8B80_FB57

CASES = list(itertools.product(VERSIONS, CHECKSUMS, COMPRESSIONS, (False, True)))


def opened(path: Path, data: bytes | None = None) -> Table:
    """A table, of these bytes if any are given."""
    if data is not None:
        path.write_bytes(data)
    return Table(Source(path))


@pytest.mark.parametrize(
    ("version", "checksum", "compression", "partitioned"), spread(CASES, quick=40)
)
def test_every_key_of_rocksdbs_tables_is_read(
    version: int, checksum: str, compression: str, partitioned: bool, tmp_path: Path
) -> None:
    options = {"version": version, "checksum": checksum, "compression": compression}
    path = write_rocksdbs(
        tmp_path / "t.sst",
        KEYS,
        partitioned=partitioned,
        hashed=version % 2 == 0,
        index_interval=1 + 3 * (version // 2 % 2),
        **options,
    )
    table = opened(path)
    assert (table.store, table.problems) == ("RocksDB", [])
    assert list(table.data.keys()) == KEYS
    facts = table.facts()
    assert (facts["format version"], facts["entries"]) == (version, len(KEYS))
    assert facts["comparator"] == "leveldb.BytewiseComparator"
    assert facts["filter policy"] == "bloomfilter"
    assert facts["filter entries"] == len(KEYS)
    assert facts["data blocks"] == len(table.data)
    assert facts["whole keys"] is True
    assert ("NoCompression" in str(facts["compression"])) == (compression == "none")


@pytest.mark.parametrize("compression", [None, "snappy"])
def test_every_key_of_leveldbs_tables_is_read_once(compression: Any, tmp_path: Path) -> None:
    """Also those of which there are several versions, and those of which the last is a deletion."""
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(tmp_path / "db"), create_if_missing=True, compression=compression) as db:
        for key in KEYS:
            db.put(key, b"old" * 20)
        snapshot = db.snapshot()  # keeps what is overwritten
        for key in KEYS[::3]:
            db.put(key, b"new" * 20)
        for key in KEYS[::7]:
            db.delete(key)
        db.compact_range()
        snapshot.close()
    [path] = (tmp_path / "db").glob("*.ldb")
    table = opened(path)
    assert (table.store, table.problems) == ("LevelDB", [])
    assert list(table.data.keys()) == KEYS
    assert table.facts() == {"checksums": "crc32c"}


def test_our_own_tables_say_what_they_are_of(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True, block_size=512) as db:
        for key in KEYS:
            db.put(key, b"value" * 5)
        db.flush()
    [path] = (tmp_path / "db").glob("*.ldb")
    table = opened(path)
    assert (table.store, table.problems) == ("lsm", [])
    assert list(table.data.keys()) == KEYS
    facts = table.facts()
    assert (facts["entries"], facts["filter entries"]) == (len(KEYS), len(KEYS))
    assert facts["filter state"] == "built"


GOLDEN_KEYS: dict[str, Sequence[bytes]] = {
    "leveldb_raw_3keys.ldb": [b"bar", b"foo", b"hello"],
    "leveldb_raw_500keys_bs1024.ldb": [b"key%06d" % number for number in range(500)],
    "leveldb_db_200users.ldb": [b"user%04d" % number for number in range(200)],
    "rocksdb_fv4_crc32c_3keys.sst": [b"bar", b"foo", b"hello"],
    "rocksdb_fv5_xxh3_3keys.sst": [b"bar", b"foo", b"hello"],
    "rocksdb_fv6_crc32c_3keys.sst": [b"bar", b"foo", b"hello"],
    "rocksdb_fv5_xxh3_partitioned_2087le.sst": sorted(
        struct.pack("<I", number) for number in range(2087)
    ),
}


@pytest.mark.parametrize("name", GOLDEN_KEYS)
def test_every_key_of_golden_tables_is_read(name: str) -> None:
    """Two of them have bare keys, without versions."""
    assert {path.name for path in GOLDEN.iterdir()} == set(GOLDEN_KEYS)
    with Source(GOLDEN / name) as source:
        assert is_one(source)
        table = Table(source)
        assert list(table.data.keys()) == GOLDEN_KEYS[name]
        assert table.store.lower() == name.partition("_")[0]


def deflated(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-14)
    return deflater.compress(data) + deflater.flush()


def early_lz4(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + cramjam.lz4.compress_block(data, store_size=False)


def early_zstd(data: bytes) -> bytes:
    return varint(len(data)) + bytes(cramjam.zstd.compress(data))


@pytest.mark.parametrize("magic", [None, LEVELDB_MAGIC])
@pytest.mark.parametrize(
    ("kind", "squeeze"),
    [(0, bytes), (2, deflated), (3, bz2.compress), (4, early_lz4), (7, early_zstd)],
)
def test_rocksdbs_first_tables_are_read(
    kind: int, squeeze: Any, magic: int | None, tmp_path: Path
) -> None:
    """Version 1, whose sizes stand elsewhere or nowhere, and 0, whose footer is LevelDB's."""
    data = forge(KEYS, version=1, kind=kind, squeeze=squeeze)
    if magic is not None:
        data = data[:-53] + data[-52:-12] + struct.pack("<Q", magic)
    table = opened(tmp_path / "t", data)
    assert (table.store, table.problems) == ("RocksDB", [])
    assert list(table.data.keys()) == KEYS


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_pebbles_rows_are_read(version: int, tmp_path: Path) -> None:
    data = forge(KEYS, magic=PEBBLE_MAGIC, version=version, kind=7, squeeze=early_zstd)
    table = opened(tmp_path / "t", data)
    assert table.store == "Pebble"
    assert list(table.data.keys()) == KEYS
    said = [(b"pebble.raw.range-key.key.size", b"\0")]
    table = opened(tmp_path / "t", forge(KEYS, properties=said))  # which it also writes
    assert table.store == "Pebble"
    assert list(table.data.keys()) == KEYS


@pytest.mark.parametrize("schema", [b"DefaultKeySchema(leveldb.BytewiseComparator,16)", b"mine"])
@pytest.mark.parametrize("version", [5, 6, 7, 8])
def test_pebbles_columns_are_read_if_their_schema_is_known(
    version: int, schema: bytes, tmp_path: Path
) -> None:
    said = [(b"rocksdb.num.entries", varint(300)), (b"pebble.colblk.schema", schema)]
    data = forge(
        KEYS, magic=PEBBLE_MAGIC, version=version, properties=said, kind=7, squeeze=early_zstd
    )
    table = opened(tmp_path / "t", data)
    assert (table.store, table.problems) == ("Pebble", [])
    assert table.facts()["entries"] == len(KEYS)
    if schema == b"mine":
        with pytest.raises(CorruptionError, match="they are in columns of the schema 'mine'"):
            _ = table.data
    else:
        assert list(table.data.keys()) == KEYS


def test_a_dictionary_is_named_and_not_guessed(tmp_path: Path) -> None:
    dictionary = [(b"rocksdb.compression_dict", b"words")]
    table = opened(tmp_path / "t", forge(KEYS, dictionary, kind=7, squeeze=early_zstd))
    with pytest.raises(CorruptionError, match="at byte 0: .*compressed with a dictionary"):
        list(table.data.keys())


def test_moments_are_told_as_people_read_them(tmp_path: Path) -> None:
    said = [
        (b"rocksdb.creation.time", varint(1_700_000_000)),
        (b"rocksdb.file.creation.time", varint(1 << 60)),
        (b"rocksdb.num.entries", varint(300)),
    ]
    facts = opened(tmp_path / "t", forge(KEYS, properties=said)).facts()
    assert facts["created"] == "2023-11-14T22:13:20+00:00"
    assert facts["written"] == f"{1 << 60} seconds after 1970"
    odd = [(b"rocksdb.num.entries", b"\xff" * 11)]
    table = opened(tmp_path / "t", forge(KEYS, properties=odd))
    [problem] = table.problems
    assert "property rocksdb.num.entries" in problem
    with pytest.raises(CorruptionError, match=r"no keys are read: .*rocksdb\.num\.entries"):
        _ = table.data


def test_a_table_takes_the_memory_of_a_block(tmp_path: Path) -> None:
    """And 16 bytes for each block: of some megabytes never more than a small part at a time."""
    keys = [b"key%08d" % number for number in range(40_000)]
    path = write_rocksdbs(tmp_path / "t.sst", keys, partitioned=True)
    assert path.stat().st_size > 2_500_000
    list(opened(write_leveldbs(tmp_path / "db", KEYS)).data.keys())  # loads libraries
    table = opened(path)
    with at_most(500_000):
        assert sum(1 for _ in table.data.keys()) == len(keys)  # noqa: SIM118 - it is no dict


@pytest.mark.parametrize("place", [0, -1])
def test_an_index_that_goes_back_or_stays_is_refused(place: int, tmp_path: Path) -> None:
    """A small one could otherwise lead to a block as often as it has entries."""
    data = stored(contents_of([(internal_key(b"key", 7), b"value")]))
    handle = varint(0) + varint(len(data) - TRAILER)
    index = [(internal_key(b"key%03d" % number, 7), handle) for number in range(100)][place:]
    handles = b""
    for contents in (contents_of([]), contents_of(index, interval=1)):
        handles += varint(len(data)) + varint(len(contents))
        data += stored(contents)
    table = opened(tmp_path / "t", data + independent.footer(handles, b""))
    if place:
        assert list(table.data.keys()) == [b"key"]
    else:
        with pytest.raises(CorruptionError, match="should lie between byte 32 and"):
            list(table.data.keys())
