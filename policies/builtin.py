"""The policies that are built in: one for each family that tables use, and none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

import filters
from filters import (
    binary_fuse,
    blocked,
    bumped_ribbon,
    cassandra,
    classic,
    counting,
    cuckoo,
    leveldb,
    ribbon,
    rocksdb,
    xor,
)
from filters.hashing import checked64, key_bytes
from policies.contract import BuildContext, FilterPolicy, finished
from policies.parameters import parameter_fields

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters import Digests
    from filters.kernels.python.base import Filter


# Families without a policy, for programs only: a table knows how many keys it has, and keeps them.
STRUCTURES = frozenset({"scalable"})


@attrs.frozen(kw_only=True)
class FamilyPolicy(FilterPolicy):
    """A policy over one family of ``filters``.

    The parameters are the family's own and are checked when the policy is made; where no size was
    asked for, the family's default stands in its place. Readers are the family's filter objects.
    """

    takes_views: ClassVar[bool] = True
    family: ClassVar[ModuleType]
    filter_class: ClassVar[Any]  # each takes parameters of its own in build()

    def __attrs_post_init__(self) -> None:
        """Check the parameters, and write down the sizing parameter they come to."""
        given = {field.name: getattr(self, field.name) for field in parameter_fields(type(self))}
        sizing = self.family.check(**given)
        object.__setattr__(self, sizing.name, sizing.value)

    def create_filter(self, keys: Sequence[bytes]) -> bytes | None:
        """The bytes of a filter of these keys, or None where the parameters ask for none."""
        built = self.build(keys)
        return None if built is None else built.to_bytes()

    def new_builder(self, context: BuildContext) -> FamilyBuilder:
        """A builder that also knows how many keys the family counted."""
        return FamilyBuilder(self)

    def build(self, keys: Sequence[bytes] | Digests) -> Filter | None:
        """The filter of these keys, or of their digests."""
        built: Filter = self.filter_class.build(keys, **self.params())
        return built

    def digests(self) -> Digests:
        """An empty collection of digests for ``build``."""
        collection: Digests = self.filter_class.digests()
        return collection

    def open(self, filter: Buffer) -> Filter:
        """The filter in these bytes."""
        opened: Filter = self.filter_class.from_bytes(filter)
        return opened


class FamilyBuilder:
    """Keeps the digests of keys, not the keys, and builds the family's filter of them at the end.

    ``add`` is the collection's own, so that nothing stands between an engine and the hash; after
    ``finish`` there is ``num_keys``, as the family counts.
    """

    __slots__ = ("_policy", "add", "digests", "num_keys")

    def __init__(self, policy: FamilyPolicy):
        self._policy: FamilyPolicy | None = policy
        self.digests = policy.digests()
        self.add: Callable[[bytes], None] = self.digests.add
        self.num_keys: int | None = None

    def finish(self) -> bytes | None:
        """The filter of all keys, or None where the policy declines; once only."""
        if self._policy is None:
            raise finished()
        built = self._policy.build(self.digests)
        self._policy, self.add = None, _add_too_late
        if built is None:
            return None
        self.num_keys = built.num_keys
        return built.to_bytes()


def _add_too_late(key: bytes) -> None:
    raise finished()


def _check_seed(_policy: object, _field: object, seed: int | None) -> None:
    if seed is not None:
        checked64("seed", seed)


@attrs.frozen(kw_only=True)
class SeededPolicy(FamilyPolicy):
    """A policy whose filters hash under a secret seed; every filter draws a salt of its own."""

    seed: int | None = attrs.field(default=None, eq=False, repr=False, validator=_check_seed)

    def build(self, keys: Sequence[bytes] | Digests) -> Filter:
        """The filter of these keys, or of their digests under the seed."""
        built: Filter = self.filter_class.build(keys, seed=self.seed, **self.params())
        return built

    def digests(self) -> Digests:
        """An empty collection of digests for ``build``, under the seed."""
        collection: Digests = self.filter_class.digests(seed=self.seed)
        return collection

    def with_seed(self, seed: int) -> Self:
        """This policy, hashing under this seed."""
        seeded = copy(self)  # not evolve(): the parameters need no second check
        object.__setattr__(seeded, "seed", checked64("seed", seed))
        return seeded


@attrs.frozen(kw_only=True)
class BlockedPolicy(SeededPolicy):
    """A Bloom filter that probes one cache line per key: the default everywhere."""

    name: ClassVar[str] = blocked.FAMILY
    family: ClassVar[ModuleType] = blocked
    filter_class: ClassVar[Any] = filters.BlockedBloomFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class ClassicPolicy(SeededPolicy):
    """The Bloom filter of the textbook: more cache misses, fewer false positives per bit."""

    name: ClassVar[str] = classic.FAMILY
    family: ClassVar[ModuleType] = classic
    filter_class: ClassVar[Any] = filters.ClassicBloomFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class CountingPolicy(SeededPolicy):
    """A counting Bloom filter, stored as the classic filter it collapses to.

    A table never loses a key, so nobody needs its counters there.
    """

    name: ClassVar[str] = counting.FAMILY
    family: ClassVar[ModuleType] = counting
    filter_class: ClassVar[Any] = filters.CountingBloomFilter
    counters_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None

    def build(self, keys: Sequence[bytes] | Digests) -> Filter:
        """The classic filter that the counting filter of these keys collapses to."""
        built: Any = super().build(keys)
        collapsed: Filter = built.collapse()
        return collapsed

    def open(self, filter: Buffer) -> Filter:
        """The collapsed filter in these bytes."""
        return filters.ClassicBloomFilter.from_bytes(filter)


@attrs.frozen(kw_only=True)
class CuckooPolicy(SeededPolicy):
    """Fingerprints in the buckets of a cuckoo hash table."""

    name: ClassVar[str] = cuckoo.FAMILY
    family: ClassVar[ModuleType] = cuckoo
    filter_class: ClassVar[Any] = filters.CuckooFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class BinaryFusePolicy(SeededPolicy):
    """Fingerprints in a binary fuse filter: few bits per key, at one of two rates."""

    name: ClassVar[str] = binary_fuse.FAMILY
    family: ClassVar[ModuleType] = binary_fuse
    filter_class: ClassVar[Any] = filters.BinaryFuseFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class BumpedRibbonPolicy(SeededPolicy):
    """A bumped ribbon filter: the fewest bits per key, at any rate, and the slowest to build."""

    name: ClassVar[str] = bumped_ribbon.FAMILY
    family: ClassVar[ModuleType] = bumped_ribbon
    filter_class: ClassVar[Any] = filters.BumpedRibbonFilter
    bits_per_key: float | None = None
    fpr: float | None = None


@attrs.frozen(kw_only=True)
class LevelDBPolicy(FamilyPolicy):
    """LevelDB's own Bloom filter, to the byte; also in windows of data blocks, like LevelDB's."""

    name: ClassVar[str] = leveldb.FAMILY
    layouts: ClassVar[frozenset[str]] = frozenset({"table", "block"})
    family: ClassVar[ModuleType] = leveldb
    filter_class: ClassVar[Any] = filters.LevelDBBloomFilter
    bits_per_key: int | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class RocksDBPolicy(FamilyPolicy):
    """RocksDB's full Bloom filter, to the byte."""

    name: ClassVar[str] = rocksdb.FAMILY
    family: ClassVar[ModuleType] = rocksdb
    filter_class: ClassVar[Any] = filters.RocksDBBloomFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None
    optimize_filters_for_memory: bool = True


@attrs.frozen(kw_only=True)
class RibbonPolicy(FamilyPolicy):
    """RocksDB's Ribbon filter, to the byte: the rate of its Bloom filter in 70 % of the bits."""

    name: ClassVar[str] = ribbon.FAMILY
    family: ClassVar[ModuleType] = ribbon
    filter_class: ClassVar[Any] = filters.RocksDBRibbonFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    optimize_filters_for_memory: bool = True


@attrs.frozen(kw_only=True)
class XorPolicy(SeededPolicy):
    """Fingerprints in an xor filter: small sets in fewer bits than binary fuse, large ones not."""

    name: ClassVar[str] = xor.FAMILY
    family: ClassVar[ModuleType] = xor
    filter_class: ClassVar[Any] = filters.XorFilter
    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class CassandraPolicy(FamilyPolicy):
    """Cassandra's Bloom filter, the bytes of its ``Filter.db``; none at an ``fp_chance`` of 1."""

    name: ClassVar[str] = cassandra.FAMILY
    family: ClassVar[ModuleType] = cassandra
    filter_class: ClassVar[Any] = filters.CassandraBloomFilter
    fp_chance: float | None = None

    def build(self, keys: Sequence[bytes] | Digests) -> Filter | None:
        """The filter of these keys, or of their digests; None where all are to be present."""
        return None if self.fp_chance == 1 else super().build(keys)


@attrs.frozen(kw_only=True)
class NoFilterPolicy(FilterPolicy):
    """No filter: creates none, and answers "maybe" for whatever is there."""

    name: ClassVar[str] = "none"
    takes_views: ClassVar[bool] = True

    def create_filter(self, keys: Sequence[bytes]) -> None:
        """None: better no filter here."""

    def open(self, filter: Buffer) -> MaybeReader:
        """A reader that answers "maybe"."""
        return MaybeReader()


class MaybeReader:
    """Answers "maybe" to every key."""

    __slots__ = ()

    def might_contain(self, key: Buffer) -> bool:
        """True."""
        key_bytes(key)
        return True

    def might_contain_many(self, keys: Iterable[Buffer]) -> list[bool]:
        """True for each."""
        return [self.might_contain(key) for key in keys]


BUILTIN: tuple[type[FilterPolicy], ...] = (
    BinaryFusePolicy,
    BlockedPolicy,
    CassandraPolicy,
    BumpedRibbonPolicy,
    ClassicPolicy,
    CountingPolicy,
    CuckooPolicy,
    LevelDBPolicy,
    NoFilterPolicy,
    RibbonPolicy,
    RocksDBPolicy,
    XorPolicy,
)
