"""The fewest reads in vain for tables that are not all asked alike, and the best placement of ours.

``policies.placement.floor`` is for runs that every lookup comes to: that is the floor of a tree's
shape, by which trees are judged. But levels of a live store have holes, through which lookups pass,
and lookups prefer some keys. So there is another floor, where each table has a share of its own:
no filters at all are below that one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.levels.live import Carried
from benchmarks.levels.lookups import Lookups
from policies import placement
from policies.placement import Run, place


def floor(tables: Sequence[Carried], lookups: Lookups, bits: float) -> float:
    """The fewest blocks that any filters of so many bits let a lookup read in vain."""
    asked = [(table.keys, lookups.share(table.low, table.high)) for table in tables]
    paying = [(keys, share) for keys, share in asked if keys and share > 0]
    always = 0.0
    while paying:
        total = sum(keys for keys, _ in paying)
        spent = math.fsum(keys * math.log(keys / share) for keys, share in paying)
        rate = math.exp(-(bits * math.log(2) + spent) / total)
        dropped = sum(share for keys, share in paying if rate * keys > share)
        if not dropped:
            return always + rate * total
        always += dropped
        paying = [(keys, share) for keys, share in paying if rate * keys <= share]
    return always


def floor_of_runs(tables: Sequence[Carried], bits: float) -> float:
    """The same for the levels as whole runs, and each table of level 0 as one."""
    counts: dict[tuple[int, int], int] = {}
    for at, table in enumerate(tables):
        run = (table.level, 0 if table.level else at)
        counts[run] = counts.get(run, 0) + table.keys
    return placement.floor(counts.values(), bits)


def best_placement(tables: Sequence[Carried], lookups: Lookups, bits: float) -> float:
    """What a lookup reads where all filters are placed by who knows what comes to which table."""
    runs = [Run(table.keys, lookups.share(table.low, table.high)) for table in tables]
    return place(runs, bits).reads
