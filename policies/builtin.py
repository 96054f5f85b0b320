"""The policies that are built in: one for each family that tables use, and none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

import filters
from filters import advice, header
from filters.columns import one_by_one
from filters.families import every
from filters.family import Family
from filters.hashing import checked64, key_bytes
from filters.surf import SUFFIXES
from policies.contract import (
    BuildContext,
    CollectingBuilder,
    FilterBuilder,
    FilterPolicy,
    finished,
)
from policies.parameters import parameter_fields

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters import Digests
    from filters.hashing import Key
    from filters.kernels.python.base import Filter


__all__: list[str] = [
    "BinaryFusePolicy",
    "BlockedPolicy",
    "BumpedRibbonPolicy",
    "CassandraPolicy",
    "ClassicPolicy",
    "CountingPolicy",
    "CuckooPolicy",
    "GrafitePolicy",
    "LevelDBPolicy",
    "NoFilterPolicy",
    "RibbonPolicy",
    "RocksDBPolicy",
    "SurfPolicy",
    "XorPolicy",
]


@attrs.frozen(kw_only=True)
class FamilyPolicy(FilterPolicy):
    """A policy over one family of ``filters``.

    The parameters are the family's own and are checked when the policy is made; where no size was
    asked for, the family's default stands in its place. Readers are the family's filter objects.
    """

    takes_views: ClassVar[bool] = True
    takes_digests: ClassVar[bool] = True
    """Its filters are built of digests; else of keys, which a builder has to collect."""
    family: ClassVar[Family]
    filter_class: ClassVar[Any]  # each takes parameters of its own in build()

    def __init_subclass__(cls, *, family: str = "", **kwargs: Any) -> None:
        """Take name, layouts and the chosen kernel's class from the record of a family."""
        super().__init_subclass__(**kwargs)
        if family:
            cls.family = every()[family]
            cls.name, cls.layouts = family, cls.family.layouts
            cls.filter_class = cls.family.filter_class(filters.KERNEL)

    def __attrs_post_init__(self) -> None:
        """Check the parameters, and write down the sizing parameter they come to."""
        given = {field.name: getattr(self, field.name) for field in parameter_fields(type(self))}
        sizing = self.family.check(**given)
        object.__setattr__(self, sizing.name, sizing.value)

    def create_filter(self, keys: Sequence[bytes]) -> bytes | None:
        """The bytes of a filter of these keys, or None where the parameters ask for none."""
        built = self.build(keys)
        return None if built is None else built.to_bytes()

    def new_builder(self, context: BuildContext) -> FilterBuilder:
        """A builder of digests, which also knows how many keys the family counted, or of keys."""
        return FamilyBuilder(self) if self.takes_digests else CollectingBuilder(self)

    def build(self, keys: Sequence[bytes] | Digests) -> Filter | None:
        """The filter of these keys, or of their digests."""
        # Whoever chose the size was warned when the policy was made.
        build: Callable[..., Filter] = self.filter_class.build
        return advice.silently(build, keys, **self._build_arguments())

    def _build_arguments(self) -> dict[str, Any]:
        """What ``build`` of the filter class is given beside keys."""
        return self.params()

    def digests(self) -> Digests:
        """An empty collection of digests for ``build``."""
        collection: Digests = self.filter_class.digests()
        return collection

    def open(self, filter: Buffer) -> Filter:
        """The filter in these bytes."""
        opened: Filter = self.filter_class.from_bytes(filter)
        return opened

    def open_checked(self, filter: memoryview) -> Filter:
        """The filter in bytes under a checksum that was found right just before."""
        return self.open(filter)


class FamilyBuilder:
    """Keeps the digests of keys, not the keys, and builds the family's filter of them at the end.

    It begins with ``digests`` that were collected for the policy before, where there are any.
    ``add`` is the collection's own, so that nothing stands between an engine and the hash; after
    ``finish`` there is ``num_keys``, as the family counts.
    """

    __slots__ = ("_policy", "add", "digests", "num_keys")

    def __init__(self, policy: FamilyPolicy, digests: Digests | None = None):
        self._policy: FamilyPolicy | None = policy
        self.digests = policy.digests() if digests is None else digests
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


def is_built_in(policy: FilterPolicy) -> bool:
    """Whether a policy is of one of our own classes, and of none that is derived or says it is."""
    return any(type(policy) is cls for cls in BUILTIN)


def table_key(policy: FilterPolicy) -> str:
    """Under which a table names this policy's bytes as they are; empty: they stand in a block."""
    if not isinstance(policy, FamilyPolicy) or not is_built_in(policy):
        return ""
    return policy.family.table_key


def _check_seed(_policy: object, _field: object, seed: int | None) -> None:
    if seed is not None:
        checked64("seed", seed)


@attrs.frozen(kw_only=True)
class SeededPolicy(FamilyPolicy):
    """A policy whose filters hash under a secret seed; every filter draws a salt of its own."""

    seed: int | None = attrs.field(default=None, eq=False, repr=False, validator=_check_seed)

    def _build_arguments(self) -> dict[str, Any]:
        """Those of the family, and the seed."""
        return {"seed": self.seed, **self.params()}

    def digests(self) -> Digests:
        """An empty collection of digests for ``build``, under the seed."""
        collection: Digests = self.filter_class.digests(seed=self.seed)
        return collection

    def open_checked(self, filter: memoryview) -> Filter:
        """The filter in such bytes, without computing its header's own checksum."""
        return self.open(header.Checked(filter))

    def with_seed(self, seed: int) -> Self:
        """This policy, hashing under this seed."""
        seeded = copy(self)  # not evolve(): the parameters need no second check
        object.__setattr__(seeded, "seed", checked64("seed", seed))
        return seeded


@attrs.frozen(kw_only=True)
class BlockedPolicy(SeededPolicy, family="blocked"):
    """A Bloom filter that probes one cache line per key: the default everywhere."""

    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class ClassicPolicy(SeededPolicy, family="classic"):
    """The Bloom filter of the textbook: more cache misses, fewer false positives per bit."""

    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class CountingPolicy(SeededPolicy, family="counting"):
    """A counting Bloom filter, stored as the classic filter it collapses to.

    A table never loses a key, so nobody needs its counters there.
    """

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
class CuckooPolicy(SeededPolicy, family="cuckoo"):
    """Fingerprints in the buckets of a cuckoo hash table."""

    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class BinaryFusePolicy(SeededPolicy, family="binary-fuse"):
    """Fingerprints in a binary fuse filter: few bits per key, at one of two rates."""

    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class BumpedRibbonPolicy(SeededPolicy, family="bumped-ribbon"):
    """A bumped ribbon filter: the fewest bits per key, at any rate, and the slowest to build."""

    bits_per_key: float | None = None
    fpr: float | None = None


@attrs.frozen(kw_only=True)
class GrafitePolicy(SeededPolicy, family="grafite"):
    """A filter that answers for ranges, too; ``fpr`` is the rate of those of ``range_length``."""

    bits_per_key: float | None = None
    fpr: float | None = None
    range_length: int = 1


@attrs.frozen(kw_only=True)
class LevelDBPolicy(FamilyPolicy, family="leveldb"):
    """LevelDB's own Bloom filter, to the byte; also in windows of data blocks, like LevelDB's."""

    bits_per_key: int | None = None
    fpr: float | None = None
    num_probes: int | None = None


@attrs.frozen(kw_only=True)
class RocksDBPolicy(FamilyPolicy, family="rocksdb"):
    """RocksDB's full Bloom filter, to the byte."""

    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None
    optimize_filters_for_memory: bool = True


@attrs.frozen(kw_only=True)
class RibbonPolicy(FamilyPolicy, family="ribbon"):
    """RocksDB's Ribbon filter, to the byte: the rate of its Bloom filter in 70 % of the bits."""

    bits_per_key: float | None = None
    fpr: float | None = None
    optimize_filters_for_memory: bool = True


@attrs.frozen(kw_only=True)
class SurfPolicy(SeededPolicy, family="surf"):
    """A trie of the keys' beginnings, for ranges of keys; its size depends on the keys."""

    takes_digests: ClassVar[bool] = False

    suffix_bits: int | None = None
    bits_per_key: float | None = None
    fpr: float | None = None
    suffix: str = SUFFIXES[0]


@attrs.frozen(kw_only=True)
class XorPolicy(SeededPolicy, family="xor"):
    """Fingerprints in an xor filter: small sets in fewer bits than binary fuse, large ones not."""

    bits_per_key: float | None = None
    fpr: float | None = None
    fingerprint_bits: int | None = None


@attrs.frozen(kw_only=True)
class CassandraPolicy(FamilyPolicy, family="cassandra"):
    """Cassandra's Bloom filter, the bytes of its ``Filter.db``; none at an ``fp_chance`` of 1."""

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

    def might_contain(self, key: Key) -> bool:
        """True."""
        key_bytes(key)
        return True

    def might_contain_many(self, keys: Iterable[Key]) -> list[bool]:
        """True for each."""
        return [self.might_contain(key) for key in one_by_one(keys)]


BUILTIN: tuple[type[FilterPolicy], ...] = (
    *(family.policy_class() for family in every().values() if family.policy),
    NoFilterPolicy,
)
