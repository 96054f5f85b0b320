"""LevelDB's Bloom filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from filters import leveldb
from filters.columns import one_by_one
from filters.compat_hashing import leveldb_hash
from filters.digest_kinds import LEVELDB
from filters.hashing import key_bytes
from filters.kernels.python.digests import digests_of
from filters.kernels.python.foreign import ForeignFilter
from filters.sampling import hit_rate

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class LevelDBBloomFilter(ForeignFilter):
    """LevelDB's own Bloom filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    Bits per key are whole. Any bytes are a filter, as they are to LevelDB. There is nothing secret
    in it: who chooses the keys can choose ones that pass.
    """

    __slots__ = ("_bits", "_num_probes")
    family = leveldb.FAMILY
    _kind = LEVELDB

    def __init__(
        self, geometry: leveldb.Geometry, data: memoryview | bytearray, num_keys: int | None
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        super().__init__(data, num_keys)
        self._bits = geometry.bits
        self._num_probes = geometry.num_probes

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys, sized for how many were given; repeats count."""
        sizing = leveldb.check(bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes)
        hashes, _ = digests_of(one_by_one(keys, nulls), LEVELDB, None)
        geometry = leveldb.plan(len(hashes), sizing, num_probes)
        data = bytearray(leveldb.payload_bytes(geometry) + 1)
        data[-1] = geometry.num_probes
        self = cls(geometry, data, len(hashes))
        for each in hashes:
            self._insert(each)
        return self

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes, whatever they are: a view, or a copy of a mutable buffer."""
        geometry, data = leveldb.decode(buffer)
        return cls(geometry, data, None)

    def to_bytes(self) -> bytes:
        """The filter as LevelDB stores it."""
        return bytes(self._data)

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        return self._probe(leveldb_hash(key if type(key) is bytes else key_bytes(key)))

    @property
    def num_bits(self) -> int:
        """The length of the bit array."""
        return self._bits

    @property
    def num_probes(self) -> int:
        """How many bits a key sets, as the last byte says; above 30 every key may be there."""
        return self._num_probes

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        if not self._bits:
            return 0.0
        return int.from_bytes(self._data[:-1], "little").bit_count() / self._bits

    def _measure_fpr(self) -> float:
        if not self._bits:
            return 0.0
        if not 1 <= self._num_probes <= leveldb.MAX_PROBES:
            return 1.0
        fill = self.fill
        if fill == 0:
            return 0.0
        geometry = leveldb.Geometry(self._bits, self._num_probes)
        return hit_rate(self._probe) or leveldb.floor_fpr(fill, geometry)

    def _might_contain_digest(self, digest: int) -> bool:
        return self._probe(digest)

    def _probe(self, hashed: int) -> bool:
        bits, data = self._bits, self._data
        if not bits:
            return False
        if self._num_probes > leveldb.MAX_PROBES:
            return True
        step = hashed >> 17 | hashed << 15 & 0xFFFF_FFFF
        for _ in range(self._num_probes):
            position = hashed % bits
            if not data[position >> 3] >> (position & 7) & 1:
                return False
            hashed = hashed + step & 0xFFFF_FFFF
        return True

    def _insert(self, hashed: int) -> None:
        bits, data = self._bits, self._data
        step = hashed >> 17 | hashed << 15 & 0xFFFF_FFFF
        for _ in range(self._num_probes):
            position = hashed % bits
            data[position >> 3] |= 1 << (position & 7)
            hashed = hashed + step & 0xFFFF_FFFF
