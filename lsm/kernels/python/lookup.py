"""One key's newest version: memtables first, then each level's candidate table, newest first.

What is not in memory the walk asks of ``tables``, a table cache: it opens tables, loads filters and
reads blocks, has the tallies, and says how to go on without a filter that raised. So the walk
itself opens nothing, logs nothing, and raises nothing of its own.

The key is handed to each filter as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from lsm.disk.keys import NEWEST, Entry
from lsm.kernels.python.tally import Tally

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.kernels.python.table import Table
    from lsm.kernels.python.view import View
    from lsm.loaded_filter import LoadedFilter
    from lsm.tables import TableCache
    from lsm.version import PlacedTable, Version


class Listener(Protocol):
    """Is told where a lookup looks and what it finds; such a lookup counts nothing.

    With ``only_filters`` it reads no data, and ends where that would be needed.
    """

    only_filters: bool

    def memtable(self, number: int, rank: int | None) -> None:
        """A memtable has the key in a version of this rank, or in none."""

    def table(
        self,
        placed: PlacedTable,
        loaded: LoadedFilter,
        said: bool | None,
        number: int | None,
        rank: int | None,
    ) -> None:
        """What a table's filter said, if it was asked; the block, if one was read; the version."""


def find(
    view: View,
    tables: TableCache,
    user_key: bytes,
    key: OrderedKey,
    read_rank: int,
    fill_cache: bool,
    listener: Listener | None = None,
) -> bytes | None:
    """The value that the key has at this read rank; None if it has none."""
    for number, memtable in enumerate(view.memtables):
        entry = memtable.find(key, read_rank)
        if listener is not None:
            listener.memtable(number, None if entry is None else entry[1])
        if entry is not None:
            return entry[2] if entry[1] & 1 else None
    walk = Walk(tables, user_key, key, read_rank, fill_cache, listener)
    for placed in candidates(view.version, key):
        entry = walk.find_in(placed)
        if entry is not None:
            return entry[2] if entry[1] & 1 else None
    return None


def candidates(version: Version, key: OrderedKey) -> Iterator[PlacedTable]:
    """The tables that have the key between their bounds, in the order that a lookup asks them."""
    for placed in version.levels[0]:
        if not (key < placed.low or placed.high < key):
            yield placed
    for level, highs in version.sorted_levels:
        at = bisect_left(highs, key)
        # LevelDB may cut a table between two versions of a key: then the next one has the older.
        while at < len(level) and not key < level[at].low:
            yield level[at]
            at += 1


class Walk:
    """A lookup on its way through tables: of each the filter, then the index, then a block."""

    __slots__ = ("fill_cache", "key", "listener", "read_rank", "tables", "user_key")

    def __init__(
        self,
        tables: TableCache,
        user_key: bytes,
        key: OrderedKey,
        read_rank: int,
        fill_cache: bool,
        listener: Listener | None,
    ):
        self.tables = tables
        self.user_key = user_key
        self.key = key
        self.read_rank = read_rank
        self.fill_cache = fill_cache
        self.listener = listener

    def find_in(self, placed: PlacedTable) -> Entry | None:
        """The newest version in one table that is visible at the read rank."""
        tables = self.tables
        table = placed.file.opened
        if table is None:
            table = tables.open(placed.file)
        table.used = True
        loaded = table.filter
        if loaded is None:
            loaded = tables.filters.load(table)
        return self.find_beneath(placed, table, loaded)

    def find_beneath(self, placed: PlacedTable, table: Table, loaded: LoadedFilter) -> Entry | None:
        """The same, where the table is open and its filter loaded."""
        tables, key, listener = self.tables, self.key, self.listener
        loaded.used = True
        tally = placed.tally or self._tally(placed, loaded)
        if loaded.partitions is not None:
            loaded = tables.filters.find_partition(table, loaded, key)
            loaded.used = True
        number: int | None = None
        said = None
        reader = loaded.reader
        try:
            if loaded.windows is not None:
                number = table.block_for(key, self.read_rank)
                if number < table.block_count:
                    reader = loaded.windows.at(table.offset(number))
            if reader is not None:
                said = reader.might_contain(self.user_key) is not False  # all else is "maybe"
        except BaseException as error:
            said, loaded = None, tables.filters.probe_failed(table, loaded, error)
            tally = self._tally(placed, loaded)
        if said is False:
            if listener is not None:
                listener.table(placed, loaded, said, None, None)
            else:
                tally.skipped += 1
                placed.file.missed += 1
            return None
        if number is None:
            number = table.block_for(key, self.read_rank)
        if number == table.block_count:  # the table ends in newer versions of this very key
            if listener is not None:
                listener.table(placed, loaded, said, None, None)
                return None
            placed.file.found += 1
            if loaded.reader is not None and loaded.state == "built":
                tally.true_positives += 1
            return None
        if listener is not None:
            return self._told(placed, table, loaded, said, number)
        block = table.cached(number)
        if block is None:
            tables.lookup_misses += 1
            block = tables.block(table, number, self.fill_cache)
        else:
            block.used = True
        entry = block.find(key, self.read_rank)
        if entry is not None and entry[0] != key:
            entry = None
        if loaded.state != "built":
            placed.file.found += entry is not None
            placed.file.missed += entry is None
            tally.count(loaded.state)
            if loaded.patience:
                loaded.went_without()
        elif entry is not None or self._has_any(table):
            tally.true_positives += 1
            placed.file.found += 1
        else:
            tally.false_positives += 1
            placed.file.missed += 1
        return entry

    def _tally(self, placed: PlacedTable, loaded: LoadedFilter) -> Tally:
        return self.tables.tally(placed, loaded) if self.listener is None else Tally()

    def _has_any(self, table: Table) -> bool:
        """Whether the table has the key in a version that is too new for this lookup."""
        number = table.block_for(self.key, NEWEST)
        entry = self.tables.block(table, number, fill_cache=False).find(self.key, NEWEST)
        return entry is not None and bool(entry[0] == self.key)

    def _told(
        self,
        placed: PlacedTable,
        table: Table,
        loaded: LoadedFilter,
        said: bool | None,
        number: int,
    ) -> Entry | None:
        """The same from a block on, for a listener."""
        assert self.listener is not None
        entry = None
        if not self.listener.only_filters:
            block = self.tables.block(table, number, fill_cache=False)
            entry = block.find(self.key, self.read_rank)
            if entry is not None and entry[0] != self.key:
                entry = None
        self.listener.table(placed, loaded, said, number, None if entry is None else entry[1])
        return entry
