"""Blocks as RocksDB and Pebble compress them, opened within limits.

The kinds are RocksDB's numbers, which are not LevelDB's. From format version 2 on the uncompressed
size stands before the data as a varint32, but for Snappy, which has its own. Before that zlib and
bzip2 have no size, and LZ4 one of eight bytes. zlib is its raw form, without header and checksum.
"""

from __future__ import annotations

import bz2
import zlib

from lsm.disk import compression
from lsm.disk.coding import Fields
from lsm.errors import CorruptionError

RAW, SNAPPY, ZLIB, BZIP2, LZ4, LZ4HC, XPRESS, ZSTD, MINLZ = range(9)
ZSTD_OF_BEFORE = 0x40
NAMES = {
    RAW: "none", SNAPPY: "snappy", ZLIB: "zlib", BZIP2: "bzip2", LZ4: "lz4", LZ4HC: "lz4hc",
    XPRESS: "xpress", ZSTD: "zstd", MINLZ: "minlz", ZSTD_OF_BEFORE: "zstd",
}  # fmt: skip

_SIZED_SINCE = 2
_LZ4_SIZE_BYTES = 8
_LZ4_GROWTH = 255
_RAW_DEFLATE = -15


def decompress(kind: int, data: bytes, version: int) -> bytes:
    """What a block of a table of this format version holds; CorruptionError for what is none.

    No more memory is taken than a block may have, see lsm/disk/compression.py.
    """
    if kind == RAW:
        return data
    if kind == SNAPPY:
        return compression.open_snappy(data)
    if kind not in (ZLIB, BZIP2, LZ4, LZ4HC, ZSTD, ZSTD_OF_BEFORE):
        raise CorruptionError(
            f"it is compressed as kind {kind} ({NAMES.get(kind, 'unknown')}), not read here"
        )
    fields = Fields(data, f"{NAMES[kind]} data")
    size = None
    if version >= _SIZED_SINCE or kind in (ZSTD, ZSTD_OF_BEFORE):
        size = fields.varint32("uncompressed size")
    elif kind in (LZ4, LZ4HC):
        size = fields.number(_LZ4_SIZE_BYTES, "uncompressed size")
    opened = _opened(kind, fields.take(fields.remaining, "data"), size)
    if size is not None and len(opened) != size:
        raise CorruptionError(
            f"{NAMES[kind]} data claims to hold {size} bytes, and holds {len(opened)}"
        )
    return opened


def _opened(kind: int, data: bytes, size: int | None) -> bytes:
    name, allowed = NAMES[kind], compression.most(compression.ZSTD, len(data))
    if kind in (LZ4, LZ4HC):
        allowed = min(allowed, len(data) * _LZ4_GROWTH)
    if size is not None and size > allowed:
        raise CorruptionError(
            f"{name} data of {len(data)} bytes claims to hold {size}, allowed are {allowed}"
        )
    if kind in (ZSTD, ZSTD_OF_BEFORE):
        return compression.decompress(compression.ZSTD, data)
    if kind in (LZ4, LZ4HC):
        assert size is not None
        return _open_lz4(data, size)
    return _inflated(kind, data, allowed if size is None else size)


def _open_lz4(data: bytes, size: int) -> bytes:
    import cramjam  # importing the engine loads no library that it may not need

    opened = bytearray(size)
    try:
        length = cramjam.lz4.decompress_block_into(data, opened)
    except cramjam.DecompressionError as error:
        raise CorruptionError(f"lz4 data of {len(data)} bytes is damaged: {error}") from error
    return bytes(memoryview(opened)[:length])


def _inflated(kind: int, data: bytes, most: int) -> bytes:
    """What zlib's or bzip2's data hold, if that is no more than ``most`` bytes."""
    try:
        if kind == ZLIB:
            inflater = zlib.decompressobj(_RAW_DEFLATE)
            opened = inflater.decompress(data, most + 1)
            is_whole = inflater.eof
        else:
            opener = bz2.BZ2Decompressor()
            opened = opener.decompress(data, most + 1)
            is_whole = opener.eof
    except (zlib.error, OSError) as error:
        raise CorruptionError(
            f"{NAMES[kind]} data of {len(data)} bytes is damaged: {error}"
        ) from error
    if not is_whole:
        raise CorruptionError(
            f"{NAMES[kind]} data of {len(data)} bytes is cut short, or holds more than {most}"
        )
    return opened
