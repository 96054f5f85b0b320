"""What the filters share whose sets are peeled: everything but where a key's three slots are."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from filters.columns import one_by_one
from filters.header import Header
from filters.kernels.python import peeling
from filters.kernels.python.base import SaltedFilter, salted
from filters.peeled import Shard
from filters.sizing_parameters import SizingParameter

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class Layout(Protocol):
    """What ``filters/binary_fuse.py`` and ``xor.py`` say about their family."""

    @property
    def check(self) -> Callable[..., SizingParameter]:
        """The one sizing parameter that keyword arguments give."""

    @property
    def fingerprint_bits_for(self) -> Callable[[SizingParameter], int]:
        """How many bits a fingerprint has: 8 or 16."""

    @property
    def shard_count(self) -> Callable[[int], int]:
        """How many shards so many keys are cut into."""

    @property
    def payload_of(self) -> Callable[[list[Any]], bytes]:
        """Directory and fingerprints of all shards."""

    @property
    def decode(self) -> Callable[[Buffer], tuple[Header, list[Any], memoryview]]:
        """Header, shards and payload of a filter's bytes, validated."""


class PeeledFilter(SaltedFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    __slots__ = ("_fingerprint_bits", "_shard_bits", "_shards")
    layout: ClassVar[Layout]

    def __init__(
        self,
        shards: list[Shard[Any]],
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
        keys: Iterable[Key] | Digests,
        *,
        fingerprint_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys."""
        sizing = cls.layout.check(
            fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr
        )
        width = cls.layout.fingerprint_bits_for(sizing)
        mixed, seed, salt = salted(one_by_one(keys, nulls), seed, salt)
        parts = cut(mixed, cls.layout.shard_count(len(mixed)))
        shards = [cls._build_shard(part, width) for part in parts]
        payload = memoryview(cls.layout.payload_of(shards))
        return cls(shards, width, seed=seed, salt=salt, num_keys=len(mixed), payload=payload)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, shards, payload = cls.layout.decode(buffer)
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
        """How many bits a fingerprint has: 8 or 16."""
        return self._fingerprint_bits

    @property
    def num_shards(self) -> int:
        """How many parts the set was cut into; few keys are not cut."""
        return len(self._shards)

    @property
    def fill(self) -> float:
        """The share of slots in use, which is nearly the keys' share of the slots."""
        slots: int = sum(shard.geometry.slots for shard in self._shards)
        return self._num_keys / slots

    @property
    def expected_fpr(self) -> float:
        """One in 2^fingerprint_bits, whatever the size; nothing in an empty set."""
        return 2.0**-self._fingerprint_bits if self._num_keys else 0.0

    @staticmethod
    @abstractmethod
    def _build_shard(mixed: Sequence[int], fingerprint_bits: int) -> Shard[Any]:
        """The shard of ascending distinct salted digests."""

    @staticmethod
    @abstractmethod
    def _slots_of(value: int, geometry: Any) -> tuple[int, int, int]:
        """The three slots of a hash."""

    def _probe(self, mixed: int) -> bool:
        if not self._num_keys:
            return False
        shard = self._shards[mixed >> 64 - self._shard_bits]
        value = peeling.rehash(mixed, shard.seed)
        one, two, three = (
            self._slot(shard, slot) for slot in self._slots_of(value, shard.geometry)
        )
        return one ^ two ^ three == peeling.fingerprint_of(value, self._fingerprint_bits)

    def _slot(self, shard: Shard[Any], slot: int) -> int:
        if self._fingerprint_bits == 8:
            return shard.fingerprints[slot]
        return shard.fingerprints[2 * slot] | shard.fingerprints[2 * slot + 1] << 8


def cut(mixed: Sequence[int], shards: int) -> list[Sequence[int]]:
    """The shards of ascending salted digests: equal top bits stay together."""
    bounds = [bisect_left(mixed, (shard << 64) // shards) for shard in range(shards + 1)]
    return [mixed[start:stop] for start, stop in pairwise(bounds)]
