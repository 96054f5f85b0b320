"""The filters that RocksDB had for each 2 KiB of a table, before its version 7.0.

Their bytes are LevelDB's, to the last one. They are asked with RocksDB's hash, which takes the last
one to three bytes of a key for signed numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from filters import LevelDBBloomFilter, leveldb
from filters.compat_hashing import MASK32, rocksdb_hash


class SignedWindow:
    """The filter of one such window, to be asked."""

    __slots__ = ("_data", "_geometry", "filter")

    def __init__(self, data: bytes):
        self._geometry, self._data = leveldb.decode(data)
        self.filter = LevelDBBloomFilter.from_bytes(data)

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
        bits, probes = self._geometry.bits, self._geometry.num_probes
        if not bits:
            return False
        if probes > leveldb.MAX_PROBES:
            return True
        h = rocksdb_hash(key)
        step = h >> 17 | h << 15 & MASK32
        for _ in range(probes):
            place = h % bits
            if not self._data[place >> 3] >> (place & 7) & 1:
                return False
            h = h + step & MASK32
        return True

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in keys]
