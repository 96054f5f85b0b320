"""Picking compactions: the level that is due, which of its tables, and what these overlap.

What runs already has claims, and a plan that touches one of these waits. ``jobs.py`` has the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

import attrs

from lsm.comparator import OrderedKey
from lsm.disk.keys import unpack
from lsm.jobs import Claim
from lsm.options import LEVELS, Options
from lsm.version import PlacedTable, Version

if TYPE_CHECKING:
    from lsm.comparator import Comparator

# LevelDB's, in output files: how many bytes of grandparents one output may overlap, and up to how
# many bytes of inputs a compaction is widened.
GRANDPARENT_FACTOR = 10
WIDENING_FACTOR = 25

# How many output files of a level a compaction that is asked for takes at a time. LevelDB takes
# one, and merges twice what lies below the border of two; each step ends with its own syncs.
PIECE_FACTOR = 4

# Up to so many output files all that one needs of level 0 and the levels below is merged at once,
# where LevelDB writes it anew for every level. Until that is done the inputs take up their room.
AT_ONCE_FACTOR = 100


@attrs.frozen(kw_only=True)
class Plan:
    """The inputs of a compaction: ``lower`` tables, and ``upper`` ones of the level above them.

    A compaction that is asked for may take those of several levels along, from ``top`` down to
    ``level``, as ``upper`` ones. Without any, the ``lower`` tables are written anew in place.
    """

    level: int
    upper: Sequence[PlacedTable]
    lower: Sequence[PlacedTable]
    grandparents: Sequence[PlacedTable]

    @property
    def inputs(self) -> list[PlacedTable]:
        """All tables that the compaction reads."""
        return [*self.upper, *self.lower]

    @property
    def top(self) -> int:
        """The highest level that it takes tables of."""
        return self.inputs[0].level

    @property
    def pointer(self) -> bytes:
        """Where the level's next compaction goes on: the largest key of this one."""
        return max(self.upper, key=lambda table: (table.high, unpack(table.largest)[1])).largest

    @property
    def claim(self) -> Claim:
        """What the compaction has for itself while it runs."""
        low, high = _bounds(self.inputs)
        tables = frozenset(table.number for table in self.inputs)
        if not self.upper:
            return Claim.in_place(self.level + 1, tables, low, high)
        leaving = sum(table.size for table in self.upper if table.level == self.level)
        return Claim(self.level, tables, low, high, leaving, top=self.top)

    def is_move(self, options: Options) -> bool:
        """Whether the one table can be moved down as it is."""
        beneath = sum(table.size for table in self.grandparents)
        return (
            len(self.upper) == 1
            and not self.lower
            and beneath <= GRANDPARENT_FACTOR * options.max_file_size
        )


def score(version: Version, level: int, options: Options, running: Sequence[Claim] = ()) -> float:
    """How full a level is: from 1 on it is due for compaction; the last level never is.

    What running compactions are about to take away does not count.
    """
    if level == 0:
        return len(version.levels[0]) / options.level0_compact_files
    if level == LEVELS - 1:
        return 0.0
    leaving = sum(claim.upper_bytes for claim in running if claim.level == level)
    return (version.size(level) - leaving) / options.limit(level)


def due(version: Version, options: Options, running: Sequence[Claim] = ()) -> list[int]:
    """The levels that are due for compaction, the fullest first."""
    scores = [score(version, level, options, running) for level in range(LEVELS - 1)]
    levels = [level for level, fullness in enumerate(scores) if fullness >= 1]
    return sorted(levels, key=lambda level: -scores[level])


def pick(
    version: Version,
    options: Options,
    pointers: Mapping[int, bytes],
    comparator: Comparator,
    running: Sequence[Claim] = (),
    waiting: Sequence[Claim] = (),
) -> Plan | None:
    """The compaction to begin beside those that run; None if no level is full, or all have to wait.

    A plan that has to wait is not made to wait longer: nothing that begins touches those that are
    ``waiting``, and no plan of a less full level touches that of a fuller one.
    """
    claims = [*running, *waiting]
    for level in due(version, options, running):
        plan = None
        for first in _in_turn(version, level, pointers, comparator):
            if plan is not None and _is_claimed(first, claims):
                continue
            found = expanded(version, level, [first], options)
            if found.claim.is_free(claims):
                return found
            plan = plan or found
        if plan is not None:
            claims.append(plan.claim)
    return None


def _in_turn(
    version: Version, level: int, pointers: Mapping[int, bytes], comparator: Comparator
) -> Iterator[PlacedTable]:
    """The tables that a compaction may begin with: the oldest of level 0, else in a round."""
    tables = version.levels[level]
    if level == 0:
        yield tables[-1]
        return
    begin = 0
    if level in pointers:
        pointer = unpack(pointers[level])[0]
        after = pointer if comparator.wrap is None else comparator.wrap(pointer)
        begin = next((at for at, table in enumerate(tables) if after < table.high), 0)
    yield from tables[begin:]
    yield from tables[:begin]


def _is_claimed(table: PlacedTable, claims: Sequence[Claim]) -> bool:
    """Whether whatever is planned with this table touches one of the claims."""
    alone = Claim(table.level, frozenset([table.number]), table.low, table.high, table.size)
    return not alone.is_free(claims)


def pick_range(
    version: Version,
    level: int,
    low: OrderedKey | None,
    high: OrderedKey | None,
    options: Options,
) -> Plan | None:
    """A compaction of the first tables between two bounds; of all of them on level 0.

    These take along what lies below, as long as that is little.
    """
    tables = version.overlapping(level, low, high)
    if not tables:
        return None
    if level == 0:
        return deepened(version, expanded(version, level, tables, options), options)
    tables = _limited(tables, PIECE_FACTOR * options.max_file_size)
    return expanded(version, level, tables, options)


def pick_in_place(
    version: Version,
    level: int,
    low: OrderedKey | None,
    high: OrderedKey | None,
    older_than: int,
    options: Options,
) -> Plan | None:
    """The first tables between two bounds with numbers below one, to be written anew in place.

    With them go those that have further versions of their keys: a tombstone that nothing beneath
    needs is left out, and no older version may stay behind.
    """
    tables = version.overlapping(level, low, high)
    from_old_on = dropwhile(lambda each: each.number >= older_than, tables)
    old = list(takewhile(lambda each: each.number < older_than, from_old_on))
    if not old:
        return None
    lower = _clean_cut(version, level, _limited(old, PIECE_FACTOR * options.max_file_size))
    grandparents = _grandparents(version, level - 1, lower)
    return Plan(level=level - 1, upper=(), lower=lower, grandparents=grandparents)


def deepened(version: Version, plan: Plan, options: Options) -> Plan:
    """The plan that merges what this one would merge with the levels below that at once."""
    while plan.lower and plan.grandparents:
        level, upper = plan.level + 1, plan.inputs
        lower = _lower_inputs(version, level, upper)
        if sum(table.size for table in (*upper, *lower)) > AT_ONCE_FACTOR * options.max_file_size:
            break
        grandparents = _grandparents(version, level, [*upper, *lower])
        plan = Plan(level=level, upper=upper, lower=lower, grandparents=grandparents)
    return plan


def expanded(version: Version, level: int, tables: Sequence[PlacedTable], options: Options) -> Plan:
    """The plan that begins with these tables and adds all that they overlap.

    More tables of the level are added where that needs no more of the one below.
    """
    upper = _clean_cut(version, level, tables)
    lower = _lower_inputs(version, level, upper)
    low, high = _bounds([*upper, *lower])
    more = _clean_cut(version, level, version.overlapping(level, low, high))
    if lower and len(more) > len(upper):
        size = sum(table.size for table in (*more, *lower))
        also = _lower_inputs(version, level, more)
        if size < WIDENING_FACTOR * options.max_file_size and len(also) == len(lower):
            upper, lower = more, also
    grandparents = _grandparents(version, level, [*upper, *lower])
    return Plan(level=level, upper=upper, lower=lower, grandparents=grandparents)


def _clean_cut(version: Version, level: int, tables: Sequence[PlacedTable]) -> list[PlacedTable]:
    """The tables, and those of the level that hold further versions of their keys.

    Were a newer version moved down without an older one, lookups would find the older.
    """
    if level == 0:
        return version.overlapping(0, *_bounds(tables))
    everything = version.levels[level]
    first = everything.index(min(tables, key=lambda table: table.low))
    last = everything.index(max(tables, key=lambda table: table.high))
    while first > 0 and everything[first - 1].high == everything[first].low:
        first -= 1
    while last + 1 < len(everything) and everything[last].high == everything[last + 1].low:
        last += 1
    return list(everything[first : last + 1])


def _lower_inputs(version: Version, level: int, upper: Sequence[PlacedTable]) -> list[PlacedTable]:
    lower = version.overlapping(level + 1, *_bounds(upper))
    return _clean_cut(version, level + 1, lower) if lower else []


def _grandparents(
    version: Version, level: int, tables: Sequence[PlacedTable]
) -> Sequence[PlacedTable]:
    """What lies below the level that these tables of a level and the next are merged to."""
    return version.overlapping(level + 2, *_bounds(tables)) if level + 2 < LEVELS else []


def _bounds(tables: Sequence[PlacedTable]) -> tuple[OrderedKey, OrderedKey]:
    return min(table.low for table in tables), max(table.high for table in tables)


def _limited(tables: Sequence[PlacedTable], size: int) -> list[PlacedTable]:
    taken, total = [], 0
    for table in tables:
        taken.append(table)
        total += table.size
        if total >= size:
            break
    return taken
