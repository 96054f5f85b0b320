"""Introspection: statistics, LevelDB's properties, the tables' filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from lsm import drift, filter_facts, kernels
from lsm.arguments import key_bytes
from lsm.cache import ClockCache
from lsm.disk.keys import is_put, sequence_of, unpack
from lsm.filter_summary import FilterSummary
from lsm.loaded_filter import LoadedFilter
from lsm.options import LEVELS
from lsm.stats import (
    CacheStats,
    CarriedFilters,
    Counters,
    FilterCounts,
    LevelStats,
    RangeCounts,
    Stats,
)
from policies import claims

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import OrderedKey
    from lsm.drift import TreeDrift
    from lsm.filter_facts import FilterFacts
    from lsm.state import State
    from lsm.version import Version

_MIB = 1 << 20


@attrs.frozen(kw_only=True)
class LevelFilters:
    """The configured filter policy of a level, and the filters of its tables.

    ``configured`` and ``params`` are None where a ``budget`` places filters, and for a policy that
    fails to name itself. The ``drifted`` tables are those that ``db.refilter()`` would copy.
    """

    level: int
    configured: str | None
    params: dict[str, Any] | None = attrs.field(hash=False)
    layout: str
    tables: tuple[FilterSummary, ...]
    budget: str | None = None
    drifted: tuple[FilterSummary, ...] = ()


def filters(state: State) -> tuple[LevelFilters, ...]:
    """The configured filters of every level, and those of its tables."""
    tree = drift.find(state)
    return tuple(_level_filters(state, tree, level) for level in range(LEVELS))


def _level_filters(state: State, tree: TreeDrift, level: int) -> LevelFilters:
    selected = state.options.filters
    identity = None if selected.rule is not None else claims.identity(selected[level])
    tables = [table for table in tree.tables if table.level == level]
    return LevelFilters(
        level=level,
        configured=None if identity is None else identity.name,
        params=None if identity is None else identity.decoded(),
        layout=selected.layout(level),
        tables=tuple(table.found for table in tables),
        budget=None if selected.rule is None else str(selected.rule.budget),
        drifted=tuple(table.found for table in tables if table.is_drifted),
    )


def stats(state: State) -> Stats:
    """The statistics of an open database, as of now."""
    view, work, tables = state.opened_view(), state.work, state.tables
    counted = tables.all_counters()
    facts = filter_facts.of_tables(state, view.version)
    filter_cache = tables.filters.cache
    is_shared = filter_cache is tables.blocks
    return Stats(
        path=state.directory,
        kernel=kernels.name_of(state.kernel),
        levels=tuple(
            _level_stats(state, view.version, level, facts, counted) for level in range(LEVELS)
        ),
        carried=tuple(_carried(view.version, facts)),
        filters=tuple(
            FilterCounts(level=level, policy=policy, counters=counters)
            for (level, policy), counters in sorted(counted.items())
        ),
        ranges=tuple(
            RangeCounts(level=level, policy=policy, **attrs.asdict(tally))
            for (level, policy), tally in sorted(tables.range_counts().items())
        ),
        block_cache=_cache_stats(
            tables.blocks,
            tables.block_misses,
            hits=tables.block_hits(),
            kind=state.kernel.Block if is_shared else None,
        ),
        filter_cache=_cache_stats(
            filter_cache,
            tables.filters.misses,
            pinned=tables.filters.pinned_bytes(tables.all_open()),
            kind=LoadedFilter if is_shared else None,
        ),
        table_cache=_cache_stats(tables.open_tables, tables.table_misses),
        memtable_bytes=sum(memtable.size for memtable in view.memtables),
        user_bytes_written=state.user_bytes,
        log_bytes_written=state.log_bytes,
        table_bytes_written=work.table_bytes,
        flushes=work.flushes,
        compactions=work.compactions,
        moves=work.moves,
        refiltered=work.refiltered,
        filters_failed=work.filters_failed,
        flush_seconds=work.flush_seconds,
        compaction_seconds=work.compaction_seconds,
        flush_read_bytes=work.flush_read_bytes,
        flush_written_bytes=work.flush_written_bytes,
        running_flushes=int(work.flushing.began is not None),
        running_compactions=work.compacting,
        slowed_seconds=work.slowed.seconds,
        slowed_writes=work.slowed.count,
        longest_slowed_seconds=work.slowed.longest,
        stopped_seconds=work.stopped.seconds,
        stopped_writes=work.stopped.count,
        longest_stopped_seconds=work.stopped.longest,
        snapshots=state.snapshot_count,
        iterators=len(state.walkers),
        log_losses=tuple(map(str, state.losses)),
        background_error=None if state.failure is None else str(state.failure),
    )


def _level_stats(
    state: State,
    version: Version,
    level: int,
    facts: Mapping[int, FilterFacts],
    counted: dict[tuple[int, str], Counters],
) -> LevelStats:
    placed = version.levels[level]
    found = [facts[table.number] for table in placed]
    known = [table for table in found if table.num_keys]
    keys = sum(table.num_keys or 0 for table in known)
    here = [counters for (at, _), counters in counted.items() if at == level]
    skipped = sum(counters.skipped for counters in here)
    wrong = sum(counters.false_positives for counters in here)
    cost = state.work.levels[level]
    return LevelStats(
        level=level,
        tables=len(placed),
        bytes=version.size(level),
        filter_bytes=sum(table.bytes for table in found),
        bits_per_key=sum(table.bytes for table in known) * 8 / keys if keys else None,
        expected_fpr=_mean_rate(found),
        measured_fpr=wrong / (wrong + skipped) if wrong + skipped else None,
        skipped=skipped,
        compaction_seconds=cost.seconds,
        read_bytes=cost.read_bytes,
        written_bytes=cost.written_bytes,
    )


def _carried(version: Version, facts: Mapping[int, FilterFacts]) -> Iterator[CarriedFilters]:
    """The filters of each level by policy, from level 0 down."""
    for level, placed in enumerate(version.levels):
        by_policy: dict[str, list[FilterFacts]] = {}
        for table in placed:
            found = facts[table.number]
            by_policy.setdefault(found.policy, []).append(found)
        for policy, those in sorted(by_policy.items()):
            yield CarriedFilters(
                level=level,
                policy=policy,
                tables=len(those),
                bytes=sum(table.bytes for table in those),
                num_keys=sum(table.num_keys or 0 for table in those),
                expected_fpr=_mean_rate(those),
            )


def _mean_rate(tables: Iterable[FilterFacts]) -> float | None:
    rates = [table.expected_fpr for table in tables if table.expected_fpr is not None]
    return sum(rates) / len(rates) if rates else None


def _cache_stats(
    cache: ClockCache,
    misses: int,
    *,
    hits: int | None = None,
    pinned: int = 0,
    kind: type | None = None,
) -> CacheStats:
    """What a cache has; of one kind of items, where others share its limit."""
    if kind is None:
        size, items, evictions = cache.bytes, len(cache), cache.evictions
    else:
        size, items, evictions = cache.share_of(kind)
    return CacheStats(
        bytes=size,
        limit=cache.limit,
        items=items,
        misses=misses,
        evictions=evictions,
        hits=hits,
        pinned=pinned,
    )


def approximate_sizes(state: State, ranges: Iterable[Sequence[Buffer]]) -> list[int]:
    """About how many bytes of tables each range takes."""
    version = state.opened_view().version
    sizes = []
    for pair in ranges:
        start, stop = pair
        low = _offset(state, version, _ordered(state, key_bytes("start", start)))
        high = _offset(state, version, _ordered(state, key_bytes("stop", stop)))
        sizes.append(max(0, high - low))
    return sizes


def _offset(state: State, version: Version, key: OrderedKey) -> int:
    """How many bytes of all tables lie before a key, as LevelDB's ApproximateOffsetOf has it."""
    total = 0
    for placed in version.tables():
        if placed.high < key:
            total += placed.size
        elif placed.low < key:
            total += state.tables.opened(placed.file).offset_of(key)
    return total


def get_property(state: State, name: bytes) -> bytes | None:
    """The value of one of LevelDB's properties; None for an unknown name."""
    if not name.startswith(b"leveldb."):
        return None
    rest = name.removeprefix(b"leveldb.")
    version = state.opened_view().version
    if rest.startswith(b"num-files-at-level"):
        digits = rest.removeprefix(b"num-files-at-level")
        if not digits.isdigit() or int(digits) >= LEVELS:
            return None
        return b"%d" % len(version.levels[int(digits)])
    if rest == b"stats":
        return _stats_property(state, version)
    if rest == b"sstables":
        return _sstables_property(state, version)
    if rest == b"approximate-memory-usage":
        held = sum(memtable.size for memtable in state.opened_view().memtables)
        return b"%d" % (held + state.tables.blocks.bytes)
    return None


def _stats_property(state: State, version: Version) -> bytes:
    lines = [
        "                               Compactions",
        "Level  Files Size(MB) Time(sec) Read(MB) Write(MB)",
        "--------------------------------------------------",
    ]
    for level, tables in enumerate(version.levels):
        cost = state.work.levels[level]
        if tables or cost.seconds:
            lines.append(
                f"{level:3d} {len(tables):8d} {version.size(level) / _MIB:8.0f} "
                f"{cost.seconds:9.0f} {cost.read_bytes / _MIB:8.0f} "
                f"{cost.written_bytes / _MIB:9.0f}"
            )
    return "".join(f"{line}\n" for line in lines).encode()


def _sstables_property(state: State, version: Version) -> bytes:
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


def _ordered(state: State, key: bytes) -> OrderedKey:
    wrap = state.comparator.wrap
    return key if wrap is None else wrap(key)
