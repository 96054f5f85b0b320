"""Parquet's Bloom filter: blocks of 32 bytes, in each of which a value sets a bit of every word.

https://github.com/apache/parquet-format/blob/master/BloomFilter.md is the specification. A header
in Thrift's compact protocol says how many bytes follow, and that they are what they can be so far:
split blocks, asked with XXH64 under seed 0 of a value as plain encoding has it, without a length
before it. The upper half of a hash chooses the block; the lower half, times one odd number for each
of the block's eight words, chooses a bit in each by its top five.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

import attrs
from xxhash import xxh64_intdigest

from filters.hashing import key_bytes
from lsm.errors import CorruptionError
from lsm.survey.thrift import I32, STRUCT, CompactFields

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLOCK_BYTES = 32
MOST_HEADER_BYTES = 64
"""A header takes 15 bytes or so."""

_WORD_BITS = 32
_WORDS = 8
_MASK32 = 0xFFFF_FFFF
_SALTS = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip

# Of more blocks than these the rate is the mean over so many of them, at equal distances.
_BLOCKS_LOOKED_AT = 4096

_CHOICES = {2: "algorithm", 3: "hash", 4: "compression"}


@attrs.frozen
class Header:
    """What a header says: the bytes behind it, its own, and what is unknown here of its form."""

    num_bytes: int
    header_bytes: int
    unknown: str = ""

    @classmethod
    def decode(cls, data: bytes | memoryview, what: str) -> Self:
        """The header that these bytes begin with; CorruptionError for what is none."""
        fields = CompactFields(data, what)
        num_bytes = 0
        chosen: dict[int, int] = {}
        for field in fields.fields():
            if field.number == 1:
                num_bytes = fields.integer(field, I32, "number of bytes")
            elif field.number in _CHOICES:
                fields.expect(field, STRUCT, _CHOICES[field.number])
                chosen[field.number] = _choice(fields)
            else:
                fields.skip(field)
        if num_bytes < BLOCK_BYTES or num_bytes % BLOCK_BYTES:
            raise CorruptionError(
                f"{what}: its header, bytes 0 to {fields.at}, says {num_bytes} bytes follow: "
                f"allowed are one or more whole blocks of {BLOCK_BYTES}"
            )
        unknown = [
            f"{name} {chosen.get(number, 'none')}"
            for number, name in _CHOICES.items()
            if chosen.get(number) != 1  # BLOCK, XXHASH and UNCOMPRESSED, the only ones there are
        ]
        return cls(num_bytes, fields.at, ", ".join(unknown))


def _choice(fields: CompactFields) -> int:
    """Which of the members a union has; 0 for none."""
    number = 0
    for field in fields.fields():
        number = field.number
        fields.skip(field)
    return number


class SplitBlockFilter:
    """A filter of Parquet's: its header and its blocks; CorruptionError for bytes that are none.

    There may be others behind them, as in a file. Keys are values in plain encoding: numbers in
    little-endian bytes, strings as they are.
    """

    __slots__ = ("_data", "header")

    def __init__(self, data: bytes | memoryview):
        self.header = Header.decode(data[:MOST_HEADER_BYTES], "Bloom filter of Parquet")
        end = self.header.header_bytes + self.header.num_bytes
        if self.header.unknown:
            raise CorruptionError(
                f"Bloom filter of Parquet is of a form that is unknown here: {self.header.unknown}"
            )
        if len(data) < end:
            raise CorruptionError(
                f"Bloom filter of Parquet is cut short: {len(data)} bytes, its header says {end}"
            )
        self._data = data[:end]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Self:
        """The filter in these bytes, which may have others behind them."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """Header and blocks as they are stored."""
        return bytes(self._data)

    def might_contain(self, key: Buffer) -> bool:
        """False: no value is this one. True: one may be."""
        return all(self._data[byte] & bit for byte, bit in self.bits_of(key))

    def might_contain_many(self, keys: Iterable[Buffer]) -> list[bool]:
        """The answers for many values, in order."""
        return [self.might_contain(key) for key in keys]

    def bits_of(self, key: Buffer) -> Iterator[tuple[int, int]]:
        """Each bit that a value sets: its byte, counted from the header's first, and its mask."""
        hashed = xxh64_intdigest(key_bytes(key))
        block = (hashed >> 32) * self.num_blocks >> 32
        start, low = self.header.header_bytes + block * BLOCK_BYTES, hashed & _MASK32
        for word, salt in enumerate(_SALTS):
            bit = (low * salt & _MASK32) >> 27
            yield start + 4 * word + (bit >> 3), 1 << (bit & 7)

    @property
    def array_bytes(self) -> range:
        """Where the blocks are in the bytes."""
        return range(self.header.header_bytes, len(self._data))

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return self.header.num_bytes // BLOCK_BYTES

    @property
    def num_bits(self) -> int:
        """The bits of all blocks."""
        return 8 * self.header.num_bytes

    num_probes = _WORDS

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        blocks = self._data[self.header.header_bytes :]
        return int.from_bytes(blocks, "little").bit_count() / self.num_bits

    @property
    def expected_fpr(self) -> float:
        """The mean over the blocks of the product of their words' fills."""
        count, first = self.num_blocks, self.header.header_bytes
        looked_at = min(count, _BLOCKS_LOOKED_AT)
        starts = (first + index * count // looked_at * BLOCK_BYTES for index in range(looked_at))
        return math.fsum(_block_fpr(self._data, start) for start in starts) / looked_at

    @property
    def estimated_keys(self) -> float:
        """How many distinct values fill this share of the bits."""
        most_filled = 1 - 0.5 / self.num_bits
        return -self.num_blocks * _WORD_BITS * math.log1p(-min(self.fill, most_filled))


def _block_fpr(data: bytes | memoryview, start: int) -> float:
    return math.prod(
        int.from_bytes(data[at : at + 4], "little").bit_count() / _WORD_BITS
        for at in range(start, start + BLOCK_BYTES, 4)
    )
