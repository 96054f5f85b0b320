"""Pebble's columnar blocks: data and indexes from its version 5 on, names and values from 6 on.

All integers are little-endian. A block begins with a u8 version, a u16 number of columns and a u32
number of rows, and of each column a u8 type and the u32 offset where it begins; with data a u32
stands before that. It ends with a byte of padding. A column is one of:

- Numbers: a byte, a u64 to be added to each of them if its highest bit is set, and from the next
  multiple of their width on the numbers, whose width its other bits say. Those of 0 bytes are 0.
- Byte strings: such numbers, the offsets of each and of the end, then the bytes.
- Byte strings that ascend: a byte with the logarithm of how many make a bundle, and byte strings
  behind what they all begin with, up to the first offset. Each bundle's first one is what its rows
  begin with next. The others are their ends; an empty one is that of the row before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from struct import unpack_from

from lsm.disk.coding import Fields
from lsm.disk.footer import Handle
from lsm.disk.plain_block import MOST_NAMES, ROOM_FOR_KEYS
from lsm.errors import CorruptionError

DATA_HEADER_BYTES = 4

_VERSION = 1
_NUMBERS, _STRINGS, _ASCENDING = 2, 3, 4
_ADDED = 0x80
_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MOST_BUNDLE_BITS = 16


class Columns:
    """The columns of a block, read one by one; CorruptionError for what is none."""

    def __init__(self, data: bytes, header_bytes: int = 0):
        self._data = data
        fields = Fields(data, "a columnar block", header_bytes)
        version = fields.number(1, "version")
        columns = fields.number(2, "number of columns")
        self.rows = fields.number(4, "number of rows")
        if version != _VERSION or self.rows > len(data):
            raise CorruptionError(
                f"a columnar block of {len(data)} bytes is of version {version}, with {self.rows} "
                f"rows: read are those of version {_VERSION}, with no more rows than bytes"
            )
        self._columns = [
            (fields.number(1, "type of a column"), fields.number(4, "start of a column"))
            for _ in range(columns)
        ]

    def __len__(self) -> int:
        return len(self._columns)

    def numbers(self, column: int) -> list[int]:
        """The numbers of a column, a row each."""
        start = self._start(column, _NUMBERS)
        return self._numbers(start, self.rows)[0] if self.rows else []

    def strings(self, column: int) -> Iterator[bytes]:
        """The byte strings of a column, a row each."""
        start = self._start(column, _STRINGS)
        if self.rows:
            offsets, at = self._numbers(start, self.rows + 1)
            yield from self._between(at, offsets)

    def ascending(self, column: int) -> Iterator[bytes]:
        """The byte strings of a column that ascend, a row each."""
        fields = self._start(column, _ASCENDING)
        if not self.rows:
            return
        bits = fields.number(1, "size of bundles")
        if bits > _MOST_BUNDLE_BITS:
            raise CorruptionError(f"a columnar block has bundles of 2^{bits} rows")
        bundles = -(-self.rows >> bits)
        offsets, at = self._numbers(fields, self.rows + bundles + 1)
        shared = next(self._between(at, [0, offsets[0]]))
        strings = self._between(at, offsets)
        room = max(ROOM_FOR_KEYS, len(self._data))
        for row in range(self.rows):
            if not row & (1 << bits) - 1:
                bundle = shared + next(strings)
                string = bundle
            end = next(strings)
            string = bundle + end if end else string
            room -= len(string)
            if room < 0:
                raise CorruptionError(
                    f"the keys of a block of {len(self._data)} bytes take too many"
                )
            yield string

    def _start(self, column: int, kind: int) -> Fields:
        """Where a column begins."""
        if column >= len(self._columns) or self._columns[column][0] != kind:
            types = [each for each, _ in self._columns]
            raise CorruptionError(
                f"a columnar block has columns of types {types}, column {column} should be a {kind}"
            )
        return Fields(self._data, "a columnar block", self._columns[column][1])

    def _numbers(self, fields: Fields, count: int) -> tuple[list[int], int]:
        """So many numbers from there on, and where they end."""
        form = fields.number(1, "form of numbers")
        width, added = form & ~_ADDED, 0
        if form & _ADDED:
            added = fields.number(8, "number to be added")
        if not width:
            return [added] * count, fields.at
        if width not in _FORMATS:
            raise CorruptionError(
                f"a columnar block has numbers of form {form:#x} at byte {fields.at - 1}"
            )
        fields.view(-fields.at % width, "padding")
        numbers = unpack_from(f"<{count}{_FORMATS[width]}", fields.view(count * width, "numbers"))
        return [added + each for each in numbers] if added else list(numbers), fields.at

    def _between(self, start: int, offsets: list[int]) -> Iterator[bytes]:
        """The byte strings between offsets, which count from there."""
        for low, high in pairwise(offsets):
            if not low <= high <= len(self._data) - start:
                raise CorruptionError(
                    f"a columnar block has a value from {low} to {high}, behind byte {start} of "
                    f"{len(self._data)}"
                )
            yield self._data[start + low : start + high]


def read_names(data: bytes) -> dict[bytes, bytes]:
    """The values of a block by their names, of which there are MOST_NAMES at most."""
    columns = Columns(data)
    if len(columns) != 2 or columns.rows > MOST_NAMES:
        raise CorruptionError(
            f"a columnar block of names has {len(columns)} columns and {columns.rows} rows, "
            f"allowed are 2 and {MOST_NAMES}"
        )
    return dict(zip(columns.strings(0), columns.strings(1), strict=True))


def read_handles(data: bytes) -> Iterator[tuple[bytes, Handle]]:
    """The entries of an index: user keys, and where their blocks are."""
    columns = Columns(data)
    offsets, sizes = columns.numbers(1), columns.numbers(2)
    yield from zip(columns.strings(0), map(Handle, offsets, sizes), strict=True)


def read_keys(data: bytes) -> Iterator[bytes]:
    """The user keys of a data block of Pebble's own schema: beginnings, and ends."""
    columns = Columns(data, DATA_HEADER_BYTES)
    for beginning, end in zip(columns.ascending(0), columns.strings(1), strict=True):
        yield beginning + end
