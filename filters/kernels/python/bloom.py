"""What the Bloom filters of our own share: everything but where a key's bits are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from filters.errors import GeometryMismatchError
from filters.hashing import checked64, digest, mix
from filters.header import Header
from filters.kernels.python.base import SaltedFilter, salted
from filters.packed_keys import one_by_one
from filters.sizing_parameters import SizingParameter, check_like, checked_capacity

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Geometry(Protocol):
    """How large an array is, and how many of its bits or counters a key takes."""

    @property
    def size(self) -> int:
        """As the header stores it."""

    @property
    def num_probes(self) -> int:
        """How many bits or counters a key takes."""


class Layout(Protocol):
    """What ``filters/classic.py``, ``counting.py`` and ``blocked.py`` say about their family."""

    @property
    def check(self) -> Callable[..., SizingParameter]:
        """The one sizing parameter that keyword arguments give."""

    @property
    def plan(self) -> Callable[[int, SizingParameter, int | None], Geometry]:
        """The geometry for a number of keys, a sizing parameter and maybe a number of probes."""

    @property
    def payload_bytes(self) -> Callable[[Any], int]:
        """The size of a geometry."""

    @property
    def count_from_fill(self) -> Callable[[float, Any], float]:
        """The number of keys that a fill of a geometry suggests."""

    @property
    def decode(self) -> Callable[[Buffer], tuple[Header, Geometry, memoryview]]:
        """Header, geometry and payload of a filter's bytes, validated."""


class BloomFilter(SaltedFilter):
    """Bits or counters that a key raises and a probe reads; keys can be added at any time."""

    __slots__ = ("_geometry",)
    layout: ClassVar[Layout]

    def __init__(
        self,
        geometry: Geometry,
        *,
        seed: int,
        salt: int,
        num_keys: int = 0,
        payload: memoryview | bytearray | None = None,
    ):
        """For kernels; users call ``build``, ``with_capacity`` or ``from_bytes``."""
        if payload is None:
            payload = bytearray(self.layout.payload_bytes(geometry))
        super().__init__(seed=seed, salt=salt, num_keys=num_keys, payload=payload)
        self._geometry = geometry

    @classmethod
    def _build(
        cls,
        keys: Iterable[Buffer],
        *,
        num_probes: int | None,
        seed: int | None,
        salt: int | None,
        **given: float | None,
    ) -> Self:
        sizing = cls.layout.check(num_probes=num_probes, **given)
        mixed, seed, salt = salted(keys, seed, salt)
        self = cls(cls.layout.plan(len(mixed), sizing, num_probes), seed=seed, salt=salt)
        for each in mixed:
            self._insert(each)
        self._num_keys = len(mixed)
        return self

    @classmethod
    def _with_capacity(
        cls,
        num_keys: int | None,
        like: Self | None,
        *,
        num_probes: int | None,
        seed: int | None,
        salt: int | None,
        **given: float | None,
    ) -> Self:
        others = {"num_probes": num_probes, "seed": seed, "salt": salt, **given}
        if like is not None:
            check_like(cls, like, num_keys=num_keys, **others)
            return cls(like._geometry, seed=like._seed, salt=like._salt)
        sizing = cls.layout.check(num_probes=num_probes, **given)
        geometry = cls.layout.plan(checked_capacity(num_keys), sizing, num_probes)
        return cls(geometry, seed=checked64("seed", seed), salt=checked64("salt", salt))

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, geometry, payload = cls.layout.decode(buffer)
        return cls(
            geometry, seed=head.seed, salt=head.salt, num_keys=head.num_keys, payload=payload
        )

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self._pack(parameter=self._geometry.num_probes, size=self._geometry.size)

    def add(self, key: Buffer) -> bool:
        """Add a key; True if the filter did not answer "maybe" to it before."""
        new = self._insert(mix(digest(key, self._seed), self._salt))
        self._num_keys += new
        return new

    def add_many(self, keys: Iterable[Buffer]) -> None:
        """Add many keys."""
        for key in one_by_one(keys):
            self.add(key)

    def union(self, other: Self) -> Self:
        """A filter of the keys of both; they must agree in geometry, seed and salt.

        ``num_keys`` is estimated from the fill, between the larger count and the sum.
        """
        self._check_alike(other)
        union = type(self)(
            self._geometry, seed=self._seed, salt=self._salt, payload=self._united(other)
        )
        estimate = round(self.layout.count_from_fill(union.fill, self._geometry))
        larger, total = max(self.num_keys, other.num_keys), self.num_keys + other.num_keys
        union._num_keys = max(larger, min(estimate, total))
        return union

    @abstractmethod
    def _united(self, other: Self) -> bytearray:
        """The payload of the union."""

    def _check_alike(self, other: Self) -> None:
        if not isinstance(other, BloomFilter):
            raise TypeError(f"union takes a {self.family} filter, not {type(other).__name__}")
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
        """Add a salted digest; True if that changed a zero."""


class BitFilter(BloomFilter):
    """A Bloom filter of bits: its size is asked for in bits per key."""

    __slots__ = ()

    @classmethod
    def build(
        cls,
        keys: Iterable[Buffer],
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """A filter of exactly these keys, sized for how many distinct ones there are."""
        return cls._build(
            keys, bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes, seed=seed, salt=salt
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
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt."""
        return cls._with_capacity(
            num_keys,
            like,
            bits_per_key=bits_per_key,
            fpr=fpr,
            num_probes=num_probes,
            seed=seed,
            salt=salt,
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
