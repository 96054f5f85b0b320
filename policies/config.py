"""Reading the ``[filters]`` sections of a configuration: strict, and clear about what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from filters.errors import FilterError
from policies import registry
from policies.builtin import FamilyPolicy, NoFilterPolicy
from policies.containment import let_pass
from policies.contract import FilterPolicy
from policies.errors import PolicyConfigError, cause, did_you_mean, words
from policies.layouts import (
    DEFAULT_LAYOUT,
    LAYOUT_KEYS,
    LAYOUTS,
    PARTITIONED,
    check_partition_blocks,
    usual_partition_blocks,
)
from policies.parameters import BUDGET_KEYS, PREFIX_KEYS, parameter_names
from policies.prefixes import Prefixes
from policies.rule import BudgetRule
from policies.sections import Section

DEFAULT_POLICY = "blocked"
HITS = "optimize_filters_for_hits"
TOP_LEVEL = ("filters", "engine")

_LEVEL_KEYS = frozenset({"policy", *LAYOUT_KEYS, *PREFIX_KEYS})
_FILTERS_KEYS = _LEVEL_KEYS | {"level", HITS}

_SPEC = re.compile(r"(?P<low>0|[1-9][0-9]{0,3})(?:-(?P<high>0|[1-9][0-9]{0,3})|(?P<plus>\+))?")
_SPEC_ADVICE = 'a level is written "3", a range "1-2", all from one on "4+"'


@attrs.frozen
class Choice:
    """What one level uses: a policy, and where its filters sit.

    In the layout ``partitioned`` there is one for each ``partition_blocks`` data blocks of a table,
    which any policy suits that has one for the whole table. Beside another layout they are None.

    With ``prefixes`` filters have these, too, or in place of whole keys.
    """

    policy: FilterPolicy
    layout: str = DEFAULT_LAYOUT
    partition_blocks: int | None = attrs.field(
        default=attrs.Factory(lambda self: usual_partition_blocks(self.layout), takes_self=True)
    )
    prefixes: Prefixes | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse what is no policy, and a layout that the policy has no form for."""
        if not isinstance(self.policy, FilterPolicy):
            raise TypeError(
                f"a filter policy is what policies.create(name) makes, not {self.policy!r}"
            )
        if self.layout not in LAYOUTS:
            known = f"{', '.join(LAYOUTS[:-1])} and {LAYOUTS[-1]}"
            raise ValueError(f"layout is {self.layout!r}, allowed are {known}")
        allowed = [*sorted(self.policy.layouts), PARTITIONED]
        if self.layout not in allowed:
            raise ValueError(
                f"layout {self.layout!r} is for policies with native windows, and "
                f"{self.policy.name!r} has none: choose {' or '.join(allowed)}"
            )
        check_partition_blocks(self.layout, self.partition_blocks)
        if self.prefixes is not None:
            self._check_prefixes()

    def _check_prefixes(self) -> None:
        """Refuse them where nobody would look for them."""
        if not isinstance(self.prefixes, Prefixes):
            raise TypeError(f"prefixes are a Prefixes, not {self.prefixes!r}")
        name = self.policy.name
        if self.layout == "block":
            raise ValueError(
                "prefixes go with one filter for a table or a partition: leave out prefix and "
                'prefix_until, or layout "block", which has the form that LevelDB reads'
            )
        if isinstance(self.policy, NoFilterPolicy):
            raise ValueError(f"policy {name!r} has no filter for prefixes: leave them out")
        if isinstance(self.policy, FamilyPolicy) and self.policy.family.answers_ranges:
            raise ValueError(
                f"{name!r} answers for all ranges itself: leave out prefix and prefix_until"
            )


def usual_choice() -> Choice:
    """What an empty section selects."""
    return _choice(Section("", "filters", {}), _FILTERS_KEYS)


def selection(
    document: Mapping[str, Any], levels: int, source: str
) -> tuple[list[Choice], bool, BudgetRule | None]:
    """The choice for each level, the value of ``optimize_filters_for_hits``, and a budget's rule.

    With a rule there is nothing to choose: each level has the usual choice.
    """
    section = _filters_section(document, source)
    rule = BudgetRule.from_section(section)
    if rule is not None:
        return [usual_choice()] * levels, False, rule
    chosen, hits = _choices(section, levels)
    return chosen, hits, None


def _choices(section: Section, levels: int) -> tuple[list[Choice], bool]:
    hits = section.entries.get(HITS, False)
    if not isinstance(hits, bool):
        raise section.error(f"{HITS} is true or false, not {hits!r}")
    chosen = [_choice(section, _FILTERS_KEYS)] * levels
    taken: dict[int, str] = {}
    by_level = section.child("level")
    for spec in by_level.entries:
        meant = _levels_of(by_level, spec, levels)
        choice = _level_choice(by_level.child(spec))
        for level in meant:
            if level in taken:
                raise by_level.error(f"level {level} is in both {taken[level]!r} and {spec!r}")
            taken[level] = spec
            chosen[level] = choice
    return chosen, hits


def _filters_section(document: Mapping[str, Any], source: str) -> Section:
    for key in document:
        if key not in TOP_LEVEL:
            raise PolicyConfigError(
                f"{source}: unknown key or table {key!r}{did_you_mean(key, TOP_LEVEL)}; "
                "allowed at the top are [filters] and [engine]"
            )
    return Section.top(document, "filters", source)


def _level_choice(section: Section) -> Choice:
    """What the section of one level or range selects; it inherits nothing."""
    for key in (HITS, *BUDGET_KEYS):
        if key in section.entries:
            raise section.error(f"{key} is for the whole database: move it to [filters]")
    if "policy" not in section.entries:
        near = [key for key in section.entries if did_you_mean(key, ["policy"])]
        known = ", ".join(registry.available())
        raise section.error(
            "it names no policy, and a level's table inherits nothing"
            + (f"; is {near[0]!r} meant to be 'policy'?" if near else "")
            + f": add policy = ... with one of {known}"
        )
    return _choice(section, _LEVEL_KEYS)


def _choice(section: Section, own_keys: frozenset[str]) -> Choice:
    """The policy and layout of one section, all of its keys checked."""
    name = section.entries.get("policy")
    if name is None:
        section.check_keys(own_keys | {"budget"}, "where no policy is named")
        name = DEFAULT_POLICY
    if not isinstance(name, str):
        known = ", ".join(registry.available())
        raise section.error(f"policy is a name in quotes, not {name!r}: known are {known}")
    try:
        cls = registry.lookup(name)
    except FilterError as error:
        raise section.error(f"policy: {error}") from error
    parameters = parameter_names(cls)
    if parameters is not None:
        section.check_keys(own_keys.union(parameters), f"with policy {name!r}")
    given = section.entries
    params = {key: value for key, value in given.items() if key not in own_keys}
    try:
        places = {key: given[key] for key in LAYOUT_KEYS if key in given}
        return Choice(cls(**params), **places, prefixes=Prefixes.of_entries(given))
    except BaseException as error:  # a plug-in may raise anything, and only here is its table known
        let_pass(error)
        expected = isinstance(error, (TypeError, ValueError)) and words(error)
        raise section.error(expected or cause(error)) from error


def _levels_of(section: Section, spec: str, levels: int) -> range:
    """The levels that a section's name means."""
    try:
        return levels_of(spec, levels)
    except ValueError as error:
        raise section.error(str(error)) from None


def levels_of(spec: str, levels: int) -> range:
    """The levels that a specification means; ValueError for one that means none."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"{spec!r} names no level: {_SPEC_ADVICE}")
    low = int(match["low"])
    high = levels - 1 if match["plus"] else int(match["high"] or low)
    if max(low, high) >= levels:
        raise ValueError(f"{spec!r} is out of range: allowed are levels 0 to {levels - 1}")
    if high < low:
        raise ValueError(f'{spec!r} runs backwards: write "{high}-{low}"')
    return range(low, high + 1)
