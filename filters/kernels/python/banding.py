"""Ribbon construction: the textbook page.

A key says which of the 64 slots from its start on, xored, must give its result. Banding brings
these equations into echelon form on the way, as Gauss would: a row goes into the slot of its first
coefficient; if that is taken, the row there is added, which moves the first coefficient on. So
every slot is the pivot of one row, or free, and each can be filled, from the last to the first.

Within a bucket, rows are taken from the last start to the first. A row of which nothing remains
contradicts those before it, or adds nothing to them: then all keys of the bucket up to a threshold
are bumped, and the rows that were already in are taken out again. That is easy, since they have
been added to no row but others that are taken out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import attrs

from filters.bumped_ribbon import (
    BLOCK_SLOTS,
    BUCKET_SLOTS,
    BUCKET_STARTS,
    MAX_COLUMNS,
    STEP,
    THRESHOLDS,
    Columns,
    Layer,
    buckets_of,
    sections_of,
)
from filters.hashing import MASK64
from filters.kernels.python import peeling

_COEFFICIENTS = 0xC13F_A9A9_02A6_328F
_RESULT = 0xD6E8_FEB8_6659_FD93


def stepped(value: int) -> int:
    """The next hash of a key: of its salted digest for the first layer, of that for the second."""
    return peeling.rehash(value, STEP)


def coefficients_of(value: int) -> int:
    """Which slots a hash's equation has, from its start on: bit i is the i-th, and bit 0 is set."""
    product = value * _COEFFICIENTS
    return (product & MASK64) ^ (product >> 64) | 1


def result_of(value: int) -> int:
    """The result of a hash's equation, a bit in each column."""
    return (value * _RESULT & MASK64) >> BLOCK_SLOTS - MAX_COLUMNS


@attrs.frozen
class Band:
    """The rows of one layer in echelon form, and the hashes that were bumped."""

    layer: Layer
    coefficients: array[int] = attrs.field(repr=False)  # 0 in a slot that nobody needs
    results: array[int] = attrs.field(repr=False)
    bumped: list[int] = attrs.field(repr=False)


def band(hashes: Sequence[int], blocks: int) -> Band:
    """The band of these ascending, distinct hashes in a layer of so many blocks."""
    codes = bytearray(buckets_of(blocks))
    layer = Layer(blocks, codes)
    slots = blocks * BLOCK_SLOTS
    built = Band(layer, array("Q", bytes(8 * slots)), array("I", [0]) * slots, [])
    starts = [value * layer.starts >> 64 for value in hashes]
    ends = [bisect_left(starts, bucket * BUCKET_STARTS) for bucket in range(len(codes) + 1)]
    buckets = list(pairwise(ends))
    first = sections_of(len(buckets))
    for bucket in first + sorted(set(range(len(buckets))) - set(first)):
        begin, end = buckets[bucket]
        codes[bucket] = _band_bucket(built, hashes[begin:end], bucket)
    for value, start in zip(hashes, starts, strict=True):
        if start % BUCKET_STARTS < THRESHOLDS[codes[start // BUCKET_STARTS]]:
            built.bumped.append(value)
    return built


def _band_bucket(built: Band, hashes: Sequence[int], bucket: int) -> int:
    """Put in the rows of a bucket from the last to the first; the code it comes to."""
    first = bucket * BUCKET_STARTS
    placed: list[tuple[int, int]] = []
    for value in reversed(hashes):
        start = value * built.layer.starts >> 64
        slot = _place(built, start, first + BUCKET_SLOTS, value)
        if slot is None:
            code = next(code for code, each in enumerate(THRESHOLDS) if each > start - first)
            while placed and placed[-1][0] - first < THRESHOLDS[code]:
                built.coefficients[placed.pop()[1]] = 0
            return code
        placed.append((start, slot))
    return 0


def _place(built: Band, slot: int, reach: int, value: int) -> int | None:
    """The slot that a hash's row came into; None where nothing is left, or it went too far."""
    coefficients, result = coefficients_of(value), result_of(value)
    while row := built.coefficients[slot]:
        coefficients ^= row
        result ^= built.results[slot]
        zeros = (coefficients & -coefficients).bit_length() - 1
        if zeros < 0 or slot + zeros >= reach:
            return None
        coefficients >>= zeros
        slot += zeros
    built.coefficients[slot] = coefficients
    built.results[slot] = result
    return slot


def solve(built: Band, narrow: int, columns: Columns) -> list[int]:
    """The words of a layer whose first blocks, so many, are narrow."""
    words: list[int] = []
    state = [0] * MAX_COLUMNS  # of each column, the 64 bits from the slot at hand on
    for block in reversed(range(built.layer.blocks)):
        count = columns.narrow + (block >= narrow)
        for slot in reversed(range(block * BLOCK_SLOTS, (block + 1) * BLOCK_SLOTS)):
            row = built.coefficients[slot]
            result = built.results[slot] if row else 0
            for column in range(count):
                bits = state[column] << 1 & MASK64
                bit = ((bits & row).bit_count() ^ result >> column) & 1
                state[column] = bits | bit
        words += reversed(state[:count])
    words.reverse()
    return words
