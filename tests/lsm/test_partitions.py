"""Filters in partitions: found by their last keys, loaded when they are asked, and never wrong."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
import policies
from filters.families import FAMILIES
from lsm import kernels, loaded_filter
from lsm.comparator import BYTEWISE, Comparator
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import PUT, Entry, rank_of
from lsm.disk.partitioned_filters import PartitionIndex
from lsm.disk.properties import Properties
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.errors import CorruptionError
from lsm.loaded_filter import LoadedFilter
from lsm.storage import Mapped
from lsm.tables import TableCache
from policies import FilterPolicy
from policies.builtin import BUILTIN
from policies.cost_models import FamilyModel, PartitionedModel
from tests.effort import by_effort, examples
from tests.lsm import independent_table as independent
from tests.lsm import odd_policies
from tests.lsm.forging import Parts
from tests.lsm.odd_policies import DecliningPolicy, MaybePolicy, SetPolicy
from tests.lsm.simulated import SimulatedStorage
from tests.lsm.test_table_bytes import KeyVersion, comparators, in_order, some_data

NAME = "db/000005.ldb"
FILTERED: list[FilterPolicy] = [*(cls() for cls in BUILTIN if cls.name != "none"), SetPolicy()]
SIZES = [1, 2, 128]
KEYS = [b"key%05d" % (2 * number) for number in range(600)]
ABSENT = [b"key%05d" % (2 * number + 1) for number in range(599)]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with odd_policies.registered():
        yield


def write(
    entries: Sequence[Entry],
    policy: FilterPolicy,
    partition_blocks: int = 2,
    *,
    comparator: Comparator = BYTEWISE,
    block_size: int = 300,
    chunks: int = 1,
) -> tuple[bytes, WrittenTable]:
    """The bytes of a table, and what its writer says of it."""
    storage = SimulatedStorage()
    form = TableFormat(
        comparator=comparator,
        block_size=block_size,
        block_restart_interval=16,
        compression=0,
        table_body=kernels.of(comparator).TableBody,
    )
    plan = FilterPlan(
        level=2,
        policy=policy,
        layout="partitioned",
        partition_blocks=partition_blocks,
        reason="flush",
        none_below=lambda first, last: False,
    )
    builder = TableBuilder(storage.create("table"), form, plan)
    size = -(-len(entries) // chunks)
    for start in range(0, len(entries), size):
        builder.add(list(entries[start : start + size]))
    return storage.read("table") if (written := builder.finish()) else b"", written


def entries_of(keys: Sequence[bytes] = KEYS, versions: int = 1) -> list[Entry]:
    """Some versions of each key, the newest first."""
    return [
        (key, rank_of(version, PUT), b"value %d" % version)
        for key in keys
        for version in range(versions, 0, -1)
    ]


def partitions_in(data: bytes) -> list[tuple[bytes, independent.Block]]:
    """The last keys and the filters, found without the engine."""
    table = independent.parse(data)
    [name] = (key for key in table.meta if key.startswith(b"partitionedfilter.lsm."))
    index = table.meta[name]
    assert index.kind == independent.RAW
    assert [entry.shared for entry in index.entries] == [0] * len(index.entries)
    assert len(index.restarts) == len(index.entries)
    return [(key, independent.block_at(data, handle)) for key, handle in index.pairs]


def reader_in(block: independent.Block) -> Any:
    assert block.kind == independent.RAW
    return policies.open_block(block.contents)


# ---- the form ----


@pytest.mark.parametrize("name", kernels.available())
@examples(100)
@given(
    data=some_data,
    comparator=comparators,
    policy=st.sampled_from(FILTERED),
    partition_blocks=st.sampled_from(SIZES),
    block_size=st.sampled_from([1, 64, 300, 4096]),
    chunks=st.integers(1, 4),
)
def test_the_filter_of_each_partition_has_the_keys_of_its_blocks(
    name: str,
    data: dict[bytes, list[KeyVersion]],
    comparator: Comparator,
    policy: FilterPolicy,
    partition_blocks: int,
    block_size: int,
    chunks: int,
) -> None:
    """Of both where a key has versions in both: first they were looked for in the wrong one."""
    with mock.patch.object(kernels, "_chosen", kernels.load(name)):
        table, written = write(
            in_order(data, comparator),
            policy,
            partition_blocks,
            comparator=comparator,
            block_size=block_size,
            chunks=chunks,
        )
        loaded = loaded_filter.load(reader_of(table), paranoid=True, comparator=comparator)
    parsed, found = independent.parse(table), partitions_in(table)
    assert set(parsed.meta) == {
        b"lsm.properties",
        b"partitionedfilter.lsm." + policy.name.encode(),
    }
    blocks = [
        parsed.blocks[at : at + partition_blocks]
        for at in range(0, len(parsed.blocks), partition_blocks)
    ]
    assert len(found) == len(blocks)
    num_keys = size = 0
    for (last, filter), part in zip(found, blocks, strict=True):
        keys = [key[:-8] for block in part for key, _ in block.pairs]
        assert last == keys[-1]
        assert all(reader_in(filter).might_contain_many(keys))
        num_keys += policies.describe_block(filter.contents).num_keys
        size += filter.size
    assert sorted(block.offset for _, block in found) == [block.offset for _, block in found]
    properties = Properties.decode(parsed.meta[b"lsm.properties"].contents)
    assert properties.filter_partition_blocks == partition_blocks
    assert properties.num_filter_keys == num_keys == written.filter.num_keys
    info = loaded.info
    assert (info.state, info.policy, info.layout, info.partition_blocks) == (
        *("built", policy.name, "partitioned"),
        partition_blocks,
    )
    assert (info.num_keys, info.bytes) == (num_keys, written.filter_bytes)
    assert info.bytes == size + parsed.meta[max(parsed.meta)].size
    assert written.filter.partitions == ()


def reader_of(data: bytes) -> TableReader:
    return TableReader(NAME, Mapped(data))


@pytest.mark.parametrize("partition_blocks", SIZES)
@pytest.mark.parametrize("policy", FILTERED, ids=lambda policy: policy.name)
def test_both_kernels_write_the_same_bytes(
    policy: FilterPolicy, partition_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from filters import hashing

    monkeypatch.setattr(hashing, "random64", lambda: 7)
    tables = set()
    for name in kernels.available():
        monkeypatch.setattr(kernels, "_chosen", kernels.load(name))
        tables.add(write(entries_of(versions=2), policy, partition_blocks, chunks=3)[0])
    assert len(tables) == 1


@pytest.mark.parametrize("policy", [DecliningPolicy(), odd_policies.LosingPolicy()])
def test_a_table_has_no_filter_if_any_partition_has_none(policy: FilterPolicy) -> None:
    table, written = write(entries_of(), policy)
    assert written.filter.state in ("declined", "failed")
    assert written.filter_bytes == 0
    assert set(independent.parse(table).meta) == {b"lsm.properties"}


def test_a_plug_in_is_told_how_many_keys_a_partition_has() -> None:
    told: list[int | None] = []

    class Told(MaybePolicy):
        def new_builder(self, context: policies.BuildContext) -> policies.FilterBuilder:
            told.append(context.expected_keys)
            return super().new_builder(context)

    table, _ = write(entries_of(), Told(), 3)
    parsed = independent.parse(table)
    counts = [len(block.pairs) for block in parsed.blocks]
    assert told == [sum(counts[at : at + 3]) for at in range(0, len(counts), 3)]


@pytest.mark.parametrize(
    ("bits", "policy"),
    [(10, "classic"), (10, "blocked"), (10, "rocksdb"), (10, "bumped-ribbon")],
)
def test_it_lets_through_as_many_as_one_filter_of_the_same_bits(bits: int, policy: str) -> None:
    keys = [b"key%07d" % (2 * number) for number in range(by_effort(20_000, 60_000, 200_000))]
    chosen = policies.create(policy, bits_per_key=bits)
    table, _ = write(entries_of(keys), chosen, 128, block_size=1024)
    whole: Any = chosen.open(chosen.create_filter(keys) or b"")
    found = [(last, reader_in(block)) for last, block in partitions_in(table)]
    assert len(found) > 3
    lasts = [last for last, _ in found]
    absent = [b"key%07d" % (2 * number + 1) for number in range(len(keys) - 1)]
    passed = sum(found[bisect_left(lasts, key)][1].might_contain(key) for key in absent)
    expected = sum(whole.might_contain_many(absent))
    # Both are drawn from the same rate: they differ by no more than chance makes them.
    assert abs(passed - expected) < 4 * (passed + expected) ** 0.5 + 0.02 * expected
    assert 0 < passed < 0.03 * len(absent)


@pytest.mark.parametrize("partition_blocks", [1, 4, 32])
def test_a_budget_is_told_what_partitions_take(partition_blocks: int) -> None:
    """Their blocks, and their places in the index, which few keys feel most."""
    keys = [b"a key of usual length %06d" % number for number in range(6000)]
    policy = policies.BlockedPolicy(fpr=0.01)
    table, written = write(entries_of(keys), policy, partition_blocks, block_size=1024)
    each = len(keys) / len(partitions_in(table))
    model = PartitionedModel(FamilyModel(FAMILIES["blocked"]), round(each))
    option = model.option(len(keys), 0.01)
    assert option is not None
    assert 8 * written.filter_bytes / len(keys) == pytest.approx(option.bits_per_key, rel=0.05)


# ---- lookups ----


Options = dict[str, Any]
SMALL: Options = {
    "block_size": 128,
    "compression": None,
    "filter_layout": "partitioned",
    "max_background_jobs": 1,
}


def opened(storage: Any, policy: FilterPolicy, partition_blocks: int, **options: Any) -> lsm.DB:
    return lsm.DB(
        "db",
        storage=storage,
        filter_policy=policy,
        filter_partition_blocks=partition_blocks,
        **SMALL | options,
    )


def made(
    policy: FilterPolicy, partition_blocks: int = 2, keys: Sequence[bytes] = KEYS
) -> SimulatedStorage:
    """A database of one table."""
    storage = SimulatedStorage()
    with opened(storage, policy, partition_blocks, create_if_missing=True) as db:
        with db.write_batch() as batch:
            for key in keys:
                batch.put(key, b"of " + key)
        db.compact_range()
    return storage


def whole_of(db: lsm.DB) -> LoadedFilter:
    """The filter of its one table."""
    [table] = db._store.opened_view().version.tables()
    tables: TableCache = db._store.tables
    opened = tables.opened(table.file)
    return opened.filter or tables.filters.load(opened)


def resident(db: lsm.DB) -> list[int]:
    """The partitions that are in memory."""
    partitions = whole_of(db).partitions
    assert partitions is not None
    return [number for number in range(len(partitions)) if partitions.cached(number) is not None]


@pytest.mark.parametrize("partition_blocks", SIZES)
@pytest.mark.parametrize("policy", FILTERED, ids=lambda policy: policy.name)
def test_versions_on_both_sides_of_a_border_are_found(
    policy: FilterPolicy, partition_blocks: int, chosen: ModuleType, rng: random.Random
) -> None:
    """By every snapshot: whatever version it sees, the key is in the partition that is asked."""
    storage = SimulatedStorage()
    keys = [b"%02d" % number for number in range(30)]
    with opened(storage, policy, partition_blocks, create_if_missing=True) as db:
        held, before, expected = [], [], dict[bytes, bytes]()
        for version in range(25):
            for key in rng.sample(keys, 8) + keys[:3]:
                expected[key] = b"%d of " % version + key
                db.put(key, expected[key])
            held.append(db.snapshot())
            before.append(dict(expected))
        db.compact_range()
        asked = [*keys, *(key + b"x" for key in keys)]
        for snapshot, then in zip(held, before, strict=True):
            assert [snapshot.get(key) for key in asked] == list(map(then.get, asked))
            assert snapshot.get_many(asked) == list(map(then.get, asked))
        assert db.get_many(asked) == list(map(expected.get, asked))
        counters = [each.counters for each in db.stats().filters]
        if policy.name != "grafite":  # to which a key and the same with more behind it are one
            assert sum(each.skipped for each in counters) > 300
        assert sum(each.none + each.corrupt + each.failed for each in counters) == 0


def test_only_what_is_asked_is_loaded(chosen: ModuleType) -> None:
    storage = made(policies.ClassicPolicy(), 4)
    with opened(storage, policies.ClassicPolicy(), 4) as db:
        cache = db._store.tables.filters.cache
        assert resident(db) == []
        empty = cache.bytes
        for count, key in enumerate((ABSENT[0], ABSENT[-1], KEYS[300]), 1):
            db.get(key)
            db.get(key)
            db.get_many([key, key])
            assert len(resident(db)) == count
        assert resident(db)[0] == 0
        assert db.stats().filter_cache.misses == 4
        assert empty < cache.bytes < 0.2 * db.filters()[2].tables[0].bytes + 6000 + empty


def test_what_is_told_of_it_is_of_all_partitions(chosen: ModuleType) -> None:
    policy = policies.ClassicPolicy(bits_per_key=12)
    with opened(made(policy, 4), policy, 4) as db:
        [found] = [table for level in db.filters() for table in level.tables]
        assert (found.layout, found.partition_blocks, found.state) == ("partitioned", 4, "built")
        assert found.num_keys == len(KEYS)
        assert found.params == policy.params()
        assert found.bytes * 8 / found.num_keys == found.bits_per_key
        assert found.bits_per_key is not None
        assert 12 < found.bits_per_key < 80
        assert found.expected_fpr is not None
        assert 0.001 < found.expected_fpr < 0.02
        assert db.filters()[2].drifted == ()
        assert resident(db) == []  # they were looked at, and taken nowhere


@pytest.mark.parametrize("room", [-1, 0, 2000, 6000, 20_000])
def test_partitions_come_and_go_one_by_one(
    room: int, chosen: ModuleType, rng: random.Random
) -> None:
    """Where there is room for the index and some of them; or for the index alone, or not for it."""
    policy = policies.BlockedPolicy()
    storage = made(policy, 2)
    with opened(storage, policy, 2) as db:
        size = whole_of(db).charge + room
    with opened(storage, policy, 2, filter_cache_size=size) as db:
        cache = db._store.tables.filters.cache
        for _ in range(1000):
            key = rng.choice((KEYS, ABSENT))[rng.randrange(599)]
            asked = [key, *rng.sample(ABSENT, 3)]
            expected = [b"of " + each if each in KEYS else None for each in asked]
            assert db.get(key) == expected[0]
            assert db.get_many(asked) == expected
            assert cache.bytes <= size
            assert cache.bytes == sum(item.charge for item in cache._ring)
            whole = whole_of(db)
            partitions = whole.partitions
            assert partitions is not None or room < 0
            placed = [
                partition
                for number in range(len(partitions or ()))
                if partitions and (partition := partitions.cached(number)) is not None
            ]
            assert set(placed) <= set(cache._ring)
            assert set(cache._ring) <= {whole, *placed}
        counters = [each.counters for each in db.stats().filters]
        if room < 0:  # then it is not worth reading
            assert sum(each.unloaded for each in counters) > 3000
        else:
            assert sum(each.skipped for each in counters) > 3000
        assert len(cache) == {-1: 0, 0: 1, 2000: 2}.get(room, len(cache))
        assert cache.evictions > 500 or room <= 0


def test_a_partition_that_is_evicted_while_it_is_asked_answers_to_the_end(
    chosen: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so does the whole: whoever runs in between lets go of all."""
    policy = SetPolicy()
    storage = made(policy, 2)
    with opened(storage, policy, 2) as db:
        cache = db._store.tables.filters.cache
        asks = odd_policies.SetReader.might_contain
        depth = 0

        def asking(self: Any, key: bytes) -> bool:
            nonlocal depth
            if depth == 0:
                depth += 1
                for item in (whole_of(db), *cache._ring):
                    cache.forget(item)
                    item.evict()  # type: ignore[attr-defined]
                assert db.get(KEYS[7]) == b"of " + KEYS[7]
                depth -= 1
            return asks(self, key)

        monkeypatch.setattr(odd_policies.SetReader, "might_contain", asking)
        for key, absent in zip(KEYS[::20], ABSENT[::20], strict=False):
            assert db.get_many([key, absent]) == [b"of " + key, None]
            assert (db.get(key), db.get(absent)) == (b"of " + key, None)
            assert cache.bytes == sum(item.charge for item in cache._ring)


def test_behind_the_last_partition_nobody_can_tell(chosen: ModuleType) -> None:
    """No table of ours has keys there; one whose index was cut short has."""
    policy = policies.ClassicPolicy()
    storage = made(policy, 4)
    decode = PartitionIndex.decode

    def cut(contents: bytes, file_size: int) -> PartitionIndex:
        whole = decode(contents, file_size)
        return PartitionIndex(whole.lasts[:-2], whole.handles[:-2], whole.size)

    with (
        mock.patch.object(PartitionIndex, "decode", cut),
        opened(storage, policy, 4) as db,
    ):
        assert [db.get(key) for key in KEYS] == [b"of " + key for key in KEYS]
        assert db.get_many(KEYS) == [b"of " + key for key in KEYS]
        assert db.get_many(ABSENT) == [None] * len(ABSENT)
        assert db.might_contain(ABSENT[-1])
        [counted] = [each.counters for each in db.stats().filters]
        assert counted.none > 50


# ---- damage ----


def test_damage_costs_a_partition_and_nothing_else(chosen: ModuleType) -> None:
    """A flipped bit anywhere in the filters: no key is lost, and no other partition is."""
    policy = policies.ClassicPolicy()
    storage = made(policy, 32)
    path = table_in(storage)
    data = storage.read(path)
    found = partitions_in(data)
    step = by_effort(97, 7, 1)
    for number, (_, block) in enumerate(found):
        for position in range(block.offset, block.end, step):
            flipped = bytearray(data)
            flipped[position] ^= 1 << position % 8
            check_damaged(replaced(storage, path, bytes(flipped)), policy, number, len(found))


def table_in(storage: SimulatedStorage) -> str:
    """The path of its one table."""
    [name] = [name for name in storage.list("db") if name.endswith(".ldb")]
    return f"db/{name}"


def replaced(storage: SimulatedStorage, path: str, data: bytes) -> SimulatedStorage:
    file = storage.create(path)
    file.append(data)
    file.sync()
    file.close()
    return storage


def check_damaged(
    storage: SimulatedStorage, policy: FilterPolicy, number: int, partitions: int
) -> None:
    per = -(-len(KEYS) // partitions)
    with opened(storage, policy, 32, read_only=True) as db:
        assert db.get_many(KEYS[::9]) == [b"of " + key for key in KEYS[::9]]
        for key in ABSENT[:: per // 4]:
            assert db.get(key) is None
        [counted] = [each.counters for each in db.stats().filters]
        assert counted.corrupt > 0
        assert counted.skipped > 0
        partition = whole_of(db).partitions
        assert partition is not None
        states = {
            at: loaded.state
            for at in range(partitions)
            if (loaded := partition.cached(at)) is not None
        }
        assert states == {at: "corrupt" if at == number else "built" for at in states}
        assert number in states
    with opened(storage, policy, 32, read_only=True, paranoid_checks=True) as db:
        outcomes = set()
        for key in KEYS[::9]:
            try:
                assert db.get(key) == b"of " + key
                outcomes.add("found")
            except CorruptionError as error:
                outcomes.add("damaged" if ".ldb: the filter block" in str(error) else str(error))
        assert outcomes == {"found", "damaged"}


def test_a_damaged_index_costs_the_filter_and_no_key(chosen: ModuleType) -> None:
    policy = policies.ClassicPolicy()
    storage = made(policy, 32)
    path = table_in(storage)
    data = storage.read(path)
    index = independent.parse(data).meta[b"partitionedfilter.lsm.classic"]
    for position in range(index.offset, index.end, by_effort(11, 1, 1)):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        with opened(replaced(storage, path, bytes(flipped)), policy, 32, read_only=True) as db:
            assert db.get_many(KEYS[::19]) == [b"of " + key for key in KEYS[::19]]
            assert db.get(ABSENT[0]) is None
            assert whole_of(db).state == "corrupt"
        with (
            opened(storage, policy, 32, read_only=True, paranoid_checks=True) as db,
            pytest.raises(CorruptionError, match="filter block"),
        ):
            db.get(KEYS[0])


Pairs = list[tuple[bytes, bytes]]
HANDLE = independent.varint(0) + independent.varint(9)
FORGED: dict[str, tuple[Pairs, str]] = {
    "no entry": ([], "has no entry"),
    "keys that descend": ([(b"b", HANDLE), (b"a", HANDLE)], "do not ascend"),
    "a handle and more": ([(b"a", HANDLE + b"\0")], "the handle of a filter's partition"),
    "half a handle": ([(b"a", b"\x80")], "the handle of a filter's partition"),
    "no handle": ([(b"a", b"")], "the handle of a filter's partition"),
    "too large": ([(b"a", independent.varint(0) + independent.varint(1 << 62))], "would take"),
}


@pytest.mark.parametrize("forged", FORGED)
def test_an_index_under_a_right_checksum_is_not_believed_either(
    forged: str, chosen: ModuleType
) -> None:
    pairs, reason = FORGED[forged]
    parts = Parts.of(write(entries_of(KEYS[:50]), policies.ClassicPolicy())[0])
    name = b"partitionedfilter.lsm.classic"
    parts.meta = [
        (key, independent.contents_of(pairs, 1) if key == name else contents)
        for key, contents in parts.meta
    ]
    reader = reader_of(parts.assembled())
    assert loaded_filter.load(reader, paranoid=False).state == "corrupt"
    with pytest.raises(CorruptionError, match=reason):
        loaded_filter.load(reader, paranoid=True)


def test_an_index_leads_to_no_more_filters_than_a_file_has_room_for() -> None:
    """One that was compressed could."""
    handle = independent.varint(0) + independent.varint(0)
    contents = independent.contents_of([(b"a", handle)] * 30, 1)
    assert len(PartitionIndex.decode(contents, 1000).handles) == 30
    with pytest.raises(CorruptionError, match="more entries than a file of 149 bytes"):
        PartitionIndex.decode(contents, 149)


def test_policies_that_fail_are_told_once(
    chosen: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    policy = SetPolicy()
    storage = made(policy, 2)
    with (
        mock.patch.object(SetPolicy, "open", side_effect=ValueError("odd")),
        opened(storage, policy, 2) as db,
    ):
        assert db.get_many(KEYS) == [b"of " + key for key in KEYS]
        assert db.get(ABSENT[3]) is None
        assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 1
        [counted] = [each.counters for each in db.stats().filters]
        assert counted.failed == len(KEYS) + 1


# ---- marks, and other filters ----


def test_a_partition_that_was_asked_gets_a_second_chance(chosen: ModuleType) -> None:
    """Wherever the mark of that stands, which may be in its place: it leaves with the filter."""
    policy = policies.BlockedPolicy()
    with opened(made(policy, 8), policy, 8) as db:
        for _ in range(2):
            assert db.get_many(ABSENT[:5]) == [None] * 5
        whole = whole_of(db)
        assert whole.partitions is not None
        loaded = whole.partitions.cached(0)
        assert loaded is not None
        for ask in (db.get, lambda key: db.get_many([key])):
            whole.used = loaded.used = False
            ask(ABSENT[0])
            assert (whole.used, loaded.used) == (True, True)
        loaded.used = False
        db.get(ABSENT[-1])
        assert not loaded.used
        for used in (True, False):
            loaded.used = used
            loaded.evict()
            assert whole.partitions.cached(0) is None
            assert loaded.used == used
            whole.partitions.place(0, loaded)
            assert loaded.used == used
        db.get(ABSENT[0])
        assert loaded.used
        assert whole.partitions.emptied().count(loaded) == 1
        del whole
    assert loaded.used


def test_what_is_asked_for_can_change_and_change_back(chosen: ModuleType) -> None:
    policy = policies.ClassicPolicy()
    storage = made(policy, 4)
    places: list[Options] = [
        {"filter_layout": "partitioned", "filter_partition_blocks": 4},
        {"filter_layout": "partitioned", "filter_partition_blocks": 9},
        {"filter_layout": "table"},
        {"filter_layout": "partitioned"},
        {"filter_layout": "partitioned", "filter_partition_blocks": 1},
    ]
    options = {name: value for name, value in SMALL.items() if name != "filter_layout"}
    for number, place in enumerate(places):
        with lsm.DB("db", storage=storage, filter_policy=policy, **options, **place) as db:
            assert len(db.refilter(dry_run=True).tables) == (number > 0)
            db.refilter()
            assert not db.refilter(dry_run=True).tables
            [found] = [table for level in db.filters() for table in level.tables]
            assert found.layout == place["filter_layout"]
            partitioned = found.layout == "partitioned"
            assert found.partition_blocks == (
                place.get("filter_partition_blocks", 128) if partitioned else None
            )
            assert (found.num_keys, found.state) == (len(KEYS), "built")
            assert db.get_many(KEYS) == [b"of " + key for key in KEYS]
            assert db.get_many(ABSENT) == [None] * len(ABSENT)
            [counted] = [each.counters for each in db.stats().filters]
            assert counted.skipped > 0.9 * len(ABSENT)
        with lsm.DB("db", storage=storage) as db:  # as it was kept
            assert not db.refilter(dry_run=True).tables
