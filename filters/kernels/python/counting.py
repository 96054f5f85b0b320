"""The counting Bloom filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from filters import counting, unions
from filters.columns import one_by_one
from filters.counting import STUCK
from filters.hashing import digest, mix
from filters.kernels.python.bloom import BloomFilter, Layout
from filters.kernels.python.chain import positions
from filters.kernels.python.classic import ClassicBloomFilter

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class CountingBloomFilter(BloomFilter):
    """A Bloom filter that keys can be removed from; sized by ``counters_per_key`` or ``fpr``.

    Every ``add`` counts, of one key too, and each is to be removed again. Remove only what was
    added: removing a false positive takes counts away from other keys, which then may be denied.
    """

    __slots__ = ()
    family = counting.FAMILY
    layout: ClassVar[Layout] = counting

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        counters_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys, each counted once and sized for the distinct ones."""
        return cls._build(
            one_by_one(keys, nulls),
            seed,
            salt,
            counters_per_key=counters_per_key,
            fpr=fpr,
            num_probes=num_probes,
        )

    @classmethod
    def with_capacity(
        cls,
        num_keys: int | None = None,
        *,
        like: Self | None = None,
        counters_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt.

        A UserWarning tells once who adds more than that. A filter's bytes do not hold the number,
        so one that was opened or unpickled tells nobody.
        """
        given = {"counters_per_key": counters_per_key, "fpr": fpr, "num_probes": num_probes}
        return cls._with_capacity(num_keys, like, seed, salt, **given)

    def add(self, key: Key) -> bool:
        """Add one copy of a key; True if the filter did not answer "maybe" to it before."""
        new = self._add(key)
        self._check_capacity()
        return new

    def _add(self, key: Key) -> bool:
        new = self._insert(mix(digest(key, self._seed), self._salt))
        self._num_keys += 1
        return new

    def remove(self, key: Key) -> bool:
        """Remove one copy; False, and no change, for a key that is surely not in."""
        mixed = mix(digest(key, self._seed), self._salt)
        if not self._probe(mixed):
            return False
        for position in self._positions(mixed):
            count = self._count(position)
            if count != STUCK:
                self._set(position, count - 1)
        self._num_keys = max(0, self._num_keys - 1)
        return True

    def union(self, *others: Self) -> Self:
        """A filter of the keys of all, with their counts added; they must agree as elsewhere."""
        return super().union(*others)

    def _keys_of_union(self, counts: Sequence[int]) -> int:
        return unions.added(counts)

    def collapse(self) -> ClassicBloomFilter:
        """The classic filter of the same keys: a bit where a counter is not zero.

        This is what a table stores, since tables never delete.
        """
        bits = bytearray(-(-self._geometry.size // 8))
        for index, pair in enumerate(self._payload):
            both = (pair & 0x0F != 0) | (pair & 0xF0 != 0) << 1
            bits[index >> 2] |= both << 2 * (index & 3)
        return ClassicBloomFilter(
            self._geometry,
            seed=self._seed,
            salt=self._salt,
            num_keys=self._num_keys,
            payload=bits,
        )

    @property
    def num_counters(self) -> int:
        """The length of the counter array."""
        return self._geometry.size

    @property
    def fill(self) -> float:
        """The share of counters that are not zero."""
        return self.collapse().fill

    @property
    def expected_fpr(self) -> float:
        """The rate of independent probes: fill^num_probes."""
        return self.collapse().expected_fpr

    def _positions(self, mixed: int) -> set[int]:
        # As a set: a position that comes twice is raised once, so that removing undoes adding.
        return set(positions(mixed, self._geometry.size, self._geometry.num_probes))

    def _count(self, position: int) -> int:
        return self._payload[position >> 1] >> 4 * (position & 1) & 0x0F

    def _set(self, position: int, count: int) -> None:
        payload = self._own()
        shift = 4 * (position & 1)
        payload[position >> 1] = payload[position >> 1] & ~(0x0F << shift) | count << shift

    def _probe(self, mixed: int) -> bool:
        probes = positions(mixed, self._geometry.size, self._geometry.num_probes)
        return all(self._count(position) for position in probes)

    def _insert(self, mixed: int) -> bool:
        new = False
        for position in self._positions(mixed):
            count = self._count(position)
            new |= count == 0
            self._set(position, min(STUCK, count + 1))
        return new

    def _united(self, other: Self) -> bytearray:
        return bytearray(
            min(STUCK, (one & 0x0F) + (two & 0x0F)) | min(STUCK, (one >> 4) + (two >> 4)) << 4
            for one, two in zip(self._payload, other._payload, strict=True)
        )
