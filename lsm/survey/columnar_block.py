"""Pebble's columnar blocks of names and values: metaindexes from its version 6 on.

All integers are little-endian. A u8 version, a u16 number of columns and a u32 number of rows, and
of each column a u8 type and the u32 offset where it begins. Both columns are byte strings: offsets
of each and of the end, then the bytes. The offsets stand behind a byte that says how many bytes one
has, at the next multiple of that; none, where all are 0. The block ends with a byte of padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from lsm.disk.coding import Fields
from lsm.disk.plain_block import MOST_NAMES
from lsm.errors import CorruptionError

_VERSION = 1
_COLUMNS = 2
_BYTE_STRINGS = 3
_WIDTHS = (0, 1, 2, 4)


def read_columns(data: bytes) -> dict[bytes, bytes]:
    """The values of such a block by their names; CorruptionError for what is none."""
    fields = Fields(data, "a columnar block")
    version, columns, rows = (
        fields.number(width, what)
        for width, what in ((1, "version"), (2, "number of columns"), (4, "number of rows"))
    )
    if (version, columns) != (_VERSION, _COLUMNS) or rows > MOST_NAMES:
        raise CorruptionError(
            f"a columnar block of version {version} has {columns} columns and {rows} rows: read "
            f"are those of version {_VERSION} with {_COLUMNS} columns and up to {MOST_NAMES} rows"
        )
    starts = []
    for column in range(columns):
        kind, start = fields.number(1, "type of a column"), fields.number(4, "start of a column")
        if kind != _BYTE_STRINGS:
            raise CorruptionError(f"column {column} of a columnar block has type {kind}, not 3")
        starts.append(start)
    names, values = (list(_strings(data, start, rows)) for start in starts)
    return dict(zip(names, values, strict=True))


def _strings(data: bytes, start: int, rows: int) -> Iterator[bytes]:
    """The byte strings of a column, a row each."""
    if not rows:
        return
    fields = Fields(data, "a columnar block", start)
    width = fields.number(1, "width of the offsets")
    if width not in _WIDTHS:
        raise CorruptionError(f"a columnar block has offsets of form {width:#x} at byte {start}")
    if width:
        fields.view(-fields.at % width, "padding")
    offsets = [fields.number(width, "offset of a value") for _ in range(rows + 1)]
    strings = Fields(fields.view(fields.remaining, "column"), "a column of a columnar block")
    strings.view(offsets[0], "bytes before the first value")
    for low, high in pairwise(offsets):
        if high < low:
            raise CorruptionError(f"a columnar block's offsets go backwards from {low} to {high}")
        yield strings.take(high - low, "value")
