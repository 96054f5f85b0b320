"""Pebble's binary fuse filter, as its tables have it under ``fullfilter.binaryfuse``.

A key is the XXH3-64 of its bytes, with the filter's seed added and mixed anew. The three numbers at
its places, one in each of three neighbouring segments, xor to its lowest bits. Packed they are of
4, 8, 10, 12 or 16 bits, the first in the lowest ones; those of 10 have three bytes behind them, and
those of 12, of which there are always pairs, one. Little-endian, at the end::

    u64 seed    u32 number of segments where a key begins    u8 shift: 2^shift numbers in each
                                                             u8 bits of a number
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from xxhash import xxh3_64_intdigest

from filters.compat_hashing import MASK64, mixed64
from lsm.disk.coding import Fields
from lsm.errors import CorruptionError

_TRAILER_BYTES = 14
_LONGEST_SEGMENT = 18  # the shift; whoever builds them stops there
_WIDTHS = (4, 8, 10, 12, 16)


class PebbleFuseFilter:
    """A filter in Pebble's bytes, to be asked; CorruptionError for bytes that are none."""

    __slots__ = ("_data", "_mask", "_seed", "_shift", "_span", "_stored", "bits")

    def __init__(self, data: bytes):
        size = len(data) - _TRAILER_BYTES
        if size <= 0:
            raise CorruptionError(f"a binary fuse filter of {len(data)} bytes is cut short")
        fields = Fields(data, "a binary fuse filter", size)
        self._seed, segments, self._shift, self.bits = (
            fields.number(width, what)
            for width, what in ((8, "seed"), (4, "segments"), (1, "shift"), (1, "bits"))
        )
        if self.bits not in _WIDTHS or self._shift > _LONGEST_SEGMENT or not segments:
            raise CorruptionError(
                f"a binary fuse filter has {segments} segments of 2^{self._shift} numbers of "
                f"{self.bits} bits: read are at least 1, up to 2^{_LONGEST_SEGMENT}, and {_WIDTHS}"
            )
        self._span = segments << self._shift
        expected = packed_bytes(self.num_slots, self.bits)
        if size != expected:
            raise CorruptionError(
                f"a binary fuse filter of {self.num_slots} numbers of {self.bits} bits takes "
                f"{expected} bytes before its end, and has {size}"
            )
        self._stored = bytes(data)
        self._data = self._stored[:size]
        self._mask = (1 << self.bits) - 1

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The filter in these bytes; CorruptionError for those that are none."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """The filter as it is stored."""
        return self._stored

    zeros_count = True
    """A key needs all bits at its places as they are, the zeros as well."""

    @property
    def array_bytes(self) -> range:
        """Where the numbers are in the bytes."""
        return range(len(self._data))

    def bits_of(self, key: bytes) -> Iterator[tuple[int, int]]:
        """The bits at the places of a key, byte by byte: where each is, and a mask of it."""
        for place in self.places(key)[:3]:
            bit = place * self.bits
            for at, mask in enumerate((self._mask << (bit & 7)).to_bytes(3, "little"), bit >> 3):
                if mask:
                    yield at, mask

    @property
    def num_slots(self) -> int:
        """How many numbers there are."""
        return self._span + (2 << self._shift)

    @property
    def segment_length(self) -> int:
        """How many numbers a segment has."""
        return 1 << self._shift

    @property
    def expected_fpr(self) -> float:
        """The share of absent keys whose bits come out right by chance."""
        return 1 / (1 << self.bits)

    def might_contain(self, key: bytes) -> bool:
        """False: the key was not among those it was built of."""
        one, two, three, wanted = self.places(key)
        return self._at(one) ^ self._at(two) ^ self._at(three) == wanted

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in keys]

    def places(self, key: bytes) -> tuple[int, int, int, int]:
        """The three places of a key, and what the numbers there xor to if it is in."""
        h = mixed64(xxh3_64_intdigest(key) + self._seed & MASK64)
        length = 1 << self._shift
        first = h * self._span >> 64
        second = first + length ^ h >> 18 & length - 1
        third = first + 2 * length ^ h & length - 1
        return first, second, third, (h ^ h >> 32) & self._mask

    def _at(self, place: int) -> int:
        bit = place * self.bits
        return int.from_bytes(self._data[bit >> 3 : (bit >> 3) + 3], "little") >> (bit & 7) & (
            self._mask
        )


def packed_bytes(count: int, bits: int) -> int:
    """The bytes that so many numbers of so many bits take."""
    if bits == 10:
        return (10 * count + 7) // 8 + 3
    if bits == 12:
        return (count + 1) // 2 * 3 + 1
    return (bits * count + 7) // 8
