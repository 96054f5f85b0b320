"""How ascending numbers lie in bytes in Elias and Fano's code, and what is checked of that.

Of each number the lowest bits, in the order of the numbers: field ``i`` of ``low_bits`` bits starts
at bit ``i * low_bits``. Then, from a byte of its own on, for each bucket as many ones as it has
numbers, and a zero; a number's bucket is what is above its lowest bits.
"""

from __future__ import annotations

from typing import Self

import attrs

from filters.errors import CorruptFilterError

MAX_UNIVERSE = 1 << 63
MAX_LOW_BITS = 63

# How often the zeros are counted that come before, when a filter is opened.
LINE_BYTES = 64


@attrs.frozen
class Layout:
    """So many numbers below a universe, and how many lowest bits of each stand apart."""

    universe: int
    count: int
    low_bits: int

    @classmethod
    def of(cls, universe: int, count: int) -> Self:
        """The layout of the fewest bits: buckets of one to two numbers, on average."""
        return cls(universe, count, (universe // max(1, count)).bit_length() - 1)

    @property
    def buckets(self) -> int:
        """How many values there are of what is above the lowest bits."""
        return (self.universe - 1 >> self.low_bits) + 1

    @property
    def low_bytes(self) -> int:
        """The bytes of all lowest bits."""
        return -(-self.count * self.low_bits // 8)

    @property
    def high_bytes(self) -> int:
        """The bytes of what is above."""
        return -(-(self.count + self.buckets) // 8)

    def check_unused(self, family: str, data: memoryview) -> None:
        """Refuse bits behind the last field, and behind the last bucket's zero."""
        unused_low = data[self.low_bytes - 1] >> self.count * self.low_bits % 8
        if self.count * self.low_bits % 8 and unused_low:
            raise CorruptFilterError(
                f"{family} filter has bits set behind the lowest ones of its {self.count} codes"
            )
        if data[-1] >> (self.count + self.buckets - 1) % 8:
            raise CorruptFilterError(
                f"{family} filter has bits set behind the last of its {self.buckets} buckets"
            )

    def check_ones(self, family: str, ones: int) -> None:
        """Refuse buckets that hold more or fewer numbers than there are."""
        if ones != self.count:
            raise CorruptFilterError(
                f"{family} filter has {ones} codes in its buckets, and claims {self.count}"
            )
