"""What the Bloom filters of our own share: everything but where a key's bits are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from filters import over_filling, unions
from filters.columns import one_by_one
from filters.errors import GeometryMismatchError
from filters.hashing import digest, mix
from filters.kernels.python import growing
from filters.kernels.python.base import salted
from filters.kernels.python.growing import GrowingFilter
from filters.sizing_parameters import SizingParameter

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class Geometry(Protocol):
    """How large an array is, and how many of its bits or counters a key takes."""

    @property
    def size(self) -> int:
        """As the header stores it."""

    @property
    def num_probes(self) -> int:
        """How many bits or counters a key takes."""


class Layout(growing.Layout, Protocol):
    """What ``filters/classic.py``, ``counting.py`` and ``blocked.py`` say about their family."""

    @property
    def plan(self) -> Callable[[int, SizingParameter, int | None], Geometry]:
        """The geometry for a number of keys, a sizing parameter and maybe a number of probes."""

    @property
    def count_from_fill(self) -> Callable[[float, Any], float]:
        """The number of keys that a fill of a geometry suggests."""


class BloomFilter(GrowingFilter):
    """A Bloom filter of bits or counters; keys can be added at any time."""

    __slots__ = ()
    layout: ClassVar[Layout]
    _geometry: Geometry

    @classmethod
    def _planner(cls, *, num_probes: int | None = None, **given: Any) -> Callable[[int], Geometry]:
        sizing = cls.layout.check(num_probes=num_probes, **given)
        return lambda num_keys: cls.layout.plan(num_keys, sizing, num_probes)

    @classmethod
    def _build(
        cls, keys: Iterable[Key] | Digests, seed: int | None, salt: int | None, **given: Any
    ) -> Self:
        plan = cls._planner(**given)
        mixed, seed, salt = salted(keys, seed, salt)
        self = cls(plan(len(mixed)), seed=seed, salt=salt)
        for each in mixed:
            self._insert(each)
        self._num_keys = len(mixed)
        return self

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self._pack(parameter=self._geometry.num_probes, size=self._geometry.size)

    def add(self, key: Key) -> bool:
        """Add a key; True if the filter did not answer "maybe" to it before."""
        new = self._add(key)
        self._check_capacity()
        return new

    def _add(self, key: Key) -> bool:
        new = self._insert(mix(digest(key, self._seed), self._salt))
        self._num_keys += new
        return new

    def union(self, *others: Self) -> Self:
        """A filter of the keys of all; they must agree in geometry, seed and salt.

        ``num_keys`` is estimated from the fill, between the largest count and the sum, so that one
        call gives the same bytes in any order. Without others it is a copy.
        """
        self._check_alike(others)
        union = self.copy()
        for other in others:
            union._payload = union._united(other)
        union._count_united([self._num_keys, *(other._num_keys for other in others)])
        return union

    def __or__(self, other: Self) -> Self:
        """The union of two; of more than two, ``union`` makes one in a single call."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self.union(other)

    def __ior__(self, other: Self) -> Self:
        """Add the keys of another filter, as ``union`` does; on an error nothing is changed."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        self._check_alike((other,))
        counts = [self._num_keys, other._num_keys]
        self._payload = self._united(other)
        self._count_united(counts)
        return self

    @abstractmethod
    def _united(self, other: Self) -> bytearray:
        """The payload of the union."""

    def _count_united(self, counts: Sequence[int]) -> None:
        """Find out how many keys there are, once the payload is that of filters of so many."""
        self._num_keys = unions.added(counts)
        self._num_keys = self._keys_of_union(counts)
        if self._num_keys > over_filling.limit_of_union(self._most_keys):
            self._check_capacity()
        else:
            self._most_keys = max(self._most_keys, self._num_keys)

    def _keys_of_union(self, counts: Sequence[int]) -> int:
        estimate = self.layout.count_from_fill(self.fill, self._geometry)
        return unions.distinct(estimate, counts)

    def _check_alike(self, others: tuple[Self, ...]) -> None:
        for other in others:
            if not isinstance(other, BloomFilter):
                raise TypeError(f"union takes a {self.family} filter, not {type(other).__name__}")
            self._check_one_alike(other)

    def _check_one_alike(self, other: Self) -> None:
        for name, mine, theirs in (
            ("family", self.family, other.family),
            ("size", self._geometry.size, other._geometry.size),
            ("num_probes", self._geometry.num_probes, other._geometry.num_probes),
            ("seed", self._seed, other._seed),
            ("salt", self._salt, other._salt),
        ):
            if mine != theirs:
                raise GeometryMismatchError(
                    f"a {self.family} filter can be united only with one of equal {name}: "
                    "create the second one with_capacity(like=first)"
                )

    @property
    def num_probes(self) -> int:
        """How many bits or counters a key takes."""
        return self._geometry.num_probes

    @abstractmethod
    def _insert(self, mixed: int) -> bool:
        """Insert a salted digest; True if a bit or counter of it was zero."""


class BitFilter(BloomFilter):
    """A Bloom filter of bits: its size is asked for in bits per key."""

    __slots__ = ()

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys, sized for how many distinct ones there are."""
        return cls._build(
            one_by_one(keys, nulls),
            seed,
            salt,
            bits_per_key=bits_per_key,
            fpr=fpr,
            num_probes=num_probes,
        )

    @classmethod
    def with_capacity(
        cls,
        num_keys: int | None = None,
        *,
        like: Self | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt.

        A UserWarning tells once who adds more than that. A filter's bytes do not hold the number,
        so one that was opened or unpickled tells nobody.
        """
        return cls._with_capacity(
            num_keys, like, seed, salt, bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes
        )

    @property
    @abstractmethod
    def num_bits(self) -> int:
        """The length of the bit array."""

    @property
    def fill(self) -> float:
        """The share of bits that are set."""
        return int.from_bytes(self._payload, "little").bit_count() / self.num_bits

    def _united(self, other: Self) -> bytearray:
        both = int.from_bytes(self._payload, "little") | int.from_bytes(other._payload, "little")
        return bytearray(both.to_bytes(len(self._payload), "little"))
