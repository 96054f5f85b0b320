"""Statistics: counters of lookups, levels and caches, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from lsm.kernels import Tally


@attrs.frozen
class Counters:
    """What became of point lookups at one level whose tables carry one policy's filters.

    ``skipped``: the filter said no, and no block was read. ``true_positives``: the table holds the
    key, in whichever version. ``false_positives``: a block was read, and it does not. The others
    are blocks that were read without asking a filter: there is ``none``, its policy is ``unknown``
    here, it is ``corrupt``, the policy ``failed`` or ``declined`` to make one, or it was
    ``unloaded``, and there was no room in memory to spare for it.

    They are counted by readers that hold no lock, so that under a free-threaded interpreter a few
    may go missing.
    """

    skipped: int = 0
    true_positives: int = 0
    false_positives: int = 0
    none: int = 0
    unknown: int = 0
    corrupt: int = 0
    failed: int = 0
    declined: int = 0
    unloaded: int = 0

    @classmethod
    def of(cls, tally: Tally) -> Counters:
        """What a tally has counted up to now."""
        return cls(**{field.name: getattr(tally, field.name) for field in attrs.fields(cls)})

    @property
    def blocks_read(self) -> int:
        """How many lookups were not skipped, and so read a block."""
        counted: int = sum(attrs.astuple(self)) - self.skipped
        return counted

    @property
    def measured_fpr(self) -> float | None:
        """The share of absent keys that were let through; None before the first absent key."""
        absent = self.skipped + self.false_positives
        return self.false_positives / absent if absent else None


@attrs.frozen(kw_only=True)
class FilterCounts:
    """What was counted since the database was opened, at one level and for one policy."""

    level: int
    policy: str
    counters: Counters


@attrs.frozen(kw_only=True)
class CarriedFilters:
    """The filters of one policy that the tables of one level carry, whether they can be asked.

    Of ``num_keys`` only those are counted whose tables say how many keys their filter has.
    ``expected_fpr`` is the mean of the tables that expect anything.
    """

    level: int
    policy: str
    tables: int
    bytes: int
    num_keys: int
    expected_fpr: float | None


@attrs.frozen(kw_only=True)
class RangeCounts:
    """What became of ranges at one level whose tables carry one policy's filters, table by table.

    Iterators between two bounds ask. ``skipped``: the filter said that the table has none of their
    keys, and it was not read. ``passed``: it may have some. ``untold``: its filter has nothing to
    say of this range, as one with other prefixes, or with none.
    """

    level: int
    policy: str
    skipped: int
    passed: int
    untold: int


@attrs.frozen(kw_only=True)
class LevelStats:
    """One level: its tables, their filters, and what compactions into it have cost."""

    level: int
    tables: int
    bytes: int
    filter_bytes: int
    bits_per_key: float | None
    expected_fpr: float | None
    measured_fpr: float | None
    skipped: int
    compaction_seconds: float
    read_bytes: int
    written_bytes: int


@attrs.frozen(kw_only=True)
class CacheStats:
    """A cache: the bytes and items it holds, its limit, its hits, misses and evictions.

    ``pinned`` bytes are not part of it: they stay whatever its limit is.
    """

    bytes: int
    limit: int
    items: int
    misses: int
    evictions: int
    hits: int | None = None
    pinned: int = 0


@attrs.frozen
class Throughput:
    """The bytes that jobs have read and written in each second of their time."""

    read: float
    written: float


@attrs.frozen(kw_only=True)
class Stats:
    """The state of a database and what was counted since it was opened.

    A write was slowed where it waited at the pace of the background, and stopped where it waited
    for room, or for a bulk load to end. Jobs that run at once have their seconds each.
    ``snapshots`` are those that nobody has released, ``iterators`` those that somebody has.
    """

    path: str
    kernel: str
    levels: tuple[LevelStats, ...]
    carried: tuple[CarriedFilters, ...]
    filters: tuple[FilterCounts, ...]
    ranges: tuple[RangeCounts, ...]
    block_cache: CacheStats
    filter_cache: CacheStats
    table_cache: CacheStats
    memtable_bytes: int
    user_bytes_written: int
    log_bytes_written: int
    table_bytes_written: int
    flushes: int
    compactions: int
    moves: int
    refiltered: int
    filters_failed: int
    flush_seconds: float
    compaction_seconds: float
    flush_read_bytes: int
    flush_written_bytes: int
    running_flushes: int
    running_compactions: int
    slowed_seconds: float
    slowed_writes: int
    longest_slowed_seconds: float
    stopped_seconds: float
    stopped_writes: int
    longest_stopped_seconds: float
    snapshots: int
    iterators: int
    log_losses: tuple[str, ...]
    background_error: str | None

    @property
    def write_amplification(self) -> float | None:
        """Bytes that went to tables, over the bytes of keys and values that were written."""
        if not self.user_bytes_written:
            return None
        return self.table_bytes_written / self.user_bytes_written

    @property
    def flush_throughput(self) -> Throughput | None:
        """Of flushes, from memory to tables; None before the first."""
        return _throughput(self.flush_read_bytes, self.flush_written_bytes, self.flush_seconds)

    @property
    def compaction_throughput(self) -> Throughput | None:
        """Of compactions, from tables to tables; None before the first that wrote any anew."""
        read = sum(level.read_bytes for level in self.levels)
        written = sum(level.written_bytes for level in self.levels)
        return _throughput(read, written, self.compaction_seconds)

    def as_dict(self) -> dict[str, Any]:
        """All fields, the write amplification and both throughputs, in types that JSON has."""
        derived: dict[str, Any] = {"write_amplification": self.write_amplification}
        for name in ("flush_throughput", "compaction_throughput"):
            throughput = getattr(self, name)
            derived[name] = None if throughput is None else attrs.asdict(throughput)
        return attrs.asdict(self) | derived

    def __str__(self) -> str:
        tables = sum(level.tables for level in self.levels)
        lines = [f"{self.path}: {tables} tables, {self.kernel} kernel"]
        lines.append(_ROW.format(*_HEADINGS))
        lines += [_level_row(level) for level in self.levels if level.tables]
        amplification = self.write_amplification
        lines.append(
            f"written {_size(self.user_bytes_written)} of keys and values, "
            f"{_size(self.log_bytes_written)} to logs, {_size(self.table_bytes_written)} to tables"
            + ("" if amplification is None else f" ({amplification:.2f} x)")
        )
        lines.append(
            f"{self.flushes} flushes in {self.flush_seconds:.1f} s{_rates(self.flush_throughput)}, "
            f"{self.compactions} compactions in {self.compaction_seconds:.1f} s"
            f"{_rates(self.compaction_throughput)}, {self.moves} moves; "
            f"{self.running_flushes + self.running_compactions} jobs are running"
        )
        lines.append(
            f"{self.slowed_writes} writes slowed for {self.slowed_seconds:.1f} s, the longest for "
            f"{self.longest_slowed_seconds:.3f} s; {self.stopped_writes} stopped for "
            f"{self.stopped_seconds:.1f} s, the longest for {self.longest_stopped_seconds:.3f} s"
        )
        if self.ranges:
            skipped, passed, untold = (
                sum(getattr(each, name) for each in self.ranges)
                for name in ("skipped", "passed", "untold")
            )
            lines.append(
                f"ranges: {skipped} tables skipped, {passed} passed, {untold} could not be told of"
            )
        for name in ("block_cache", "filter_cache", "table_cache"):
            lines.append(_cache_line(name.replace("_", " "), getattr(self, name)))
        if self.filters_failed:
            lines.append(f"{self.filters_failed} filters could not be built; see the log")
        lines += [f"replay left {loss}" for loss in self.log_losses]
        if self.background_error:
            lines.append(f"writing has stopped: {self.background_error}")
        return "\n".join(lines)


_HEADINGS = ("level", "tables", "size", "filters", "bits/key", "expected", "measured", "skipped")
_ROW = "{:>5} {:>7} {:>10} {:>10} {:>9} {:>9} {:>9} {:>10}"


def _level_row(level: LevelStats) -> str:
    return _ROW.format(
        level.level,
        level.tables,
        _size(level.bytes),
        _size(level.filter_bytes),
        "-" if level.bits_per_key is None else f"{level.bits_per_key:.2f}",
        _rate(level.expected_fpr),
        _rate(level.measured_fpr),
        level.skipped,
    )


def _cache_line(name: str, cache: CacheStats) -> str:
    hits = "" if cache.hits is None else f"{cache.hits} hits, "
    pinned = f", {_size(cache.pinned)} pinned" if cache.pinned else ""
    return (
        f"{name}: {_size(cache.bytes)} of {_size(cache.limit)}, {cache.items} items, {hits}"
        f"{cache.misses} misses, {cache.evictions} evictions{pinned}"
    )


def _throughput(read: int, written: int, seconds: float) -> Throughput | None:
    return Throughput(read / seconds, written / seconds) if seconds else None


def _rates(throughput: Throughput | None) -> str:
    if throughput is None:
        return ""
    return f" (read {_size(throughput.read)}/s, written {_size(throughput.written)}/s)"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3%}"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
