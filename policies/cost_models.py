"""What filters cost, family by family, for whoever decides between them: bits, rates, nanoseconds.

A model says what a policy makes of a number of keys and a rate. Those of the families here are
derived from their records. A plug-in has one if its policy class has a ``cost_model()``, a class
method that returns a :class:`CostModel`, and can then be named among the ``families`` of a budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Protocol

import attrs

from filters import advice
from filters.families import FAMILIES, every
from filters.family import Family
from policies import registry
from policies.block import bytes_around
from policies.builtin import BUILTIN, FamilyPolicy, NoFilterPolicy, is_built_in
from policies.containment import let_pass
from policies.contract import FilterPolicy
from policies.errors import PluginError, cause, did_you_mean


@attrs.frozen
class Option:
    """A filter that a run may get: its policy and parameters, what it takes and what it does.

    ``bits_per_key`` are those of the bytes as stored, for the number of keys that it was asked
    for; ``probe_ns`` are for one lookup. A run without a filter has a rate of 1, and takes nothing.
    """

    policy: str
    params: Mapping[str, Any] = attrs.field(hash=False)
    bits_per_key: float
    fpr: float
    probe_ns: float


NO_FILTER = Option("none", {}, 0.0, 1.0, 0.0)

# A partition's trailer and its entry in the index, with a key of usual length; and what it takes to
# find it among the others.
_PARTITION_BYTES, _PARTITION_NS = 5 + 30, 40.0

# A rate that is met but for rounding is met.
_RATE_SLACK = 1.001


class CostModel(Protocol):
    """What the filters of one policy cost."""

    @property
    def policy(self) -> str:
        """The policy's name."""

    def option(self, num_keys: int, fpr: float) -> Option | None:
        """The filter of so many keys with at most this rate; None where there is none to advise."""


@attrs.frozen
class FamilyModel:
    """The model of a family of ``filters``, by its record."""

    family: Family

    @property
    def policy(self) -> str:
        """The family's name is that of its policy."""
        return self.family.name

    def option(self, num_keys: int, fpr: float) -> Option | None:
        """The filter that the family's ``fpr=`` asks for, unless it is one it warns of."""
        family = self.family
        params: dict[str, Any] = {family.rate_parameter: fpr}
        try:
            geometry = advice.strictly(family.sized, num_keys, **params)
        except ValueError:
            return None
        expected = family.predicted_fpr(num_keys, geometry)
        if family.cost is None or expected > fpr * _RATE_SLACK:
            return None
        bits = 8 * _stored_bytes(family, geometry) / max(1, num_keys)
        return Option(family.name, params, bits, expected, family.cost.probe_among(num_keys))


def option_of(policy: FilterPolicy, num_keys: int) -> Option | None:
    """What a policy that is built in makes of so many keys; None for any other."""
    if type(policy) is NoFilterPolicy:
        return NO_FILTER
    if not isinstance(policy, FamilyPolicy) or not is_built_in(policy):
        return None
    family, params = policy.family, policy.params()
    names = {*family.parameters.ranges, "num_probes"}
    try:
        size = advice.silently(  # whoever chose it was warned when the policy was made
            family.sized, num_keys, **{k: v for k, v in params.items() if k in names}
        )
    except ValueError:  # such as more keys than it takes
        return None
    expected = family.predicted_fpr(num_keys, size)
    bits = 8 * _stored_bytes(family, size) / max(1, num_keys)
    return Option(family.name, params, bits, expected, probe_ns_of(family.name, num_keys))


def _stored_bytes(family: Family, size: Any) -> int:
    """What a filter takes in a table: in a block that describes itself, or its bytes alone."""
    filter = family.payload_bytes(size) + family.overhead
    return filter if family.table_key else filter + _bytes_around(family)


@cache
def _bytes_around(family: Family) -> int:
    """What a block takes beside a filter: for a rate of usual length, so that each costs alike."""
    return bytes_around(family.name, {family.rate_parameter: 0.001234})


def probe_ns_of(policy: str, num_keys: int) -> float:
    """What it takes to ask a filter of so many keys; as the dearest of ours where nobody knows."""
    if policy == NO_FILTER.policy:
        return 0.0
    family = every().get(policy)
    if family is not None and family.cost is not None:
        return family.cost.probe_among(num_keys)
    known = [each.cost for each in FAMILIES.values() if each.cost is not None]
    return max(cost.probe_among(num_keys) for cost in known)


@attrs.frozen
class PartitionedModel:
    """The model of a policy whose filters are of so many keys each, whatever tables have."""

    whole: CostModel
    keys: int

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.whole.policy

    def option(self, num_keys: int, fpr: float) -> Option | None:
        """What the filters of all partitions take together, and one of them to be asked."""
        keys = max(1, min(num_keys, self.keys))
        found = self.whole.option(keys, fpr)
        if found is None:
            return None
        bits = found.bits_per_key + 8 * _PARTITION_BYTES / keys
        return attrs.evolve(found, bits_per_key=bits, probe_ns=found.probe_ns + _PARTITION_NS)


@lru_cache(maxsize=64)
def _in_partitions(models: tuple[CostModel, ...], keys: int) -> tuple[CostModel, ...]:
    return tuple(PartitionedModel(model, keys) for model in models)


def in_partitions(models: tuple[CostModel, ...], keys: float) -> tuple[CostModel, ...]:
    """The models of filters of about so many keys each: a power of two, so that sizes are few."""
    return _in_partitions(models, 1 << max(0, round(math.log2(max(1.0, keys)))))


def usual_models() -> tuple[CostModel, ...]:
    """The models of all families of our own that suit tables, and lookups alone."""
    return tuple(
        FamilyModel(family)
        for family in FAMILIES.values()
        if family.policy
        and family.in_tables
        and not (family.foreign or family.answers_ranges)
        and family.cost is not None
    )


def models_of(names: Iterable[str]) -> tuple[CostModel, ...]:
    """The models of the policies of these names, in their order.

    ValueError for one that has none; UnknownPolicyError for one that nobody has registered.
    """
    return tuple(_model_of(name) for name in dict.fromkeys(names))


def _model_of(name: str) -> CostModel:
    cls = registry.lookup(name)
    if cls in BUILTIN:
        family = cls.family if issubclass(cls, FamilyPolicy) else None
        if family is None or family.cost is None:
            known = [model.policy for model in usual_models()]
            raise ValueError(
                f"policy {name!r} costs nothing that could be compared"
                f"{did_you_mean(name, known)}: choose among {', '.join(known)}"
            )
        return FamilyModel(family)
    return PlugInModel(cls, _made_by(cls))


@attrs.frozen
class PlugInModel:
    """The model that a plug-in has made, none of whose answers is believed unseen."""

    policy_class: type[FilterPolicy]
    made: Any = attrs.field(eq=id, repr=False)

    @property
    def policy(self) -> str:
        """The name that the policy has, whatever its model says."""
        return self.policy_class.name

    def option(self, num_keys: int, fpr: float) -> Option | None:
        """What the model offers; PluginError where it fails, or offers what cannot be."""
        try:
            found = self.made.option(num_keys, fpr)
        except BaseException as error:
            let_pass(error)
            raise _blamed(self.policy_class, f"raised in option(): {cause(error)}") from error
        if found is not None and not _can_be(found, fpr):
            told = f"offers {found!r} for {num_keys} keys at a rate of {fpr:g}"
            raise _blamed(self.policy_class, told)
        return None if found is None else attrs.evolve(found, policy=self.policy)


def _made_by(cls: type[FilterPolicy]) -> Any:
    make = getattr(cls, "cost_model", None)
    if make is None:
        raise ValueError(
            f"policy {cls.name!r} has no cost_model(), so that nobody knows what it costs: leave "
            "it out of the families, or name it as the policy of a level"
        )
    try:
        return make()
    except BaseException as error:
        let_pass(error)
        raise _blamed(cls, f"raised in cost_model(): {cause(error)}") from error


def _can_be(found: object, fpr: float) -> bool:
    """Whether this is an option with numbers that a filter can have, at the rate or below."""
    if not isinstance(found, Option) or not isinstance(found.params, Mapping):
        return False
    numbers = (found.bits_per_key, found.fpr, found.probe_ns)
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in numbers):
        return False
    return found.bits_per_key > 0 and 0 < found.fpr <= fpr * _RATE_SLACK and found.probe_ns >= 0


def _blamed(cls: type[FilterPolicy], what: str) -> PluginError:
    return PluginError(f"filter policy {cls.__qualname__} {what}")
