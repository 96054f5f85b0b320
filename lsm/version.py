"""Versions: the tables of every level at one moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from lsm.disk.keys import sequence_of, unpack
from lsm.errors import CorruptionError
from lsm.options import LEVELS

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.kernels import TableFile, Tally


@attrs.define(eq=False)
class PlacedTable:
    """A table file at a level; one that moves down gets a new placement for the same file."""

    level: int
    file: TableFile
    smallest: bytes
    largest: bytes
    low: Any = attrs.field(repr=False)
    high: Any = attrs.field(repr=False)
    first: tuple[Any, int] = attrs.field(repr=False)
    last: tuple[Any, int] = attrs.field(repr=False)
    tally: Tally | None = attrs.field(default=None, repr=False)

    @classmethod
    def at(
        cls, level: int, file: TableFile, smallest: bytes, largest: bytes, comparator: Comparator
    ) -> PlacedTable:
        """The placement of a table between two internal keys, decoded for comparisons.

        CorruptionError if the largest precedes the smallest.
        """
        first, last = unpack(smallest), unpack(largest)
        wrap: Any = comparator.wrap
        if wrap is not None:
            first, last = (wrap(first[0]), first[1]), (wrap(last[0]), last[1])
        placed = cls(level, file, smallest, largest, first[0], last[0], first, last)
        if last < first:
            raise CorruptionError(
                f"table {file.number} of level {level} would begin at {_shown(smallest)} and end "
                f"before, at {_shown(largest)}"
            )
        return placed

    @property
    def number(self) -> int:
        """The number in the file's name."""
        return self.file.number

    @property
    def size(self) -> int:
        """The length of the file in bytes."""
        return self.file.size


class OverlapError(CorruptionError):
    """Two tables of a level below 0 have keys of the same range."""

    def __init__(self, one: PlacedTable, other: PlacedTable):
        super().__init__(
            f"tables {one.number} and {other.number} of level {one.level} overlap: the first would "
            f"end at {_shown(one.largest)}, the other begin at {_shown(other.smallest)}"
        )
        self.tables = one, other


class Version:
    """The tables of every level; never changed once it is made.

    Level 0 has the newest table first, and its tables overlap. The tables of every other level
    ascend. Two neighbours may share a user key, if the first has its newer versions.
    """

    __slots__ = ("__weakref__", "levels", "search", "sorted_levels", "whole")

    def __init__(self, levels: Sequence[Iterable[PlacedTable]]):
        newest_first = sorted(levels[0], key=lambda table: table.number, reverse=True)
        below = (sorted(tables, key=attrgetter("first")) for tables in levels[1:])
        self.levels: tuple[tuple[PlacedTable, ...], ...] = (
            tuple(newest_first),
            *map(tuple, below),
        )
        # What a compiled kernel searches the levels by, which it makes of them once.
        self.search: Any = None
        self.whole: Version | None = None
        # For lookups: the levels that have tables, with the upper bounds to bisect.
        self.sorted_levels: list[tuple[tuple[PlacedTable, ...], list[OrderedKey]]] = [
            (tables, [table.high for table in tables]) for tables in self.levels[1:] if tables
        ]

    @classmethod
    def empty(cls) -> Version:
        """The version of a new database, without tables."""
        return cls([()] * LEVELS)

    def only(self, levels: Sequence[Iterable[PlacedTable]]) -> Version:
        """Some of its tables for a reader, who has these files as long as all others."""
        some = Version(levels)
        some.whole = self
        return some

    def check_order(self) -> None:
        """OverlapError if a table below level 0 begins before the one before it ends."""
        for tables in self.levels[1:]:
            for one, other in pairwise(tables):
                if other.first < one.last:
                    raise OverlapError(one, other)

    def tables(self) -> Iterator[PlacedTable]:
        """All tables, from level 0 down."""
        for tables in self.levels:
            yield from tables

    def size(self, level: int) -> int:
        """The bytes of a level's tables."""
        return sum([table.file.size for table in self.levels[level]])

    def overlapping(
        self, level: int, low: OrderedKey | None, high: OrderedKey | None
    ) -> list[PlacedTable]:
        """The tables of a level with keys between two bounds, these included; None is no bound.

        On level 0, where tables overlap each other, the bounds grow with what is found.
        """
        tables = self.levels[level]
        if level == 0:
            return _overlapping_closure(tables, low, high)
        highs = [table.high for table in tables]
        first = 0 if low is None else bisect_left(highs, low)
        lows = [table.low for table in tables]
        end = len(tables) if high is None else bisect_right(lows, high)
        return list(tables[first:end])

    def level_for_flush(
        self, low: OrderedKey, high: OrderedKey, deepest: int, overlap_limit: int
    ) -> int:
        """The deepest level for a new table with these bounds that hides no version of a key.

        It ends above a level that it overlaps, and above one from which a compaction would have to
        rewrite more than ``overlap_limit`` bytes of the next.
        """
        if self.overlapping(0, low, high):
            return 0
        level = 0
        while level < deepest and not self.overlapping(level + 1, low, high):
            if level + 2 < LEVELS:
                beneath = sum(table.size for table in self.overlapping(level + 2, low, high))
                if beneath > overlap_limit:
                    break
            level += 1
        return level


def _shown(internal: bytes) -> str:
    key, rank = unpack(internal)
    return f"{key[:40]!r} @ {sequence_of(rank)}"


def _overlapping_closure(
    tables: Sequence[PlacedTable], low: OrderedKey | None, high: OrderedKey | None
) -> list[PlacedTable]:
    while True:
        found = [
            table
            for table in tables
            if (low is None or not table.high < low) and (high is None or not high < table.low)
        ]
        wider_low = min((table.low for table in found), default=low) if low is not None else None
        wider_high = (
            max((table.high for table in found), default=high) if high is not None else None
        )
        grew = (low is not None and wider_low < low) or (high is not None and high < wider_high)
        if not grew:
            return found
        low, high = _least(low, wider_low), _greatest(high, wider_high)


def _least(one: OrderedKey | None, other: OrderedKey | None) -> OrderedKey | None:
    return None if one is None or other is None else min(one, other)


def _greatest(one: OrderedKey | None, other: OrderedKey | None) -> OrderedKey | None:
    return None if one is None or other is None else max(one, other)
