"""Ribbon's equations, made and solved: the textbook page.

A key says that some of 128 neighbouring slots, those in its row, xor to its result. Written one
under the other, the rows lie in a band, and elimination needs nothing but the rows already there:
a new row whose first slot is taken has the row that took it xored to it, which moves its first slot
on, until it finds a free one or vanishes. What is left has at most one row for each first slot, and
is solved from the last slot backwards; slots that no row begins at are free, and are 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from filters import ribbon
from filters.compat_hashing import MASK32, MASK64

_WINDOW = (1 << ribbon.BLOCK_SLOTS) - 1

Rows = list[tuple[int, int]]


def equation(hashed: int, starts: int, mask: int) -> tuple[int, int, int]:
    """A key's first slot, its row from there on (the first slot is its lowest bit), its result."""
    number = (hashed ^ mask) * ribbon.START_MULTIPLIER & MASK64
    spread = number * ribbon.ROW_MULTIPLIER & MASK64
    row = spread << 64 | (spread ^ ribbon.ROW_DIFFERENCE) | 1
    result = int.from_bytes(spread.to_bytes(8, "little"), "big") & MASK32
    return number * starts >> 64, row, result


def solution(hashes: Iterable[int], geometry: ribbon.Geometry, seed: int) -> bytes | None:
    """The segments that satisfy all keys' equations under a seed; None where nothing does."""
    rows = eliminate(hashes, geometry, seed)
    return None if rows is None else substitute(rows, geometry)


def eliminate(hashes: Iterable[int], geometry: ribbon.Geometry, seed: int) -> Rows | None:
    """For each slot the row that begins there and its result; None where two contradict."""
    mask = ribbon.seed_mask(seed)
    starts = geometry.starts
    rows: Rows = [(0, 0)] * geometry.slots
    for hashed in hashes:
        slot, row, result = equation(hashed, starts, mask)
        while True:
            taken, theirs = rows[slot]
            if not taken:
                rows[slot] = row, result
                break
            row ^= taken
            result ^= theirs
            if not row:
                if result:
                    return None
                break
            zeros = (row & -row).bit_length() - 1
            slot += zeros
            row >>= zeros
    return rows


def substitute(rows: Rows, geometry: ribbon.Geometry) -> bytes:
    """Solve from the last slot backwards, and store each block's columns as it is complete."""
    columns = geometry.columns
    windows = [0] * columns  # for each column the 128 slots from the current one on
    segments: list[bytes] = []
    for block in reversed(range(geometry.blocks)):
        start = block * ribbon.BLOCK_SLOTS
        for slot in reversed(range(start, start + ribbon.BLOCK_SLOTS)):
            row, result = rows[slot]
            for column, window in enumerate(windows):
                window = window << 1 & _WINDOW
                bit = (window & row).bit_count() ^ result >> column
                windows[column] = window | bit & 1
        stored = windows[: columns - (block < geometry.narrow_blocks)]
        segments.append(b"".join(each.to_bytes(ribbon.SEGMENT_BYTES, "little") for each in stored))
    return b"".join(reversed(segments))
