"""Which filters are in memory, and from when: within a limit, pinned, ahead, or not worth it."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

import lsm
import lsm.bulk
import lsm.options
import policies
from lsm import warming
from lsm.loaded_filter import LoadedFilter
from lsm.options import TIB
from tests.lsm.crew import until
from tests.lsm.patience import patient
from tests.lsm.simulated import SimulatedStorage

STILL: dict[str, Any] = {
    "level_size_base": TIB,
    "compression": None,
    "block_size": 256,
    "max_file_size": 4096,
    "level0_compact_files": 1000,
    "level0_slow_files": 1000,
    "level0_stop_files": 1000,
    "max_background_jobs": 1,
    "filter_policy": policies.ClassicPolicy(bits_per_key=40),
}
KEYS = [b"key%05d" % (2 * number) for number in range(900)]
ABSENT = [b"key%05d" % (2 * number + 1) for number in range(899)]


def opened(storage: Any, **options: Any) -> lsm.DB:
    return lsm.DB("db", storage=storage, **STILL | options)


def made(**options: Any) -> SimulatedStorage:
    """A database with several tables on level 1, two on level 0 and some beneath."""
    storage = SimulatedStorage()
    with opened(storage, create_if_missing=True, **options) as db:
        for turn in range(4):
            with db.write_batch() as batch:
                for key in KEYS:
                    batch.put(key, b"%d" % turn)
            db.flush()
        assert sum(level.tables for level in db.stats().levels) > 2
    return storage


def filters_of(db: lsm.DB) -> list[LoadedFilter]:
    """The filters that are in memory, those of partitions as well."""
    found = []
    for opened in db._store.tables.all_open():
        if opened.filter is not None:
            found.append(opened.filter)
            partitions = opened.filter.partitions
            if partitions is not None:
                each = (partitions.cached(number) for number in range(len(partitions)))
                found += [partition for partition in each if partition is not None]
    return found


def counted(db: lsm.DB, name: str) -> int:
    return sum(getattr(each.counters, name) for each in db.stats().filters)


# -- Where a filter is not worth loading ---------------------------------------------------


@pytest.mark.parametrize("layout", ["table", "partitioned"])
def test_where_a_filter_does_not_fit_blocks_are_read_instead(
    layout: str, chosen: ModuleType
) -> None:
    storage = made(filter_layout=layout, filter_partition_blocks=None)
    with opened(storage, filter_layout=layout, filter_cache_size=0) as db:
        assert [db.get(key) for key in ABSENT[:50]] == [None] * 50
        assert [db.get(key) for key in KEYS[:50]] == [b"3"] * 50
        assert counted(db, "unloaded") > 50
        assert counted(db, "skipped") == 0
        assert filters_of(db) == [] or layout == "partitioned"
        names = {each.policy for each in db.stats().filters}
        assert names == {"classic"}
        [summary] = {each.state for level in db.filters() for each in level.tables}
        assert summary == "built"


def test_a_filter_is_loaded_when_the_blocks_read_without_it_are_as_much(
    chosen: ModuleType,
) -> None:
    """As long as it would push others out; where there is room, at once."""
    storage = made()
    with opened(storage) as db:
        for key in ABSENT[::20]:
            db.get(key)
        assert counted(db, "unloaded") == 0
        sizes = {each.file_number: each.bytes for level in db.filters() for each in level.tables}
        largest = max(sizes.values())
    with opened(storage, filter_cache_size=largest + 500) as db:
        cache = db._store.tables.filters
        for _ in range(40):
            for key in ABSENT[::50]:
                assert db.get(key) is None
                assert cache.cache.bytes <= cache.cache.limit
        unloaded, skipped = counted(db, "unloaded"), counted(db, "skipped")
        assert unloaded > 100
        assert skipped > 20
        assert cache.misses > len(sizes)
        # What was read of filters is no more than what was read of blocks without them.
        went_without = unloaded + cache.misses  # with the one that then loads it
        assert cache.bytes_read <= max(usual_blocks(db)) * went_without + cache.cache.limit


def test_what_takes_more_in_memory_than_there_is_is_read_once(chosen: ModuleType) -> None:
    """The index of many partitions is smaller in the file."""
    place: dict[str, Any] = {"filter_layout": "partitioned", "filter_partition_blocks": 1}
    storage = made(**place)
    with opened(storage, **place) as db:
        db.get(ABSENT[0])
        [size, *_] = sorted(each.charge for each in filters_of(db) if each.partitions)
        [stored, *_] = sorted(each.stored_bytes for each in filters_of(db) if each.partitions)
        assert stored < size - 100
    with opened(storage, **place, filter_cache_size=size - 50) as db:
        tables = sum(level.tables for level in db.stats().levels)
        before = db._store.tables.filters.misses
        for key in ABSENT[::5]:
            assert db.get(key) is None
        assert db._store.tables.filters.misses <= before + tables
        assert counted(db, "unloaded") > 100


def test_small_filters_are_always_worth_it(chosen: ModuleType) -> None:
    """Those that take less than a block does: there is nothing to be spared."""
    options: dict[str, Any] = {"filter_policy": policies.ClassicPolicy(bits_per_key=1)}
    storage = made(**options, block_size=4096)
    with opened(storage, filter_cache_size=0, **options) as db:
        for key in ABSENT[::9]:
            assert db.get(key) is None
        assert max(usual_blocks(db)) > max(
            each.bytes for level in db.filters() for each in level.tables
        )
        assert counted(db, "unloaded") == 0
        assert counted(db, "skipped") > 0


def usual_blocks(db: lsm.DB) -> list[int]:
    """Of each table what a block takes, its share of all else included."""
    tables = db._store.tables
    return [
        table.size // tables.opened(table.file).block_count
        for table in db._store.opened_view().version.tables()
    ]


# -- One limit for all ---------------------------------------------------------------------


def test_filters_and_blocks_may_share_one_limit(chosen: ModuleType, rng: random.Random) -> None:
    storage = made()
    with opened(storage, filter_cache_size="shared", lru_cache_size=12_000) as db:
        tables = db._store.tables
        assert tables.filters.cache is tables.blocks
        for _ in range(600):
            key = rng.choice(rng.choice((KEYS, ABSENT)))
            assert db.get(key) == (b"3" if key in KEYS else None)
            assert tables.blocks.bytes <= 12_000
        told = db.stats()
        blocks, filters = told.block_cache, told.filter_cache
        assert blocks.limit == filters.limit == 12_000
        assert blocks.items > 0
        assert filters.items > 0
        assert blocks.bytes + filters.bytes == tables.blocks.bytes
        assert blocks.evictions > 0
        assert filters.evictions > 0
        assert blocks.evictions + filters.evictions == tables.blocks.evictions
        assert filters.bytes == sum(each.charge for each in filters_of(db))


# -- Pinned --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["table", "partitioned"])
@pytest.mark.parametrize("levels", ["0", "1-2", "0+"])
def test_pinned_filters_stay_and_others_do_not(
    levels: str, layout: str, chosen: ModuleType, rng: random.Random
) -> None:
    options: dict[str, Any] = {"filter_layout": layout}
    storage = made(**options)
    little: dict[str, Any] = {"filter_cache_size": 0, "max_open_files": 2, "table_cache_size": 0}
    with opened(storage, pin_filters=levels, **options, **little) as db:
        pinned = db._store.options.pinned_levels()
        numbers = {
            table.number
            for table in db._store.opened_view().version.tables()
            if table.level in pinned
        }
        for key in rng.sample(ABSENT, 300):
            assert db.get(key) is None
        resident = {each.file.number for each in db._store.tables.all_open() if each.filter}
        assert numbers <= resident
        told = db.stats().filter_cache
        assert told.bytes == 0
        assert told.pinned > 0
        assert f"{told.pinned / 1024:.1f} KiB pinned" in str(db.stats())
        for each in db.stats().filters:
            if each.level in pinned:
                assert each.counters.unloaded == 0
                assert each.counters.skipped > 0


def test_tables_that_leave_can_be_evicted_again(chosen: ModuleType) -> None:
    storage = made()
    with opened(storage, pin_filters="0+", filter_cache_size=0, table_cache_size=0) as db:
        tables = db._store.tables
        for key in ABSENT[::7]:
            db.get(key)
        assert len(tables.open_tables) == 0
        assert len([each for each in tables.all_open() if each.held]) > 2
        version = db._store.opened_view().version
        tables._pinned_levels = range(1)
        tables.pin(version)
        held = {each.file.number for each in tables.all_open() if each.held}
        assert held <= {table.number for table in version.levels[0]}
        assert {key: db.get(key) for key in KEYS[::50]} == dict.fromkeys(KEYS[::50], b"3")


# -- Ahead ---------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("layout", ["table", "partitioned"])
def test_filters_may_be_there_when_opening_ends(
    layout: str, read_only: bool, chosen: ModuleType
) -> None:
    storage = made(filter_layout=layout)
    with opened(storage, filter_layout=layout, load_filters="open", read_only=read_only) as db:
        tables = list(db._store.opened_view().version.tables())
        misses = db.stats().filter_cache.misses
        assert misses >= len(tables)
        for key in ABSENT[::3]:
            assert db.get(key) is None
        assert db.stats().filter_cache.misses == misses


@patient
@pytest.mark.parametrize("jobs", [1, 3])
def test_filters_may_come_in_the_background(jobs: int, chosen: ModuleType) -> None:
    storage = made()
    with opened(storage, warm_filters=True, max_background_jobs=jobs) as db:
        db.wait_until_idle()
        misses = db.stats().filter_cache.misses
        assert misses == sum(level.tables for level in db.stats().levels)
        for key in ABSENT[::3]:
            assert db.get(key) is None
        assert db.stats().filter_cache.misses == misses
    with opened(storage, warm_filters=False, max_background_jobs=jobs) as db:
        db.wait_until_idle()
        assert db._store.tables.filters.misses == 0


@pytest.mark.parametrize("limit", [0, 700, 6000])
def test_no_more_are_loaded_ahead_than_there_is_room_for(limit: int, chosen: ModuleType) -> None:
    storage = made()
    with opened(storage, load_filters="open", filter_cache_size=limit) as db:
        cache = db._store.tables.filters.cache
        assert cache.bytes <= limit
        assert cache.evictions == 0
        assert (cache.bytes > 0) == (limit == 6000)
    with opened(storage, load_filters="open", max_open_files=2) as db:
        assert len(db._store.tables.open_tables) <= 2
        assert db._store.tables.open_tables.evictions <= 1


def test_what_cannot_be_read_ahead_is_left_to_who_reads_it(chosen: ModuleType) -> None:
    storage = made()
    names = [name for name in storage.list("db") if name.endswith(".ldb")]
    data = storage.read(f"db/{names[0]}")
    file = storage.create(f"db/{names[0]}")
    file.append(data[:-8] + bytes(8))
    file.close()
    with opened(storage, load_filters="open") as db:
        assert db.stats().filter_cache.misses > 0
    with pytest.raises(lsm.CorruptionError):
        opened(storage, load_filters="open", paranoid_checks=True)
    with opened(storage, warm_filters=True) as db:
        db.wait_until_idle()
        assert db.stats().background_error is None


@patient
def test_closing_and_loads_do_not_wait_for_filters_that_come_ahead(
    chosen: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = made()
    seen: list[int] = []
    load = warming._load

    def noted(*given: Any) -> bool:
        seen.append(given[1].number)
        return load(*given)

    monkeypatch.setattr(warming, "_load", noted)
    db = opened(storage, warm_filters=True)
    lsm.bulk.load(db, [(b"zz", b"1")])
    until(lambda: len(set(seen)) >= 1)
    db.wait_until_idle()
    assert db.get(b"zz") == b"1"
    db.close()


# -- Options -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"pin_filters": "9"}, ValueError, "pin_filters: '9' is out of range: allowed are levels"),
        ({"pin_filters": "first"}, ValueError, "pin_filters: 'first' names no level"),
        ({"pin_filters": 0}, TypeError, 'pin_filters names levels, like "0-1", or is "none"'),
        ({"load_filters": "opn"}, ValueError, "did you mean 'open'"),
        ({"load_filters": True}, TypeError, "load_filters is a name, not bool"),
        ({"warm_filters": "yes"}, TypeError, "warm_filters is a bool, not str"),
        ({"filter_cache_size": "share"}, ValueError, 'or "shared"'),
        ({"filter_cache_size": -1}, ValueError, 'or "shared"'),
    ],
)
def test_mistakes_are_told(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        lsm.options.Options(**given)
    assert words in str(caught.value)


def test_options_are_written_and_read() -> None:
    some = lsm.options.Options(
        filter_cache_size="shared", pin_filters="0-1", load_filters="open", warm_filters=True
    )
    assert list(some.pinned_levels()) == [0, 1]
    text = some.to_toml()
    assert 'filter_cache_size = "shared"' in text
    assert lsm.options.from_kept(text.encode(), "lsm-options.toml") == some
