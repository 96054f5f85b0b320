"""A budget in place of policies: what filters may take, and what else decides who gets which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import attrs

from filters import advice
from filters.errors import FilterError
from filters.hashing import checked64
from filters.sizing_parameters import checked_number
from policies import registry
from policies.budget import Budget, nanoseconds, time_text
from policies.builtin import BUILTIN, BlockedPolicy, NoFilterPolicy, SeededPolicy
from policies.containment import let_pass
from policies.contract import FilterPolicy
from policies.cost_models import (
    NO_FILTER,
    CostModel,
    Option,
    in_partitions,
    models_of,
    usual_models,
)
from policies.errors import PluginError, cause
from policies.layouts import (
    DEFAULT_LAYOUT,
    LAYOUT_KEYS,
    PARTITIONED,
    check_partition_blocks,
    usual_partition_blocks,
)
from policies.parameters import BUDGET_KEYS, PREFIX_KEYS, parameter_names
from policies.sections import Section

if TYPE_CHECKING:
    from filters import Digests

READ_COST = "100 us"

# Of data blocks of usual size, with entries of usual size.
USUAL_KEYS_PER_BLOCK = 40.0

# Rates that every family of filters has some filter for.
_USUAL_RATES = (0.5, 0.1, 0.01, 0.001)

_INSTEAD = {
    "policy": "a budget chooses the policy of every run: leave out policy, or name it among the "
    "families",
    **dict.fromkeys(
        PREFIX_KEYS,
        "filters that follow a budget have whole keys: leave out prefixes, or the budget",
    ),
    "optimize_filters_for_hits": "with a budget, write absent_share instead of "
    "optimize_filters_for_hits: levels whose filter is not worth it get none",
    "level": "a budget places filters on all levels: leave out [filters.level.*], or the budget",
}


@attrs.frozen
class BudgetRule:
    """What all filters may take, and what the law of ``policies.placement`` has to know besides.

    ``read_ns`` is what a block takes to be read, ``absent_share`` how many of the lookups are for
    keys that are not there, ``families`` the policies to choose from, all of ours that suit tables
    where there are none. With ``heat``, tables that are asked more get more. In the ``layout``
    ``partitioned`` a table has a filter for each ``partition_blocks`` data blocks, all of one
    policy.
    """

    budget: Budget
    read_ns: float = nanoseconds("read_cost", READ_COST)
    absent_share: float = 1.0
    families: tuple[str, ...] = ()
    heat: bool = True
    layout: str = DEFAULT_LAYOUT
    partition_blocks: int | None = attrs.field(
        default=attrs.Factory(lambda self: usual_partition_blocks(self.layout), takes_self=True)
    )
    seed: int | None = attrs.field(default=None, eq=False, repr=False)
    _models: tuple[CostModel, ...] = attrs.field(init=False, eq=False, repr=False)
    _classes: tuple[type[FilterPolicy], ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Check all of it, and round what would not be written down exactly."""
        if not isinstance(self.budget, Budget):
            raise TypeError(f"budget is what Budget.parse(text) makes, not {self.budget!r}")
        read_ns = float(checked_number("read_ns", self.read_ns, 1, 1e11))
        checked_number("absent_share", self.absent_share, 0, 1)
        if not isinstance(self.heat, bool):
            raise TypeError(f"heat is True or False, not {self.heat!r}")
        self._check_layout()
        object.__setattr__(self, "budget", Budget.parse(str(self.budget)))
        object.__setattr__(self, "read_ns", nanoseconds("read_ns", time_text(read_ns)))
        object.__setattr__(self, "absent_share", float(self.absent_share))
        object.__setattr__(self, "_classes", tuple(map(registry.lookup, self.families)))
        object.__setattr__(
            self, "_models", models_of(self.families) if self.families else usual_models()
        )

    @staticmethod
    def _layout_in(entries: Mapping[str, object]) -> dict[str, Any]:
        return {key: entries[key] for key in LAYOUT_KEYS if entries.get(key) is not None}

    def _check_layout(self) -> None:
        if self.layout not in (DEFAULT_LAYOUT, PARTITIONED):
            raise ValueError(
                f"layout is {self.layout!r}, and filters that follow a budget are one for each "
                f"table or partition: choose {DEFAULT_LAYOUT} or {PARTITIONED}, or leave it out"
            )
        check_partition_blocks(self.layout, self.partition_blocks)

    @classmethod
    def of(cls, entries: Mapping[str, object], prefix: str = "") -> Self:
        """The rule that these entries write down, as a configuration or keywords have them.

        TypeError, ValueError or FilterError begin with the name of the entry, behind its prefix.
        """
        heat = entries.get("heat", True)
        if not isinstance(heat, bool):
            raise TypeError(f"{prefix}heat is true or false, not {heat!r}")
        share = entries.get("absent_share", 1.0)
        return cls(
            Budget.parse(entries["budget"], f"{prefix}budget"),
            nanoseconds(f"{prefix}read_cost", entries.get("read_cost", READ_COST)),
            checked_number(f"{prefix}absent_share", share, 0, 1),
            _families(f"{prefix}families", entries.get("families")),
            heat,
            **cls._layout_in(entries),
        )

    @classmethod
    def from_section(cls, section: Section) -> Self | None:
        """The rule of a ``[filters]`` section; None where it has no budget, and nothing for one."""
        entries = section.entries
        if "budget" not in entries:
            for key in BUDGET_KEYS:
                if key in entries:
                    raise section.error(
                        f'{key} goes with a budget: add budget = "10 bits/key", say, or leave it '
                        "out"
                    )
            return None
        for key in entries:
            if key in _INSTEAD:
                raise section.error(_INSTEAD[key])
            if key in _policy_parameters():
                raise section.error(
                    f"{key} is a parameter of a policy, and a budget chooses policies and "
                    "parameters: leave it out, or the budget"
                )
        section.check_keys((*BUDGET_KEYS, *LAYOUT_KEYS), "with a budget")
        try:
            return cls.of(entries)
        except (TypeError, ValueError, FilterError) as error:
            raise section.error(str(error)) from error

    def entries(self) -> dict[str, Any]:
        """What a section says of it, from which an equal rule is read."""
        said: dict[str, Any] = {
            "budget": str(self.budget),
            "read_cost": time_text(self.read_ns),
            "absent_share": self.absent_share,
        }
        if self.families:
            said["families"] = list(self.families)
        said["heat"] = self.heat
        if self.layout != DEFAULT_LAYOUT:
            said |= {"layout": self.layout, "partition_blocks": self.partition_blocks}
        return said

    def models(self, keys_per_block: float = USUAL_KEYS_PER_BLOCK) -> tuple[CostModel, ...]:
        """What there is to choose from, at its cost in the layout of tables with such blocks."""
        if self.partition_blocks is None:
            return self._models
        return in_partitions(self._models, keys_per_block * self.partition_blocks)

    def classes(self) -> tuple[type[FilterPolicy], ...]:
        """The classes of the families that are named, in their order."""
        return self._classes

    def with_seed(self, seed: int) -> Self:
        """The same rule, its policies creating filters under this seed."""
        seeded = copy(self)  # not evolve(): plug-ins need no second look
        object.__setattr__(seeded, "seed", checked64("seed", seed))
        return seeded

    def digests(self) -> Digests | None:
        """A collection for digests that any of its policies builds filters of, or None.

        All families of our own that take digests take one kind, but those that keep keys' order.
        Where these, or others, are named there is none.
        """
        classes = self._classes or tuple(registry.lookup(model.policy) for model in self._models)
        if not all(map(_takes_digests, classes)):
            return None
        policy = BlockedPolicy() if self.seed is None else BlockedPolicy().with_seed(self.seed)
        return policy.digests()

    def policy_of(self, option: Option) -> FilterPolicy:
        """The policy that makes the filter of an option; PluginError where a plug-in fails."""
        if option == NO_FILTER:
            return NoFilterPolicy()
        cls = registry.lookup(option.policy)
        try:
            policy = advice.silently(cls, **option.params)  # nobody has chosen this size
            return policy if self.seed is None else policy.with_seed(self.seed)
        except BaseException as error:
            let_pass(error)
            said = f"is not made with {dict(option.params)}: {cause(error)}"
            raise PluginError(f"filter policy {cls.__qualname__} {said}") from error


def _takes_digests(cls: type[FilterPolicy]) -> bool:
    """Whether a class is one of ours that all build of the same digests."""
    if cls not in BUILTIN or not issubclass(cls, SeededPolicy):
        return False
    return cls.takes_digests and not cls.family.answers_ranges


def _families(what: str, named: object) -> tuple[str, ...]:
    """The families that are named, each of which has filters to choose from; () where none is."""
    if named is None:
        return ()
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise TypeError(f'{what} is a list of names, like ["blocked", "cuckoo"], not {named!r}')
    names = tuple(named)
    if not names:
        raise ValueError(f"{what} names none: leave it out for all of ours that suit tables")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} is a list of names in quotes, and {name!r} is none")
        if names.count(name) > 1:
            raise ValueError(f"{what} names {name!r} more than once")
    try:
        models = models_of(names)
        for model in models:
            if not any(model.option(1 << 20, rate) for rate in _USUAL_RATES):
                raise ValueError(
                    f"policy {model.policy!r} offers no filter for a million keys at any usual "
                    "rate, so that no budget could be spent on it: leave it out"
                )
    except (ValueError, FilterError) as error:
        raise type(error)(f"{what}: {error}") from error
    return names


def _policy_parameters() -> set[str]:
    return {name for cls in BUILTIN for name in parameter_names(cls) or ()}
