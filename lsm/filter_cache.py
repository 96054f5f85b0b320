"""The filters of open tables in memory: which are there, and from when.

Usually a table's filter, or a partition's, is loaded by the first lookup that would ask it, and
stays until its room is needed for others. Where there is none to spare, lookups go straight to
blocks for a while: reading a filter that others push out soon may take longer than what it spares.
So it is loaded when the blocks that were read without it come to as many bytes as it has, and never
if the cache could not hold it.

Filters of some levels may be pinned: they stay, and take nobody's room.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from lsm import loaded_filter, range_filters
from lsm.cache import ClockCache
from lsm.loaded_filter import FilterInfo, LoadedFilter
from lsm.options import SHARED
from policies.containment import is_momentary, let_pass
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.kernels.python import Table
    from lsm.kernels.python.partitions import Partitions
    from lsm.options import Options

_log = logging.getLogger("lsm")

# What a lookup has of a filter in partitions, for a key that lies behind all of them.
_BEHIND = LoadedFilter(FilterInfo("none"))


class _FilterPlace:
    """The attribute of an open table that holds its filter, under a weak reference to it."""

    __slots__ = ("_cache", "_table")

    def __init__(self, table: Table, cache: FilterCache):
        self._table = table.reference
        self._cache = cache

    @property
    def filter(self) -> LoadedFilter | None:
        table = self._table()
        return None if table is None else table.filter

    @filter.setter
    def filter(self, loaded: LoadedFilter | None) -> None:
        table = self._table()
        if table is not None:
            table.filter = loaded

    def let_go(self, loaded: LoadedFilter) -> None:
        """Let no more readers find a filter here, and forget its partitions."""
        self._cache.release(self, loaded)


class _PartitionPlace:
    """The place of a partition's filter among the others, under a weak reference to them."""

    __slots__ = ("_number", "_partitions")

    def __init__(self, partitions: Partitions, number: int):
        self._partitions = weakref.ref(partitions)
        self._number = number

    @property
    def filter(self) -> LoadedFilter | None:
        partitions = self._partitions()
        return None if partitions is None else partitions.cached(self._number)

    @filter.setter
    def filter(self, loaded: LoadedFilter | None) -> None:
        partitions = self._partitions()
        if partitions is not None:
            partitions.place(self._number, loaded)

    def let_go(self, loaded: LoadedFilter) -> None:
        """Let no more readers find a filter here."""
        if self.filter is loaded:
            self.filter = None


@attrs.define(eq=False)
class _Absence:
    """A filter that is not in memory: the bytes it takes, and those of blocks read without it.

    ``stand_in`` is what lookups have of it meanwhile.
    """

    size: int
    stand_in: LoadedFilter
    spent: int = 0


class FilterCache:
    """Loads filters for the tables of one directory, and keeps them within a limit.

    ``placing`` is held while one is put where readers look for it. ``check_open`` raises once all
    files are closed. With the limit ``shared`` they are among the ``blocks``.
    """

    def __init__(
        self,
        options: Options,
        comparator: Comparator,
        blocks: ClockCache,
        placing: threading.RLock,
        check_open: Callable[[], None],
    ):
        is_shared = options.filter_cache_size == SHARED
        self.cache = blocks if is_shared else ClockCache(options.filter_cache_size)
        self.use_filters = comparator.wrap is None or options.filters_compare_bytes
        # Only where ranges are in the order of bytes; and only once some filter may have a say.
        self._has_ranges = comparator.wrap is None
        self.asks_ranges = self._has_ranges and range_filters.may_be_asked(options.filters)
        self.misses = 0
        self.bytes_read = 0
        self._comparator = comparator
        self._paranoid = options.paranoid_checks
        self._placing = placing
        self._check_open = check_open
        self._warned: set[int] = set()
        self._pinned: Collection[int] = frozenset()
        # By the number of a table's file, and within it by partition; None is for its filter.
        self._absent: dict[int, dict[int | None, _Absence]] = {}

    def load(self, opened: Table) -> LoadedFilter:
        """A table's filter, from its place or read; or what stands in for it for now."""
        placed = opened.filter
        if placed is not None:
            return placed
        stand_in = self._spared(opened, None, None)
        if stand_in is not None:
            return stand_in
        loaded = self._read(opened)
        loaded.owner = _FilterPlace(opened, self)
        self._admit(opened, loaded, None)
        with self._placing:
            if opened.held and loaded.held is not False and opened.filter is None:
                opened.filter = loaded
        placed = opened.filter
        if placed is not loaded:
            self.cache.forget(loaded)
        return loaded if placed is None else placed

    def look(self, opened: Table) -> LoadedFilter:
        """A table's filter for whoever tells of it: it takes the place of no other one."""
        placed = opened.filter
        if placed is not None:
            return placed
        loaded = self.load(opened)
        return self._read(opened) if loaded.state == "unloaded" else loaded

    def find_partition(self, opened: Table, whole: LoadedFilter, key: OrderedKey) -> LoadedFilter:
        """The filter of the partition that has a key if the table has; no filter behind them all.

        ``whole`` is that of the table, which has partitions.
        """
        assert whole.partitions is not None
        number = whole.partitions.find(key)
        if number == len(whole.partitions):
            return _BEHIND
        found = whole.partitions.cached(number)
        return self.load_partition(opened, whole, number) if found is None else found

    def load_partition(self, opened: Table, whole: LoadedFilter, number: int) -> LoadedFilter:
        """The filter of a partition, in the same way as that of a table."""
        partitions = whole.partitions
        assert partitions is not None
        placed = partitions.cached(number)
        if placed is not None:
            return placed
        stand_in = self._spared(opened, whole, number)
        if stand_in is not None:
            return stand_in
        loaded = self._read_partition(opened, whole, number)
        loaded.owner = _PartitionPlace(partitions, number)
        self._admit(opened, loaded, number)
        with self._placing:
            if (
                opened.filter is whole
                and loaded.held is not False
                and partitions.cached(number) is None
            ):
                partitions.place(number, loaded)
        placed = partitions.cached(number)
        if placed is not loaded:
            self.cache.forget(loaded)
        return loaded if placed is None else placed

    def _admit(self, opened: Table, loaded: LoadedFilter, number: int | None) -> None:
        self.misses += 1
        self.bytes_read += loaded.stored_bytes
        if self._has_ranges and (loaded.ranges is not None or loaded.info.prefixes):
            self.asks_ranges = True
        if loaded.charge and opened.file.number not in self._pinned:
            self.cache.admit(loaded)
            if loaded.charge > self.cache.limit:  # in memory it takes more than in the file
                absence = _Absence(loaded.charge, _stand_in(loaded.info.policy))
                self._absent.setdefault(opened.file.number, {})[number] = absence

    def _read(self, opened: Table) -> LoadedFilter:
        if not self.use_filters:
            return LoadedFilter(FilterInfo("none"))
        self._check_open()
        try:
            return loaded_filter.load(
                opened.reader, paranoid=self._paranoid, comparator=self._comparator
            )
        except ValueError:
            self._check_open()
            raise

    def _read_partition(self, opened: Table, whole: LoadedFilter, number: int) -> LoadedFilter:
        self._check_open()
        try:
            return loaded_filter.load_partition(
                opened.reader, whole, number, paranoid=self._paranoid
            )
        except ValueError:
            self._check_open()
            raise

    # -- Going without ---------------------------------------------------------------------

    def _spared(
        self, opened: Table, whole: LoadedFilter | None, number: int | None
    ) -> LoadedFilter | None:
        """What stands in for a filter that is not worth loading yet; None if it is to be loaded."""
        if not self.use_filters or opened.file.number in self._pinned:
            return None
        known = self._absent.get(opened.file.number, {}).get(number)
        absence = self._absence_of(opened, whole, number) if known is None else known
        usual_block = opened.file.size // max(1, opened.block_count)
        if absence.size <= usual_block or self.cache.has_room(absence.size):
            return None
        if known is None:
            self._absent.setdefault(opened.file.number, {})[number] = absence
        absence.spent += usual_block
        if absence.size <= self.cache.limit and absence.spent > absence.size:
            absence.spent = 0
            return None
        return absence.stand_in

    def _absence_of(
        self, opened: Table, whole: LoadedFilter | None, number: int | None
    ) -> _Absence:
        """What is to be known of a filter that is not in memory, without reading it."""
        if whole is not None and whole.partitions is not None and number is not None:
            policy, size = whole.info.policy, whole.partitions.handle(number).size
            return _Absence(size, _stand_in(policy))
        self._check_open()
        try:
            policy, size = loaded_filter.announced(opened.reader)
        except ValueError:  # the mapping's, if it was closed just now
            self._check_open()
            raise
        return _Absence(size, _stand_in(policy))

    def has_room_for(self, opened: Table, number: int | None = None) -> bool:
        """Whether a table's filter, or that of a partition, would push out no other."""
        whole = opened.filter
        if self.is_pinned(opened.file.number) or (whole is not None and number is None):
            return True
        if whole is None or whole.partitions is None or number is None:
            return self.cache.has_room(self._absence_of(opened, None, None).size)
        if whole.partitions.cached(number) is not None:
            return True
        return self.cache.has_room(whole.partitions.handle(number).size)

    # -- Pinning ---------------------------------------------------------------------------

    def is_pinned(self, number: int) -> bool:
        """Whether the filter of a table's file is to stay, and so the table."""
        return number in self._pinned

    def pin(self, numbers: Collection[int], opened: Iterable[Table]) -> None:
        """Let the filters of these tables stay from now on, and those of others go as usual.

        ``opened`` are the tables that may have some in memory.
        """
        before, self._pinned = self._pinned, numbers
        for table in opened:
            if table.file.number in before and table.file.number not in numbers:
                self._unpin(table)

    def _unpin(self, table: Table) -> None:
        for loaded in _filters_in(table):
            if loaded.held is None and loaded.charge:
                self.cache.admit(loaded)

    def pinned_bytes(self, opened: Iterable[Table]) -> int:
        """The bytes of filters that are pinned, of the tables that may have some in memory."""
        if not self._pinned:
            return 0
        return sum(
            loaded.charge
            for table in opened
            if table.file.number in self._pinned
            for loaded in _filters_in(table)
        )

    # -- What goes wrong, and what goes ----------------------------------------------------

    def probe_failed(
        self, opened: Table, loaded: LoadedFilter, error: BaseException
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
                opened.reader.name,
                info.policy,
                cause(error),
            )
        if loaded.owner is not None:
            loaded.owner.filter = failed
        self.cache.forget(loaded)
        return failed

    def release(self, place: _FilterPlace, loaded: LoadedFilter) -> None:
        """Let no more readers find a filter that has left the cache, and forget its partitions."""
        with self._placing:
            if place.filter is loaded:
                place.filter = None
        self._forget_partitions(loaded)

    def forget(self, loaded: LoadedFilter) -> None:
        """Forget a filter that no reader will look for any more, with its partitions."""
        self.cache.forget(loaded)
        self._forget_partitions(loaded)

    def drop(self, number: int) -> None:
        """Drop what is known of a table whose file was removed."""
        self._absent.pop(number, None)

    def _forget_partitions(self, loaded: LoadedFilter) -> None:
        if loaded.partitions is None:
            return
        with self._placing:
            partitions = loaded.partitions.emptied()
        for partition in partitions:
            self.cache.forget(partition)

    def expected_fpr(self, opened: Table, loaded: LoadedFilter) -> float | None:
        """The share of absent keys that a table's filter is expected to let through."""
        loaded.sample(lambda number: self._resident(opened, loaded, number))
        return loaded.expected_fpr()

    def _resident(self, opened: Table, whole: LoadedFilter, number: int) -> LoadedFilter:
        """A partition's filter, which takes nobody's place in the cache to be looked at."""
        assert whole.partitions is not None
        found = whole.partitions.cached(number)
        return self._read_partition(opened, whole, number) if found is None else found


@lru_cache(maxsize=64)  # whatever names there are in files
def _stand_in(policy: str) -> LoadedFilter:
    """What lookups have of a filter that is not in memory."""
    return LoadedFilter(FilterInfo("unloaded", policy))


def _filters_in(table: Table) -> list[LoadedFilter]:
    """The filters of a table that are in memory, its own and those of partitions."""
    loaded = table.filter
    if loaded is None:
        return []
    partitions = loaded.partitions
    if partitions is None:
        return [loaded]
    found = (partitions.cached(number) for number in range(len(partitions)))
    return [loaded, *(each for each in found if each is not None)]
