"""Which policy each level of a database uses, and how that is written down."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Self

import attrs

from filters.sizing_parameters import checked_int
from policies import config
from policies.config import Choice
from policies.contract import FilterPolicy
from policies.errors import plugin_error
from policies.layouts import DEFAULT_LAYOUT
from policies.prefixes import Prefixes
from policies.rule import READ_COST, BudgetRule
from policies.sections import Section, read, toml_key

MAX_LEVELS = 1000


@attrs.frozen
class LevelPolicies:
    """The policy of every level, from 0 down: ``levels[3]`` is level 3's.

    ``optimize_filters_for_hits`` holds for the whole database: its last level then has no filters.
    With a ``rule`` a budget decides table by table, and the choices are those of an empty
    configuration, for where no law can be asked.
    """

    choices: tuple[Choice, ...]
    optimize_filters_for_hits: bool = False
    rule: BudgetRule | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse choices beside a rule that are not the usual ones: they would never be written."""
        if self.rule is None:
            return
        if not isinstance(self.rule, BudgetRule):
            raise TypeError(f"rule is a BudgetRule, not {self.rule!r}")
        usual = config.usual_choice()
        if self.optimize_filters_for_hits or any(each != usual for each in self.choices):
            raise ValueError(
                "a budget places the filters of all levels: leave out the choices, or the rule"
            )

    @classmethod
    def from_config(
        cls, document: Mapping[str, Any], levels: int = 7, source: str = "configuration"
    ) -> Self:
        """The selection of a whole configuration document; PolicyConfigError names ``source``."""
        checked_int("levels", levels, 1, MAX_LEVELS)
        choices, hits, rule = config.selection(document, levels, source)
        return cls(tuple(choices), hits, rule)

    @classmethod
    def by_budget(
        cls,
        budget: str,
        levels: int = 7,
        *,
        read_cost: str = READ_COST,
        absent_share: float = 1.0,
        families: Iterable[str] | None = None,
        heat: bool = True,
        layout: str = DEFAULT_LAYOUT,
        partition_blocks: int | None = None,
    ) -> Self:
        """Filters wherever a budget such as ``"10 bits/key"`` saves most; see docs/placement.md."""
        entries = {
            "budget": budget,
            "read_cost": read_cost,
            "absent_share": absent_share,
            "families": families,
            "heat": heat,
            "layout": layout,
            "partition_blocks": partition_blocks,
        }
        return cls.of_rule(BudgetRule.of(entries), levels)

    @classmethod
    def of_rule(cls, rule: BudgetRule, levels: int = 7) -> Self:
        """Filters as this rule places them, on all levels."""
        checked_int("levels", levels, 1, MAX_LEVELS)
        return cls((config.usual_choice(),) * levels, rule=rule)

    @classmethod
    def uniform(
        cls,
        policy: FilterPolicy,
        levels: int = 7,
        layout: str = DEFAULT_LAYOUT,
        partition_blocks: int | None = None,
        prefixes: Prefixes | None = None,
    ) -> Self:
        """One policy and one layout for every level, and one kind of prefixes."""
        checked_int("levels", levels, 1, MAX_LEVELS)
        choice = Choice(policy, layout, prefixes=prefixes)
        if partition_blocks is not None:
            choice = Choice(policy, layout, partition_blocks, prefixes)
        return cls((choice,) * levels)

    def __len__(self) -> int:
        return len(self.choices)

    def __getitem__(self, level: int) -> FilterPolicy:
        return self._choice(level).policy

    def __iter__(self) -> Iterator[FilterPolicy]:
        return (choice.policy for choice in self.choices)

    def layout(self, level: int) -> str:
        """Where filters of this level sit: ``"table"``, ``"block"`` or ``"partitioned"``."""
        choice = self._choice(level)
        return choice.layout if self.rule is None else self.rule.layout

    def partition_blocks(self, level: int) -> int | None:
        """Of how many data blocks each filter of this level is, if they are partitioned."""
        choice = self._choice(level)
        return choice.partition_blocks if self.rule is None else self.rule.partition_blocks

    def prefixes(self, level: int) -> Prefixes | None:
        """Which prefixes filters of this level have."""
        return self._choice(level).prefixes

    def with_seed(self, seed: int) -> Self:
        """The same selection, its policies creating filters under this seed."""
        shared = {id(each): each for each in self.choices}
        seeded = {key: _seeded(each, seed) for key, each in shared.items()}
        choices = tuple(seeded[id(each)] for each in self.choices)
        rule = None if self.rule is None else self.rule.with_seed(seed)
        return attrs.evolve(self, choices=choices, rule=rule)

    def to_toml(self) -> str:
        """The selection as a configuration that :func:`load` reads back as an equal one."""
        if self.rule is not None:
            return Section("", "filters", self.rule.entries()).to_toml()
        written = [_entries(choice) for choice in self.choices]
        usual = max(written, key=written.count)
        whole = {**usual, config.HITS: self.optimize_filters_for_hits}
        sections = [Section("", "filters", whole)]
        for entries, run in groupby(enumerate(written), key=lambda pair: pair[1]):
            levels = [level for level, _ in run]
            spec = f"{levels[0]}" if len(levels) == 1 else f"{levels[0]}-{levels[-1]}"
            if entries != usual:
                sections.append(Section("", f"filters.level.{toml_key(spec)}", entries))
        return "\n".join(section.to_toml() for section in sections)

    def _choice(self, level: int) -> Choice:
        if not 0 <= level < len(self.choices):
            raise IndexError(f"there is no level {level}: allowed are 0 to {len(self) - 1}")
        return self.choices[level]


def load(path: str | os.PathLike[str], levels: int = 7) -> LevelPolicies:
    """The selection that a TOML file makes; PolicyConfigError says what is wrong where in it."""
    return LevelPolicies.from_config(read(path), levels, source=os.fspath(path))


def _seeded(choice: Choice, seed: int) -> Choice:
    try:
        return attrs.evolve(choice, policy=choice.policy.with_seed(seed))
    except (TypeError, ValueError):  # a seed that is none
        raise
    except BaseException as error:
        raise plugin_error(choice.policy, "raised in with_seed()", error) from error


def _entries(choice: Choice) -> dict[str, Any]:
    """What a section says of one choice; by that they are compared, and not by the policies."""
    policy = choice.policy
    place: dict[str, Any] = {"layout": choice.layout}
    if choice.partition_blocks is not None:
        place["partition_blocks"] = choice.partition_blocks
    if choice.prefixes is not None:
        place |= choice.prefixes.entries()
    try:
        return {"policy": policy.name, **policy.params(), **place}
    except BaseException as error:
        raise plugin_error(policy, "raised in params()", error) from error
