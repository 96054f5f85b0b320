"""Tables as other stores write them: live ones, and forged ones in forms that nobody writes now."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_intdigest

from filters.compat_hashing import rocksdb_hash
from tests.lsm.independent_table import TRAILER, Pair, contents_of, internal_key, masked_crc, varint

CHECKSUMS = ("no_checksum", "crc32c", "xxhash", "xxhash64", "xxh3")
COMPRESSIONS = ("none", "snappy", "zlib", "bz2", "lz4", "lz4hc", "zstd")
VERSIONS = range(2, 8)

ROCKSDB_MAGIC = 0x88E2_41B7_85F4_CFF7
PARTITIONED = b"partitionedfilter.rocksdb.BuiltinBloomFilter"
PEBBLE_MAGIC = 0xB3AA_9FF0_B3AA_9FF0


def keys_of(count: int) -> list[bytes]:
    """So many keys in order, some with bytes above 127 at their ends."""
    return [b"key%06d" % number + b"\xff\x80"[: number % 3] for number in range(count)]


def write_rocksdbs(
    path: Path,
    keys: Iterable[bytes],
    *,
    version: int = 5,
    checksum: str = "xxh3",
    compression: str = "none",
    partitioned: bool = False,
    prefix: Any = None,
    hashed: bool = False,
    bits_per_key: float = 10,
    index_interval: int = 1,
) -> Path:
    """A table that RocksDB itself writes, of blocks and partitions that are small."""
    import rocksdict

    blocks = rocksdict.BlockBasedOptions()
    blocks.set_bloom_filter(bits_per_key, False)
    blocks.set_format_version(version)
    blocks.set_checksum_type(getattr(rocksdict.ChecksumType, checksum)())
    blocks.set_block_size(512)
    blocks.set_index_block_restart_interval(index_interval)
    if partitioned:
        blocks.set_partition_filters(True)
        blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
        blocks.set_metadata_block_size(256)
    if hashed:
        blocks.set_data_block_index_type(rocksdict.DataBlockIndexType.binary_and_hash())
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(getattr(rocksdict.DBCompressionType, compression)())
    if prefix is not None:
        options.set_prefix_extractor(prefix)
    writer = rocksdict.SstFileWriter(options)
    writer.open(str(path))
    for key in keys:
        writer[key] = b"value " * 8
    writer.finish()
    return path


def write_leveldbs(path: Path, keys: Sequence[bytes], **more: Any) -> Path:
    """The one table of a database that LevelDB itself writes, of blocks that are small."""
    import plyvel

    options = {"block_size": 512, "bloom_filter_bits": 10, **more}
    with plyvel.DB(str(path), create_if_missing=True, **options) as db:
        for key in keys:
            db.put(key, b"value " * 8)
        db.compact_range()
    [table] = path.glob("*.ldb")
    return table


def stored(contents: bytes, kind: int = 0) -> bytes:
    """A block with its trailer, under CRC-32C."""
    data = contents + bytes((kind,))
    return data + struct.pack("<I", masked_crc(data))


def forge(
    keys: Sequence[bytes],
    filters: Sequence[Pair] = (),
    *,
    properties: Sequence[Pair] = (),
    magic: int = ROCKSDB_MAGIC,
    version: int = 2,
    kind: int = 0,
    squeeze: Any = bytes,
    per_block: int = 10,
    partitions: Sequence[Pair] = (),
) -> bytes:
    """A table of these keys with filters under their names, in RocksDB's or Pebble's form.

    Data blocks are squeezed as a kind. Partitions are filters, each with its last key. Of Pebble's
    columnar blocks it has those of names.
    """
    pebbles = version if magic == PEBBLE_MAGIC else 0
    data, index, named = b"", [], []
    for start in range(0, len(keys), per_block):
        some = keys[start : start + per_block]
        if pebbles >= 5:
            contents = data_columns_of(some)
        else:
            contents = contents_of([(internal_key(key, 7), b"v" * 60) for key in some])
        block = stored(squeeze(contents), kind)
        index.append((some[-1], len(data), len(block) - TRAILER))
        data += block
    names = columns_of if pebbles >= 7 else contents_of
    said = [(b"rocksdb.properties", names(sorted(properties)))]
    parts = []
    for last, contents in partitions:
        parts.append((internal_key(last, 7), varint(len(data)) + varint(len(contents))))
        data += stored(contents)
    if parts:
        said.append((PARTITIONED, contents_of(parts, interval=1)))
    for name, contents in sorted([*filters, *said]):
        named.append((name, varint(len(data)) + varint(len(contents))))
        data += stored(contents)
    metaindex = columns_of(named) if pebbles >= 6 else contents_of(named)
    handles = b""
    if pebbles >= 5:
        entries = index_columns_of(index)
    else:
        rows = [(internal_key(key, 7), varint(at) + varint(size)) for key, at, size in index]
        entries = contents_of(rows, interval=1)
    for contents in (metaindex, entries):
        handles += varint(len(data)) + varint(len(contents))
        data += stored(contents)
    return data + footer(handles, magic, version)


def footer(handles: bytes, magic: int, version: int, checksum: int = 1) -> bytes:
    """The footer of a table in RocksDB's or Pebble's form, up to version 5 and to any one."""
    head, end = bytes((checksum,)) + handles.ljust(40, b"\0"), struct.pack("<IQ", version, magic)
    if magic == PEBBLE_MAGIC and version >= 6:
        head += bytes(4) if version >= 7 else b""
        return head + struct.pack("<I", masked_crc(head + end)) + end
    return head + end


def columns_of(pairs: Sequence[Pair], width: int = 2) -> bytes:
    """Names and values in Pebble's columns."""
    names, values = [name for name, _ in pairs], [value for _, value in pairs]
    return _block(len(pairs), [(3, _strings(names, width)), (3, _strings(values, width))])


def index_columns_of(entries: Sequence[tuple[bytes, int, int]]) -> bytes:
    """An index in Pebble's columns: separators, and where blocks begin and how long they are."""
    separators, offsets, sizes = (list(column) for column in zip(*entries, strict=True))
    columns = [(3, _strings(separators, 2)), (2, _numbers(offsets, 4)), (2, _numbers(sizes, 2))]
    return _block(len(entries), [*columns, (3, _strings([b""] * len(entries), 0))])


def data_columns_of(keys: Sequence[bytes], bundle_bits: int = 4) -> bytes:
    """Data of Pebble's own schema, of which what comes behind the keys is left empty."""
    empty = _strings([b""] * len(keys), 0)
    trailers = _numbers([257] * len(keys), 0, 257)
    columns = [(4, _ascending(keys, bundle_bits)), (3, empty), (2, trailers), (3, empty)]
    return _block(len(keys), columns, struct.pack("<I", max(map(len, keys))))


Column = Callable[[int], bytes]
"""The bytes of a column that begins at an offset, with the padding that it needs there."""


def _block(rows: int, columns: Sequence[tuple[int, Column]], header: bytes = b"") -> bytes:
    head = header + struct.pack("<BHI", 1, len(columns), rows)
    at, body = len(head) + 5 * len(columns), b""
    for kind, column in columns:
        head += struct.pack("<BI", kind, at + len(body))
        body += column(at + len(body))
    return head + body + b"\0"


def _numbers(numbers: Sequence[int], width: int, added: int = 0) -> Column:
    def column(at: int) -> bytes:
        head = bytes((width | 0x80,)) + struct.pack("<Q", added) if added else bytes((width,))
        head += bytes(-(at + len(head)) % max(width, 1))
        return head + b"".join((each - added).to_bytes(width, "little") for each in numbers)

    return column


def _strings(strings: Sequence[bytes], width: int, first: int = 0) -> Column:
    def column(at: int) -> bytes:
        ends = [sum(map(len, strings[:count])) for count in range(first, len(strings) + 1)]
        return _numbers(ends, width)(at) + b"".join(strings)

    return column


def common(keys: Sequence[bytes]) -> bytes:
    """What all keys begin with."""
    first, last = min(keys), max(keys)
    length = 0
    while length < len(first) and first[length] == last[length]:
        length += 1
    return first[:length]


def _ascending(keys: Sequence[bytes], bundle_bits: int, width: int = 2) -> Column:
    shared = common(keys)
    strings = [shared]
    for start in range(0, len(keys), 1 << bundle_bits):
        bundle = keys[start : start + (1 << bundle_bits)]
        begin = common(bundle)
        strings.append(begin[len(shared) :])
        before = None
        for key in bundle:
            strings.append(b"" if key == before else key[len(begin) :])
            before = key

    return lambda at: bytes((bundle_bits,)) + _strings(strings, width, first=1)(at + 1)


def windows_of(filters: Sequence[bytes], base_lg: int = 11) -> bytes:
    """A filter block in LevelDB's form."""
    offsets = [sum(map(len, filters[:count])) for count in range(len(filters) + 1)]
    return b"".join(filters) + struct.pack(f"<{len(offsets)}I", *offsets) + bytes((base_lg,))


def signed_window_of(keys: Sequence[bytes], bits_per_key: int = 10, probes: int = 6) -> bytes:
    """The filter of a window as RocksDB had it before 7.0: LevelDB's bits, RocksDB's hash."""
    size = max(64, len(keys) * bits_per_key) + 7 & ~7
    array = 0
    for key in keys:
        h = rocksdb_hash(key)
        step = h >> 17 | h << 15 & 0xFFFF_FFFF
        for _ in range(probes):
            array |= 1 << h % size
            h = h + step & 0xFFFF_FFFF
    return array.to_bytes(size // 8, "little") + bytes((probes,))


def pebble_lines_of(keys: Sequence[bytes], lines: int, probes: int = 6) -> bytes:
    """Pebble's Bloom filter: bits rotated to and added up within one of so many lines."""
    array = 0
    for key in keys:
        h = rocksdb_hash(key)
        line, step = 512 * (h % lines), h >> 17 | h << 15 & 0xFFFF_FFFF
        for _ in range(probes):
            array |= 1 << line + h % 512
            h = h + step & 0xFFFF_FFFF
    return array.to_bytes(64 * lines, "little") + struct.pack("<BI", probes, lines)


def pebble_fuse_of(keys: Sequence[bytes], bits: int) -> bytes:
    """Pebble's binary fuse filter, by the first seed under which the keys can be peeled off."""
    shift = 5
    segments = max(1, -(-len(keys) * 4 // 3 >> shift) - 1)
    for seed in range(1000):
        edges = [_fuse_places(key, seed, segments, shift) for key in keys]
        order = _peeled([places for places, _ in edges])
        if order is not None:
            break
    numbers = [0] * ((segments + 2) << shift)
    for edge, free in reversed(order):
        places, wanted = edges[edge]
        numbers[free] = wanted & (1 << bits) - 1
        for place in places:
            numbers[free] ^= numbers[place] if place != free else 0
    packed = sum(number << bits * place for place, number in enumerate(numbers))
    count = len(numbers)
    size = {4: (count + 1) // 2, 8: count, 10: (10 * count + 7) // 8 + 3, 16: 2 * count}.get(
        bits, (count + 1) // 2 * 3 + 1
    )
    return packed.to_bytes(size, "little") + struct.pack("<QIBB", seed, segments, shift, bits)


def _fuse_places(
    key: bytes, seed: int, segments: int, shift: int
) -> tuple[tuple[int, int, int], int]:
    h = (xxh3_64_intdigest(key) + seed) % 2**64
    for factor in (0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53):
        h = (h ^ h >> 33) * factor % 2**64
    h ^= h >> 33
    length = 1 << shift
    first = h * (segments * length) // 2**64
    second = (first + length) ^ ((h // 2**18) % length)
    third = (first + 2 * length) ^ (h % length)
    return (first, second, third), (h ^ h >> 32) % 2**16


def _peeled(edges: Sequence[tuple[int, ...]]) -> list[tuple[int, int]] | None:
    """The edges in an order in which each has a place that no later one has, if there is one."""
    at: dict[int, set[int]] = {}
    for edge, places in enumerate(edges):
        for place in places:
            at.setdefault(place, set()).add(edge)
    alone = [place for place, those in at.items() if len(those) == 1]
    order = []
    while alone:
        place = alone.pop()
        if len(at[place]) != 1:
            continue
        [edge] = at[place]
        order.append((edge, place))
        for other in edges[edge]:
            at[other].discard(edge)
            if len(at[other]) == 1:
                alone.append(other)
    return order if len(order) == len(edges) else None
