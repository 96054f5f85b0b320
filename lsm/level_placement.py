"""Which level each table of a repaired database goes to, so that lookups find newest versions.

A lookup stops at the first table that has the key, asking level 0 by descending file number, then
one level after the other. Numbers do not tell what is newer: a compaction that ends after a flush
may have begun before it. So tables that share no range of keys with another stay as they are.
Those that do stay at the levels that a manifest tells, logs coming on top, if this finds the newest
version of every key: all their entries are compared for that. If it does not, or tables are among
them that the manifest does not know, those of level 0 and the unknown ones are merged, if that will
do, and else all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from lsm.kernels import TableFile
from lsm.kernels.python import merge
from lsm.options import LEVELS

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.keys import Entry
    from lsm.options import Options
    from lsm.salvage import Position
    from lsm.table_factory import TableFactory


@attrs.define(eq=False, kw_only=True)
class UsableTable:
    """A table that a repair goes on with, and the level it is known to belong to, if any."""

    number: int
    size: int
    first: Position
    last: Position
    level: int | None
    name: str | None = None
    """The file's, if it was there before."""

    @property
    def file(self) -> TableFile:
        """The file as tables are opened by."""
        return TableFile(self.number, self.size)


@attrs.frozen
class LevelPlacement:
    """Gives tables their levels; ``merge`` makes tables of a level of some that overlap."""

    factory: TableFactory
    options: Options
    merge: Callable[[list[UsableTable], int], list[UsableTable]]

    def placed(self, tables: list[UsableTable]) -> list[UsableTable]:
        """All tables of the database, each with its level."""
        default = self._level_with_room(sum(table.size for table in tables))
        placed: list[UsableTable] = []
        for group in _overlapping_groups(tables):
            if len(group) == 1:
                (table,) = group
                level = default if table.level is None else table.level
                placed.append(attrs.evolve(table, level=level))
                continue
            top = [table for table in group if not table.level]
            levels = [[table for table in group if table.level == n] for n in range(1, LEVELS)]
            top.sort(key=attrgetter("number"), reverse=True)
            is_known = all(table.level is not None for table in group)
            if is_known and self._finds_newest([*([table] for table in top), *levels]):
                placed += group
            elif len(top) < len(group) and self._finds_newest([top, *levels]):
                placed += [*self.merge(top, 0), *chain.from_iterable(levels)]
            else:
                placed += self.merge(group, default)
        return placed

    def _level_with_room(self, size: int) -> int:
        """The first level from 1 on that may hold so many bytes."""
        levels = range(1, LEVELS - 1)
        limit = self.options.limit
        return next((level for level in levels if size <= limit(level)), LEVELS - 1)

    def _finds_newest(self, rows: Sequence[list[UsableTable]]) -> bool:
        """Whether the first row that has a key has its newest version, and levels can be rows.

        The last rows are those of the levels from 1 on, whose tables must not overlap.
        """
        for row in rows[1 - LEVELS :]:
            if any(not one.last < other.first for one, other in pairwise(row)):
                return False
        places = {table.number: place for place, row in enumerate(rows) for table in row}

        def tagged(run: list[UsableTable]) -> Iterator[list[Entry]]:
            for table in run:
                place: Any = places[table.number]
                for entries in self.factory.entries(table.file):
                    yield [(key, rank, place) for key, rank, _ in entries]

        runs = sorted_runs(chain.from_iterable(rows))
        for window in merge.ascending(tagged(run) for run in runs):
            newest: Any = None
            for entry in window:
                if newest is None or entry[0] != newest[0]:
                    newest = entry
                elif entry[2] < newest[2]:
                    return False
        return True


def sorted_runs(tables: Iterable[UsableTable]) -> list[list[UsableTable]]:
    """The tables as few runs, in each of which they ascend without overlap."""
    runs: list[list[UsableTable]] = []
    for table in sorted(tables, key=attrgetter("first")):
        for run in runs:
            if run[-1].last < table.first:
                run.append(table)
                break
        else:
            runs.append([table])
    return runs


def _overlapping_groups(tables: list[UsableTable]) -> Iterator[list[UsableTable]]:
    """The tables in groups that share no range of keys, each sorted by its tables' first keys."""
    group: list[UsableTable] = []
    high: OrderedKey = None
    for table in sorted(tables, key=attrgetter("first")):
        if group and high < table.first[0]:
            yield group
            group = []
        high = table.last[0] if not group else max(high, table.last[0])
        group.append(table)
    if group:
        yield group
