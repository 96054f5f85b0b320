"""Who takes part: every installed policy, every peer, and three baselines; and the sweep of sizes.

Each is named before it is made, so that one that cannot be made has a row that says so.
"""

from __future__ import annotations

import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

import policies
from benchmarks import peers
from benchmarks.errors import UnavailableError
from benchmarks.filters.settings import Settings, policy_of
from benchmarks.subjects import (
    PICKLED,
    Storage,
    Subject,
    as_programs_have_it,
    builtin_set,
    ours,
)
from filters import KERNEL, peeled
from filters.families import every
from filters.family import Family
from filters.sampling import error_of
from policies import FilterPolicy
from policies.builtin import FamilyPolicy, MaybeReader, NoFilterPolicy
from policies.errors import cause

# Sorting more keys than this, and loading them again, takes minutes.
MOST_SORTED = 1_000_000

# Beside families at their defaults: what one would take instead at two bytes a key, asked for by
# the first of these that a family knows.
LARGER_BITS, LARGER_BY = 16, ("fingerprint_bits", "bits_per_key")

# What a family is swept over, by what it is sized by where nothing is asked for.
SWEPT_BITS = (4, 6, 8, 10, 12, 14, 16, 20, 24)
SWEPT_RATES = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
SWEPT = {
    "bits_per_key": SWEPT_BITS,
    "counters_per_key": SWEPT_BITS,
    "fingerprint_bits": (6, 7, 8, 9, 10, 12, 14, 16, 18, 20),
    "fpr": SWEPT_RATES,
    "fp_chance": (0.2, 0.1, 0.02, 0.01, 0.001, 0.0001),
}


@attrs.frozen
class Contender:
    """A name, and how to make what it stands for; UnavailableError where that is not here."""

    name: str
    make: Callable[[], Subject] = attrs.field(repr=False)

    @property
    def family(self) -> str:
        """The first word of its name."""
        return self.name.partition(" ")[0]


def measured(settings: Settings) -> list[Contender]:
    """Who is measured in every way."""
    if settings.policies:
        return [of_policy(policy_of(spec)) for spec in settings.policies]
    return [*installed(), *baselines(), *others()]


def swept(settings: Settings) -> list[Contender]:
    """Who is measured at many sizes, for rates and bits only; none where policies were named."""
    return [] if settings.policies or not settings.sweep_keys else list(_sweep())


def installed() -> Iterator[Contender]:
    """Every policy there is at its default, some larger ones, and what only programs have."""
    for name in policies.available():
        if name != NoFilterPolicy.name:
            yield by_name(name)
    for family in every().values():
        yield from _larger(family)
    for family in every().values():
        if not family.policy or as_programs_have_it(family) != family.name:
            yield of_program(family)


def baselines() -> Iterator[Contender]:
    """What one has without a filter."""
    yield Contender("set", whole_set)
    yield Contender("sorted array", sorted_array)
    yield Contender("no filter", no_filter)


def others() -> Iterator[Contender]:
    """The filters of other libraries, at one percent or 8 bits."""
    for name, make in peers.BY_NAME.items():
        size = f"fpr={peers.RATE:g}"
        if name in peers.BY_FINGERPRINT:
            size = f"fingerprint_bits={peers.FINGERPRINT_BITS}"
        yield Contender(f"{name} {size}", make)


def _larger(family: Family) -> Iterator[Contender]:
    """A family at two bytes a key; none of those whose size is another engine's choice."""
    known = [name for name in LARGER_BY if name in family.parameters.ranges]
    if known and family.policy and family.in_tables and not family.foreign:
        yield _quietly(family.name, **{known[0]: LARGER_BITS})


def _sweep() -> Iterator[Contender]:
    for family in every().values():
        if family.policy:
            for size in sizes_to_sweep(family):
                yield _quietly(family.name, **size)
    for name, make in peers.BY_RATE.items():
        for rate in SWEPT_RATES:
            yield Contender(f"{name} fpr={rate:g}", partial(make, rate))
    for bits in peeled.FINGERPRINT_BITS:
        name = f"pyfusefilter fingerprint_bits={bits}"
        yield Contender(name, partial(peers.pyfusefilter, bits))


def sizes_to_sweep(family: Family) -> list[Mapping[str, Any]]:
    """What a family is swept over, within its range; its own examples where nothing is known."""
    sizes = family.parameters
    name = sizes.default.name
    low, high = sizes.ranges[name]
    values = family.only.get(name) or SWEPT.get(name)
    if values is None:
        return [each for each in family.examples if set(each) == {name}]
    return [{name: value} for value in values if low <= value <= high]


def by_name(name: str) -> Contender:
    """A policy at its default; a broken one is named, and says what is wrong when it is made."""
    try:
        return of_policy(policies.create(name))
    except Exception as error:  # a plug-in's errors may be of any kind
        return Contender(name, partial(_unavailable, name, cause(error)))


def of_policy(policy: FilterPolicy) -> Contender:
    """A policy with these parameters."""
    return Contender(label(policy), partial(subject_of, policy))


def label(policy: FilterPolicy) -> str:
    """A policy's name and its parameters, without switches that are as they always are."""
    cls: type[Any] = type(policy)
    usual = {field.name: field.default for field in attrs.fields(cls)} if attrs.has(cls) else {}
    given = (
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in policy.params().items()
        if not (isinstance(value, bool) and usual.get(name) is value)
    )
    return " ".join((policy.name, *given))


def subject_of(policy: FilterPolicy) -> Subject:
    """A policy as an engine uses it: it creates bytes, which go into a file and are opened."""
    if isinstance(policy, NoFilterPolicy):
        return no_filter()
    raw, samples = _stands_alone(policy.name), _samples(policy.name)
    return Subject(
        policy.name,
        partial(_created, policy),
        ask_batch="subject.might_contain_many(key)",
        takes_packed=isinstance(policy, FamilyPolicy),
        expected_fpr=_own_prediction,
        expected_error=error_of if samples else lambda expected: 0.0,
        keeps_order=_keeps_order(policy.name),
        storage=Storage(
            partial(_write_raw if raw else _write_block, policy),
            partial(_open_raw, policy) if raw else _open_block,
            note="as it stands in a table" if raw else "in its block",
        ),
        build_note="create_filter()",
    )


def _stands_alone(name: str) -> bool:
    """Whether filters stand in a table as they are, as an engine of its own has them."""
    family = every().get(name)
    return family is not None and (bool(family.table_key) or "block" in family.layouts)


def _samples(name: str) -> bool:
    family = every().get(name)
    return family is not None and family.samples


def _keeps_order(name: str) -> bool:
    family = every().get(name)
    return family is not None and family.answers_ranges


@attrs.frozen
class Created:
    """What a policy created, and of how many keys."""

    data: bytes
    num_keys: int


def _created(policy: FilterPolicy, keys: list[bytes]) -> Created:
    data = policy.create_filter(keys)
    if data is None:
        raise UnavailableError(f"{policy.name} makes no filter of {len(keys)} such keys")
    return Created(data, len(keys))


def _write_raw(_policy: FilterPolicy, created: Created, path: Path) -> None:
    path.write_bytes(created.data)


def _write_block(policy: FilterPolicy, created: Created, path: Path) -> None:
    path.write_bytes(policies.encode_block(policy, created.data, num_keys=created.num_keys))


def _open_raw(policy: FilterPolicy, path: Path) -> Any:
    return policy.open(path.read_bytes())


def _open_block(path: Path) -> Any:
    return policies.open_block(path.read_bytes())


def _own_prediction(reader: Any) -> float | None:
    expected = getattr(reader, "expected_fpr", None)
    return float(expected) if isinstance(expected, int | float) else None


def of_program(family: Family) -> Contender:
    """A family at its default, as a program has it that needs what tables do not."""
    default = family.parameters.default
    name = as_programs_have_it(family)
    return Contender(f"{name} {default.name}={default.value:g}", partial(whole_filter, family.name))


def whole_filter(family: str) -> Subject:
    """A family with all that it stores; what outgrows any size is built key by key, of nothing."""
    record = every()[family]
    found = attrs.evolve(ours(KERNEL, family), name=as_programs_have_it(record))
    if record.outgrows:
        grown = partial(_grown, family)
        return attrs.evolve(found, build=grown, build_note="with_capacity() and add_many()")
    storage = found.storage
    if record.policy:
        storage = attrs.evolve(storage, note="whole, not as tables store it")
    note = f"{record.class_name}.build()"
    return attrs.evolve(found, storage=storage, build_note=note)


def _grown(family: str, keys: list[bytes]) -> Any:
    """A filter of nothing that was known of its keys."""
    cls: Any = every()[family].filter_class(KERNEL)
    made = cls.with_capacity()
    made.add_many(keys)
    return made


def whole_set() -> Subject:
    """Python's set of the keys themselves."""
    storage = attrs.evolve(
        PICKLED, held=_held, note="in memory, the keys with it; stored by pickle"
    )
    return attrs.evolve(builtin_set(), storage=storage, build_note="set(keys)")


class SortedArray:
    """The keys in a sorted list, looked up by ``bisect``."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[bytes]):
        self._keys = sorted(keys)

    def might_contain(self, key: bytes) -> bool:
        """Whether the key is there."""
        keys = self._keys
        at = bisect_left(keys, key)
        return at < len(keys) and keys[at] == key

    def __len__(self) -> int:
        return len(self._keys)

    def held(self) -> int:
        """How many bytes list and keys take."""
        return _held(self._keys)


def sorted_array() -> Subject:
    """A sorted list of the keys themselves."""
    storage = attrs.evolve(
        PICKLED,
        held=SortedArray.held,
        note="in memory, a list with the keys; stored by pickle",
    )
    return Subject(
        "sorted array",
        SortedArray,
        storage=storage,
        build_note="sorted(keys)",
        most_keys=MOST_SORTED,
    )


def no_filter() -> Subject:
    """No filter at all: maybe to everything, for nothing."""
    return Subject(
        "no filter",
        lambda keys: b"",
        ask_batch="subject.might_contain_many(key)",
        expected_fpr=lambda reader: 1.0,
        storage=Storage(lambda built, path: path.write_bytes(built), lambda path: MaybeReader()),
        build_note="nothing is built",
    )


def _held(keys: Sequence[bytes] | set[bytes]) -> int:
    return sys.getsizeof(keys) + sum(map(sys.getsizeof, keys))


@contextmanager
def unadvised() -> Iterator[None]:
    """No warnings about sizes that are unwise: here that is to be seen."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"a \S+ filter at .* takes .* bits per key")
        yield


def _quietly(name: str, **params: Any) -> Contender:
    with unadvised():
        return of_policy(policies.create(name, **params))


def _unavailable(name: str, why: str) -> Subject:
    raise UnavailableError(f"filter policy {name} cannot be used: {why}")
