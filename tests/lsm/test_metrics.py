"""Metrics: what statistics know reaches Prometheus and OpenTelemetry, and nothing else does."""

from __future__ import annotations

import gc
import os
import random
import re
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import lsm.metrics
from lsm import inspection
from lsm.metrics import watched
from lsm.metrics.catalogue import COUNTER, GAUGE, LABELS, METRICS, Metric
from lsm.stats import (
    CacheStats,
    CarriedFilters,
    Counters,
    FilterCounts,
    LevelStats,
    RangeCounts,
    Stats,
)
from tests.lsm.crew import PATIENCE
from tests.lsm.forking import Child
from tests.lsm.refilterable import AFTER, STILL, made
from tests.lsm.simulated import SimulatedStorage

Place = tuple[str, frozenset[tuple[str, str]]]
"""A metric in Prometheus with its labels."""


def told(stats: Stats) -> dict[tuple[str, tuple[str, ...]], float]:
    """What all metrics tell of statistics."""
    return {
        (metric.name, where): value
        for metric in METRICS
        for where, value in metric.read(stats)
        if value is not None
    }


# -- The catalogue -------------------------------------------------------------------------


def test_names_are_as_prometheus_and_opentelemetry_want_them() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert len({metric.prometheus_name for metric in METRICS}) == len(METRICS)
    names = {metric.name for metric in METRICS}
    for metric in METRICS:
        assert re.fullmatch(r"lsm(\.[a-z]+(_[a-z]+)*)+", metric.name)
        assert not any(other.startswith(f"{metric.name}.") for other in names), "is a namespace"
        assert re.fullmatch(r"lsm(_[a-z]+)+", metric.prometheus_name)
        assert metric.kind in (COUNTER, GAUGE)
        assert metric.prometheus_name.endswith("_total") == (metric.kind == COUNTER)
        assert re.fullmatch(r"By|s|1|\{[a-z]+\}", metric.unit)
        bare = metric.prometheus_name.removesuffix("_total")
        assert not bare.endswith(("_count", "_sum", "_bucket", "_created", "_total"))
        assert bare.endswith(f"_{metric.prometheus_unit}") or not metric.prometheus_unit
        assert metric.help.endswith(".")
        assert set(metric.labels) <= LABELS


CACHE = CacheStats(bytes=1, limit=2, items=3, misses=4, evictions=5, hits=6, pinned=7)
FILLED = Stats(
    path="db",
    kernel="native",
    levels=(
        LevelStats(
            level=3,
            tables=2,
            bytes=1000,
            filter_bytes=100,
            bits_per_key=10.0,
            expected_fpr=0.01,
            measured_fpr=0.02,
            skipped=98,
            compaction_seconds=1.5,
            read_bytes=2000,
            written_bytes=1000,
        ),
    ),
    carried=(
        CarriedFilters(
            level=3, policy="blocked", tables=2, bytes=100, num_keys=80, expected_fpr=0.01
        ),
    ),
    filters=(
        FilterCounts(level=3, policy="blocked", counters=Counters(98, 5, 2, 1, 2, 3, 4, 5, 6)),
    ),
    ranges=(RangeCounts(level=3, policy="blocked", skipped=1, passed=2, untold=3),),
    block_cache=CACHE,
    filter_cache=attrs.evolve(CACHE, hits=None),
    table_cache=attrs.evolve(CACHE, hits=None),
    memtable_bytes=10,
    user_bytes_written=500,
    log_bytes_written=600,
    table_bytes_written=1500,
    flushes=3,
    compactions=4,
    moves=5,
    refiltered=6,
    filters_failed=7,
    flush_seconds=0.5,
    compaction_seconds=1.5,
    flush_read_bytes=700,
    flush_written_bytes=650,
    running_flushes=1,
    running_compactions=2,
    slowed_seconds=0.25,
    slowed_writes=9,
    longest_slowed_seconds=0.03,
    stopped_seconds=0.75,
    stopped_writes=2,
    longest_stopped_seconds=0.5,
    snapshots=2,
    iterators=3,
    log_losses=(),
    background_error=None,
)

# What is told of a level follows from what is told of its policies, or of the others.
DERIVED = {f"levels.{name}" for name in ("filter_bytes", "bits_per_key", "expected_fpr")}
DERIVED |= {"levels.measured_fpr", "levels.skipped", "compaction_seconds"}
# The path is a label, and no value; there are hits of one cache alone.
DERIVED |= {"path"}


def changed(what: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The same with one field changed, each with its path of names."""
    for field in attrs.fields(type(what)):
        value, path = getattr(what, field.name), f"{name}.{field.name}".lstrip(".")
        if attrs.has(type(value)):
            others = changed(value, path)
        elif isinstance(value, tuple) and value:
            others = ((place, (other,)) for place, other in changed(value[0], path))
        elif isinstance(value, tuple):
            others = iter([(path, ("something",))])
        elif isinstance(value, str):
            others = iter([(path, f"{value}, too")])
        elif value is None:
            others = iter([(path, "failed" if path == "background_error" else 1)])
        else:
            others = iter([(path, value + 1)])
        for place, other in others:
            yield place, attrs.evolve(what, **{field.name: other})


def test_every_number_of_the_statistics_is_told() -> None:
    before = told(FILLED)
    silent = {path for path, stats in changed(FILLED) if told(stats) == before}
    assert silent == DERIVED


def test_what_nobody_knows_is_not_told() -> None:
    names = {name for name, _ in told(FILLED)}
    assert names == {metric.name for metric in METRICS}
    empty = attrs.evolve(FILLED, carried=(), filters=(), ranges=(), user_bytes_written=0)
    missing = names - {name for name, _ in told(empty)}
    assert missing == {each for each in names if each.startswith(("lsm.filter.", "lsm.range."))} - {
        "lsm.filter.build_failures"
    } | {"lsm.write.amplification"}


def test_filters_that_nobody_has_asked_begin_at_nought() -> None:
    found = told(attrs.evolve(FILLED, filters=()))
    assert found["lsm.filter.skipped", ("3", "blocked")] == 0
    assert found["lsm.filter.unasked", ("3", "blocked", "unloaded")] == 0
    assert ("lsm.filter.measured_fpr", ("3", "blocked")) not in found


def test_a_policys_name_is_whatever_a_file_says() -> None:
    for name in ("\ud800" * 3, "é" * 10_000, "x" * 10_000, 'a"b\n'):
        carried = attrs.evolve(FILLED.carried[0], policy=name)
        stats = attrs.evolve(FILLED, carried=(carried,), filters=(), ranges=())
        [(_, policy)] = {where[:2] for (each, where) in told(stats) if each == "lsm.filter.size"}
        assert len(policy.encode()) <= 256
        assert policy[:3] == name[:3] or policy.startswith("\\ud800")


# -- Prometheus ----------------------------------------------------------------------------


def collected(registry: Any) -> dict[Place, float]:
    """All samples that a registry tells; no two of them are of one place."""
    found: dict[Place, float] = {}
    for family in registry.collect():
        for sample in family.samples:
            place = sample.name, frozenset(sample.labels.items())
            assert place not in found
            found[place] = sample.value
    return found


def at(name: str, **labels: object) -> Place:
    return name, frozenset((label, str(value)) for label, value in labels.items())


def registry() -> Any:
    return pytest.importorskip("prometheus_client").CollectorRegistry()


def ask(db: lsm.DB) -> None:
    """Look for keys that are there, and for as many that are not."""
    for number in range(200):
        db.get(b"%04d" % number)
        db.get(b"%04dx" % number)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[lsm.DB]:
    """A database that was written, read, compacted and refiltered since it was opened."""
    made(tmp_path / "db")
    options = STILL | {"filter_policy": AFTER, "filter_prefix": 2}
    with lsm.DB(tmp_path / "db", **options) as db:
        ask(db)
        db.refilter(levels=[1, 2])
        ask(db)
        for number in range(100, 150):
            db.put(b"%04d" % number, b"new")
        db.flush()
        db.compact_range(start=b"0000", stop=b"0120")
        db.put(b"0007", b"in memory")
        ask(db)
        assert not list(db.iterator(prefix=b"007x"))
        yield db


def expected(db: lsm.DB) -> dict[Place, float | None]:
    """What a database's statistics say, written down by hand."""
    stats, name = db.stats(), str(db.name)
    found: dict[Place, float | None] = {}
    for level in stats.levels:
        where: dict[str, Any] = {"database": name, "level": level.level}
        found[at("lsm_level_tables", **where)] = level.tables
        found[at("lsm_level_size_bytes", **where)] = level.bytes
        found[at("lsm_compaction_time_seconds_total", **where)] = level.compaction_seconds
        found[at("lsm_compaction_read_bytes_total", **where)] = level.read_bytes
        found[at("lsm_compaction_written_bytes_total", **where)] = level.written_bytes
    for each in stats.filters:
        where, it = {"database": name, "level": each.level, "policy": each.policy}, each.counters
        probes = it.skipped + it.true_positives + it.false_positives
        found[at("lsm_filter_probes_total", **where)] = probes
        found[at("lsm_filter_skipped_total", **where)] = it.skipped
        found[at("lsm_filter_true_positives_total", **where)] = it.true_positives
        found[at("lsm_filter_false_positives_total", **where)] = it.false_positives
        found[at("lsm_filter_measured_fpr_ratio", **where)] = it.measured_fpr
        for cause in ("none", "unknown", "corrupt", "failed", "declined", "unloaded"):
            found[at("lsm_filter_unasked_total", cause=cause, **where)] = getattr(it, cause)
    for those in stats.carried:
        where = {"database": name, "level": those.level, "policy": those.policy}
        found[at("lsm_filter_size_bytes", **where)] = those.bytes
        found[at("lsm_filter_keys", **where)] = those.num_keys
        found[at("lsm_filter_tables", **where)] = those.tables
        found[at("lsm_filter_expected_fpr_ratio", **where)] = those.expected_fpr
    for ranges in stats.ranges:
        where = {"database": name, "level": ranges.level, "policy": ranges.policy}
        found[at("lsm_range_skipped_total", **where)] = ranges.skipped
        found[at("lsm_range_passed_total", **where)] = ranges.passed
        found[at("lsm_range_untold_total", **where)] = ranges.untold
    for cache in ("block", "filter", "table"):
        has: CacheStats = getattr(stats, f"{cache}_cache")
        where = {"database": name, "cache": cache}
        found[at("lsm_cache_size_bytes", **where)] = has.bytes
        found[at("lsm_cache_limit_bytes", **where)] = has.limit
        found[at("lsm_cache_pinned_bytes", **where)] = has.pinned
        found[at("lsm_cache_items", **where)] = has.items
        found[at("lsm_cache_hits_total", **where)] = has.hits
        found[at("lsm_cache_misses_total", **where)] = has.misses
        found[at("lsm_cache_evictions_total", **where)] = has.evictions
    for kind in ("slowed", "stopped"):
        where = {"database": name, "kind": kind}
        found[at("lsm_stall_writes_total", **where)] = getattr(stats, f"{kind}_writes")
        found[at("lsm_stall_time_seconds_total", **where)] = getattr(stats, f"{kind}_seconds")
        found[at("lsm_stall_longest_seconds", **where)] = getattr(stats, f"longest_{kind}_seconds")
    alone = {
        "lsm_filter_build_failures_total": stats.filters_failed,
        "lsm_memtable_size_bytes": stats.memtable_bytes,
        "lsm_snapshot_open": stats.snapshots,
        "lsm_iterator_open": stats.iterators,
        "lsm_write_user_bytes_total": stats.user_bytes_written,
        "lsm_write_log_bytes_total": stats.log_bytes_written,
        "lsm_write_table_bytes_total": stats.table_bytes_written,
        "lsm_write_amplification_ratio": stats.write_amplification,
        "lsm_flush_jobs_total": stats.flushes,
        "lsm_flush_running": stats.running_flushes,
        "lsm_flush_time_seconds_total": stats.flush_seconds,
        "lsm_flush_read_bytes_total": stats.flush_read_bytes,
        "lsm_flush_written_bytes_total": stats.flush_written_bytes,
        "lsm_compaction_jobs_total": stats.compactions,
        "lsm_compaction_running": stats.running_compactions,
        "lsm_compaction_moves_total": stats.moves,
        "lsm_refilter_tables_total": stats.refiltered,
        "lsm_writing_stopped": int(stats.background_error is not None),
        "lsm_log_losses": len(stats.log_losses),
    }
    found |= {at(each, database=name): value for each, value in alone.items()}
    found[at("lsm_info", database=name, version=lsm.__version__, kernel=stats.kernel)] = 1
    return {place: value for place, value in found.items() if value is not None}


def beside_noughts(found: dict[Place, float]) -> dict[Place, float]:
    """Samples but for those of filters that nobody has asked, which stand at nought."""
    return {
        (name, labels): value
        for (name, labels), value in found.items()
        if value or not name.startswith("lsm_filter_")
    }


def test_prometheus_is_told_what_the_statistics_say(busy: lsm.DB) -> None:
    scraped = registry()
    lsm.metrics.prometheus(busy, registry=scraped)
    with busy.snapshot(), busy.iterator() as walk:
        next(walk)
        said = expected(busy)
        found = collected(scraped)
    assert beside_noughts(found) == beside_noughts({k: v for k, v in said.items() if v is not None})
    assert set(said) <= set(found)
    name = str(busy.name)
    for busy_one in ("refilter_tables", "compaction_jobs", "flush_jobs", "write_user_bytes"):
        assert found[at(f"lsm_{busy_one}_total", database=name)] > 0
    assert found[at("lsm_snapshot_open", database=name)] == 1
    assert found[at("lsm_iterator_open", database=name)] >= 1
    skipped = {labels for each, labels in found if each == "lsm_range_skipped_total"}
    assert skipped, "the iterator over a prefix has asked"


def test_what_is_scraped_can_be_parsed(busy: lsm.DB, tmp_path: Path) -> None:
    scraped = registry()
    from prometheus_client import generate_latest, parser
    from prometheus_client.openmetrics import exposition
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict

    with lsm.DB(tmp_path / "other", create_if_missing=True) as other:
        lsm.metrics.prometheus(busy, registry=scraped)
        lsm.metrics.prometheus(other, registry=scraped, labels={"shard": 'a"\n\\é'})
        text = generate_latest(scraped).decode()
        families = {each.name: each for each in parser.text_string_to_metric_families(text)}
        assert sum(len(each.samples) for each in families.values()) == len(collected(scraped))
        for metric in METRICS:
            assert text.count(f"# TYPE {metric.prometheus_name} ") <= 1, "of both databases"
        by_name = {each.name: each for each in strict(exposition.generate_latest(scraped).decode())}
        for metric in METRICS:
            family = by_name.get(metric.prometheus_name.removesuffix("_total"))
            if family is not None:
                assert (family.type, family.unit) == (metric.kind, metric.prometheus_unit)
                assert family.documentation == metric.help
        assert {s.labels.get("shard") for s in families["lsm_memtable_size_bytes"].samples} == {
            None,
            'a"\n\\é',
        }


def fresh(name: str | bytes = "db", **options: Any) -> lsm.DB:
    return lsm.DB(name, create_if_missing=True, storage=SimulatedStorage(), **options)


def databases(scraped: Any) -> set[str]:
    """The databases that a registry tells anything of."""
    return {dict(labels)["database"] for _, labels in collected(scraped)}


def test_labels_tell_databases_apart() -> None:
    scraped = registry()
    with fresh("one") as one, fresh("two") as two, fresh("one") as third:
        lsm.metrics.prometheus(one, registry=scraped)
        lsm.metrics.prometheus(two, registry=scraped, labels={"shard": "7"})
        lsm.metrics.prometheus(third, registry=scraped, labels={"database": "third"})
        one.put(b"key", b"value")
        found = collected(scraped)
        assert databases(scraped) == {"one", "two", "third"}
        assert found[at("lsm_write_user_bytes_total", database="one")] == 8
        assert found[at("lsm_write_user_bytes_total", database="two", shard="7")] == 0
        for again in (one, third):
            with pytest.raises(ValueError, match=r"open database with the labels .* already"):
                lsm.metrics.prometheus(again, registry=scraped, labels={"database": "one"})
        lsm.metrics.prometheus(one, registry=registry())
        assert databases(scraped) == {"one", "two", "third"}


def test_some_metrics_can_be_asked_for_alone() -> None:
    scraped = registry()
    with fresh() as db:
        lsm.metrics.prometheus(db, registry=scraped)
        asked = "lsm_flush_jobs_total", "lsm_memtable_size_bytes"
        assert {name for name, _ in collected(scraped.restricted_registry(asked))} == set(asked)


def test_a_path_that_is_no_utf8_can_be_written() -> None:
    scraped = registry()
    from prometheus_client import generate_latest

    with fresh(b"db\xff") as db:
        lsm.metrics.prometheus(db, registry=scraped, labels={"of": "\udc80"})
        assert databases(scraped) == {"db\\udcff"}
        assert generate_latest(scraped)


def test_a_closed_registration_tells_nothing_and_leaves_nothing() -> None:
    scraped = registry()
    with fresh("one") as one, fresh("two") as two:
        first = lsm.metrics.prometheus(one, registry=scraped)
        with lsm.metrics.prometheus(two, registry=scraped):
            first.close()
            first.close()
            assert databases(scraped) == {"two"}
            from prometheus_client import Gauge

            with pytest.raises(ValueError, match="lsm_level_tables"):
                Gauge("lsm_level_tables", "of somebody else", registry=scraped)
        assert not collected(scraped)
        Gauge("lsm_level_tables", "of somebody else", registry=scraped)
        with pytest.raises(ValueError, match="lsm_level_tables"):
            lsm.metrics.prometheus(one, registry=scraped)


def test_a_database_that_is_closed_or_collected_tells_nothing(no_collector: None) -> None:
    scraped = registry()
    one, two = fresh("one"), fresh("two")
    lsm.metrics.prometheus(one, registry=scraped)
    lsm.metrics.prometheus(two, registry=scraped)
    one.close()
    assert databases(scraped) == {"two"}
    gone = weakref.ref(two)
    del two
    assert gone() is None, "nothing of it is held"
    assert not collected(scraped)
    with fresh("one") as again:
        again.put(b"key", b"value")
        lsm.metrics.prometheus(again, registry=scraped)
        name = at("lsm_flush_jobs_total", database="one")
        assert collected(scraped)[name] == 0


def test_counters_begin_anew_with_each_opening(tmp_path: Path) -> None:
    scraped, written = registry(), []
    for _ in range(2):
        with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
            db.put(b"key", b"value")
            lsm.metrics.prometheus(db, registry=scraped, labels={"database": "db"})
            written.append(collected(scraped)[at("lsm_write_user_bytes_total", database="db")])
    assert written == [8, 8]


def test_who_scrapes_does_not_keep_a_database(
    monkeypatch: pytest.MonkeyPatch, no_collector: None
) -> None:
    scraped, real = registry(), inspection.stats
    held = [fresh("one")]
    gone = weakref.ref(held[0])
    lsm.metrics.prometheus(held[0], registry=scraped)

    def stats(state: Any) -> Stats:
        held.clear()
        assert gone() is None, "nobody else has it"
        return real(state)

    monkeypatch.setattr(inspection, "stats", stats)
    collected(scraped)
    assert not held


@pytest.mark.parametrize("is_raising", [False, True])
def test_a_database_may_be_closed_in_the_middle_of_a_scrape(
    is_raising: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scraped = registry()
    with fresh("one") as one, fresh("two") as two:
        lsm.metrics.prometheus(one, registry=scraped)
        lsm.metrics.prometheus(two, registry=scraped)
        real = inspection.stats

        def stats(state: Any) -> Stats:
            if state is not one._store:
                return real(state)
            one.close()
            if is_raising:
                one._store.check_open()
            return real(state)

        monkeypatch.setattr(inspection, "stats", stats)
        assert databases(scraped) == {"two"}


def test_what_goes_wrong_in_an_open_database_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    scraped = registry()

    def stats(state: Any) -> Stats:
        raise RuntimeError("a bug")

    with fresh() as db:
        lsm.metrics.prometheus(db, registry=scraped)
        monkeypatch.setattr(inspection, "stats", stats)
        with pytest.raises(RuntimeError, match="a bug"):
            collected(scraped)


def test_counters_never_fall_and_gauges_do(monkeypatch: pytest.MonkeyPatch) -> None:
    scraped, said = registry(), [5, 3, 4, 9]
    with fresh() as db:
        lsm.metrics.prometheus(db, registry=scraped)
        whole = inspection.stats(db._store)

        def stats(state: Any) -> Stats:
            now = said.pop(0)
            return attrs.evolve(whole, flushes=now, memtable_bytes=now)

        monkeypatch.setattr(inspection, "stats", stats)
        found = [collected(scraped) for _ in range(4)]
    assert [each[at("lsm_flush_jobs_total", database="db")] for each in found] == [5, 5, 5, 9]
    assert [each[at("lsm_memtable_size_bytes", database="db")] for each in found] == [5, 3, 4, 9]


def test_threads_scrape_while_others_write(
    config: Path, tmp_path: Path, rng: random.Random
) -> None:
    scraped = registry()
    counters = {metric.prometheus_name for metric in METRICS if metric.kind == COUNTER}
    with (
        lsm.DB(tmp_path / "db", create_if_missing=True, config=config) as db,
        ThreadPoolExecutor(4) as threads,
    ):
        lsm.metrics.prometheus(db, registry=scraped)

        def scrape() -> None:
            before: dict[Place, float] = {}
            for _ in range(20):
                now = collected(scraped)
                for place, value in before.items():
                    if place[0] in counters:
                        assert now[place] >= value, place
                before = now

        running = [threads.submit(scrape) for _ in range(3)]
        for _ in range(300):
            db.put(b"%03d" % rng.randrange(200), b"v" * 20)
            db.get(b"%03d" % rng.randrange(400))
        for each in running:
            each.result()
        db.wait_until_idle()
        assert collected(scraped)[at("lsm_flush_jobs_total", database=str(db.name))] > 0


def test_a_scrape_waits_for_no_writer(tmp_path: Path) -> None:
    """As when all of them are in the middle of what they do."""
    scraped = registry()
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db, ThreadPoolExecutor(1) as thread:
        db.put(b"key", b"value")
        db.flush()
        db.put(b"key", b"value")
        lsm.metrics.prometheus(db, registry=scraped)
        store = db._store
        with (
            store.installer._lock,
            store.writer._switching,
            store.background._lock,
            store.lock,
            store.manifest._number_lock,
        ):
            found = thread.submit(collected, scraped).result(PATIENCE)
        assert found[at("lsm_level_tables", database=str(db.name), level=2)] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_nothing_to_tell() -> None:
    scraped, (provider, reader) = registry(), telemetry()
    with fresh() as db:
        lsm.metrics.prometheus(db, registry=scraped)
        lsm.metrics.opentelemetry(db, provider=provider)
        observed(reader)
        child = Child.fork()
        if child.is_this:
            child.end(lambda: not_any(collected(scraped), observed(reader)))
        child.check()
        assert databases(scraped) == {"db"}


def not_any(*found: dict[Place, float]) -> None:
    assert not any(found)


# -- OpenTelemetry -------------------------------------------------------------------------


def telemetry() -> tuple[Any, Any]:
    """A provider, and what reads it."""
    metrics = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    return metrics.MeterProvider([reader], shutdown_on_exit=False), reader


def observed(reader: Any) -> dict[Place, float]:
    """What a reader sees, under the names of Prometheus."""
    by_name = {metric.name: metric for metric in METRICS}
    found: dict[Place, float] = {}
    data = reader.get_metrics_data()
    for each in () if data is None else data.resource_metrics[0].scope_metrics:
        for metric in each.metrics:
            ours = by_name[metric.name]
            assert (metric.unit, metric.description) == (ours.unit, ours.help)
            assert getattr(metric.data, "is_monotonic", False) == (ours.kind == COUNTER)
            for point in metric.data.data_points:
                labels = {
                    key.removeprefix("lsm."): value for key, value in point.attributes.items()
                }
                place = at(ours.prometheus_name, **labels)
                assert place not in found
                found[place] = point.value
    return found


def test_opentelemetry_is_told_the_same_as_prometheus(busy: lsm.DB) -> None:
    scraped, (provider, reader) = registry(), telemetry()
    lsm.metrics.prometheus(busy, registry=scraped)
    lsm.metrics.opentelemetry(busy, provider=provider)
    assert observed(reader) == collected(scraped)
    ask(busy)
    busy.put(b"key", b"value")
    assert observed(reader) == collected(scraped)


def test_a_collection_is_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    (provider, reader), asked, real = telemetry(), [], inspection.stats

    def stats(state: Any) -> Stats:
        asked.append(state)
        return real(state)

    monkeypatch.setattr(inspection, "stats", stats)
    with fresh() as db:
        lsm.metrics.opentelemetry(db, provider=provider)
        for count in range(1, 4):
            observed(reader)
            assert len(asked) == count


def test_a_metric_that_is_asked_for_late_is_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(watched.time, "monotonic", lambda: clock[0])
    first, second = METRICS[:2]
    with fresh() as db:
        known = watched.Watched(db, {})
        begun = known.stats_for(first)
        assert begun is not None
        clock[0] += 0.5
        assert known.stats_for(second) is begun
        assert known.stats_for(METRICS[2]) is begun
        clock[0] += 1
        assert known.stats_for(METRICS[3]) is not begun
    assert known.stats_for(METRICS[4]) is None


def test_databases_share_the_instruments_of_a_meter(no_collector: None) -> None:
    provider, reader = telemetry()
    meter = provider.get_meter("shop")
    with fresh("one") as one, fresh("two") as two:
        first = lsm.metrics.opentelemetry(one, meter=meter)
        lsm.metrics.opentelemetry(two, meter=meter, attributes={"lsm.database": "zwei", "shard": 7})
        found = observed(reader)
        assert found[at("lsm_flush_jobs_total", database="one")] == 0
        assert found[at("lsm_flush_jobs_total", database="zwei", shard=7)] == 0
        with pytest.raises(ValueError, match=r"meter has the metrics of an open database"):
            lsm.metrics.opentelemetry(one, meter=meter)
        first.close()
        first.close()
        assert {dict(labels)["database"] for _, labels in observed(reader)} == {"zwei"}
        lsm.metrics.opentelemetry(one, meter=meter)
        assert {dict(labels)["database"] for _, labels in observed(reader)} == {"one", "zwei"}
    assert not observed(reader)
    three = fresh("three")
    lsm.metrics.opentelemetry(three, meter=meter)
    gone = weakref.ref(three)
    del three
    assert gone() is None
    assert not observed(reader)


GLOBAL = """
import lsm, lsm.metrics
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.lsm.simulated import SimulatedStorage

def opened(name):
    return lsm.DB(name, create_if_missing=True, storage=SimulatedStorage())

reader = InMemoryMetricReader()
with opened("before") as before, opened("after") as after, opened("given") as given:
    lsm.metrics.opentelemetry(before)
    provider = MeterProvider([reader])
    metrics.set_meter_provider(provider)
    lsm.metrics.opentelemetry(after)
    lsm.metrics.opentelemetry(given, provider=provider)
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    (jobs,) = [metric for metric in scope.metrics if metric.name == "lsm.flush.jobs"]
    print(scope.scope.name, *(point.attributes["lsm.database"] for point in jobs.data.data_points))
"""


def test_the_global_provider_may_be_set_later() -> None:
    pytest.importorskip("opentelemetry.sdk.metrics")
    child = subprocess.run(
        [sys.executable, "-c", GLOBAL], capture_output=True, text=True, check=False
    )
    assert (child.stdout, child.stderr) == ("lsm before after given\n", "")


# -- What is refused -----------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("prometheus", {"registry": 3}, TypeError, r"registry must be a .*CollectorRegistry, not int"),
    ("prometheus", {"labels": ["a"]}, TypeError, r"labels must be a mapping .*, not list"),
    ("prometheus", {"labels": {"shard": 3}}, TypeError, r"not int: 3"),
    ("prometheus", {"labels": {3: "shard"}}, TypeError, r"not int: 3"),
    ("prometheus", {"labels": {"level": "3"}}, ValueError, r"'level' cannot be .* cache, cause"),
    ("prometheus", {"labels": {"a-b": "3"}}, ValueError, r"'a-b' cannot be a label"),
    ("prometheus", {"labels": {"__a": "3"}}, ValueError, r"'__a' cannot be a label"),
    ("prometheus", {"labels": {"": "3"}}, ValueError, r"'' cannot be a label"),
    ("prometheus", {"labels": {"a\n": "3"}}, ValueError, r"cannot be a label"),
    ("opentelemetry", {"meter": 3}, TypeError, r"meter must be an .*metrics.Meter, not int"),
    ("opentelemetry", {"provider": 3}, TypeError, r"provider must be an .*Provider, not int"),
    ("opentelemetry", {"attributes": 3}, TypeError, r"attributes must be a mapping .*, not int"),
    ("opentelemetry", {"attributes": {3: 3}}, TypeError, r"str for names, not int: 3"),
    ("opentelemetry", {"attributes": {"a": [3]}}, TypeError, r"'a' must be a str, .*, not list"),
    ("opentelemetry", {"attributes": {"lsm.level": 3}}, ValueError, r"'lsm.level' cannot be"),
    ("opentelemetry", {"attributes": {"": 3}}, ValueError, r"'' cannot be an attribute"),
]


def exporter(name: str) -> Callable[..., Any]:
    """One of both, if what it needs is there."""
    pytest.importorskip(
        {"prometheus": "prometheus_client", "opentelemetry": "opentelemetry.metrics"}[name]
    )
    made: Callable[..., Any] = getattr(lsm.metrics, name)
    return made


@pytest.mark.parametrize(("name", "given", "error", "message"), WRONG)
def test_wrong_arguments_are_named(
    name: str, given: dict[str, Any], error: type[Exception], message: str
) -> None:
    register = exporter(name)
    with fresh() as db, pytest.raises(error, match=message):
        register(db, **given)


def test_a_meter_and_a_provider_are_one_too_many() -> None:
    register, (provider, _) = exporter("opentelemetry"), telemetry()
    with fresh() as db, pytest.raises(ValueError, match=r"either a meter or a provider"):
        register(db, meter=provider.get_meter("a"), provider=provider)


@pytest.mark.parametrize("name", ["prometheus", "opentelemetry"])
def test_what_is_no_open_database_is_refused(name: str) -> None:
    register = exporter(name)
    with fresh() as db:
        for wrong in (db.prefixed_db(b"a"), "db", None):
            with pytest.raises(TypeError, match=rf"lsm\.DB, not {type(wrong).__name__}"):
                register(wrong)
    with pytest.raises(RuntimeError, match="closed"):
        register(db)


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("prometheus", "prometheus_collector", "prometheus_client"),
        ("opentelemetry", "opentelemetry_instruments", "opentelemetry"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"lsm.metrics.{module}", raising=False)
    monkeypatch.delattr(lsm.metrics, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with fresh() as db:
        with pytest.raises(ImportError, match=rf"pip install 'lsm-filters\[{name}\]'") as told:
            getattr(lsm.metrics, name)(db)
        assert told.value.name == package


def test_garbage_is_not_what_ends_a_registration() -> None:
    scraped = registry()
    with fresh() as db:
        lsm.metrics.prometheus(db, registry=scraped)
        gc.collect()
        assert databases(scraped) == {"db"}


def test_metrics_are_shown_without_their_reading() -> None:
    assert isinstance(METRICS[0], Metric)
    assert "read=" not in repr(METRICS[0])
