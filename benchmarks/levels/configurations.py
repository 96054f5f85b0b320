"""The configurations that are compared: which policy on which level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path

import attrs

import policies
from benchmarks.errors import UnavailableError
from benchmarks.levels.settings import STEEP, USUAL, Settings, Shape
from filters import sizing
from filters.errors import FilterError
from filters.families import every
from filters.family import Family
from lsm.options import GIB, MIB
from lsm.options import LEVELS as ALL_LEVELS
from policies import FilterPolicy, LevelPolicies
from policies.builtin import BUILTIN
from policies.config import Choice
from policies.cost_models import models_of
from policies.placement import Run, place

EXAMPLE = "examples/lsm.toml"
# The families of which a quick run has the default on all levels.
FEW = ("blocked", "classic", "cuckoo", "binary-fuse")
ROOT = Path(__file__).parents[2]

BUDGET = "10 bits/key"
WHOLE, USUAL_TABLES = GIB, 2 * MIB
"""Tables that take a level whole, and those that a store has by default."""

Counts = Mapping[int, int]
"""How many keys each level has."""


@attrs.frozen
class Configuration:
    """A name and, for levels with so many keys, a policy each. ``is_few``: in a quick run, too.

    Where it ``is_refiltered``, lookups come once the levels were filled and refiltered.
    """

    name: str
    choose: Callable[[Counts], LevelPolicies] = attrs.field(repr=False)
    is_few: bool = False
    shape: Shape = USUAL
    table_bytes: int = WHOLE
    is_refiltered: bool = False

    @property
    def at(self) -> dict[str, int]:
        """What tells its rows from those of another shape."""
        return {} if self.shape == USUAL else {"growth": self.shape.growth}


def all_configurations(settings: Settings) -> list[Configuration]:
    """Ours, installed plug-ins at their defaults, and the user's own."""
    ours = [each for each in _ours() if each.is_few or not settings.few]
    own = [Configuration(file, partial(_load, Path(file))) for file in settings.files]
    steep = [each for each in _steep() if each.is_few or not settings.few]
    return [*ours, *_plug_ins(), *own, *steep]


def described(chosen: LevelPolicies, counts: Counts) -> str:
    """What the levels carry, in a line."""
    told = []
    for text, run in groupby(counts, key=lambda level: policy_text(chosen, level)):
        levels = list(run)
        where = f"{levels[0]}" if len(levels) == 1 else f"{levels[0]}-{levels[-1]}"
        told.append(f"{where} {text}")
    if chosen.optimize_filters_for_hits:
        told.append("optimize_filters_for_hits")
    return "; ".join(told)


def policy_text(chosen: LevelPolicies, level: int) -> str:
    """A level's policy and its parameters as somebody would say them."""
    params = {name: value for name, value in chosen[level].params().items() if value is not True}
    layout = "" if chosen.layout(level) == "table" else f"layout={chosen.layout(level)}"
    words = [chosen[level].name, *(f"{name}={value}" for name, value in params.items()), layout]
    return " ".join(filter(None, words))


def _ours() -> list[Configuration]:
    fuse_8 = policies.create("binary-fuse", fingerprint_bits=8)
    fuse_16 = policies.create("binary-fuse", fingerprint_bits=16)
    blocked = {bits: policies.create("blocked", bits_per_key=bits) for bits in (6, 10, 14)}
    classic = {bits: policies.create("classic", bits_per_key=bits) for bits in (6, 14)}
    return [
        by_level("none", {1: policies.create("none")}, few=True),
        *(_at_default(family) for family in every().values() if family.policy),
        *(by_level(f"blocked {bits}", {1: blocked[bits]}) for bits in (6, 14)),
        *(by_level(f"classic {bits}", {1: classic[bits]}) for bits in (6, 14)),
        by_level("binary-fuse 16", {1: fuse_16}),
        _more_above("classic", 6),
        _more_above("classic", 10, few=True),
        _more_above("blocked", 10),
        _more_above("bumped-ribbon", 6),
        _more_above("bumped-ribbon", 10),
        by_level("more above: binary-fuse", {1: fuse_16, 4: fuse_8}),
        by_level("mixed", {1: blocked[14], 4: fuse_8}, few=True),
        by_level("hits-only", {1: blocked[10]}, few=True, hits_only=True),
        by_level("none above", {1: policies.create("none"), 4: blocked[10]}),
        *_budgets(),
        Configuration(EXAMPLE, partial(_load, ROOT / EXAMPLE)),
    ]


def _steep() -> list[Configuration]:
    """What is compared on levels that grow by more."""
    blocked = policies.create("blocked", bits_per_key=10)
    return [
        attrs.evolve(each, shape=STEEP)
        for each in (
            by_level("blocked 10", {1: blocked}),
            _more_above("classic", 10),
            _more_above("bumped-ribbon", 10),
            *_budgets(),
        )
    ]


def _budgets() -> list[Configuration]:
    """A budget and nothing else: as levels are filled, and refiltered."""
    selected = LevelPolicies.by_budget(BUDGET, ALL_LEVELS)
    filled = Configuration(f"budget {BUDGET}", lambda counts: selected)
    refiltered = attrs.evolve(
        filled, name=f"{filled.name}, refiltered", is_few=True, is_refiltered=True
    )
    smaller = attrs.evolve(
        refiltered, name=f"{refiltered.name}, 2 MiB tables", table_bytes=USUAL_TABLES, is_few=False
    )
    return [filled, refiltered, smaller]


def _at_default(family: Family) -> Configuration:
    """A family's policy on all levels, named by what it is sized by."""
    default = family.parameters.default
    rate = default.name == family.rate_parameter
    size = f"{100 * default.value:g} %" if rate else f"{default.value:g}"
    chosen = {1: policies.create(family.name)}
    return by_level(f"{family.name} {size}", chosen, few=family.name in FEW)


def by_level(
    name: str, chosen: Mapping[int, FilterPolicy], *, few: bool = False, hits_only: bool = False
) -> Configuration:
    """From each of these levels down to the next, the policy that stands there."""
    first = min(chosen)
    choices = tuple(
        Choice(chosen[max((at for at in chosen if at <= level), default=first)])
        for level in range(ALL_LEVELS)
    )
    selected = LevelPolicies(choices, hits_only)
    return Configuration(name, lambda counts: selected, few)


def _more_above(family: str, bits: int, *, few: bool = False) -> Configuration:
    """Rates by the law, in the memory of so many bits on all levels."""
    name = f"more above: {family} {bits}"
    return Configuration(name, partial(_proportional, name, family, bits), few)


def _proportional(name: str, family: str, bits: int, counts: Counts) -> LevelPolicies:
    budget = sum(
        count * sizing.stored_bits_per_key(family, n=count, bits_per_key=bits)
        for count in counts.values()
    )
    runs = [Run(count) for count in counts.values()]
    placed = place(runs, budget, models=models_of([family]))
    made = [policies.create(each.policy, **each.params) for each in placed.options]
    return by_level(name, dict(zip(counts, made, strict=True))).choose(counts)


def _plug_ins() -> list[Configuration]:
    builtin = {cls.name for cls in BUILTIN}
    names = (name for name in policies.available() if name not in builtin)
    return [Configuration(name, partial(_plug_in, name)) for name in names]


def _plug_in(name: str, counts: Counts) -> LevelPolicies:
    """The plug-in at its default on every level; UnavailableError says why it cannot be."""
    try:
        return LevelPolicies.uniform(policies.create(name), ALL_LEVELS)
    except FilterError as error:
        raise UnavailableError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise UnavailableError(
            f"{name} cannot be made without parameters ({error}): name it in a --configuration"
        ) from error


def _load(file: Path, counts: Counts) -> LevelPolicies:
    try:
        return policies.load(file, levels=ALL_LEVELS)
    except OSError as error:
        raise UnavailableError(f"{file} cannot be read ({error.strerror})") from error
