"""All metrics, in one table: exporters and documents are derived from it.

Names and units are OpenTelemetry's. Prometheus' names follow from them by the rules by which
collectors translate them, so that a metric has the same name there whichever way it takes: dots are
underscores, a unit that is no annotation is appended, and ``total`` to counters.
"""

from __future__ import annotations

from functools import cached_property

import attrs

from lsm.metrics.readings import (
    Reading,
    by_cache,
    by_cause,
    by_level,
    by_policy,
    by_stall,
    carried,
    info,
    of_ranges,
    one,
)

COUNTER, GAUGE = "counter", "gauge"
"""What only grows while a database is open; what is as it is now."""

_SUFFIXES = {"By": "_bytes", "s": "_seconds", "1": "_ratio"}


@attrs.frozen(slots=False)
class Metric:
    """One metric: what it is called, counts and means, and how it is read from statistics.

    ``read`` gives a value for each combination of values of its ``labels``; None where there is
    nothing to tell.
    """

    name: str
    kind: str
    unit: str
    help: str
    labels: tuple[str, ...]
    read: Reading = attrs.field(repr=False)

    @cached_property
    def prometheus_unit(self) -> str:
        """The base unit in words; empty for what is counted in things."""
        return _SUFFIXES.get(self.unit, "").lstrip("_")

    @cached_property
    def prometheus_name(self) -> str:
        """The name in Prometheus."""
        total = "_total" if self.kind == COUNTER else ""
        return self.name.replace(".", "_") + _SUFFIXES.get(self.unit, "") + total

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The labels' names in OpenTelemetry."""
        return tuple(map(attribute, self.labels))


def attribute(label: str) -> str:
    """A label's name in OpenTelemetry."""
    return f"lsm.{label}"


DATABASE = "database"
"""The label that every metric has beside its own."""


_POLICY = ("level", "policy")

_FILTERS = (
    Metric(
        *("lsm.filter.probes", COUNTER, "{probe}"),
        "Lookups that asked a table's filter, whatever it said.",
        _POLICY,
        by_policy(lambda it: it.skipped + it.true_positives + it.false_positives),
    ),
    Metric(
        *("lsm.filter.skipped", COUNTER, "{table}"),
        "Tables that lookups skipped, because the filter said no: no block was read.",
        _POLICY,
        by_policy(lambda it: it.skipped),
    ),
    Metric(
        *("lsm.filter.true_positives", COUNTER, "{block}"),
        "Blocks that lookups read after the filter said maybe, and that had the key.",
        _POLICY,
        by_policy(lambda it: it.true_positives),
    ),
    Metric(
        *("lsm.filter.false_positives", COUNTER, "{block}"),
        "Blocks that lookups read in vain: the filter said maybe, and the table had no such key.",
        _POLICY,
        by_policy(lambda it: it.false_positives),
    ),
    Metric(
        *("lsm.filter.unasked", COUNTER, "{block}"),
        "Blocks that lookups read without asking a filter: there is none, its policy is unknown "
        "here, it is corrupt, the policy failed or declined to make one, or it was unloaded for "
        "want of memory.",
        (*_POLICY, "cause"),
        by_cause,
    ),
    Metric(
        *("lsm.filter.measured_fpr", GAUGE, "1"),
        "The share of absent keys that the filters have let through since opening.",
        _POLICY,
        by_policy(lambda it: it.measured_fpr),
    ),
    Metric(
        *("lsm.filter.expected_fpr", GAUGE, "1"),
        "The share that the filters of the tables that are there expect to let through; the mean "
        "of the tables.",
        _POLICY,
        carried("expected_fpr"),
    ),
    Metric(
        *("lsm.filter.tables", GAUGE, "{table}"),
        "Tables that carry a filter of this policy, in whichever state.",
        _POLICY,
        carried("tables"),
    ),
    Metric(
        *("lsm.filter.keys", GAUGE, "{key}"),
        "Keys in these filters, of those that say how many they have.",
        _POLICY,
        carried("num_keys"),
    ),
    Metric(
        *("lsm.filter.size", GAUGE, "By"),
        "Bytes of these filters, in memory or not.",
        _POLICY,
        carried("bytes"),
    ),
    Metric(
        *("lsm.filter.build_failures", COUNTER, "{filter}"),
        "Filters that could not be built; their tables were written without one.",
        (),
        one("filters_failed"),
    ),
)

_RANGES = (
    Metric(
        *("lsm.range.skipped", COUNTER, "{table}"),
        "Tables that iterators between two bounds left out, because the filter denied the range.",
        _POLICY,
        of_ranges("skipped"),
    ),
    Metric(
        *("lsm.range.passed", COUNTER, "{table}"),
        "Tables whose filters said that they may have some of the range.",
        _POLICY,
        of_ranges("passed"),
    ),
    Metric(
        *("lsm.range.untold", COUNTER, "{table}"),
        "Tables whose filters had nothing to say of the range.",
        _POLICY,
        of_ranges("untold"),
    ),
)

_LEVELS = (
    Metric(
        *("lsm.level.tables", GAUGE, "{table}"),
        "Tables of the level.",
        ("level",),
        by_level("tables"),
    ),
    Metric(
        *("lsm.level.size", GAUGE, "By"),
        "Bytes of the level's tables.",
        ("level",),
        by_level("bytes"),
    ),
)

_MEMORY = (
    Metric(
        *("lsm.memtable.size", GAUGE, "By"),
        "Bytes of keys and values that wait in memory to be flushed.",
        (),
        one("memtable_bytes"),
    ),
    Metric(
        *("lsm.cache.size", GAUGE, "By"),
        "Bytes that the cache holds.",
        ("cache",),
        by_cache("bytes"),
    ),
    Metric(
        *("lsm.cache.limit", GAUGE, "By"),
        "Bytes that the cache may hold.",
        ("cache",),
        by_cache("limit"),
    ),
    Metric(
        *("lsm.cache.pinned", GAUGE, "By"),
        "Bytes that stay in memory whatever the limit is.",
        ("cache",),
        by_cache("pinned"),
    ),
    Metric(
        *("lsm.cache.items", GAUGE, "{item}"),
        "Blocks, filters or tables that the cache holds.",
        ("cache",),
        by_cache("items"),
    ),
    Metric(
        *("lsm.cache.hits", COUNTER, "{item}"),
        "Blocks that lookups found in the cache; of other caches nobody counts that.",
        ("cache",),
        by_cache("hits"),
    ),
    Metric(
        *("lsm.cache.misses", COUNTER, "{item}"),
        "Blocks, filters or tables that were read since the cache did not have them, by lookups, "
        "iterators and whoever else.",
        ("cache",),
        by_cache("misses"),
    ),
    Metric(
        *("lsm.cache.evictions", COUNTER, "{item}"),
        "Items that left the cache for the room of others.",
        ("cache",),
        by_cache("evictions"),
    ),
    Metric(
        *("lsm.snapshot.open", GAUGE, "{snapshot}"),
        "Snapshots that nobody has released; compactions keep what they see.",
        (),
        one("snapshots"),
    ),
    Metric(
        *("lsm.iterator.open", GAUGE, "{iterator}"),
        "Iterators that somebody has.",
        (),
        one("iterators"),
    ),
)

_STALLS = ("kind",)

_WRITES = (
    Metric(
        *("lsm.write.user", COUNTER, "By"),
        "Bytes of keys and values that were written.",
        (),
        one("user_bytes_written"),
    ),
    Metric(
        *("lsm.write.log", COUNTER, "By"),
        "Bytes that went to logs.",
        (),
        one("log_bytes_written"),
    ),
    Metric(
        *("lsm.write.table", COUNTER, "By"),
        "Bytes that went to tables, by flushes, compactions, bulk loads and refiltering.",
        (),
        one("table_bytes_written"),
    ),
    Metric(
        *("lsm.write.amplification", GAUGE, "1"),
        "Bytes that went to tables for each byte of keys and values, since opening.",
        (),
        one("write_amplification"),
    ),
    Metric(
        *("lsm.stall.writes", COUNTER, "{write}"),
        "Writes that waited: slowed to the pace of the background, or stopped for want of room.",
        _STALLS,
        by_stall("slowed_writes", "stopped_writes"),
    ),
    Metric(
        *("lsm.stall.time", COUNTER, "s"),
        "The time that writes have waited.",
        _STALLS,
        by_stall("slowed_seconds", "stopped_seconds"),
    ),
    Metric(
        *("lsm.stall.longest", GAUGE, "s"),
        "The longest time that one write has waited since opening.",
        _STALLS,
        by_stall("longest_slowed_seconds", "longest_stopped_seconds"),
    ),
)

_BACKGROUND = (
    Metric(
        *("lsm.flush.jobs", COUNTER, "{job}"),
        "Flushes of a memtable to a table.",
        (),
        one("flushes"),
    ),
    Metric(
        *("lsm.flush.running", GAUGE, "{job}"),
        "Flushes that are under way.",
        (),
        one("running_flushes"),
    ),
    Metric(
        *("lsm.flush.time", COUNTER, "s"),
        "The time that flushes took.",
        (),
        one("flush_seconds"),
    ),
    Metric(
        *("lsm.flush.read", COUNTER, "By"),
        "Bytes of memtables that were flushed.",
        (),
        one("flush_read_bytes"),
    ),
    Metric(
        *("lsm.flush.written", COUNTER, "By"),
        "Bytes of the tables that they became.",
        (),
        one("flush_written_bytes"),
    ),
    Metric(
        *("lsm.compaction.jobs", COUNTER, "{job}"),
        "Compactions that wrote tables anew.",
        (),
        one("compactions"),
    ),
    Metric(
        *("lsm.compaction.running", GAUGE, "{job}"),
        "Compactions that are under way.",
        (),
        one("running_compactions"),
    ),
    Metric(
        *("lsm.compaction.moves", COUNTER, "{table}"),
        "Tables that went a level down as they are.",
        (),
        one("moves"),
    ),
    Metric(
        *("lsm.compaction.time", COUNTER, "s"),
        "The time that compactions into the level took; those that ran at once have theirs each.",
        ("level",),
        by_level("compaction_seconds"),
    ),
    Metric(
        *("lsm.compaction.read", COUNTER, "By"),
        "Bytes that compactions into the level have read.",
        ("level",),
        by_level("read_bytes"),
    ),
    Metric(
        *("lsm.compaction.written", COUNTER, "By"),
        "Bytes that compactions into the level have written.",
        ("level",),
        by_level("written_bytes"),
    ),
    Metric(
        *("lsm.refilter.tables", COUNTER, "{table}"),
        "Tables that were given another filter, their data as they are.",
        (),
        one("refiltered"),
    ),
)

_HEALTH = (
    Metric(
        *("lsm.writing.stopped", GAUGE, "{database}"),
        "1 if writing has stopped after a failure, which the log tells, and 0 else.",
        (),
        lambda stats: (((), int(stats.background_error is not None)),),
    ),
    Metric(
        *("lsm.log.losses", GAUGE, "{loss}"),
        "Parts of logs that could not be replayed at opening.",
        (),
        lambda stats: (((), len(stats.log_losses)),),
    ),
    Metric(
        *("lsm.info", GAUGE, "{database}"),
        "Always 1, with the version of the engine and the kernel that it runs on.",
        ("version", "kernel"),
        info,
    ),
)

METRICS: tuple[Metric, ...] = (
    *_FILTERS,
    *_RANGES,
    *_LEVELS,
    *_MEMORY,
    *_WRITES,
    *_BACKGROUND,
    *_HEALTH,
)
"""All metrics, in the order of the documents."""

LABELS = frozenset(label for metric in METRICS for label in metric.labels)
"""The labels that metrics have of their own."""
