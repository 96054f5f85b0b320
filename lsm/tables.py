"""The tables that are open, with the caches of their blocks and filters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from lsm import loaded_filter
from lsm.cache import ClockCache
from lsm.disk import filenames
from lsm.disk.block import Block
from lsm.disk.keys import NEWEST
from lsm.disk.table import Table
from lsm.errors import CorruptionError, IOError
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
    """A table's file. ``opened`` is there while the table is open."""

    __slots__ = ("number", "opened", "size")

    def __init__(self, number: int, size: int):
        self.number = number
        self.size = size
        self.opened: OpenTable | None = None

    def __repr__(self) -> str:
        return f"<table {self.number}: {self.size} bytes>"


class CachedBlock:
    """A block in the place where lookups of its table look for it."""

    __slots__ = ("block", "charge", "held", "number", "owner", "used")

    def __init__(self, owner: OpenTable, number: int, block: Block):
        self.owner = owner
        self.number = number
        self.block = block
        self.charge = block.charge
        self.used = False
        self.held: bool | None = None

    def evict(self) -> None:
        """Leave the table."""
        if self.owner.blocks[self.number] is self:
            self.owner.blocks[self.number] = None


class OpenTable:
    """A table with its index, the blocks that are cached, and its filter once it was asked."""

    __slots__ = ("blocks", "charge", "file", "filter", "held", "owner", "table", "used")

    def __init__(self, owner: Tables, file: TableFile, table: Table):
        self.owner = owner
        self.file = file
        self.table = table
        self.blocks: list[CachedBlock | None] = [None] * len(table.index_keys)
        self.filter: LoadedFilter | None = None
        self.charge = table.charge
        self.used = False
        self.held: bool | None = None

    def is_closed(self) -> bool:
        """Whether it has left the cache: nothing of it is to be kept any more."""
        return self.held is False

    def evict(self) -> None:
        """Close, when the last reader has let go of it, and give back what was cached of it."""
        if self.file.opened is self:
            self.file.opened = None
        self.owner.release(self)


class Tables:
    """Opens tables of one directory, and keeps what is read of them within the options' limits."""

    def __init__(self, storage: Storage, directory: str, options: Options, comparator: Comparator):
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._paranoid = options.paranoid_checks
        self._opening = threading.Lock()
        self._placing = threading.Lock()
        self._open: dict[int, OpenTable] = {}
        self._complained: set[int] = set()
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
        with self._opening:
            opened = file.opened
            if opened is not None:
                return opened
            opened = OpenTable(self, file, self._read(file))
            file.opened = opened
            self._open[file.number] = opened
            self.table_misses += 1
        self.open_tables.admit(opened)
        return opened

    def block(self, opened: OpenTable, number: int, fill_cache: bool = True) -> Block:
        """A data block, from the cache or read and checked."""
        cached = opened.blocks[number]
        if cached is not None:
            cached.used = True
            return cached.block
        block = opened.table.block(number)
        self.block_misses += 1
        if fill_cache and not opened.is_closed():  # of a closed table nothing is kept
            self._keep(opened, CachedBlock(opened, number, block))
        return block

    def _keep(self, opened: OpenTable, cached: CachedBlock) -> None:
        with self._placing:
            if opened.blocks[cached.number] is not None:
                return  # somebody else has read it, too
            opened.blocks[cached.number] = cached
        self.blocks.admit(cached)
        if opened.is_closed():
            self.blocks.forget(cached)

    def load_filter(self, opened: OpenTable) -> LoadedFilter:
        """The table's filter, read, checked and opened."""
        with self._opening:
            if opened.filter is not None:
                return opened.filter
            if self.use_filters:
                loaded = loaded_filter.load(opened.table, paranoid=self._paranoid)
            else:
                loaded = LoadedFilter(FilterInfo("none"))
            self.filter_misses += 1
            loaded.owner = opened
            opened.filter = loaded
        if loaded.charge and not opened.is_closed():  # of a closed table nothing is kept
            self.filters.admit(loaded)
            if opened.is_closed():
                self.filters.forget(loaded)
        return loaded

    def counters(self, placed: PlacedTable, loaded: LoadedFilter) -> Counters:
        """The counters of a table where it is placed now."""
        counters = self._counters.setdefault((placed.level, loaded.info.policy), Counters())
        placed.counters = counters
        return counters

    def block_hits(self) -> int:
        """How many blocks that lookups went on to were in the cache."""
        read = sum(counters.blocks_read for counters in list(self._counters.values()))
        return max(0, read - self.lookup_misses)

    def all_counters(self) -> dict[tuple[int, str], Counters]:
        """The counters by level and policy."""
        return dict(self._counters)

    def probe_failed(
        self, opened: OpenTable, loaded: LoadedFilter, error: BaseException
    ) -> LoadedFilter:
        """What a lookup goes on with whose filter raised: one that has no say.

        As long as the table is open it is without a filter then, unless the error tells of the
        moment only. An interruption of the lookup is raised again.
        """
        let_pass(error)
        info = loaded.info
        failed = LoadedFilter(attrs.evolve(info, state="failed", bytes=0))
        if is_momentary(error):
            return failed
        if opened.file.number not in self._complained:
            self._complained.add(opened.file.number)
            _log.warning(
                "%s: reading on without its filter: policy %r raised %s",
                opened.table.name,
                info.policy,
                cause(error),
            )
        failed.owner = opened
        opened.filter = failed
        self.filters.forget(loaded)
        return failed

    def drop(self, number: int) -> None:
        """Close the table of a file that was removed."""
        opened = self._open.get(number)
        if opened is not None:
            self.open_tables.forget(opened)
            opened.evict()

    def close(self) -> None:
        """Placeholder until tables can be closed."""

    def release(self, opened: OpenTable) -> None:
        """Give back what is cached of a table that is closed."""
        if self._open.get(opened.file.number) is opened:
            del self._open[opened.file.number]
        if opened.filter is not None:
            self.filters.forget(opened.filter)
        for cached in list(opened.blocks):
            if cached is not None:
                self.blocks.forget(cached)

    def ascending(
        self, tables: Sequence[PlacedTable], start: OrderedKey | None, fill_cache: bool
    ) -> Iterator[list[Entry]]:
        """Chunks of the entries of tables that ascend, from a key on."""
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
        """Chunks of the entries of tables that ascend, up to a key, the last chunk first."""
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
    """Where a table is: LevelDB of old called it ``.sst``."""
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
    if len(mapped.data) != file.size:
        raise CorruptionError(
            f"{path}: has {len(mapped.data)} bytes, and the manifest says {file.size}; "
            "lsm.repair_db() keeps what can still be read"
        )
    return Table(path, mapped, comparator)
