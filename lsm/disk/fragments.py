"""Fragments: how a log lays out its records, whole or cut at the ends of blocks.

A log consists of blocks of 32 KiB. A record is written as one fragment, or as several where it
crosses blocks; what is left of a block and cannot hold a fragment's header is zeros. A fragment::

    u32  masked CRC-32C of type and payload     u8   type: 1 whole, 2 first, 3 middle, 4 last
    u16  length of the payload                  ..   payload
"""

from __future__ import annotations

from struct import Struct

from lsm.disk.checksum import crc32c, mask

BLOCK_BYTES = 32768
FRAGMENT = Struct("<IHB")
HEADER_BYTES = FRAGMENT.size

FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4

# By whether a fragment begins its record, and whether it ends it.
_TYPES = {(True, True): FULL, (True, False): FIRST, (False, False): MIDDLE, (False, True): LAST}

# The CRC-32C of each type byte: the payload is taken in behind it, and need not be copied there.
# Not computed here: that would load the library when the engine is imported.
_TYPE_CHECKSUMS = {FULL: 0xA016D052, FIRST: 0xB34623A6, MIDDLE: 0x412DA0A5, LAST: 0x95E7C44E}


def frame(record: bytes, block_offset: int) -> bytes:
    """The bytes to append for one record to a log that ends ``block_offset`` bytes into a block.

    They may start with zeros that fill the block.
    """
    left = BLOCK_BYTES - block_offset
    if HEADER_BYTES + len(record) > left:
        return _fragments(record, left)
    crc = crc32c(record, _TYPE_CHECKSUMS[FULL])
    return FRAGMENT.pack(mask(crc), len(record), FULL) + record


def _fragments(record: bytes, left: int) -> bytes:
    """The record cut to what is left of its block, and to whole blocks from there on.

    Where just a header fits, LevelDB writes a first fragment of no bytes, and so do we.
    """
    parts: list[bytes | memoryview] = []
    if left < HEADER_BYTES:
        parts.append(bytes(left))
        left = BLOCK_BYTES
    rest = memoryview(record)
    begins = True
    while True:
        payload, rest = rest[: left - HEADER_BYTES], rest[left - HEADER_BYTES :]
        kind = _TYPES[begins, not rest]
        crc = crc32c(payload, _TYPE_CHECKSUMS[kind])
        parts += (FRAGMENT.pack(mask(crc), len(payload), kind), payload)
        if not rest:
            return b"".join(parts)
        begins = False
        left = BLOCK_BYTES
