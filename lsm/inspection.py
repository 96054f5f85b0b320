"""Introspection: statistics, LevelDB's properties, the tables' filters, a lookup step by step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from lsm.arguments import key_bytes
from lsm.cache import ClockCache
from lsm.disk.keys import NEWEST, is_put, sequence_of, unpack
from lsm.errors import CorruptionError, IOError
from lsm.loaded_filter import FilterInfo, LoadedFilter
from lsm.options import LEVELS
from lsm.stats import CacheStats, Counters, FilterCounts, LevelStats, Stats
from policies import claims

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import OrderedKey
    from lsm.store import Store
    from lsm.tables import OpenTable
    from lsm.version import PlacedTable, Version
    from lsm.view import View

_MIB = 1 << 20


@attrs.frozen(kw_only=True)
class FilterSummary:
    """What is known of the filter of one table."""

    file_number: int
    policy: str
    params: dict[str, Any] = attrs.field(hash=False)
    layout: str
    written_for_level: int | None
    num_keys: int | None
    bytes: int
    bits_per_key: float | None
    expected_fpr: float | None
    state: str
    num_entries: int | None = None


@attrs.frozen(kw_only=True)
class LevelFilters:
    """The configured filter policy of a level, and the filters of its tables.

    ``configured`` and ``params`` are None for a policy that fails to name itself.
    """

    level: int
    configured: str | None
    params: dict[str, Any] | None = attrs.field(hash=False)
    layout: str
    tables: tuple[FilterSummary, ...]

    @property
    def drifted(self) -> tuple[FilterSummary, ...]:
        """The tables whose filters differ from the configured one; empty if that has no name."""
        if self.configured is None:
            return ()
        configured = (self.configured, self.params, self.layout)
        return tuple(
            table
            for table in self.tables
            if (table.policy, table.params, table.layout) != configured
        )


@attrs.frozen
class LookupStep:
    """One memtable or table that a lookup searched, and with which outcome."""

    where: str
    outcome: str
    level: int | None = None
    file_number: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.outcome}"


@attrs.frozen
class Explanation:
    """The steps of a lookup of a key, in order, and whether it found a value."""

    key: bytes
    found: bool
    steps: tuple[LookupStep, ...]

    def __str__(self) -> str:
        verdict = "found" if self.found else "not found"
        return "\n".join([f"{self.key!r}: {verdict}", *(f"  {step}" for step in self.steps)])


def might_contain(store: Store, key: bytes) -> bool:
    """False if memtables and filters alone tell that the key has no value."""
    view, ordered = _view(store), _ordered(store, key)
    for memtable in view.memtables:
        entry = memtable.find(ordered, store.visible)
        if entry is not None:
            return is_put(entry[1])
    for placed in _candidates(view.version, ordered):
        if _filter_says(store, placed, ordered, key) is not False:
            return True
    return False


def explain(store: Store, key: bytes) -> Explanation:
    """The steps of a lookup, which changes no counters."""
    view, ordered, read_rank = _view(store), _ordered(store, key), store.visible
    steps: list[LookupStep] = []
    for at, memtable in enumerate(view.memtables):
        entry = memtable.find(ordered, read_rank)
        name = "memtable" if at == 0 else "memtable that is being flushed"
        steps.append(LookupStep(name, _outcome(entry)))
        if entry is not None:
            return Explanation(key, is_put(entry[1]), tuple(steps))
    for placed in _candidates(view.version, ordered):
        step, entry = _explain_table(store, placed, ordered, key, read_rank)
        steps.append(step)
        if entry is not None:
            return Explanation(key, is_put(entry[1]), tuple(steps))
    if not any(step.level is not None for step in steps):
        steps.append(LookupStep("tables", "none has the key between its bounds"))
    return Explanation(key, False, tuple(steps))


def _explain_table(
    store: Store, placed: PlacedTable, ordered: OrderedKey, key: bytes, read_rank: int
) -> tuple[LookupStep, Any]:
    opened, loaded = _opened(store, placed)
    where = f"level {placed.level}, table {placed.number}"
    info = loaded.info
    about = f"filter {info.policy}" if info.state == "built" else f"no filter ({info.state})"
    said = _filter_says(store, placed, ordered, key)
    if said is False:
        return LookupStep(where, f"{about} says no", placed.level, placed.number), None
    number = opened.table.block_for(ordered, read_rank)
    if number == len(opened.blocks):
        return LookupStep(where, f"{about}, no block", placed.level, placed.number), None
    entry = store.tables.block(opened, number, fill_cache=False).find(ordered, read_rank)
    if entry is not None and entry[0] != ordered:
        entry = None
    about = f"{about} says maybe" if said else about
    outcome = f"{about}, block {number}: {_outcome(entry)}"
    return LookupStep(where, outcome, placed.level, placed.number), entry


def _outcome(entry: Any) -> str:
    if entry is None:
        return "has no version of it"
    kind = "value" if is_put(entry[1]) else "tombstone"
    return f"{kind} of sequence number {sequence_of(entry[1])}"


def _filter_says(store: Store, placed: PlacedTable, ordered: OrderedKey, key: bytes) -> bool | None:
    """Whether a table's filter lets a key through; None if it has no filter to ask."""
    opened, loaded = _opened(store, placed)
    reader = loaded.reader
    try:
        if loaded.windows is not None:
            number = opened.table.block_for(ordered, NEWEST)
            if number == len(opened.blocks):
                return False
            reader = loaded.windows.at(opened.table.index_handles[number].offset)
        return None if reader is None else reader.might_contain(key) is not False
    except BaseException as error:
        store.tables.probe_failed(opened, loaded, error)
        return None


def filters(store: Store) -> tuple[LevelFilters, ...]:
    """The configured filters of every level, and those of its tables."""
    version = _view(store).version
    return tuple(_level_filters(store, version, level) for level in range(LEVELS))


def _level_filters(store: Store, version: Version, level: int) -> LevelFilters:
    selected = store.options.filters
    policy = selected[level]
    identity = claims.identity(policy)
    return LevelFilters(
        level=level,
        configured=None if identity is None else identity.name,
        params=None if identity is None else identity.decoded(),
        layout=selected.layout(level),
        tables=tuple(_filter_summary(store, placed) for placed in version.levels[level]),
    )


def _filter_summary(store: Store, placed: PlacedTable) -> FilterSummary:
    try:
        _, loaded = _opened(store, placed)
    except (IOError, CorruptionError):
        loaded = LoadedFilter(FilterInfo("unreadable", "unreadable"))
    info = loaded.info
    return FilterSummary(
        file_number=placed.number,
        policy=info.policy,
        params=info.params,
        layout=info.layout,
        written_for_level=info.written_for_level,
        num_keys=info.num_keys,
        bytes=info.bytes,
        bits_per_key=info.bytes * 8 / info.num_keys if info.num_keys else None,
        expected_fpr=loaded.expected_fpr(),
        state=info.state,
        num_entries=info.num_entries,
    )


def stats(store: Store) -> Stats:
    """The statistics of an open database, as of now."""
    view, work, tables = _view(store), store.work, store.tables
    counted = tables.all_counters()
    return Stats(
        path=store.directory,
        levels=tuple(_level_stats(store, view.version, level, counted) for level in range(LEVELS)),
        filters=tuple(
            FilterCounts(level=level, policy=policy, counters=attrs.evolve(counters))
            for (level, policy), counters in sorted(counted.items())
        ),
        block_cache=_cache_stats(tables.blocks, tables.block_misses, tables.block_hits()),
        filter_cache=_cache_stats(tables.filters, tables.filter_misses),
        table_cache=_cache_stats(tables.open_tables, tables.table_misses),
        memtable_bytes=sum(memtable.size for memtable in view.memtables),
        user_bytes_written=work.user_bytes,
        log_bytes_written=work.log_bytes,
        table_bytes_written=work.table_bytes,
        flushes=work.flushes,
        compactions=work.compactions,
        moves=work.moves,
        filters_failed=work.filters_failed,
        flush_seconds=work.flush_seconds,
        compaction_seconds=work.compaction_seconds,
        slowed_seconds=work.slowed_seconds,
        stopped_seconds=work.stopped_seconds,
        log_losses=tuple(map(str, store.losses)),
        background_error=None if store.failure is None else str(store.failure),
    )


def _level_stats(
    store: Store,
    version: Version,
    level: int,
    counted: dict[tuple[int, str], Counters],
) -> LevelStats:
    placed = version.levels[level]
    found = [_filter_summary(store, table) for table in placed]
    known = [table for table in found if table.num_keys]
    keys = sum(table.num_keys or 0 for table in known)
    rates = [table.expected_fpr for table in found if table.expected_fpr is not None]
    here = [counters for (at, _), counters in counted.items() if at == level]
    skipped = sum(counters.skipped for counters in here)
    wrong = sum(counters.false_positives for counters in here)
    cost = store.work.levels[level]
    return LevelStats(
        level=level,
        tables=len(placed),
        bytes=version.size(level),
        filter_bytes=sum(table.bytes for table in found),
        bits_per_key=sum(table.bytes for table in known) * 8 / keys if keys else None,
        expected_fpr=sum(rates) / len(rates) if rates else None,
        measured_fpr=wrong / (wrong + skipped) if wrong + skipped else None,
        skipped=skipped,
        compaction_seconds=cost.seconds,
        read_bytes=cost.read_bytes,
        written_bytes=cost.written_bytes,
    )


def _cache_stats(cache: ClockCache, misses: int, hits: int | None = None) -> CacheStats:
    return CacheStats(
        bytes=cache.bytes,
        limit=cache.limit,
        items=len(cache),
        misses=misses,
        evictions=cache.evictions,
        hits=hits,
    )


def approximate_sizes(store: Store, ranges: Iterable[Sequence[Buffer]]) -> list[int]:
    """About how many bytes of tables each range takes."""
    version = _view(store).version
    sizes = []
    for pair in ranges:
        start, stop = pair
        low = _offset(store, version, _ordered(store, key_bytes("start", start)))
        high = _offset(store, version, _ordered(store, key_bytes("stop", stop)))
        sizes.append(max(0, high - low))
    return sizes


def _offset(store: Store, version: Version, key: OrderedKey) -> int:
    """How many bytes of all tables lie before a key, as LevelDB's ApproximateOffsetOf has it."""
    total = 0
    for placed in version.tables():
        if placed.high < key:
            total += placed.size
        elif placed.low < key:
            total += store.tables.opened(placed.file).table.offset_of(key)
    return total


def get_property(store: Store, name: bytes) -> bytes | None:
    """The value of one of LevelDB's properties; None for an unknown name."""
    if not name.startswith(b"leveldb."):
        return None
    rest = name.removeprefix(b"leveldb.")
    version = _view(store).version
    if rest.startswith(b"num-files-at-level"):
        digits = rest.removeprefix(b"num-files-at-level")
        if not digits.isdigit() or int(digits) >= LEVELS:
            return None
        return b"%d" % len(version.levels[int(digits)])
    if rest == b"stats":
        return _stats_property(store, version)
    if rest == b"sstables":
        return _sstables_property(store, version)
    if rest == b"approximate-memory-usage":
        held = sum(memtable.size for memtable in _view(store).memtables)
        return b"%d" % (held + store.tables.blocks.bytes)
    return None


def _stats_property(store: Store, version: Version) -> bytes:
    lines = [
        "                               Compactions",
        "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)",
        "--------------------------------------------------",
    ]
    for level, tables in enumerate(version.levels):
        cost = store.work.levels[level]
        if tables or cost.seconds:
            lines.append(
                f"{level:3d} {len(tables):8d} {version.size(level) / _MIB:8.0f} "
                f"{cost.seconds:9.0f} {cost.read_bytes / _MIB:8.0f} "
                f"{cost.written_bytes / _MIB:9.0f}"
            )
    return "".join(f"{line}\n" for line in lines).encode()


def _sstables_property(store: Store, version: Version) -> bytes:
    lines = []
    for level, tables in enumerate(version.levels):
        lines.append(f"--- level {level} ---")
        for placed in tables:
            first, last = _internal(placed.smallest), _internal(placed.largest)
            lines.append(f" {placed.number}:{placed.size}[{first} .. {last}]")
    return "".join(f"{line}\n" for line in lines).encode()


def _internal(internal: bytes) -> str:
    key, rank = unpack(internal)
    shown = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in key)
    return f"'{shown}' @ {sequence_of(rank)} : {int(is_put(rank))}"


def _view(store: Store) -> View:
    view = store.view
    if view is None:
        raise store.closed_error()
    return view


def _ordered(store: Store, key: bytes) -> OrderedKey:
    wrap = store.comparator.wrap
    return key if wrap is None else wrap(key)


def _opened(store: Store, placed: PlacedTable) -> tuple[OpenTable, LoadedFilter]:
    opened = store.tables.opened(placed.file)
    return opened, opened.filter or store.tables.load_filter(opened)


def _candidates(version: Version, key: OrderedKey) -> Iterator[PlacedTable]:
    """The tables that have the key between their bounds, in the order a lookup asks them."""
    for placed in version.levels[0]:
        if not (key < placed.low or placed.high < key):
            yield placed
    for tables, highs in version.sorted_levels:
        at = bisect_left(highs, key)
        while at < len(tables) and not key < tables[at].low:
            yield tables[at]
            at += 1
