"""The binary fuse filter, built and probed in Python."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Self

from filters import binary_fuse
from filters.binary_fuse import Geometry, Shard
from filters.kernels import fuse_library
from filters.kernels.python import peeling
from filters.kernels.python.base import SaltedFilter, salted

if TYPE_CHECKING:
    from typing_extensions import Buffer

Populate = Callable[[Sequence[int], Geometry, int], Shard | None]


class BinaryFuseFilter(SaltedFilter):
    """A static filter; wishes are ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    __slots__ = ("_fingerprint_bits", "_shard_bits", "_shards")
    family = binary_fuse.FAMILY

    def __init__(
        self,
        shards: list[Shard],
        fingerprint_bits: int,
        *,
        seed: int,
        salt: int,
        num_keys: int,
        payload: memoryview,
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        super().__init__(seed=seed, salt=salt, num_keys=num_keys, payload=payload)
        self._shards = shards
        self._shard_bits = len(shards).bit_length() - 1
        self._fingerprint_bits = fingerprint_bits

    @classmethod
    def build(
        cls,
        keys: Iterable[Buffer],
        *,
        fingerprint_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """A filter of exactly these keys.

        The pyfusefilter library does the construction where it is installed, Python where it is
        not; the bytes are the same.
        """
        wish = binary_fuse.check(
            fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr
        )
        width = binary_fuse.fingerprint_bits_for(wish)
        mixed, seed, salt = salted(keys, seed, salt)
        shards = [build_shard(part, width) for part in cut(mixed)]
        payload = memoryview(binary_fuse.payload_of(shards))
        return cls(shards, width, seed=seed, salt=salt, num_keys=len(mixed), payload=payload)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, shards, payload = binary_fuse.decode(buffer)
        return cls(
            shards,
            head.parameter,
            seed=head.seed,
            salt=head.salt,
            num_keys=head.num_keys,
            payload=payload,
        )

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self._pack(parameter=self._fingerprint_bits, size=len(self._shards))

    @property
    def fingerprint_bits(self) -> int:
        """8 or 16."""
        return self._fingerprint_bits

    @property
    def num_shards(self) -> int:
        """How many parts the set was cut into: one up to a million keys."""
        return len(self._shards)

    @property
    def fill(self) -> float:
        """The share of slots in use, which is nearly the keys' share of the slots."""
        return self._num_keys / sum(shard.geometry.slots for shard in self._shards)

    @property
    def expected_fpr(self) -> float:
        """One in 2^fingerprint_bits, whatever the size; nothing in an empty set."""
        return 2.0**-self._fingerprint_bits if self._num_keys else 0.0

    def _probe(self, mixed: int) -> bool:
        if not self._num_keys:
            return False
        shard = self._shards[mixed >> 64 - self._shard_bits]
        value = peeling.rehash(mixed, shard.seed)
        one, two, three = (
            self._slot(shard, slot) for slot in peeling.slots_of(value, shard.geometry)
        )
        return one ^ two ^ three == peeling.fingerprint_of(value, self._fingerprint_bits)

    def _slot(self, shard: Shard, slot: int) -> int:
        if self._fingerprint_bits == 8:
            return shard.fingerprints[slot]
        return shard.fingerprints[2 * slot] | shard.fingerprints[2 * slot + 1] << 8


def cut(mixed: Sequence[int]) -> list[Sequence[int]]:
    """The shards of ascending salted digests: equal top bits stay together."""
    shards = binary_fuse.shard_count(len(mixed))
    bounds = [bisect_left(mixed, (shard << 64) // shards) for shard in range(shards + 1)]
    return [mixed[start:stop] for start, stop in pairwise(bounds)]


def build_shard(
    mixed: Sequence[int], fingerprint_bits: int, populate: Populate | None = None
) -> Shard:
    """The shard of ascending distinct salted digests, in the first geometry that peels them."""
    if populate is None:
        populate = peeling.populate if fuse_library.why_not() else fuse_library.populate
    return binary_fuse.build_shard(
        len(mixed), lambda geometry: populate(mixed, geometry, fingerprint_bits)
    )
