"""Picking compactions: the level that is due, which of its tables, and what these overlap."""

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

# LevelDB's, in output files: how many bytes of grandparents one output may overlap, and up to how
# many bytes of inputs a compaction is widened.
GRANDPARENT_FACTOR = 10
WIDENING_FACTOR = 25


@attrs.frozen(kw_only=True)
class Plan:
    """The inputs of a compaction: ``upper`` tables of a level, ``lower`` of the one below it."""

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
    """How full a level is: from 1 on it is due for compaction; the last level never is."""
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
    return expanded(version, level, [first], options)


def pick_range(
    version: Version,
    level: int,
    low: OrderedKey | None,
    high: OrderedKey | None,
    options: Options,
) -> Plan | None:
    """A compaction of the first tables between two bounds; of all of them on level 0."""
    tables = version.overlapping(level, low, high)
    if not tables:
        return None
    if level > 0:
        tables = _limited(tables, options.max_file_size)
    return expanded(version, level, tables, options)


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
            low, high = _bounds([*upper, *lower])
    grandparents = version.overlapping(level + 2, low, high) if level + 2 < LEVELS else []
    return Plan(version=version, level=level, upper=upper, lower=lower, grandparents=grandparents)


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
