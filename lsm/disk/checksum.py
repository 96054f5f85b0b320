"""CRC-32C, and the masked form in which LevelDB stores it.

A checksum of bytes that themselves hold checksums is weak; the mask makes a stored one look
different from a computed one.
"""

from __future__ import annotations

from functools import cache
from struct import pack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

_MASK_DELTA = 0xA282EAD8  # LevelDB's constant
_UINT32 = 0xFFFFFFFF


def crc32c(data: Buffer, value: int = 0) -> int:
    """The checksum of the bytes; given the ``value`` of other bytes, that of those and these."""
    return _library()(data, value)


def mask(crc: int) -> int:
    """The form that is stored: rotated right by 15 bits, and a constant added."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _UINT32


def trailer(kind: int, *parts: Buffer) -> bytes:
    """What follows a block: the kind of its compression, and the checksum of it and of that."""
    value = 0
    for part in parts:
        value = crc32c(part, value)
    tag = bytes((kind,))
    return tag + pack("<I", mask(crc32c(tag, value)))


@cache
def _library() -> Callable[[Buffer, int], int]:
    # Not at the top: the package loads importlib.metadata, which takes longer than all of ours.
    from crc32c import crc32c

    return crc32c
