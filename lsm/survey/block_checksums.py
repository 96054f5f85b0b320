"""The checksums of tables' blocks, of all kinds that LevelDB, RocksDB and Pebble have.

A checksum is of a block's stored bytes and of one more, the kind of their compression. From format
version 6 on RocksDB adds to it what comes of the block's place and of a number of the file's, so
that a block in the wrong place, or in the wrong file, is found out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from lsm.disk.checksum import crc32c, mask
from lsm.survey.found import Guard

if TYPE_CHECKING:
    from typing_extensions import Buffer

NONE, CRC32C, XXHASH32, XXHASH64, XXH3 = range(5)
NAMES = ("none", "crc32c", "xxhash32", "xxhash64", "xxh3")

_MASK32 = 0xFFFF_FFFF
_LAST_BYTE_MULTIPLIER = 0x6B90_83D9  # RocksDB's


def name(kind: int) -> str:
    """What a kind is called; an unknown one by its number."""
    return NAMES[kind] if kind < len(NAMES) else f"unknown kind {kind}"


def computed(kind: int, data: Buffer, last: int) -> int | None:
    """The checksum of bytes and one last byte; None for a kind that is not known."""
    tail = bytes((last,))
    if kind == NONE:
        return 0
    if kind == CRC32C:
        return mask(crc32c(tail, crc32c(data)))
    if kind == XXHASH32:
        short = xxhash.xxh32(data)
        short.update(tail)
        return short.intdigest()
    if kind == XXHASH64:
        long = xxhash.xxh64(data)
        long.update(tail)
        return long.intdigest() & _MASK32
    if kind == XXH3:
        return (xxhash.xxh3_64_intdigest(data) ^ last * _LAST_BYTE_MULTIPLIER) & _MASK32
    return None


def of_place(base: int, offset: int) -> int:
    """What is added to the checksum of what stands there; nothing where the file has no number."""
    return base ^ ((offset & _MASK32) + (offset >> 32) & _MASK32) if base else 0


def guard(kind: int, data: Buffer, last: int, added: int, stored: int) -> Guard:
    """What a stored checksum says of these bytes, to which that was added."""
    expected = computed(kind, data, last)
    if expected is None:
        return Guard(kind=name(kind), checked="unknown")
    if kind == NONE:
        return Guard()
    is_right = (expected + added) & _MASK32 == stored
    return Guard(kind=name(kind), checked="right" if is_right else "wrong")
