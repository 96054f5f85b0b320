"""RocksDB's Ribbon filter: its bytes against the engine's own, its rates against measurement."""

from __future__ import annotations

import math
import random
import struct
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import ribbon, rocksdb, rocksdb_forms, sizing
from filters.compat_hashing import rocksdb_hash, xxph3_64
from filters.kernels.python import equations
from filters.ribbon import Geometry
from filters.sizing_parameters import SizingParameter
from tests.effort import examples, once, spread, volume
from tests.filters.cases import needs_native, positives, random_keys, twins
from tests.filters.sstables import rocksdb_filters
from tests.filters.test_rocksdb import live_tables, numbers

# ---- bytes ----


@pytest.mark.parametrize(
    ("bits_per_key", "stop", "size", "seed", "hashed"),
    [(5, 2087, 981, 61, 3971337699), (10, 2087, 1861, 61, 1273231667)],
)
def test_filters_of_numbers(
    kernel: ModuleType, bits_per_key: int, stop: int, size: int, seed: int, hashed: int
) -> None:
    """RocksDB's own test of its schema pins these."""
    built = kernel.RocksDBRibbonFilter.build(
        numbers(0, stop), bits_per_key=bits_per_key, optimize_filters_for_memory=False
    )
    data = built.to_bytes()
    assert (len(data), data[-5], data[-4]) == (size, 0xFE, seed)
    assert rocksdb_hash(data) == hashed
    assert built.form == "ribbon"


def test_few_numbers_are_the_bloom_filter(kernel: ModuleType) -> None:
    sizes = {"bits_per_key": 5, "optimize_filters_for_memory": False}
    built = kernel.RocksDBRibbonFilter.build(numbers(0, 87), **sizes)
    assert built.form == "fast-local"
    assert built.to_bytes() == kernel.RocksDBBloomFilter.build(numbers(0, 87), **sizes).to_bytes()


def live_filter(path: Path, keys: list[bytes], bits_per_key: float) -> bytes:
    """The filter that RocksDB itself writes of these keys; -1 wants Ribbon on every level."""
    [table] = live_tables(path, keys, 10, policy=f"ribbonfilter:{bits_per_key}:-1")
    [data] = rocksdb_filters(table).filters
    return data


@once
@pytest.mark.parametrize("bits_per_key", spread([0.5, 1, 2.2, 5, 10, 12.3456, 17.5, 40, 100], 3))
@pytest.mark.parametrize("count", [1, 100, 154, 600, 2500])
def test_filters_that_rocksdb_writes_now(
    kernel: ModuleType, count: int, bits_per_key: float, tmp_path: Path, rng: random.Random
) -> None:
    keys = random_keys(rng, count)
    data = live_filter(tmp_path, keys, bits_per_key)
    built = kernel.RocksDBRibbonFilter.build(keys, bits_per_key=bits_per_key)
    assert built.to_bytes() == data
    read = kernel.RocksDBRibbonFilter.from_bytes(data)
    assert all(read.might_contain_many(keys))
    assert read.form == built.form
    assert read.expected_fpr == built.expected_fpr


@once
def test_filters_of_many_keys_that_rocksdb_writes_now(
    kernel: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    count = volume(kernel, 20_000, 300_000, 300_000)
    keys = random_keys(rng, count, length=9)
    built = kernel.RocksDBRibbonFilter.build(keys)
    assert built.to_bytes() == live_filter(tmp_path, keys, 10)


def test_either_class_reads_what_the_other_one_builds(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys, absent = random_keys(rng, 2000), random_keys(rng, 2000, length=17)
    classes = (kernel.RocksDBRibbonFilter, kernel.RocksDBBloomFilter)
    for builder, reader in (classes, classes[::-1]):
        built = builder.build(keys)
        read = reader.from_bytes(built.to_bytes())
        assert (read.form, read.expected_fpr) == (built.form, built.expected_fpr)
        assert all(read.might_contain_many(keys))
        assert read.might_contain_many(absent) == built.might_contain_many(absent)
        assert read != built  # They are of two families.


# ---- solving ----


def test_the_order_of_keys_matters_for_seed_and_rounding_alone(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys = random_keys(rng, 3000)
    first, rest = keys[0], keys[1:]
    built = kernel.RocksDBRibbonFilter.build(keys)
    for _ in range(3):
        rng.shuffle(rest)
        assert kernel.RocksDBRibbonFilter.build([first, *rest]) == built


def fails(kernel: ModuleType, hashes: list[int], geometry: Geometry, seed: int) -> bool:
    return kernel.equations.solution(hashes, geometry, seed) is None


def test_a_seed_in_twenty_fails_and_the_next_one_is_taken(
    kernel: ModuleType, rng: random.Random
) -> None:
    """At the largest number of keys that RocksDB takes so many slots for."""
    hashes = [rng.getrandbits(64) for _ in range(ribbon.keys_for(1024))]
    geometry = ribbon.plan(len(hashes), SizingParameter("bits_per_key", 10), first_hash=hashes[0])
    assert isinstance(geometry, Geometry)
    failing = next(seed for seed in range(256) if fails(kernel, hashes[1:], geometry, seed))
    hashes[0] = hashes[0] & ~0xFF | failing  # with one more equation it fails still
    digests = kernel.RocksDBRibbonFilter.digests()
    for each in hashes:
        digests.add_digest(each)
    built = kernel.RocksDBRibbonFilter.build(digests)
    taken = built.to_bytes()[-4]
    tried = list(ribbon.seeds(hashes[0]))
    tried = tried[: tried.index(taken)]
    assert tried[0] == failing
    assert all(fails(kernel, hashes, geometry, seed) for seed in tried)
    assert not fails(kernel, hashes, geometry, taken)
    assert built.count_missing(digests) == 0


def contradicting(rng: random.Random, seeds: int, starts: int) -> list[int]:
    """Hashes that no seed solves: under each of them 200 equations meet in the same 132 slots.

    They start at five slots, since one start's results follow from its rows whatever the hashes.
    """
    inverse = pow(ribbon.START_MULTIPLIER, -1, 1 << 64)
    hashes: list[int] = []
    for seed in range(seeds):
        mask = ribbon.seed_mask(seed)
        for _ in range(200):
            number = int((rng.randrange(5) + rng.uniform(0.1, 0.9)) / starts * 2**64)
            hashes.append((number * inverse & (1 << 64) - 1) ^ mask)
    return hashes


def test_where_no_seed_solves_it_is_the_bloom_filter(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As RocksDB would. Its seeds are known, so that prepared keys can fail all of them."""
    monkeypatch.setattr(ribbon, "SEEDS", 4)
    starts = ribbon.slots_for(4 * 200) - 127
    digests = kernel.RocksDBRibbonFilter.digests()
    plain = kernel.RocksDBBloomFilter.digests()
    for each in contradicting(rng, 4, starts):
        digests.add_digest(each)
        plain.add_digest(each)
    built = kernel.RocksDBRibbonFilter.build(digests, bits_per_key=10)
    assert built.form == "fast-local"
    assert built.count_missing(digests) == 0
    assert built.to_bytes() == kernel.RocksDBBloomFilter.build(plain, bits_per_key=10).to_bytes()


def test_seed_masks() -> None:
    assert ribbon.seed_mask(0) == 0
    assert len({ribbon.seed_mask(seed) for seed in range(256)}) == 256
    assert list(ribbon.seeds(0xABFE)) == [254, 255, *range(254)]


def test_a_row_starts_where_it_says(rng: random.Random) -> None:
    starts = set()
    for _ in range(2000):
        start, row, result = equations.equation(rng.getrandbits(64), 129, 0)
        starts.add(start)
        assert row & 1
        assert 0 < row < 1 << 128
        assert 0 <= result < 1 << 32
    assert starts == set(range(129))


@examples(40)
@given(keys=st.lists(st.binary(max_size=70), max_size=400), bits=st.floats(0.5, 100))
def test_no_key_is_lost(kernel: ModuleType, keys: list[bytes], bits: float) -> None:
    cls = kernel.RocksDBRibbonFilter
    keys = [*keys, *keys[:5], bytes(65535)]
    built = cls.build(keys, bits_per_key=bits)
    assert all(built.might_contain_many(keys))
    assert all(cls.build(sorted(keys), bits_per_key=bits).might_contain_many(keys))
    assert all(cls.from_bytes(built.to_bytes()).might_contain_many(keys))


def test_equal_neighbours_count_once_and_equal_hashes_agree(kernel: ModuleType) -> None:
    cls = kernel.RocksDBRibbonFilter
    some = numbers(0, 1000)
    doubled = cls.build([key for key in some for _ in range(2)])
    assert (doubled.num_keys, doubled) == (1000, cls.build(some))
    assert cls.build(some + some).num_keys == 2000


def test_no_keys_are_no_bytes(kernel: ModuleType) -> None:
    built = kernel.RocksDBRibbonFilter.build([])
    assert (built.to_bytes(), built.num_keys, built.form) == (b"", 0, "empty")
    assert not built.might_contain(b"")


# ---- sizes ----


@pytest.mark.parametrize(
    ("count", "slots"),
    [(1, 256), (180, 256), (248, 256), (249, 384), (499, 512), (500, 640), (2087, 2176),
     (126_506, 131_072), (126_507, 131_200), (10**6, 1_047_552), (950_000_000, 1_031_068_672)],
)  # fmt: skip
def test_slots(count: int, slots: int) -> None:
    assert ribbon.slots_for(count) == slots
    assert (
        ribbon.slots_for(ribbon.keys_for(slots))
        <= slots
        < ribbon.slots_for(ribbon.keys_for(slots) + 1)
    )


def test_a_filter_of_too_many_keys_is_the_bloom_filter() -> None:
    size = SizingParameter("bits_per_key", 10)
    assert isinstance(ribbon.plan(950_000_000, size), Geometry)
    assert ribbon.plan(950_000_001, size) == rocksdb.plan(950_000_001, size)


@pytest.mark.parametrize(
    ("count", "bits"), [(1000, 7.04), (10_000, 7.04), (100_000, 7.02), (10**6, 7.10), (10**7, 7.19)]
)
def test_seven_bits_for_ten(count: int, bits: float) -> None:
    assert sizing.bits_per_key("ribbon", bits_per_key=10, n=count) == pytest.approx(bits, abs=0.03)


@pytest.mark.parametrize("fpr", [0.6, 0.1, 0.0123, 0.001, 1e-6, 1e-9])
@pytest.mark.parametrize("count", [0, 1, 10, 100, 1000, 100_000, 950_000_000])
def test_fpr_is_a_ceiling_and_not_a_generous_one(count: int, fpr: float) -> None:
    size = ribbon.check(fpr=fpr)
    for dice in (0, 1 << 63, (1 << 64) - 1):
        planned = ribbon.plan(count, size, first_hash=dice)
        assert ribbon.predicted_fpr(count, planned) <= fpr
    bits = ribbon.equivalent_bits_per_key(count, size)
    if count >= 100_000 and fpr < 0.6:
        fewer = ribbon.plan(count, SizingParameter("bits_per_key", bits - 0.1))
        assert ribbon.predicted_fpr(count, fewer) > fpr


@pytest.mark.parametrize(
    "sizes", [{"bits_per_key": 0.4}, {"bits_per_key": 101}, {"fpr": 1e-10}, {"fpr": 0.7}]
)
def test_ranges(kernel: ModuleType, sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"of a ribbon filter is out of range.*allowed are"):
        kernel.RocksDBRibbonFilter.build([], **sizes)


def test_the_option_is_a_bool(kernel: ModuleType) -> None:
    with pytest.raises(TypeError, match="optimize_filters_for_memory is True or False, not int"):
        kernel.RocksDBRibbonFilter.build([], optimize_filters_for_memory=1)


@pytest.mark.parametrize("count", [300, 5000, 40_000])
def test_the_slots_suggest_the_count(kernel: ModuleType, count: int, rng: random.Random) -> None:
    built = kernel.RocksDBRibbonFilter.build(random_keys(rng, count))
    assert rocksdb_forms.estimate_num_keys(built) == count
    read = kernel.RocksDBRibbonFilter.from_bytes(built.to_bytes())
    assert read.num_keys is None
    assert count <= rocksdb_forms.estimate_num_keys(read) <= count + 128


# ---- rates ----


@once
@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (300, {"bits_per_key": 6}),
        (30_000, {"bits_per_key": 2}),
        (30_000, {"bits_per_key": 5}),
        (30_000, {}),
        (30_000, {"fpr": 0.0123}),
    ],
)
def test_keys_pass_as_expected(
    kernel: ModuleType, count: int, sizes: dict[str, Any], rng: random.Random
) -> None:
    built = kernel.RocksDBRibbonFilter.build(random_keys(rng, count), **sizes)
    trials = volume(kernel, 50_000, 100_000, 400_000)
    rate = positives(built, random_keys(rng, trials, length=17)) / trials
    assert rate == pytest.approx(built.expected_fpr, abs=4 * math.sqrt(built.expected_fpr / trials))
    assert rate <= sizes.get("fpr", 1) * 1.1


def test_a_filter_of_any_columns_is_asked_as_rocksdb_would(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Whatever the number of segments: more than 32 columns are not looked at."""
    for blocks, segments in ((2, 1), (2, 3), (3, 4), (3, 96), (3, 100), (5, 7)):
        data = rng.randbytes(16 * segments) + struct.pack("<BBI", 0xFE, 7, blocks)[:5]
        read = kernel.RocksDBRibbonFilter.from_bytes(data)
        geometry = Geometry(blocks, segments)
        keys = random_keys(rng, 3000)
        answers = [asked(data, geometry, key) for key in keys]
        assert read.might_contain_many(keys) == answers
        assert [read.might_contain(key) for key in keys] == answers
        assert sum(answers) / 3000 == pytest.approx(read.expected_fpr, abs=0.05)


@needs_native
@pytest.mark.parametrize("columns", range(1, 34))
def test_every_instruction_set_gives_the_same_answers(columns: int, rng: random.Random) -> None:
    """Wide and narrow blocks of every number of columns, of random bits."""
    python, native = twins()
    simd: Any = import_module("filters.kernels.native.simd")
    sizes = {"bits_per_key": 3 * columns}
    keys = random_keys(rng, 700)
    data = rng.randbytes(16 * (5 * columns - 2)) + struct.pack("<BBI", 0xFE, columns, 5)[:5]
    expected = python.RocksDBRibbonFilter.from_bytes(data).might_contain_many(keys)
    wanted = python.RocksDBRibbonFilter.build(keys[:200], **sizes).to_bytes()
    try:
        for level in simd.available():
            simd.use(level)
            read = native.RocksDBRibbonFilter.from_bytes(data)
            assert read.might_contain_many(keys) == expected, level
            assert [read.might_contain(key) for key in keys] == expected, level
            built = native.RocksDBRibbonFilter.build(keys[:200], **sizes)
            assert built.to_bytes() == wanted, level
    finally:
        simd.use("auto")


def asked(data: bytes, geometry: Geometry, key: bytes) -> bool:
    """The answer, from the slots' values one by one."""
    start, row, result = equations.equation(xxph3_64(key), geometry.starts, ribbon.seed_mask(7))
    first = start // 128
    firsts = [
        block * geometry.columns - min(block, geometry.narrow_blocks)
        for block in range(geometry.blocks)
    ]
    for column in range(geometry.columns - (first < geometry.narrow_blocks)):
        met = 0
        for slot in range(start, start + 128):
            if row >> slot - start & 1:
                segment = firsts[slot // 128] + column
                met ^= data[16 * segment + slot % 128 // 8] >> slot % 8 & 1
        if met != result >> column & 1:
            return False
    return True
