"""The open tables of a database, with the caches of their blocks and filters."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from lsm import loaded_filter
from lsm.cache import ClockCache
from lsm.disk import filenames
from lsm.disk.keys import NEWEST
from lsm.disk.table import Table
from lsm.errors import CorruptionError, IOError
from lsm.kernels.python.block import Block
from lsm.loaded_filter import FilterInfo, LoadedFilter
from lsm.stats import Counters
from policies.containment import is_momentary, let_pass
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.keys import Entry
    from lsm.options import Options
    from lsm.storage import Storage
    from lsm.version import PlacedTable

_log = logging.getLogger("lsm")


class TableFile:
    """A table's file; ``opened`` is its open table while that is in the table cache."""

    __slots__ = ("number", "opened", "size")

    def __init__(self, number: int, size: int):
        self.number = number
        self.size = size
        self.opened: OpenTable | None = None

    def __repr__(self) -> str:
        return f"<table {self.number}: {self.size} bytes>"


class CachedBlock:
    """A data block in the block cache, which lookups find in its open table."""

    __slots__ = ("block", "charge", "held", "number", "owner", "used")

    def __init__(self, owner: OpenTable, number: int, block: Block):
        self.owner = owner.reference
        self.number = number
        self.block = block
        self.charge = block.charge
        self.used = False
        self.held: bool | None = None

    def evict(self) -> None:
        """Remove the block from its open table; the next lookup reads it again."""
        owner = self.owner()
        if owner is not None:
            blocks = owner.blocks
            if blocks[self.number] is self:
                blocks[self.number] = None


class OpenTable:
    """A table with its index, its cached blocks, and its filter once that was loaded.

    Its cached blocks and its filter refer to it by the weak ``reference`` only, so that its file is
    closed as soon as it has left the cache and nobody reads it.
    """

    __slots__ = (
        "__weakref__",
        "blocks",
        "charge",
        "file",
        "filter",
        "held",
        "owner",
        "reference",
        "table",
        "used",
    )

    def __init__(self, owner: TableCache, file: TableFile, table: Table):
        self.owner = owner
        self.file = file
        self.table = table
        self.reference = weakref.ref(self)
        self.blocks: list[CachedBlock | None] = [None] * len(table.index_keys)
        self.filter: LoadedFilter | None = None
        self.charge = table.charge
        self.used = False
        self.held: bool | None = None

    def evict(self) -> None:
        """Leave the table cache, with all its blocks; the last reader's reference closes it."""
        self.owner.release(self)


class _FilterPlace:
    """The attribute of an open table that holds its filter, under a weak reference to it."""

    __slots__ = ("_table",)

    def __init__(self, table: OpenTable):
        self._table = table.reference

    @property
    def filter(self) -> LoadedFilter | None:
        table = self._table()
        return None if table is None else table.filter

    @filter.setter
    def filter(self, loaded: LoadedFilter | None) -> None:
        table = self._table()
        if table is not None:
            table.filter = loaded


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
        self._alive: set[weakref.ref[OpenTable]] = set()  # in the cache, or read by somebody
        self._closed: str | None = None
        self._warned: set[int] = set()
        self._counters: dict[tuple[int, str], Counters] = {}
        self.open_tables = ClockCache(options.table_cache_size, options.max_open_files)
        self.blocks = ClockCache(options.lru_cache_size)
        self.filters = ClockCache(options.filter_cache_size)
        self.use_filters = comparator.wrap is None or options.filters_compare_bytes
        self.block_misses = 0
        self.lookup_misses = 0
        self.filter_misses = 0
        self.table_misses = 0

    def open(self, file: TableFile) -> OpenTable:
        """The open table of a file; CorruptionError if it is missing or no table."""
        placed = file.opened
        if placed is not None:
            return placed
        self._check_open()
        opened = OpenTable(self, file, self._read(file))
        self._alive.add(weakref.ref(opened, self._alive.discard))
        self.table_misses += 1
        try:
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

    def block(self, opened: OpenTable, number: int, fill_cache: bool = True) -> Block:
        """A data block, from the cache or read and checked."""
        cached = opened.blocks[number]
        if cached is not None:
            cached.used = True
            return cached.block
        if self._closed is not None:
            self._check_open()
        try:
            block = opened.table.block(number)
        except ValueError:  # the mapping's, if it was closed just now
            self._check_open()
            raise
        self.block_misses += 1
        if fill_cache and opened.held:  # of a closed table nothing is kept
            cached = CachedBlock(opened, number, block)
            self.blocks.admit(cached)
            with self._placing:
                if opened.held and cached.held and opened.blocks[number] is None:
                    opened.blocks[number] = cached
            if opened.blocks[number] is not cached:  # as for tables
                self.blocks.forget(cached)
        return block

    def load_filter(self, opened: OpenTable) -> LoadedFilter:
        """The table's filter, from its place or read, checked and opened."""
        placed = opened.filter
        if placed is not None:
            return placed
        loaded = self._load_filter(opened)
        loaded.owner = _FilterPlace(opened)
        self.filter_misses += 1
        if loaded.charge:
            self.filters.admit(loaded)
        with self._placing:
            if opened.held and loaded.held is not False and opened.filter is None:
                opened.filter = loaded
        placed = opened.filter
        if placed is not loaded:
            self.filters.forget(loaded)
        return loaded if placed is None else placed

    def _load_filter(self, opened: OpenTable) -> LoadedFilter:
        if not self.use_filters:
            return LoadedFilter(FilterInfo("none"))
        self._check_open()
        try:
            return loaded_filter.load(opened.table, paranoid=self._paranoid)
        except ValueError:
            self._check_open()
            raise

    def counters(self, placed: PlacedTable, loaded: LoadedFilter) -> Counters:
        """The counters of lookups at a table's level, for the policy of its filter."""
        counters = self._counters.setdefault((placed.level, loaded.info.policy), Counters())
        placed.counters = counters
        return counters

    def block_hits(self) -> int:
        """How many of the blocks that lookups read were in the cache."""
        read = sum(counters.blocks_read for counters in list(self._counters.values()))
        return max(0, read - self.lookup_misses)

    def all_counters(self) -> dict[tuple[int, str], Counters]:
        """The counters by level and policy."""
        return dict(self._counters)

    def probe_failed(
        self, opened: OpenTable, loaded: LoadedFilter, error: BaseException
    ) -> LoadedFilter:
        """The filter, in the state ``failed``, with which a lookup goes on when a probe raised.

        The open table keeps it in place of the real one, unless the error is a momentary one. An
        interruption of the lookup is raised again.
        """
        let_pass(error)
        info = loaded.info
        failed = LoadedFilter(attrs.evolve(info, state="failed", bytes=0))
        if is_momentary(error):
            return failed
        if opened.file.number not in self._warned:
            self._warned.add(opened.file.number)
            _log.warning(
                "%s: reading on without its filter: policy %r raised %s",
                opened.table.name,
                info.policy,
                cause(error),
            )
        opened.filter = failed
        self.filters.forget(loaded)
        return failed

    def drop(self, number: int) -> None:
        """Drop the table of a file that was removed; it closes with its last reader."""
        for opened in self._all():
            if opened.file.number == number:
                self._forget(opened)

    def release(self, opened: OpenTable) -> None:
        """Let no more readers find a table that has left the cache, and forget its blocks."""
        file = opened.file
        empty: list[CachedBlock | None] = [None] * len(opened.blocks)
        with self._placing:
            if file.opened is opened:
                file.opened = None
            blocks, opened.blocks = opened.blocks, empty
            loaded, opened.filter = opened.filter, None
        if loaded is not None:
            self.filters.forget(loaded)
        for cached in blocks:
            if cached is not None:
                self.blocks.forget(cached)

    def close(self, reason: str = "Database is closed") -> None:
        """Close all files, whoever reads: from now on that is a RuntimeError with this reason.

        After an interruption it can be called again, and does the rest.
        """
        self._closed = reason
        for opened in self._all():
            self._close_table(opened)
        for cache in self.caches():
            cache.clear()

    def caches(self) -> tuple[ClockCache, ...]:
        """The caches of tables, blocks and filters."""
        return self.open_tables, self.blocks, self.filters

    def _all(self) -> list[OpenTable]:
        """The tables that are in the cache, and those that somebody reads."""
        tables = (reference() for reference in tuple(self._alive))
        return [opened for opened in tables if opened is not None]

    def _forget(self, opened: OpenTable) -> None:
        self.open_tables.forget(opened)
        self.release(opened)

    def _close_table(self, opened: OpenTable) -> None:
        self._forget(opened)
        opened.table.mapped.close()

    def _check_open(self) -> None:
        if self._closed is not None:
            raise RuntimeError(self._closed)

    def ascending(
        self, tables: Sequence[PlacedTable], start: OrderedKey | None, fill_cache: bool
    ) -> Iterator[list[Entry]]:
        """Chunks of the entries of a run of tables, from a key on."""
        for placed in tables:
            opened = self.opened(placed.file)
            first = 0 if start is None else opened.table.block_for(start, NEWEST)
            for number in range(first, len(opened.blocks)):
                block = self.block(opened, number, fill_cache)
                yield from block.pieces() if start is None else block.pieces_from(start)
                start = None

    def descending(
        self, tables: Sequence[PlacedTable], start: OrderedKey | None, fill_cache: bool
    ) -> Iterator[list[Entry]]:
        """Chunks of the entries of a run of tables, up to a key, the last chunk first."""
        for placed in reversed(tables):
            opened = self.opened(placed.file)
            last = len(opened.blocks) - 1
            if start is not None:
                last = min(last, opened.table.block_for(start, 0))
            for number in range(last, -1, -1):
                block = self.block(opened, number, fill_cache)
                if start is None:
                    yield from block.pieces_backwards()
                else:
                    yield from block.pieces_through(start)
            # Tables before this one end below the key, and are bounded by that alone.

    def opened(self, file: TableFile) -> OpenTable:
        """The open table of a file, opened now if need be."""
        opened = file.opened
        if opened is None:
            return self.open(file)
        opened.used = True
        return opened

    def _read(self, file: TableFile) -> Table:
        return open_table(self._storage, self._directory, file, self._comparator)


def path_of(storage: Storage, directory: str, file: TableFile) -> str:
    """The path of a table: its name ends in ``.sst`` where LevelDB before 1.14 wrote it."""
    path = f"{directory}/{filenames.table_name(file.number)}"
    old = f"{directory}/{filenames.old_table_name(file.number)}"
    return old if not storage.exists(path) and storage.exists(old) else path


def open_table(storage: Storage, directory: str, file: TableFile, comparator: Comparator) -> Table:
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
        return Table(path, mapped, comparator)
    except BaseException:
        mapped.close()  # whoever keeps the error keeps its frames
        raise
