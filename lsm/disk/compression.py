"""Compression of blocks, and decompression within limits, whatever size they claim to have.

Snappy is its raw form, without framing: the uncompressed length as a varint32, then the data. Zstd
is one frame, whose header usually says how many bytes come out of it.

The LevelDB of Minecraft (Mojang/leveldb-mcpe) has two kinds of its own, which are read and never
written: one stream of Deflate without a header as 4, and one stream of zlib as 2, which is zstd's
number. What begins with 0x78 is zlib's, what begins with 0x28 zstd's.
"""

from __future__ import annotations

from collections.abc import Callable

from lsm.disk.coding import Fields
from lsm.errors import CorruptionError

RAW = 0
SNAPPY = 1
ZSTD = 2
DEFLATE = 4
KINDS = {"none": RAW, "snappy": SNAPPY, "zstd": ZSTD}
"""What blocks can be written with."""
_NAMES = {kind: name for name, kind in KINDS.items()}

LIMIT = 1 << 30
"""A larger block is written as it is: compressing it would take as much memory again."""

ROOM = 1 << 26
"""What may come out of any block that zstd or zlib has written, however small it is.

A block outgrows its ``block_size`` by one entry: only a value of about this size comes near.
"""

_ZSTD_LEVEL = 1  # LevelDB's default
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZLIB_METHOD = 0x78  # Deflate with a window of 32 KiB, in the words of RFC 1950
_WINDOW_BITS = 15

# What may come out of one byte. Snappy copies 64 bytes with an element of 3, and can do no better.
# Zstd repeats a byte 128 KiB times with a block of 4, and so few bytes would take gigabytes: beyond
# ROOM it may do what it does to text that repeats itself a lot. What shrinks more stays as it is.
# Deflate repeats 258 bytes with two bits, and gets no more room than zstd.
_SNAPPY_GROWTH = 22
_ZSTD_GROWTH = 1 << 15
_DEFLATE_GROWTH = 1032
_GROWTH_BEYOND_ROOM = 256


def compress(kind: int, data: bytes) -> tuple[int, bytes]:
    """The data compressed, behind the kind of compression that a block is to be stored with.

    The data stay as they are unless they shrink by an eighth, and no more than is read again.
    """
    # Not at the top: importing the engine loads no library that it may not need.
    import cramjam

    if kind not in KINDS.values():
        raise ValueError(f"there is no compression {kind}: {_known()}")
    if kind == RAW or len(data) > LIMIT:
        return RAW, data
    if kind == SNAPPY:
        compressed = cramjam.snappy.compress_raw(data)
    else:
        compressed = cramjam.zstd.compress(data, _ZSTD_LEVEL)
    if len(compressed) < len(data) - len(data) // 8 and len(data) <= most(kind, len(compressed)):
        return kind, bytes(compressed)
    return RAW, data


def decompress(kind: int, data: bytes | memoryview) -> bytes:
    """The data that was compressed so; CorruptionError for what no such compression has written.

    No more memory is taken than twice what the stored bytes allow: 22 times their number with
    snappy, 256 times or ROOM with the others.
    """
    if kind == RAW:
        return bytes(data)
    if kind == SNAPPY:
        return open_snappy(data)
    if kind == ZSTD:
        return _open_deflate(data, _WINDOW_BITS, "zlib") if _is_zlib(data) else _open_zstd(data)
    if kind == DEFLATE:
        return _open_deflate(data, -_WINDOW_BITS, "deflate")
    raise CorruptionError(
        f"a block is compressed as kind {kind}: {_known()} or zlib, {DEFLATE} (deflate)"
    )


def open_snappy(data: bytes | memoryview) -> bytes:
    """The same of Snappy's data alone."""
    import cramjam

    size = Fields(data, "snappy data").varint32("uncompressed length")
    return _open_sized(SNAPPY, data, size, cramjam.snappy.decompress_raw_into)


def _open_zstd(data: bytes | memoryview) -> bytes:
    import cramjam

    size = _zstd_content_size(data)
    if size is None:
        return _open_zstd_of_unknown_size(data)
    return _open_sized(ZSTD, data, size, cramjam.zstd.decompress_into)


def _open_sized(
    kind: int,
    data: bytes | memoryview,
    size: int,
    decompress_into: Callable[[bytes | memoryview, bytearray], int],
) -> bytes:
    """What data decompress to, which claim to hold so many bytes."""
    import cramjam

    name, allowed = _NAMES[kind], most(kind, len(data))
    if size > allowed:
        raise CorruptionError(
            f"{name} data of {len(data)} bytes claims to hold {size}, allowed are {allowed}"
        )
    # Into a buffer of ours: the library ends the process where it finds no memory for its own.
    opened = bytearray(size)
    try:
        length = decompress_into(data, opened)
    except cramjam.DecompressionError as error:
        raise CorruptionError(f"{name} data of {len(data)} bytes is damaged: {error}") from error
    if length != size:
        raise CorruptionError(f"{name} data claims to hold {size} bytes, and holds {length}")
    return bytes(opened)


def _open_zstd_of_unknown_size(data: bytes | memoryview) -> bytes:
    """Try with ever more room; the library does not tell damage from too little of it."""
    import cramjam

    allowed = most(ZSTD, len(data))
    room = min(allowed, max(1 << 16, 8 * len(data)))
    while True:
        opened = bytearray(room)
        try:
            length = cramjam.zstd.decompress_into(data, opened)
        except cramjam.DecompressionError as error:
            if room == allowed:
                raise CorruptionError(
                    f"zstd data of {len(data)} bytes is damaged, "
                    f"or holds more than {allowed}: {error}"
                ) from error
            room = min(allowed, 2 * room)
        else:
            return bytes(memoryview(opened)[:length])


def _zstd_content_size(data: bytes | memoryview) -> int | None:
    """What the frame's header says comes out of it, or None where it does not say."""
    fields = Fields(data, "zstd data")
    if (magic := fields.take(4, "magic number")) != _ZSTD_MAGIC:
        raise CorruptionError(
            f"zstd data begins with {magic!r}, expected {_ZSTD_MAGIC!r}, or zlib's header"
        )
    descriptor = fields.byte("frame descriptor")
    is_single_segment = bool(descriptor & 0b10_0000)
    if not is_single_segment:
        fields.byte("window descriptor")
    fields.take((0, 1, 2, 4)[descriptor & 0b11], "dictionary id")
    width = (int(is_single_segment), 2, 4, 8)[descriptor >> 6]
    if not width:
        return None
    size = int.from_bytes(fields.take(width, "content size"), "little")
    return size + 256 if width == 2 else size


def _is_zlib(data: bytes | memoryview) -> bool:
    """Whether data begin with zlib's two bytes, which are a multiple of 31 as one number."""
    return len(data) > 1 and data[0] == _ZLIB_METHOD and (data[0] << 8 | data[1]) % 31 == 0


def _open_deflate(data: bytes | memoryview, window_bits: int, name: str) -> bytes:
    """What a stream decompresses to; the library takes the window without a header as negative."""
    import zlib

    what, allowed = f"{name} data of {len(data)} bytes", most(DEFLATE, len(data))
    stream = zlib.decompressobj(window_bits)
    try:
        opened = stream.decompress(data, allowed + 1)
    except zlib.error as error:
        raise CorruptionError(f"{what} is damaged: {error}") from error
    if len(opened) > allowed:
        raise CorruptionError(f"{what} holds more than {allowed}")
    if not stream.eof:
        raise CorruptionError(f"{what} is damaged: it ends before its stream")
    if stream.unused_data:
        raise CorruptionError(
            f"{what} is damaged: its stream ends {len(stream.unused_data)} bytes before it"
        )
    return opened


def most(kind: int, length: int) -> int:
    """The largest size that so many compressed bytes may decompress to."""
    if kind == SNAPPY:
        return length * _SNAPPY_GROWTH
    growth = _DEFLATE_GROWTH if kind == DEFLATE else _ZSTD_GROWTH
    return min(length * growth, max(ROOM, length * _GROWTH_BEYOND_ROOM))


def _known() -> str:
    return "known are " + ", ".join(f"{number} ({name})" for name, number in KINDS.items())
