"""How metrics are read from statistics: rows of values, by the values of a metric's labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

import lsm
from lsm.stats import Counters, FilterCounts, Stats

Values = tuple[str, ...]
Rows = Iterable[tuple[Values, float | None]]
Reading = Callable[[Stats], Rows]

# Policies are called whatever the files say, which somebody else may have written.
_MOST_CHARACTERS = 128

_CACHES = ("block", "filter", "table")
_CAUSES = ("none", "unknown", "corrupt", "failed", "declined", "unloaded")


def one(name: str) -> Reading:
    """A number of the whole database."""
    value = attrgetter(name)
    return lambda stats: (((), value(stats)),)


def by_level(name: str) -> Reading:
    """A number of each level."""
    value = attrgetter(name)
    return lambda stats: [((str(each.level),), value(each)) for each in stats.levels]


def by_policy(value: Callable[[Counters], float | None]) -> Reading:
    """A count of lookups for each policy that a level has, or has had."""
    return lambda stats: [(_place(each), value(each.counters)) for each in _counted(stats)]


def _counted(stats: Stats) -> Iterator[FilterCounts]:
    """What was counted, and noughts for filters that nobody has asked yet.

    Who computes rates would miss what a counter has counted before it is seen for the first time.
    """
    yield from stats.filters
    known = {(each.level, each.policy) for each in stats.filters}
    for each in stats.carried:
        if (each.level, each.policy) not in known:
            yield FilterCounts(level=each.level, policy=each.policy, counters=Counters())


def by_cause(stats: Stats) -> Rows:
    """The blocks that were read without asking a filter, by the reason for that."""
    return [
        ((*_place(each), cause), getattr(each.counters, cause))
        for each in _counted(stats)
        for cause in _CAUSES
    ]


def carried(name: str) -> Reading:
    """A number of the filters that the tables of a level carry now."""
    value = attrgetter(name)
    return lambda stats: [(_place(each), value(each)) for each in stats.carried]


def of_ranges(name: str) -> Reading:
    """A count of ranges for each policy that a level has, or has had."""
    value = attrgetter(name)
    return lambda stats: [(_place(each), value(each)) for each in stats.ranges]


def _place(each: Any) -> Values:
    """The level and the policy that something was counted for."""
    policy: str = each.policy
    if not policy.isascii():
        policy = policy.encode("utf-8", "backslashreplace").decode()
    return str(each.level), policy[:_MOST_CHARACTERS]


def by_cache(name: str) -> Reading:
    """A number of each cache."""
    return lambda stats: [
        ((cache,), getattr(getattr(stats, f"{cache}_cache"), name)) for cache in _CACHES
    ]


def by_stall(slowed: str, stopped: str) -> Reading:
    """Two numbers: of writes that were slowed, and of those that were stopped."""
    return lambda stats: (
        (("slowed",), getattr(stats, slowed)),
        (("stopped",), getattr(stats, stopped)),
    )


def info(stats: Stats) -> Rows:
    """What the database runs on."""
    return (((lsm.__version__, stats.kernel), 1),)
