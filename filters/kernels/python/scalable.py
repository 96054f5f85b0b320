"""The scalable Bloom filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from filters import header, scalable
from filters.classic import Geometry
from filters.columns import one_by_one
from filters.digest_kinds import XXH3
from filters.hashing import checked64, digest, mix, next_salt
from filters.kernels.python.base import SeededFilter
from filters.kernels.python.chain import positions
from filters.kernels.python.classic import ClassicBloomFilter
from filters.kernels.python.digests import digests_of
from filters.scalable import Chain, Terms
from filters.sizing_parameters import check_like, checked_capacity

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class ScalableBloomFilter(SeededFilter):
    """A Bloom filter that grows with its keys, and never exceeds ``fpr``, however many come.

    ``tightening`` (0.5 to 0.95) is how much lower each new slice's rate is than the one before,
    ``growth`` (2 or 4) how much larger it is.
    """

    __slots__ = ("_room", "_slices", "_terms")
    family = scalable.FAMILY

    def __init__(self, terms: Terms, slices: list[Slice], *, seed: int, num_keys: int = 0):
        """For kernels; users call ``build``, ``with_capacity`` or ``from_bytes``."""
        super().__init__(seed=seed, num_keys=num_keys)
        self._terms = terms
        self._slices = slices
        self._room: int | None = None  # bits that may still be set in the newest; counted once

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        fpr: float | None = None,
        tightening: float | None = None,
        growth: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of these keys in one slice, sized for how many distinct ones there are."""
        terms = scalable.check(fpr=fpr, tightening=tightening, growth=growth)
        digests, seed = digests_of(one_by_one(keys, nulls), XXH3, seed)
        distinct = set(digests)
        self = cls._begun(terms.built(len(distinct)), None, seed, checked64("salt", salt))
        for each in distinct:
            self._slices[0].put(each)
        self._num_keys = len(distinct)
        return self

    @classmethod
    def with_capacity(
        cls,
        num_keys: int | None = None,
        *,
        like: Self | None = None,
        fpr: float | None = None,
        tightening: float | None = None,
        growth: int | None = None,
        seed: int | None = None,
        salt: int | None = None,
    ) -> Self:
        """An empty filter whose first slice has room for so many keys (1024), or another one's."""
        others = {"fpr": fpr, "tightening": tightening, "growth": growth, "seed": seed}
        if like is not None:
            check_like(cls, like, num_keys=num_keys, salt=salt, **others)
            first = like._slices[0]
            return cls._begun(like._terms, first.geometry, like._seed, first.salt)
        terms = scalable.check(fpr=fpr, tightening=tightening, growth=growth)
        if num_keys is None:
            num_keys = scalable.DEFAULT_CAPACITY
        terms = terms.begun(checked_capacity(num_keys))
        return cls._begun(terms, None, checked64("seed", seed), checked64("salt", salt))

    @classmethod
    def _begun(cls, terms: Terms, geometry: Geometry | None, seed: int, salt: int) -> Self:
        begun = Slice(geometry or scalable.first(terms), seed=seed, salt=salt)
        return cls(terms, [begun], seed=seed)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, chain, arrays = scalable.decode(buffer)
        slices, salt = [], head.salt
        for geometry, bits in zip(chain.slices, arrays, strict=True):
            slices.append(Slice(geometry, seed=head.seed, salt=salt, payload=bits))
            salt = next_salt(salt)
        return cls(chain.terms, slices, seed=head.seed, num_keys=head.num_keys)

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        slices = tuple(self._slices)  # somebody may add one while they are written
        head = header.Header(
            self.family,
            self._terms.growth,
            len(slices),
            self._num_keys,
            seed=self._seed,
            salt=slices[0].salt,
        )
        arrays = (each.array for each in slices)
        geometries = [each.geometry for each in slices]
        return header.pack(head, scalable.head_of(self._terms, geometries), *arrays)

    def add(self, key: Key) -> bool:
        """Add a key; True if the filter did not answer "maybe" to it before.

        CapacityError, and no change, where the filter is full and may not grow any longer.
        """
        number = digest(key, self._seed)
        room = self._own()
        if self._might_contain_digest(number):
            return False
        if room < self._slices[-1].num_probes:
            room = self._grow()
        self._room = room - self._slices[-1].put(number)
        self._num_keys += 1
        return True

    def add_many(self, keys: Iterable[Key], *, nulls: Nulls = "error") -> None:
        """Add many keys; on an error those before it are in."""
        for key in one_by_one(keys, nulls):
            self.add(key)

    def update(self, *iterables: Iterable[Key], nulls: Nulls = "error") -> None:
        """Add the keys of each, as ``add_many`` does; on an error those before it are in."""
        for each in iterables:
            self.add_many(each, nulls=nulls)

    def clear(self) -> None:
        """Take out all keys and all slices but the first; ``fpr``, the seed and the salt stay."""
        first = self._slices[0]
        begun = Slice(first.geometry, seed=self._seed, salt=first.salt)
        self._slices, self._room, self._num_keys = [begun], None, 0

    def copy(self) -> Self:
        """A filter of the same keys, slices, seed and salt, which goes its own way."""
        slices = [each.copy() for each in self._slices]
        return type(self)(self._terms, slices, seed=self._seed, num_keys=self._num_keys)

    @property
    def num_slices(self) -> int:
        """How many slices there are."""
        return len(self._slices)

    @property
    def capacity(self) -> int:
        """About how many keys the slices there are have room for."""
        return scalable.capacity(self._terms, len(self._slices))

    @property
    def fpr(self) -> float:
        """The rate that was asked for, which no number of keys exceeds."""
        return self._terms.fpr

    @property
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + scalable.payload_bytes(Chain(self._terms, self._geometries))

    @property
    def fill(self) -> float:
        """The share of all slices' bits that are set."""
        return self._fill_and_fpr()[0]

    @property
    def expected_fpr(self) -> float:
        """The chance that any slice passes an absent key, fill^num_probes each."""
        return self._fill_and_fpr()[1]

    @property
    def _geometries(self) -> tuple[Geometry, ...]:
        return tuple(each.geometry for each in self._slices)

    def _fill_and_fpr(self) -> tuple[float, float]:
        return scalable.fill_and_fpr(self._geometries, [each.bits_set for each in self._slices])

    def _might_contain_digest(self, digest: int) -> bool:
        # The newest slice first: it has half of all keys, and the one before it half of the rest.
        return any(each._might_contain_digest(digest) for each in reversed(self._slices))

    def _own(self) -> int:
        """How many bits may yet be set in the newest slice; at first, views are copied."""
        if self._room is None:
            for each in self._slices:
                each._own()
            newest = self._slices[-1]
            limit = self._terms.limit_of(len(self._slices) - 1, newest.geometry)
            self._room = limit - newest.bits_set
        return self._room

    def _grow(self) -> int:
        geometry = scalable.following(self._terms, self._geometries)
        salt = next_salt(self._slices[-1].salt)
        self._slices.append(Slice(geometry, seed=self._seed, salt=salt))
        self._room = None
        return self._own()


class Slice(ClassicBloomFilter):
    """One link of the chain."""

    __slots__ = ()

    def put(self, digest: int) -> int:
        """Set a key's bits; how many of them were not set."""
        array = self._own()
        fresh = 0
        for position in positions(mix(digest, self._salt), self.num_bits, self.num_probes):
            bit = 1 << (position & 7)
            if not array[position >> 3] & bit:
                array[position >> 3] |= bit
                fresh += 1
        return fresh

    @property
    def geometry(self) -> Geometry:
        """How many bits there are, and how many a key sets."""
        return Geometry(self.num_bits, self.num_probes)

    @property
    def salt(self) -> int:
        """What the digests of keys are mixed with here."""
        return self._salt

    @property
    def array(self) -> memoryview | bytearray:
        """The bits, as the payload has them."""
        return self._payload

    @property
    def bits_set(self) -> int:
        """How many bits are set."""
        return int.from_bytes(self._payload, "little").bit_count()
