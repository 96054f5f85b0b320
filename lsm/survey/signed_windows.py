"""The filters that RocksDB had for each 2 KiB of a table, before its version 7.0.

Their bytes are LevelDB's, to the last one. They are asked with RocksDB's hash, which takes the last
one to three bytes of a key for signed numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from filters import LevelDBBloomFilter, leveldb
from filters.compat_hashing import MASK32, rocksdb_hash


class SignedWindow:
    """The filter of one such window, to be asked."""

    __slots__ = ("_data", "_geometry", "filter")

    def __init__(self, data: bytes):
        self._geometry, self._data = leveldb.decode(data)
        self.filter = LevelDBBloomFilter.from_bytes(data)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The filter in these bytes, whatever they are."""
        return cls(data)

    def to_bytes(self) -> bytes:
        """The filter as it is stored."""
        return self.filter.to_bytes()

    @property
    def num_bits(self) -> int:
        """The length of the bit array."""
        return self._geometry.bits

    @property
    def num_probes(self) -> int:
        """How many bits a key sets."""
        return self._geometry.num_probes

    @property
    def array_bytes(self) -> range:
        """Where the bit array is in the bytes."""
        return range(max(len(self._data) - 1, 0))

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        return self.filter.fill

    @property
    def expected_fpr(self) -> float:
        """The share of absent keys let through, which follows from the bytes alone."""
        return self.filter.expected_fpr

    def might_contain(self, key: bytes) -> bool:
        """False: the key was not among those it was built of."""
        if not self._geometry.bits:
            return False
        return all(self._data[byte] & mask for byte, mask in self.bits_of(key))

    def bits_of(self, key: bytes) -> Iterator[tuple[int, int]]:
        """Each bit that a key sets: its byte, and its mask in it."""
        bits, probes = self._geometry.bits, self._geometry.num_probes
        if probes > leveldb.MAX_PROBES:
            return
        h = rocksdb_hash(key)
        step = h >> 17 | h << 15 & MASK32
        for _ in range(probes):
            place = h % bits
            yield place >> 3, 1 << (place & 7)
            h = h + step & MASK32

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in keys]
