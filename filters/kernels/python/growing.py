"""What the filters share that keys are added to, and that never change their size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from filters import over_filling
from filters.columns import one_by_one
from filters.hashing import checked64
from filters.header import Header
from filters.kernels.python.base import SaltedFilter
from filters.sizing_parameters import SizingParameter, check_like, checked_capacity

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key


class Layout(Protocol):
    """What ``filters/cuckoo.py`` and the pages of Bloom filters say about their family."""

    @property
    def check(self) -> Callable[..., SizingParameter]:
        """The one sizing parameter that keyword arguments give."""

    @property
    def payload_bytes(self) -> Callable[[Any], int]:
        """The size of a geometry."""

    @property
    def decode(self) -> Callable[[Buffer], tuple[Header, Any, memoryview]]:
        """Header, geometry and payload of a filter's bytes, validated."""


class GrowingFilter(SaltedFilter):
    """A filter of fixed geometry, planned for a number of keys; these may be added later."""

    __slots__ = ("_capacity", "_geometry", "_most_keys")
    layout: ClassVar[Layout]
    _geometry: Any
    _capacity: int
    _most_keys: int  # past which somebody is told; UNLIMITED once that is done

    def __init__(
        self,
        geometry: Any,
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
        self._capacity = self._most_keys = over_filling.UNLIMITED

    @classmethod
    @abstractmethod
    def _planner(cls, **given: Any) -> Callable[[int], Any]:
        """A function from a number of keys to the geometry that the sizing parameters give."""

    @classmethod
    def _with_capacity(
        cls,
        num_keys: int | None,
        like: Self | None,
        seed: int | None,
        salt: int | None,
        **given: float | None,
    ) -> Self:
        if like is not None:
            check_like(cls, like, num_keys=num_keys, seed=seed, salt=salt, **given)
            self = cls(like._geometry, seed=like._seed, salt=like._salt)
            self._capacity = like._capacity
        else:
            plan = cls._planner(**given)
            capacity = checked_capacity(num_keys)
            geometry = plan(capacity)
            self = cls(geometry, seed=checked64("seed", seed), salt=checked64("salt", salt))
            self._capacity = capacity
        self._most_keys = over_filling.limit(self.family, self._capacity)
        return self

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, geometry, payload = cls.layout.decode(buffer)
        return cls(
            geometry, seed=head.seed, salt=head.salt, num_keys=head.num_keys, payload=payload
        )

    @abstractmethod
    def add(self, key: Key) -> bool | None:
        """Add a key; what is returned is the family's own."""

    def add_many(self, keys: Iterable[Key], *, nulls: Nulls = "error") -> None:
        """Add many keys; on an error those before it are in."""
        for key in one_by_one(keys, nulls):
            self._add(key)
        self._check_capacity()

    def update(self, *iterables: Iterable[Key], nulls: Nulls = "error") -> None:
        """Add the keys of each, as ``add_many`` does; on an error those before it are in."""
        for each in iterables:
            self.add_many(each, nulls=nulls)

    def clear(self) -> None:
        """Take out all keys; the size, the seed and the salt stay."""
        self._payload, self._num_keys = bytearray(len(self._payload)), 0

    def copy(self) -> Self:
        """A filter of the same keys, size, seed and salt, which goes its own way."""
        copied = type(self)(
            self._geometry,
            seed=self._seed,
            salt=self._salt,
            num_keys=self._num_keys,
            payload=bytearray(self._payload),
        )
        copied._capacity, copied._most_keys = self._capacity, self._most_keys
        return copied

    @abstractmethod
    def _add(self, key: Key) -> bool | None:
        """Add a key, however many there are."""

    def _check_capacity(self) -> None:
        if self._num_keys > self._most_keys:
            self._most_keys = over_filling.UNLIMITED
            over_filling.warn(self.family, self._capacity, self._num_keys)
