"""Choosing what to compact next: which level, which of its tables, and what they meet below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from lsm.comparator import OrderedKey
from lsm.disk.keys import unpack
from lsm.options import LEVELS, Options
from lsm.version import PlacedTable, Version

if TYPE_CHECKING:
    from lsm.comparator import Comparator

# LevelDB's: how far the tables of the level below the output may be overlapped by one output, and
# up to which size inputs are widened for free.
GRANDPARENT_FACTOR = 10
WIDENING_FACTOR = 25


@attrs.frozen(kw_only=True)
class Plan:
    """Tables of one level, and those of the next that they overlap."""

    version: Version
    level: int
    upper: Sequence[PlacedTable]
    lower: Sequence[PlacedTable]
    grandparents: Sequence[PlacedTable]

    @property
    def inputs(self) -> list[PlacedTable]:
        """All tables that the compaction reads."""
        return [*self.upper, *self.lower]

    @property
    def pointer(self) -> bytes:
        """Where the level's next compaction goes on: the largest key of this one."""
        return max(self.upper, key=lambda table: (table.high, unpack(table.largest)[1])).largest

    def is_move(self, options: Options) -> bool:
        """Whether the one table can be moved down as it is."""
        beneath = sum(table.size for table in self.grandparents)
        return (
            len(self.upper) == 1
            and not self.lower
            and beneath <= GRANDPARENT_FACTOR * options.max_file_size
        )


def score(version: Version, level: int, options: Options) -> float:
    """How full a level is; from 1 on it wants compaction. The last level never does."""
    if level == 0:
        return len(version.levels[0]) / options.level0_compact_files
    if level == LEVELS - 1:
        return 0.0
    return version.size(level) / options.limit(level)


def fullest(version: Version, options: Options) -> tuple[int, float]:
    """The level that is fullest, and its score."""
    scores = [score(version, level, options) for level in range(LEVELS - 1)]
    best = max(range(LEVELS - 1), key=scores.__getitem__)
    return best, scores[best]


def pick(
    version: Version, options: Options, pointers: Mapping[int, bytes], comparator: Comparator
) -> Plan | None:
    """The compaction that is due, or None if no level is full."""
    level, fullness = fullest(version, options)
    if fullness < 1:
        return None
    tables = version.levels[level]
    if level == 0:
        first = tables[-1]  # the oldest
    else:
        first = tables[0]
        if level in pointers:
            pointer = unpack(pointers[level])[0]
            after = pointer if comparator.wrap is None else comparator.wrap(pointer)
            first = next((table for table in tables if after < table.high), first)
    return widened(version, level, [first], options)


def pick_range(
    version: Version,
    level: int,
    low: OrderedKey | None,
    high: OrderedKey | None,
    options: Options,
) -> Plan | None:
    """A compaction of tables between two bounds; below level 0 of some, from the left."""
    tables = version.overlapping(level, low, high)
    if not tables:
        return None
    if level > 0:
        tables = _as_many_as(tables, options.max_file_size)
    return widened(version, level, tables, options)


def widened(version: Version, level: int, tables: Sequence[PlacedTable], options: Options) -> Plan:
    """The plan that begins with these tables, with all that has to come along, and what may."""
    upper = _closed(version, level, tables)
    lower = _met(version, level, upper)
    low, high = _bounds([*upper, *lower])
    more = _closed(version, level, version.overlapping(level, low, high))
    if lower and len(more) > len(upper):
        size = sum(table.size for table in (*more, *lower))
        also = _met(version, level, more)
        if size < WIDENING_FACTOR * options.max_file_size and len(also) == len(lower):
            upper, lower = more, also
            low, high = _bounds([*upper, *lower])
    grandparents = version.overlapping(level + 2, low, high) if level + 2 < LEVELS else []
    return Plan(version=version, level=level, upper=upper, lower=lower, grandparents=grandparents)


def _closed(version: Version, level: int, tables: Sequence[PlacedTable]) -> list[PlacedTable]:
    """The tables, and all of the level that hold further versions of their keys.

    If a newer version went down and an older one stayed, the older would be found first.
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


def _met(version: Version, level: int, upper: Sequence[PlacedTable]) -> list[PlacedTable]:
    lower = version.overlapping(level + 1, *_bounds(upper))
    return _closed(version, level + 1, lower) if lower else []


def _bounds(tables: Sequence[PlacedTable]) -> tuple[OrderedKey, OrderedKey]:
    return min(table.low for table in tables), max(table.high for table in tables)


def _as_many_as(tables: Sequence[PlacedTable], size: int) -> list[PlacedTable]:
    taken, total = [], 0
    for table in tables:
        taken.append(table)
        total += table.size
        if total >= size:
            break
    return taken
