"""A minimal reader of LevelDB's tables, and the pieces to forge one, written from the format alone.

It shares no line with ``lsm`` and imports nothing from it. What is no table at all ends in some
exception: the tests that use it feed it tables.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cramjam
from crc32c import crc32c

MAGIC = 0xDB47_7524_8B80_FB57
FOOTER = 48
TRAILER = 5
WINDOW = 2048
RAW, SNAPPY, ZSTD, DEFLATE = 0, 1, 2, 4
LEVELDB_FILTER = b"filter.leveldb.BuiltinBloomFilter2"

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class Entry:
    """An entry of a block: where it begins, and how much of its key was not repeated."""

    at: int
    shared: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Block:
    """A block in the file: where, how it is compressed, and what is in it."""

    offset: int
    size: int
    kind: int
    contents: bytes

    @property
    def end(self) -> int:
        """Where the next thing in the file begins."""
        return self.offset + self.size + TRAILER

    @property
    def restarts(self) -> tuple[int, ...]:
        """The offsets of the entries that reading can begin at."""
        [count] = struct.unpack("<I", self.contents[-4:])
        return struct.unpack(f"<{count}I", self.contents[-4 * (count + 1) : -4])

    @property
    def entries(self) -> list[Entry]:
        """All entries."""
        end = len(self.contents) - 4 * (len(self.restarts) + 1)
        at, key, found = 0, b"", []
        while at < end:
            start = at
            shared, at = number(self.contents, at)
            unshared, at = number(self.contents, at)
            length, at = number(self.contents, at)
            assert shared <= len(key)
            assert at + unshared + length <= end
            key = key[:shared] + self.contents[at : at + unshared]
            at += unshared + length
            found.append(Entry(start, shared, key, self.contents[at - length : at]))
        return found

    @property
    def pairs(self) -> list[Pair]:
        """Keys and values."""
        return [(entry.key, entry.value) for entry in self.entries]


@dataclass(frozen=True)
class Table:
    """A table, taken apart."""

    data: bytes
    blocks: list[Block]
    index: Block
    metaindex: Block

    @property
    def pairs(self) -> list[Pair]:
        """All entries, by internal key."""
        return [pair for block in self.blocks for pair in block.pairs]

    @property
    def meta(self) -> dict[bytes, Block]:
        """The blocks that the metaindex names."""
        return {key: block_at(self.data, value) for key, value in self.metaindex.pairs}


def parse(data: bytes) -> Table:
    """Take a table apart."""
    footer = data[-FOOTER:]
    assert struct.unpack("<Q", footer[-8:]) == (MAGIC,)
    metaindex = block_at(data, footer)
    _, at = handle(footer)
    index = block_at(data, footer[at:])
    blocks = [block_at(data, value) for _, value in index.pairs]
    return Table(data, blocks, index, metaindex)


def block_at(data: bytes, place: bytes) -> Block:
    """The block whose handle stands at the beginning of ``place``."""
    (offset, size), _ = handle(place)
    end = offset + size
    kind, checksum = struct.unpack("<BI", data[end : end + TRAILER])
    stored = data[offset:end]
    assert checksum == masked_crc(data[offset : end + 1])
    if kind == SNAPPY:
        return Block(offset, size, kind, bytes(cramjam.snappy.decompress_raw(stored)))
    if kind == ZSTD and stored[:1] == b"x":
        return Block(offset, size, kind, zlib.decompress(stored))
    if kind == DEFLATE:
        return Block(offset, size, kind, zlib.decompress(stored, -zlib.MAX_WBITS))
    if kind == ZSTD:
        return Block(offset, size, kind, bytes(cramjam.zstd.decompress(stored)))
    assert kind == RAW
    return Block(offset, size, kind, stored)


def handle(data: bytes) -> tuple[tuple[int, int], int]:
    """The offset and size at the beginning, and where they end."""
    offset, at = number(data, 0)
    size, at = number(data, at)
    return (offset, size), at


def number(data: bytes, at: int) -> tuple[int, int]:
    """The varint at a place, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= byte % 128 << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def masked_crc(data: bytes) -> int:
    """The checksum as it is stored."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


# ---- taking apart what others filter with ----


def windows(block: Block) -> list[bytes]:
    """The filters of LevelDB's filter block, one for each 2 KiB of the file."""
    contents = block.contents
    assert contents[-1] == 11
    [array] = struct.unpack("<I", contents[-5:-1])
    offsets = struct.unpack(f"<{(len(contents) - 1 - array) // 4}I", contents[array:-1])
    return [contents[a:b] for a, b in pairwise(offsets)]


# ---- forging ----


def varint(value: int) -> bytes:
    """The shortest varint, of any size."""
    encoded = b""
    while value >= 128:
        encoded += bytes((value % 128 + 128,))
        value //= 128
    return encoded + bytes((value,))


def internal_key(key: bytes, sequence: int, kind: int = 1) -> bytes:
    """A user key with its version."""
    return key + struct.pack("<Q", sequence << 8 | kind)


def contents_of(pairs: Sequence[Pair], interval: int = 16) -> bytes:
    """A block of these entries."""
    body, restarts, last = b"", [], b""
    for place, (key, value) in enumerate(pairs):
        shared = 0
        if place % interval:
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
        else:
            restarts.append(len(body))
        lengths = varint(shared) + varint(len(key) - shared) + varint(len(value))
        body += lengths + key[shared:] + value
        last = key
    return closed(body, restarts or [0])


def closed(body: bytes, restarts: Sequence[int], count: int | None = None) -> bytes:
    """Entries with whatever is to follow them."""
    count = len(restarts) if count is None else count
    return body + struct.pack(f"<{len(restarts)}I", *restarts) + struct.pack("<I", count)


Squeeze = Callable[[bytes], bytes]


def deflated(contents: bytes) -> bytes:
    """A stream of Deflate without a header, as kind 4 has it."""
    squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezer.compress(contents) + squeezer.flush()


def stored(contents: bytes, kind: int = RAW, squeeze: Squeeze = bytes) -> bytes:
    """A block with its trailer, whatever its kind promises about its contents."""
    squeezed = squeeze(contents) + bytes((kind,))
    return squeezed + struct.pack("<I", masked_crc(squeezed))


def footer(metaindex: bytes, index: bytes) -> bytes:
    """The last 48 bytes, for these handles."""
    return (metaindex + index).ljust(FOOTER - 8, b"\0") + struct.pack("<Q", MAGIC)


def forge(
    blocks: Sequence[tuple[bytes, bytes]],
    meta: Sequence[tuple[bytes, bytes]] = (),
    *,
    kinds: Sequence[tuple[int, Squeeze]] = ((RAW, bytes),),
    size: int | None = None,
) -> bytes:
    """A table of data blocks, each behind its index key, and of further blocks by their names.

    The kinds of compression take turns. Up to ``size`` bytes there is padding before the footer.
    """
    data, index, metaindex = b"", [], []
    for place, (key, contents) in enumerate(blocks):
        block = stored(contents, *kinds[place % len(kinds)])
        index.append((key, varint(len(data)) + varint(len(block) - TRAILER)))
        data += block
    for key, contents in meta:
        metaindex.append((key, varint(len(data)) + varint(len(contents))))
        data += stored(contents)
    handles = []
    for pairs in (metaindex, index):
        contents = contents_of(pairs, interval=1)
        handles.append(varint(len(data)) + varint(len(contents)))
        data += stored(contents)
    if size is not None:
        assert len(data) + FOOTER <= size
        data = data.ljust(size - FOOTER, b"\xa5")
    return data + footer(*handles)
