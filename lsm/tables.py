"""The open tables of a database, with the caches of their blocks and filters."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from lsm import range_filters
from lsm.cache import ClockCache
from lsm.disk import filenames
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError, IOError
from lsm.filter_cache import FilterCache
from lsm.kernels import Tally, of
from lsm.range_filters import RangeTally
from lsm.stats import Counters

if TYPE_CHECKING:
    from lsm.comparator import Comparator
    from lsm.kernels import TableFile
    from lsm.kernels.python import Block, Table
    from lsm.loaded_filter import LoadedFilter
    from lsm.options import Options
    from lsm.storage import Storage
    from lsm.version import PlacedTable, Version


class TableCache:
    """Opens the tables of one directory; caches them, their blocks and filters within limits.

    Tables and blocks are read without a lock, by any number of threads at a time, admitted to their
    caches, and then put where readers look for them, each by one assignment: what is interrupted
    before that is found by nobody, and what is found is in a cache that can evict it.
    """

    def __init__(self, storage: Storage, directory: str, options: Options, comparator: Comparator):
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._paranoid = options.paranoid_checks
        # Held while something is put where readers look for it, or removed from there; nothing in
        # between can be interrupted.
        self._placing = threading.RLock()
        self._alive: set[weakref.ref[Table]] = set()  # in the cache, or read by somebody
        self._closed: str | None = None
        self._tallies: dict[tuple[int, str], Tally] = {}
        self.open_tables = ClockCache(options.table_cache_size, options.max_open_files)
        self.blocks = ClockCache(options.lru_cache_size)
        self.filters = FilterCache(
            options, comparator, self.blocks, self._placing, self._check_open
        )
        self._pinned_levels = options.pinned_levels()
        self._range_tallies: dict[tuple[int, str], RangeTally] = {}
        self.block_misses = 0
        self.lookup_misses = 0
        self.table_misses = 0

    def open(self, file: TableFile) -> Table:
        """The open table of a file; CorruptionError if it is missing or no table."""
        placed = file.opened
        if placed is not None:
            return placed
        self._check_open()
        opened = self._read(file)
        self._alive.add(weakref.ref(opened, self._alive.discard))
        self.table_misses += 1
        try:
            if self._is_pinned(opened):
                opened.held = True  # and nobody's to evict
            else:
                self.open_tables.admit(opened)
            with self._placing:
                if opened.held and file.opened is None:
                    file.opened = opened
            placed = file.opened
            if placed is not opened:  # somebody else has opened it, too, or it has left already
                self.open_tables.forget(opened)
        except BaseException:
            self._forget(opened)
            raise
        if self._closed is not None:  # who closes has seen this table, or is seen here
            self._close_table(opened)
            self._check_open()
        return opened if placed is None else placed

    def block(self, opened: Table, number: int, fill_cache: bool = True) -> Block:
        """A data block, from the cache or read and checked."""
        block = opened.cached(number)
        if block is not None:
            block.used = True
            return block
        if self._closed is not None:
            self._check_open()
        try:
            block = opened.read(number)
        except ValueError:  # the mapping's, if it was closed just now
            self._check_open()
            raise
        self.block_misses += 1
        if fill_cache and opened.held:  # of a closed table nothing is kept
            block.owner, block.number = opened.reference, number
            self.blocks.admit(block)
            with self._placing:
                if opened.held and block.held and opened.cached(number) is None:
                    opened.place(number, block)
            if opened.cached(number) is not block:  # as for tables
                self.blocks.forget(block)
        return block

    def narrowed(self, view: Any, low: tuple[bytes, bool], high: tuple[bytes, bool]) -> Any:
        """A view without the tables whose filters deny all keys between two bounds."""
        return range_filters.narrowed(self, view, low, high)

    def range_tally(self, level: int, policy: str) -> RangeTally:
        """The tally of ranges at a level, for the policy of its filters."""
        return self._range_tallies.setdefault((level, policy), RangeTally())

    def range_counts(self) -> dict[tuple[int, str], RangeTally]:
        """The tallies of ranges by level and policy."""
        return dict(self._range_tallies)

    def tally(self, placed: PlacedTable, loaded: LoadedFilter) -> Tally:
        """The tally of lookups at a table's level, for the policy of its filter."""
        tally = self._tallies.setdefault((placed.level, loaded.info.policy), Tally())
        placed.tally = tally
        return tally

    def block_hits(self) -> int:
        """How many of the blocks that lookups read were in the cache."""
        read = sum(counters.blocks_read for counters in self.all_counters().values())
        return max(0, read - self.lookup_misses)

    def all_counters(self) -> dict[tuple[int, str], Counters]:
        """The counters by level and policy."""
        return {where: Counters.of(tally) for where, tally in tuple(self._tallies.items())}

    def pin(self, version: Version) -> None:
        """Let the tables of the levels whose filters are pinned stay, and those of others go."""
        if not self._pinned_levels:
            return
        tables = [table for level in self._pinned_levels for table in version.levels[level]]
        numbers = {table.file.number for table in tables}
        going = [opened for opened in self.all_open() if self._is_pinned(opened)]
        self.filters.pin(numbers, going)
        for opened in going:
            if opened.file.number not in numbers and opened.held:
                opened.held = None
                self.open_tables.admit(opened)

    def _is_pinned(self, opened: Table) -> bool:
        return self.filters.is_pinned(opened.file.number)

    def drop(self, number: int) -> None:
        """Drop the table of a file that was removed; it closes with its last reader."""
        for opened in self.all_open():
            if opened.file.number == number:
                self._forget(opened)
        self.filters.drop(number)

    def release(self, opened: Table) -> None:
        """Let no more readers find a table that has left the cache, and forget its blocks."""
        file = opened.file
        with self._placing:
            if file.opened is opened:
                file.opened = None
            blocks, loaded = opened.emptied()
        if loaded is not None:
            self.filters.forget(loaded)
        for block in blocks:
            self.blocks.forget(block)

    def close(self, reason: str = "Database is closed") -> None:
        """Close all files, whoever reads: from now on that is a RuntimeError with this reason.

        After an interruption it can be called again, and does the rest.
        """
        self._closed = reason
        for opened in self.all_open():
            self._close_table(opened)
        for cache in self.caches():
            cache.clear()

    def caches(self) -> tuple[ClockCache, ...]:
        """The caches of tables, blocks and filters."""
        return self.open_tables, self.blocks, self.filters.cache

    def all_open(self) -> list[Table]:
        """The tables that are in the cache, and those that somebody reads."""
        tables = (reference() for reference in tuple(self._alive))
        return [opened for opened in tables if opened is not None]

    def _forget(self, opened: Table) -> None:
        self.open_tables.forget(opened)
        self.release(opened)

    def _close_table(self, opened: Table) -> None:
        self._forget(opened)
        opened.reader.mapped.close()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise RuntimeError(self._closed)

    def opened(self, file: TableFile) -> Table:
        """The open table of a file, opened now if need be."""
        opened = file.opened
        if opened is None:
            return self.open(file)
        opened.used = True
        return opened

    def _read(self, file: TableFile) -> Table:
        return open_table(self._storage, self._directory, file, self._comparator, self)


def path_of(storage: Storage, directory: str, file: TableFile) -> str:
    """The path of a table: its name ends in ``.sst`` where LevelDB before 1.14 wrote it."""
    path = f"{directory}/{filenames.table_name(file.number)}"
    old = f"{directory}/{filenames.old_table_name(file.number)}"
    return old if not storage.exists(path) and storage.exists(old) else path


def open_table(
    storage: Storage,
    directory: str,
    file: TableFile,
    comparator: Comparator,
    owner: TableCache | None = None,
) -> Table:
    """A table read anew; CorruptionError if the file is missing or is no table."""
    path = path_of(storage, directory, file)
    try:
        mapped = storage.map(path)
    except IOError as error:
        if storage.exists(path):
            raise
        raise CorruptionError(
            f"{path}: this table is missing, and the manifest says it is part of the database; "
            "bring it back from a copy, or let lsm.repair_db() go on without its entries"
        ) from error
    try:
        if len(mapped.data) != file.size:
            raise CorruptionError(
                f"{path}: has {len(mapped.data)} bytes, and the manifest says {file.size}; "
                "lsm.repair_db() keeps what can still be read"
            )
        kernel = of(comparator)
        reader = TableReader(path, mapped, kernel.snappy_decompress)
        table: Table = kernel.Table(reader, comparator.wrap, file, owner)
        return table
    except BaseException:
        mapped.close()  # whoever keeps the error keeps its frames
        raise
