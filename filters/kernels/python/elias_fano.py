"""Ascending numbers in nearly the fewest bits, of which an interval can be asked for.

A number's lowest bits stand in an array. The others are its bucket, and how many numbers a bucket
has stands in unary, behind that of the buckets before: as many ones, then a zero (Elias, 1974;
Fano, 1971).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from filters.elias_fano import LINE_BYTES, Layout

LINE_BITS = 8 * LINE_BYTES


def encode(numbers: Sequence[int], layout: Layout) -> bytes:
    """The bytes of ascending distinct numbers: their lowest bits, and what is above."""
    mask = (1 << layout.low_bits) - 1
    low, high = bytearray(), bytearray(layout.high_bytes)
    for start in range(0, len(numbers), 8):  # eight of them fill whole bytes
        bits = 0
        for index, number in enumerate(numbers[start : start + 8]):
            bits |= (number & mask) << index * layout.low_bits
        low += bits.to_bytes(layout.low_bits, "little")
    for index, number in enumerate(numbers):
        place = (number >> layout.low_bits) + index
        high[place >> 3] |= 1 << (place & 7)
    return bytes(low[: layout.low_bytes] + high)


class EliasFano:
    """Ascending numbers, to be asked whether one of them lies in an interval."""

    __slots__ = ("_high", "_layout", "_low", "_zeros_before")

    def __init__(self, family: str, layout: Layout, data: memoryview):
        """A family's codes in these bytes; CorruptFilterError where the buckets hold others."""
        self._layout = layout
        self._low, self._high = data[: layout.low_bytes], data[layout.low_bytes :]
        lines = range(0, len(self._high), LINE_BYTES)
        ones = [
            int.from_bytes(self._high[line : line + LINE_BYTES], "little").bit_count()
            for line in lines
        ]
        layout.check_ones(family, sum(ones))
        self._zeros_before = [0]
        for each in ones:
            self._zeros_before.append(self._zeros_before[-1] + LINE_BITS - each)

    def any_between(self, first: int, last: int) -> bool:
        """Whether one of the numbers lies from ``first`` to ``last``, both below the universe."""
        low_bits = self._layout.low_bits
        mask = (1 << low_bits) - 1
        lower, upper = first >> low_bits, last >> low_bits
        start, end = self._through(lower - 1), self._through(lower)
        if lower == upper:
            found = bisect_left(range(end), first & mask, lo=start, key=self._low_of)
            return found < end and self._low_of(found) <= last & mask
        if start < end and self._low_of(end - 1) >= first & mask:
            return True
        start = self._through(upper - 1)
        if start > end:
            return True  # in a bucket between the two
        return start < self._through(upper) and self._low_of(start) <= last & mask

    def _through(self, bucket: int) -> int:
        """How many numbers there are in the buckets up to and with this one."""
        return self._zero(bucket) - bucket if bucket >= 0 else 0

    def _zero(self, index: int) -> int:
        """The place of a zero above the lowest bits, by its index among all zeros."""
        line = bisect_right(self._zeros_before, index) - 1
        index -= self._zeros_before[line]
        bits = self._high[line * LINE_BYTES : (line + 1) * LINE_BYTES]
        zeros = ~int.from_bytes(bits, "little")
        for _ in range(index):
            zeros &= zeros - 1
        return line * LINE_BITS + (zeros & -zeros).bit_length() - 1

    def _low_of(self, index: int) -> int:
        """The lowest bits of a number."""
        low_bits = self._layout.low_bits
        start = index * low_bits
        field = self._low[start >> 3 : start + low_bits + 7 >> 3]
        return int.from_bytes(field, "little") >> (start & 7) & ((1 << low_bits) - 1)
