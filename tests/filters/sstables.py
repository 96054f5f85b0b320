"""Read the filters out of table files of LevelDB and RocksDB: for tests only, uncompressed only.

Written from the formats, apart from the packages under test, so that an error in one does not hide
in the other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise

import attrs

LEVELDB_MAGIC = 0xDB47_7524_8B80_FB57
ROCKSDB_MAGIC = 0x88E2_41B7_85F4_CFF7
WINDOW = 2048
TRAILER = 5


@attrs.frozen
class Handle:
    """Where a block's contents lie in the file."""

    offset: int
    size: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at this place and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def handle(data: bytes, at: int = 0) -> tuple[Handle, int]:
    """The block handle at this place and the place behind it."""
    offset, at = varint(data, at)
    size, at = varint(data, at)
    return Handle(offset, size), at


def contents(table: bytes, block: Handle) -> bytes:
    """A block as it was before it got its trailer."""
    end = block.offset + block.size
    assert len(table) >= end + TRAILER
    assert table[end] == 0, "tests write tables without compression"
    return table[block.offset : end]


def entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block."""
    at, end, key = 0, _entries_end(block), b""
    while at < end:
        shared, at = varint(block, at)
        unshared, at = varint(block, at)
        size, at = varint(block, at)
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + size]
        at += size


def index_entries(block: bytes) -> Iterator[tuple[bytes, Handle]]:
    """The keys and handles of a RocksDB index block whose handles have no length before them."""
    at, end, key, last = 0, _entries_end(block), b"", Handle(0, 0)
    while at < end:
        shared, at = varint(block, at)
        unshared, at = varint(block, at)
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        if shared == 0:
            last, at = handle(block, at)
        else:
            zigzag, at = varint(block, at)
            change = zigzag >> 1 ^ -(zigzag & 1)
            last = Handle(last.offset + last.size + TRAILER, last.size + change)
        yield key, last


def _entries_end(block: bytes) -> int:
    restarts = int.from_bytes(block[-4:], "little")
    return len(block) - 4 - 4 * (restarts & 0x0FFF_FFFF)


@attrs.frozen
class FilterWindow:
    """One filter of a LevelDB table and the user keys of the data blocks it stands for."""

    filter: bytes
    keys: list[bytes]


def leveldb_windows(table: bytes, *, internal_keys: bool = True) -> list[FilterWindow]:
    """Every filter of a LevelDB table, with the keys (repeats included) that went into it."""
    footer = table[-48:]
    assert struct.unpack_from("<Q", footer, 40) == (LEVELDB_MAGIC,)
    metaindex, at = handle(footer)
    index, _ = handle(footer, at)
    meta = dict(entries(contents(table, metaindex)))
    block = contents(table, handle(meta[b"filter.leveldb.BuiltinBloomFilter2"])[0])
    filters = _windows_of_filter_block(block)
    keys: list[list[bytes]] = [[] for _ in filters]
    for _, value in entries(contents(table, index)):
        data_block, _ = handle(value)
        for key, _ in entries(contents(table, data_block)):
            keys[data_block.offset // WINDOW].append(key[:-8] if internal_keys else key)
    return [FilterWindow(*pair) for pair in zip(filters, keys, strict=True)]


def _windows_of_filter_block(block: bytes) -> list[bytes]:
    assert block[-1] == 11
    (array,) = struct.unpack_from("<I", block, len(block) - 5)
    # The array's own offset, which follows the last filter's, says where that one ends.
    offsets = struct.unpack(f"<{(len(block) - 1 - array) // 4}I", block[array:-1])
    return [block[a:b] for a, b in pairwise(offsets)]


@attrs.frozen
class RocksDBFilters:
    """The filters of a RocksDB table; of partitioned ones also the last key of each partition."""

    filters: list[bytes]
    last_keys: list[bytes]


def rocksdb_filters(table: bytes) -> RocksDBFilters:
    """The full filter or the filter partitions of a RocksDB table; none where it has none."""
    meta = dict(entries(contents(table, _rocksdb_metaindex(table))))
    full = meta.get(b"fullfilter.rocksdb.BuiltinBloomFilter")
    if full is not None:
        return RocksDBFilters([contents(table, handle(full)[0])], [])
    partitioned = meta.get(b"partitionedfilter.rocksdb.BuiltinBloomFilter")
    if partitioned is None:
        return RocksDBFilters([], [])
    parts = list(index_entries(contents(table, handle(partitioned)[0])))
    return RocksDBFilters([contents(table, each) for _, each in parts], [key for key, _ in parts])


def _rocksdb_metaindex(table: bytes) -> Handle:
    footer_at = len(table) - 53
    footer = table[footer_at:]
    version, magic = struct.unpack_from("<IQ", footer, 41)
    assert magic == ROCKSDB_MAGIC
    if version < 6:
        return handle(footer, 1)[0]
    (size,) = struct.unpack_from("<I", footer, 13)
    return Handle(footer_at - TRAILER - size, size)
