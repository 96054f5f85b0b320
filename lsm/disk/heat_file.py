"""The file ``lsm-heat``: how many lookups have come by each table, by what they found.

Nothing in it is needed to read the database, or to write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from struct import pack

from lsm.disk.checksum import crc32c, mask
from lsm.disk.coding import Fields, varint
from lsm.disk.filenames import LAST_NUMBER
from lsm.errors import CorruptionError

MOST_ASKED = (1 << 48) - 1
"""The highest count: years of lookups, in sums that stay far below what counters hold."""

MOST_BYTES = 1 << 26
"""The size up to which a file is read; two million tables take no more."""

_MAGIC = b"lsm-heat"
_FORM = 1
_CHECKSUM_BYTES = 4
_LEAST_TABLE_BYTES = 3


def encode(asked: Mapping[int, tuple[int, int]]) -> bytes:
    """The file of these counts, missed and found, by the tables' numbers."""
    data = bytearray(_MAGIC + varint(_FORM) + varint(len(asked)))
    for before, number in pairwise((0, *sorted(asked))):
        data += varint(number - before)
        for count in asked[number]:
            data += varint(min(count, MOST_ASKED))
    return bytes(data) + pack("<I", mask(crc32c(data)))


def decode(data: bytes) -> dict[int, tuple[int, int]]:
    """The counts, missed and found, by the tables' numbers; CorruptionError for no such file."""
    if len(data) > MOST_BYTES:
        raise CorruptionError(f"{len(data)} bytes are more than the {MOST_BYTES} allowed")
    fields = Fields(data[:-_CHECKSUM_BYTES], "the heat of tables")
    if fields.take(len(_MAGIC), "magic") != _MAGIC:
        raise CorruptionError(f"does not begin with {_MAGIC!r}")
    if data[-_CHECKSUM_BYTES:] != pack("<I", mask(crc32c(data[:-_CHECKSUM_BYTES]))):
        raise CorruptionError("the checksum does not match")
    if (form := fields.varint32("form")) != _FORM:
        raise CorruptionError(f"is of form {form}, and this release reads form {_FORM}")
    count = fields.varint32("number of tables")
    if count > fields.remaining // _LEAST_TABLE_BYTES:
        raise CorruptionError(f"has no room for {count} tables in {fields.remaining} bytes")
    asked: dict[int, tuple[int, int]] = {}
    number = 0
    for _ in range(count):
        step = fields.varint64("step to the next number")
        number += step
        if step == 0 or number > LAST_NUMBER:
            raise CorruptionError(
                f"table {number} follows table {number - step}: numbers ascend to {LAST_NUMBER}"
            )
        asked[number] = fields.varint64("missed"), fields.varint64("found")
        if max(asked[number]) > MOST_ASKED:
            raise CorruptionError(
                f"table {number} would have {asked[number]} lookups, allowed are {MOST_ASKED}"
            )
    fields.end()
    return asked
