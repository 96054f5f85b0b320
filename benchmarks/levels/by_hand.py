"""What people configure by hand: everywhere alike, Monkey, and as Pebble does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import policies
from benchmarks.levels.configurations import by_level
from benchmarks.levels.live import Carried
from lsm.options import LEVELS
from policies import FilterPolicy, LevelPolicies
from policies.cost_models import models_of
from policies.placement import Run, place

ByHand = Callable[[Sequence[Carried]], LevelPolicies]

UNIFORM, MONKEY, PEBBLE = "blocked 10", "more above: classic 10", "Pebble's table"
PEBBLE_LITERALLY = "Pebble's table, from level 0 down"
BITS_PER_KEY = 10
# Bits of a fingerprint on levels 0 to 6, of a store that fills its levels from the last one up.
PROGRESSIVE = (16, 16, 16, 12, 10, 8, 4)
# The sizes of a fingerprint that our binary fuse filters have.
_FUSE_BITS = (8, 16)


def uniform(tables: Sequence[Carried]) -> LevelPolicies:
    """What everybody runs."""
    return LevelPolicies.uniform(policies.create("blocked", bits_per_key=BITS_PER_KEY), LEVELS)


def monkey(tables: Sequence[Carried]) -> LevelPolicies:
    """Classic Bloom filters at rates by the law, for the runs that there are, in the same bits."""
    counts: dict[int, int] = {}
    newest = [table.keys for table in tables if not table.level]
    for table in tables:
        if table.level:
            counts[table.level] = counts.get(table.level, 0) + table.keys
    runs = [Run(round(sum(newest) / len(newest)))] * len(newest) if newest else []
    levels = [0] * len(runs) + sorted(counts)
    runs += [Run(counts[level]) for level in sorted(counts)]
    bits = BITS_PER_KEY * sum(table.keys for table in tables)
    options = place(runs, bits, models=models_of(["classic"])).options
    made = {
        level: policies.create(option.policy, **option.params)
        for level, option in zip(levels, options, strict=True)
    }
    return by_level(MONKEY, made).choose({})


def pebble(tables: Sequence[Carried]) -> LevelPolicies:
    """Pebble's progressive sizes, the last of which is for the deepest level that there is.

    Pebble fills its levels from the last one up, and these begin at level 0.
    """
    deepest = max(table.level for table in tables)
    return _progressive(LEVELS - 1 - deepest)


def pebble_literally(tables: Sequence[Carried]) -> LevelPolicies:
    """The same sizes on levels of the same numbers, of which the last ones are empty here."""
    return _progressive(0)


def _progressive(skipped: int) -> LevelPolicies:
    sizes = PROGRESSIVE[skipped:]
    made = {level: fingerprints(bits) for level, bits in enumerate(sizes)}
    return by_level(PEBBLE, made).choose({})


def fingerprints(bits: int) -> FilterPolicy:
    """Binary fuse with fingerprints of so many bits; where we have none, that rate by ribbons."""
    if bits in _FUSE_BITS:
        return policies.create("binary-fuse", fingerprint_bits=bits)
    return policies.create("bumped-ribbon", fpr=2.0**-bits)


BY_HAND: dict[str, ByHand] = {
    UNIFORM: uniform,
    MONKEY: monkey,
    PEBBLE: pebble,
    PEBBLE_LITERALLY: pebble_literally,
}
