"""The cuckoo filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from filters import cuckoo
from filters.columns import one_by_one
from filters.cuckoo import MAX_KICKS, MAX_KICKS_IN_BUILD, SLOTS
from filters.digest_kinds import XXH3
from filters.errors import CapacityError
from filters.hashing import MASK64, checked64, digest, mix, next_salt
from filters.kernels.python.digests import digests_of
from filters.kernels.python.growing import GrowingFilter, Layout

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests

# Knuth's 64-bit linear congruential generator (MMIX): which slot an eviction empties. It starts
# from the key's own salted digest, so that a table depends on its keys and salt alone.
_MULTIPLIER = 6364136223846793005
_INCREMENT = 1442695040888963407


class CuckooFilter(GrowingFilter):
    """Fingerprints in a cuckoo table; sized by ``fingerprint_bits``, ``bits_per_key`` or ``fpr``.

    Every ``add`` keeps a copy of its own, of one key too, and each is to be removed again; one
    key's two buckets hold at most 8. Remove only what was added: removing a false positive takes
    away the fingerprint of another key, which then may be denied.
    """

    __slots__ = ("_bucket_bits", "_bucket_mask", "_slot_mask")
    family = cuckoo.FAMILY
    layout: ClassVar[Layout] = cuckoo
    _geometry: cuckoo.Geometry

    def __init__(
        self,
        geometry: cuckoo.Geometry,
        *,
        seed: int,
        salt: int,
        num_keys: int = 0,
        payload: memoryview | bytearray | None = None,
    ):
        """For kernels; users call ``build``, ``with_capacity`` or ``from_bytes``."""
        super().__init__(geometry, seed=seed, salt=salt, num_keys=num_keys, payload=payload)
        self._slot_mask = (1 << geometry.fingerprint_bits) - 1
        self._bucket_bits = SLOTS * geometry.fingerprint_bits
        self._bucket_mask = (1 << self._bucket_bits) - 1

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        fingerprint_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys, one copy of each.

        Where the keys do not fit under a salt, which is rare, the table grows by a percent and is
        filled anew under another one.
        """
        plan = cls._planner(fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr)
        digests, seed = digests_of(one_by_one(keys, nulls), XXH3, seed)
        salt = checked64("salt", salt)
        geometry = None
        while True:
            mixed = sorted({mix(each, salt) for each in digests})
            geometry = geometry or plan(len(mixed))
            self = cls(geometry, seed=seed, salt=salt)
            if all(self._insert(each, MAX_KICKS_IN_BUILD) for each in mixed):
                return self
            geometry, salt = geometry.grown(), next_salt(salt)

    @classmethod
    def with_capacity(
        cls,
        num_keys: int | None = None,
        *,
        like: Self | None = None,
        fingerprint_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt."""
        given = {"fingerprint_bits": fingerprint_bits, "bits_per_key": bits_per_key, "fpr": fpr}
        return cls._with_capacity(num_keys, like, seed, salt, **given)

    @classmethod
    def _planner(cls, **given: Any) -> Callable[[int], cuckoo.Geometry]:
        sizing = cuckoo.check(**given)
        return lambda num_keys: cuckoo.plan(num_keys, sizing)

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self._pack(parameter=self.fingerprint_bits, size=self.num_buckets)

    def add(self, key: Key) -> None:
        """Add one copy of a key; CapacityError, and no change, where it finds no slot."""
        self._add(key)

    def _add(self, key: Key) -> None:
        mixed = mix(digest(key, self._seed), self._salt)
        # Bytes may claim more keys than their slots hold, and nobody could read what had grown on.
        is_full = self._num_keys >= self._geometry.slots
        if is_full or not self._insert(mixed, MAX_KICKS):
            raise CapacityError(
                f"cuckoo filter with {self._num_keys} of {self._geometry.slots} slots in use finds "
                f"no slot for this key within {MAX_KICKS} evictions, or holds it 8 times: build a "
                "larger one, and add a key once"
            )

    def remove(self, key: Key) -> bool:
        """Remove one copy; False, and no change, for a key that is surely not in."""
        fingerprint, bucket = self._locate(mix(digest(key, self._seed), self._salt))
        for candidate in (bucket, self._alternate(bucket, fingerprint)):
            lanes = list(self._lanes(candidate))
            if fingerprint in lanes:
                self._store(candidate, lanes.index(fingerprint), 0)
                self._num_keys = max(0, self._num_keys - 1)
                return True
        return False

    @property
    def num_buckets(self) -> int:
        """How many buckets of four slots there are."""
        return self._geometry.buckets

    @property
    def fingerprint_bits(self) -> int:
        """How many bits a slot has."""
        return self._geometry.fingerprint_bits

    @property
    def fill(self) -> float:
        """The share of slots in use."""
        return self._num_keys / self._geometry.slots

    @property
    def expected_fpr(self) -> float:
        """The chance that an absent key's fingerprint is among those in its two buckets."""
        return cuckoo.predicted_fpr(self._num_keys, self._geometry)

    def _locate(self, mixed: int) -> tuple[int, int]:
        """Fingerprint (from the low 32 bits, never 0) and first bucket (from the high ones)."""
        fingerprint = 1 + ((mixed & 0xFFFF_FFFF) * self._slot_mask >> 32)
        return fingerprint, mixed * self._geometry.buckets >> 64

    def _alternate(self, bucket: int, fingerprint: int) -> int:
        return alternate(bucket, fingerprint, self._geometry.buckets, self._salt)

    def _probe(self, mixed: int) -> bool:
        fingerprint, bucket = self._locate(mixed)
        return fingerprint in self._lanes(bucket) or fingerprint in self._lanes(
            self._alternate(bucket, fingerprint)
        )

    def _insert(self, mixed: int, max_kicks: int) -> bool:
        """Store a copy; False, and no change, where ``max_kicks`` evictions free no slot for it."""
        fingerprint, bucket = self._locate(mixed)
        other = self._alternate(bucket, fingerprint)
        stored = self._place(bucket, fingerprint) or self._place(other, fingerprint)
        if not stored:
            stored = self._evict(mixed, fingerprint, (bucket, other), max_kicks)
        self._num_keys += stored
        return stored

    def _evict(self, state: int, fingerprint: int, buckets: tuple[int, int], kicks: int) -> bool:
        """Walk at random: take a slot, move its fingerprint to its other bucket, and so on."""
        if all(lane == fingerprint for bucket in buckets for lane in self._lanes(bucket)):
            return False
        moved: list[tuple[int, int, int]] = []
        bucket = buckets[state & 1]
        for _ in range(kicks):
            state = (state * _MULTIPLIER + _INCREMENT) & MASK64
            lane = state >> 62
            victim = self._lane(bucket, lane)
            moved.append((bucket, lane, victim))
            self._store(bucket, lane, fingerprint)
            fingerprint = victim
            bucket = self._alternate(bucket, fingerprint)
            if self._place(bucket, fingerprint):
                return True
        for bucket, lane, victim in reversed(moved):
            self._store(bucket, lane, victim)
        return False

    def _place(self, bucket: int, fingerprint: int) -> bool:
        """Store in the bucket's first empty slot; False where it has none."""
        for lane, stored in enumerate(self._lanes(bucket)):
            if not stored:
                self._store(bucket, lane, fingerprint)
                return True
        return False

    def _lanes(self, bucket: int) -> Iterator[int]:
        """The four slots of a bucket."""
        start = bucket * self._bucket_bits
        stop = (start + self._bucket_bits + 7) >> 3
        packed = int.from_bytes(self._payload[start >> 3 : stop], "little") >> (start & 7)
        for _ in range(SLOTS):
            yield packed & self._slot_mask
            packed >>= self._geometry.fingerprint_bits

    def _lane(self, bucket: int, lane: int) -> int:
        return next(slot for index, slot in enumerate(self._lanes(bucket)) if index == lane)

    def _store(self, bucket: int, lane: int, fingerprint: int) -> None:
        start = bucket * self._bucket_bits + lane * self._geometry.fingerprint_bits
        stop = (start + self._geometry.fingerprint_bits + 7) >> 3
        payload = self._own()
        packed = int.from_bytes(payload[start >> 3 : stop], "little")
        packed &= ~(self._slot_mask << (start & 7))
        packed |= fingerprint << (start & 7)
        payload[start >> 3 : stop] = packed.to_bytes(stop - (start >> 3), "little")


def alternate(bucket: int, fingerprint: int, buckets: int, salt: int) -> int:
    """The other bucket of a fingerprint: a reflection, so that applied twice it leads back."""
    return ((mix(fingerprint, salt) * buckets >> 64) - bucket) % buckets
