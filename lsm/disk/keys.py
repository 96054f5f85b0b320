"""Internal keys: a user key, and which version of it this is.

On disk the version is a u64 behind the key, ``sequence << 8 | kind``. In memory it is a **rank**,
minus that number: ascending order of (key, rank) is then the order of the files, keys ascending and
of each key the newest version first. An **entry** is ``(key, rank, value)``. A reader sees the
first version of a key whose rank is its **read rank** or higher: that of its snapshot.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, TypeAlias

from lsm.errors import CorruptionError

DELETE = 0
PUT = 1

MAX_SEQUENCE = (1 << 56) - 1
NEWEST = -(MAX_SEQUENCE << 8 | 0xFF)
"""A rank before that of every version: a search for (key, NEWEST) finds the newest one."""

VERSION = Struct("<Q")
VERSION_BYTES = VERSION.size

Entry: TypeAlias = tuple[Any, int, bytes]


def rank_of(sequence: int, kind: int = 0xFF) -> int:
    """The rank of a version; without a kind, the read rank of a snapshot at this number."""
    return -(sequence << 8 | kind)


def is_put(rank: int) -> bool:
    """Whether this version has a value: the lowest bit of the kind survives the minus sign."""
    return bool(rank & 1)


def sequence_of(rank: int) -> int:
    """The sequence number of a version."""
    return -rank >> 8


def pack(key: bytes, rank: int) -> bytes:
    """The internal key as files have it."""
    return key + VERSION.pack(-rank)


def unpack(internal: bytes) -> tuple[bytes, int]:
    """The user key and the rank; CorruptionError for what is no internal key."""
    end = len(internal) - VERSION_BYTES
    if end < 0:
        raise CorruptionError(
            f"an internal key has {len(internal)} bytes, and its version alone takes 8"
        )
    return internal[:end], -VERSION.unpack_from(internal, end)[0]


def shared_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two keys begin with in common."""
    if len(one) != len(other):
        least = min(len(one), len(other))
        one, other = one[:least], other[:least]
    # As one number each: the highest bit in which they differ tells the byte, however long.
    difference = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return len(one) - (difference.bit_length() + 7) // 8
