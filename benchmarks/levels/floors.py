"""The fewest reads in vain for tables that are not all asked alike, and the best placement of ours.

``policies.placement.floor`` is for runs that every lookup comes to. Tables of a live store have
ranges, levels may have holes, and lookups prefer some keys: so here each has its own share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.levels.live import Carried
from benchmarks.levels.lookups import Lookups
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


def best_placement(tables: Sequence[Carried], lookups: Lookups, bits: float) -> float:
    """What a lookup reads where all filters are placed by who knows what comes to which table."""
    runs = [Run(table.keys, lookups.share(table.low, table.high)) for table in tables]
    return place(runs, bits).reads
