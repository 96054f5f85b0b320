"""RocksDB's filter: its bytes against the engine's own, its rates against measurement."""

from __future__ import annotations

import gc
import math
import random
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import occupancy, rocksdb, rocksdb_forms
from filters.compat_hashing import rocksdb_hash, xxph3_64
from filters.rocksdb import Geometry
from filters.rocksdb_forms import Form
from filters.sizing_parameters import SizingParameter
from tests.effort import examples, once, spread, volume
from tests.filters.cases import positives, random_keys
from tests.filters.sstables import rocksdb_filters

DATA = Path(__file__).parent.parent / "data" / "rocksdb"
THREE = [b"bar", b"foo", b"hello"]

HELLO_WORLD = bytes.fromhex(
    "000000010041000000000000020000020002000080000000000000000000000000000000000000000208"
    "00000000400000000000000040000000080000000000ff00060000"
)
HELLO_WORLD_LEGACY = bytes.fromhex(
    "000000010000000000400040000000001000000000000000000000000000001000000000040000000100"
    "000000004000000000000010000001000000440000000601000000"
)
THREE_LEGACY = bytes.fromhex(
    "004110010000020020400000000000000000000000100000010000000000000020080200000000080100"
    "000000004000000000000010400000000000040000000601000000"
)
THREE_FAST_LOCAL = bytes.fromhex(
    "000000010001c00400042001020404800492803840209110105010210400000080188c000080008206a8"
    "0012090004002828c0000040010600100000a0102000ff00180000"
)


def numbers(start: int, stop: int) -> list[bytes]:
    return [struct.pack("<I", number) for number in range(start, stop)]


# ---- bytes ----


def test_exact_bytes_of_hello_world(kernel: ModuleType) -> None:
    keys = [b"hello", b"world"]
    built = kernel.RocksDBBloomFilter.build(keys, optimize_filters_for_memory=False)
    assert built.to_bytes() == HELLO_WORLD
    assert built.form == "fast-local"
    assert built.num_probes == 6


def test_probes_follow_the_actual_size(kernel: ModuleType) -> None:
    assert kernel.RocksDBBloomFilter.build(THREE).num_probes == 24
    asked = kernel.RocksDBBloomFilter.build(THREE, optimize_filters_for_memory=False)
    assert asked.num_probes == 6


@pytest.mark.parametrize(
    ("bits_per_key", "stop", "probes", "size", "hashed"),
    [
        (5, 87, 3, 69, 4130687756),
        (5, 2087, 3, 1349, 204628445),
        (10, 2087, 6, 2629, 2498541272),
    ],
)
def test_filters_of_numbers(
    kernel: ModuleType, bits_per_key: int, stop: int, probes: int, size: int, hashed: int
) -> None:
    built = kernel.RocksDBBloomFilter.build(
        numbers(0, stop), bits_per_key=bits_per_key, optimize_filters_for_memory=False
    )
    assert (built.num_probes, built.size_in_bytes) == (probes, size)
    assert rocksdb_hash(built.to_bytes()) == hashed


def build_legacy(keys: list[bytes], bits_per_key: int, line_bytes: int = 64) -> bytes:
    """What format versions 2 to 4 wrote, on machines with lines of so many bytes."""
    probes = max(1, min(30, int(bits_per_key * 0.69)))
    lines = -(-len(keys) * bits_per_key // (8 * line_bytes)) | 1
    data = bytearray(lines * line_bytes)
    for key in keys:
        h = rocksdb_hash(key)
        start, step = h % lines * line_bytes, h >> 17 | h << 15 & 2**32 - 1
        for _ in range(probes):
            bit = h % (8 * line_bytes)
            data[start + bit // 8] |= 1 << bit % 8
            h = (h + step) % 2**32
    return bytes(data) + struct.pack("<BI", probes, lines)


@pytest.mark.parametrize(
    ("bits_per_key", "probes", "hashed"), [(5, 3, 515748486), (10, 6, 1478976371)]
)
def test_legacy_filters_of_numbers_are_read(
    kernel: ModuleType, bits_per_key: int, probes: int, hashed: int
) -> None:
    data = build_legacy(numbers(0, 2087), bits_per_key)
    assert rocksdb_hash(data) == hashed
    read = kernel.RocksDBBloomFilter.from_bytes(data)
    assert (read.form, read.num_probes) == ("legacy", probes)
    assert all(read.might_contain_many(numbers(0, 2087)))
    assert positives(read, numbers(5000, 7000)) < 0.25 * 2000


@pytest.mark.parametrize("line_bytes", [1, 32, 64, 128, 256])
def test_legacy_filters_have_the_lines_of_the_machine_they_come_from(
    kernel: ModuleType, line_bytes: int, rng: random.Random
) -> None:
    keys = random_keys(rng, 500, length=11)
    read = kernel.RocksDBBloomFilter.from_bytes(build_legacy(keys, 10, line_bytes))
    assert read.form == "legacy"
    assert all(read.might_contain_many(keys))
    assert positives(read, random_keys(rng, 2000)) < 2000 * (0.05 if line_bytes > 1 else 0.6)


def test_the_legacy_reference_is_exact() -> None:
    assert build_legacy([b"hello", b"world"], 10) == HELLO_WORLD_LEGACY
    assert build_legacy(THREE, 10) == THREE_LEGACY


@pytest.mark.parametrize("data", [HELLO_WORLD, HELLO_WORLD_LEGACY])
def test_exact_bytes_are_read(kernel: ModuleType, data: bytes) -> None:
    read = kernel.RocksDBBloomFilter.from_bytes(data)
    assert read.might_contain_many([b"hello", b"world", b"x", b"foo"]) == [True, True, False, False]
    assert read.num_keys is None
    assert read.to_bytes() == data


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("fv4_crc32c_3keys", "legacy", THREE_LEGACY),
        ("fv5_xxh3_3keys", "fast-local", THREE_FAST_LOCAL),
        ("fv6_crc32c_3keys", "fast-local", THREE_FAST_LOCAL),
    ],
)
def test_filters_of_kept_tables(kernel: ModuleType, name: str, form: str, expected: bytes) -> None:
    [data] = rocksdb_filters((DATA / f"{name}.sst").read_bytes()).filters
    assert data == expected
    if form == "fast-local":
        assert data == kernel.RocksDBBloomFilter.build(THREE).to_bytes()
    read = kernel.RocksDBBloomFilter.from_bytes(data)
    assert read.form == form
    assert read.might_contain_many([*THREE, b"x", b"foo "]) == [True] * 3 + [False] * 2


def test_partitions_of_a_kept_table(kernel: ModuleType) -> None:
    """Every partition is a filter like any other, of the keys up to where its index entry says."""
    table = rocksdb_filters((DATA / "fv5_xxh3_partitioned_2087le.sst").read_bytes())
    rest = sorted(numbers(0, 2087))
    assert len(table.filters) == 5
    for data, last in zip(table.filters, table.last_keys, strict=True):
        keys = [key for key in rest if key <= last]
        rest = rest[len(keys) :]
        assert kernel.RocksDBBloomFilter.build(keys).to_bytes() == data
    assert rest == []


# ---- what RocksDB writes now ----


def live_tables(
    path: Path, keys: list[bytes], bits_per_key: float, policy: str = "", **more: Any
) -> list[bytes]:
    """The tables of a database that RocksDB itself writes of these keys.

    A ``policy`` in RocksDB's spelling takes the place of the Bloom filter, as its options can be
    changed while a database is open.
    """
    rocksdict = pytest.importorskip("rocksdict")
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_bloom_filter(bits_per_key, False)
    for name, value in more.items():
        getattr(blocks, f"set_{name}")(value(rocksdict) if callable(value) else value)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_compression_type(rocksdict.DBCompressionType.none())
    options.set_block_based_table_factory(blocks)
    db = rocksdict.Rdict(str(path), options)
    if policy:
        db.set_options({"block_based_table_factory": f"{{filter_policy={policy}}}"})
    for key in keys:
        db[key] = b"value"
    db.flush()
    db.close()
    del db
    gc.collect()
    return [each.read_bytes() for each in sorted(path.glob("*.sst"))]


@once
@pytest.mark.parametrize(
    "bits_per_key", spread([1.0, 1.5, 5.0, 9.9, 10.0, 12.345, 16.0, 25.6, 50.5, 100.0], 4)
)
@pytest.mark.parametrize("count", [1, 2, 50, 1000])
def test_filters_that_rocksdb_writes_now(
    kernel: ModuleType, count: int, bits_per_key: float, tmp_path: Path, rng: random.Random
) -> None:
    keys = random_keys(rng, count)
    [table] = live_tables(tmp_path, keys, bits_per_key)
    [data] = rocksdb_filters(table).filters
    built = kernel.RocksDBBloomFilter.build(keys, bits_per_key=bits_per_key)
    assert built.to_bytes() == data
    assert all(kernel.RocksDBBloomFilter.from_bytes(data).might_contain_many(keys))


@once
def test_filters_of_many_keys_that_rocksdb_writes_now(
    kernel: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    keys = random_keys(rng, 30_000)
    [table] = live_tables(tmp_path, keys, 10.0)
    assert rocksdb_filters(table).filters == [kernel.RocksDBBloomFilter.build(keys).to_bytes()]


def test_keys_of_every_length_in_filters_that_rocksdb_writes_now(
    kernel: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    """One wrong hash among these would change a bit: at 20 bits per key few are set twice."""
    keys = sorted({rng.randbytes(length) for length in (*range(301), 1023, 1024, 1025, 65535)})
    [table] = live_tables(tmp_path, keys, 20.0)
    built = kernel.RocksDBBloomFilter.build(keys, bits_per_key=20)
    assert rocksdb_filters(table).filters == [built.to_bytes()]


@once
@pytest.mark.parametrize("lengths", [range(301), [65535]], ids=["short", "long"])
def test_legacy_filters_that_rocksdb_writes_now(
    kernel: ModuleType, lengths: range | list[int], tmp_path: Path, rng: random.Random
) -> None:
    keys = sorted({rng.randbytes(length) for length in lengths})
    [table] = live_tables(tmp_path, keys, 10.0, format_version=4)
    [data] = rocksdb_filters(table).filters
    assert data == build_legacy(keys, 10)
    read = kernel.RocksDBBloomFilter.from_bytes(data)
    assert read.form == "legacy"
    assert all(read.might_contain_many(keys))


def test_partitions_that_rocksdb_writes_now(
    kernel: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    keys = random_keys(rng, 5000)
    [table] = live_tables(
        tmp_path,
        keys,
        10.0,
        partition_filters=True,
        index_type=lambda rocksdict: rocksdict.BlockBasedIndexType.two_level_index_search(),
        metadata_block_size=1024,
    )
    found = rocksdb_filters(table)
    assert len(found.filters) > 3
    rest = keys
    for data, last in zip(found.filters, found.last_keys, strict=True):
        part = [key for key in rest if key <= last]
        rest = rest[len(part) :]
        assert kernel.RocksDBBloomFilter.build(part).to_bytes() == data
    assert rest == []


# ---- what counts as a key ----


def test_equal_neighbours_count_once(kernel: ModuleType) -> None:
    cls = kernel.RocksDBBloomFilter
    built = cls.build([b"abc", b"abc", b"abc", b"bcd", b"bcd"])
    assert built.num_keys == 2
    assert built == cls.build([b"abc", b"bcd"])
    assert cls.build([b"abc", b"bcd", b"abc"]).num_keys == 3


def test_no_keys_are_no_bytes(kernel: ModuleType) -> None:
    built = kernel.RocksDBBloomFilter.build([])
    assert (built.to_bytes(), built.num_keys, built.form) == (b"", 0, "empty")


@examples(40)
@given(
    keys=st.lists(st.binary(max_size=70), max_size=60),
    bits_per_key=st.floats(0.5, 100),
    num_probes=st.none() | st.integers(1, 30),
    optimize=st.booleans(),
)
def test_no_key_is_lost(
    kernel: ModuleType,
    keys: list[bytes],
    bits_per_key: float,
    num_probes: int | None,
    optimize: bool,
) -> None:
    cls = kernel.RocksDBBloomFilter
    sizes: dict[str, Any] = {
        "bits_per_key": bits_per_key,
        "num_probes": num_probes,
        "optimize_filters_for_memory": optimize,
    }
    keys = [*keys, *keys[:5], bytes(65535)]
    built = cls.build(keys, **sizes)
    assert all(built.might_contain_many(keys))
    assert all(cls.build(sorted(keys), **sizes).might_contain_many(keys))
    assert all(cls.from_bytes(built.to_bytes()).might_contain_many(keys))


# ---- sizes and probes ----


@pytest.mark.parametrize(
    ("millibits", "probes"),
    [
        (1000, 1), (2080, 1), (2081, 2), (3580, 2), (5100, 3), (6640, 4), (8300, 5), (8301, 6),
        (10_070, 6), (11_720, 7), (14_001, 8), (16_050, 9), (18_300, 10), (22_001, 11),
        (22_002, 12), (25_501, 12), (25_502, 11), (26_000, 11), (26_001, 12), (28_000, 12),
        (28_001, 13), (49_999, 23), (50_000, 23), (50_001, 24), (100_000, 24), (512_000, 24),
    ],
)  # fmt: skip
def test_probe_counts(millibits: int, probes: int) -> None:
    assert rocksdb.choose_num_probes(millibits) == probes


@pytest.mark.parametrize(
    ("count", "millibits", "size"),
    [
        (0, 10_000, 0),
        (1, 10_000, 64),
        (51, 10_000, 64),
        (52, 10_000, 128),
        (2087, 5000, 1344),
        (2087, 10_000, 2624),
        (10**9, 100_000, 0xFFFF_FFC0),
        (2**40, 100_000, 0xFFFF_FFC0),
    ],
)
def test_sizes(count: int, millibits: int, size: int) -> None:
    assert rocksdb.calculate_space(count, millibits) == size


@pytest.mark.parametrize(
    ("bits_per_key", "millibits"),
    [
        (0.5, 1000),
        (0.99, 1000),
        (1, 1000),
        (1.0005, 1001),
        (1.2344, 1234),
        (9.9, 9900),
        (100, 100_000),
    ],
)
def test_thousandths_of_a_bit(bits_per_key: float, millibits: int) -> None:
    assert rocksdb.millibits(bits_per_key) == millibits


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("fpr", [0.6, 0.1, 0.01, 0.001, 1e-6])
@pytest.mark.parametrize("count", [0, 1, 10, 52, 1000, 200_000, 10**9])
def test_fpr_is_a_ceiling_and_not_a_generous_one(count: int, fpr: float, optimize: bool) -> None:
    size = rocksdb.check(fpr=fpr, optimize_filters_for_memory=optimize)
    geometry = rocksdb.plan(count, size, optimize_filters_for_memory=optimize)
    predicted = rocksdb.predicted_fpr(count, geometry)
    if count < 10**9 or fpr > 1e-6:  # There the largest filter of all is too small.
        assert predicted <= fpr
    if count >= 1000 and optimize and fpr < 0.6:
        smaller = Geometry(round(geometry.lines * 0.9), geometry.num_probes)
        assert rocksdb.predicted_fpr(count, smaller) > fpr


@pytest.mark.parametrize("num_probes", [1, 7, 30])
def test_the_probes_can_be_chosen(kernel: ModuleType, num_probes: int) -> None:
    built = kernel.RocksDBBloomFilter.build(numbers(0, 99), num_probes=num_probes)
    assert built.num_probes == num_probes
    assert built.to_bytes()[-5:] == bytes((0xFF, 0, num_probes, 0, 0))
    assert all(built.might_contain_many(numbers(0, 99)))


@pytest.mark.parametrize(
    "sizes",
    [
        {"bits_per_key": 0.49},
        {"bits_per_key": 100.1},
        {"fpr": 9e-7},
        {"fpr": 0.7},
        {"num_probes": 0},
        {"num_probes": 31},
    ],
)
def test_ranges(kernel: ModuleType, sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"out of range.*allowed are"):
        kernel.RocksDBBloomFilter.build([], **sizes)


def test_the_option_is_a_bool(kernel: ModuleType) -> None:
    with pytest.raises(TypeError, match="optimize_filters_for_memory is True or False, not str"):
        kernel.RocksDBBloomFilter.build([], optimize_filters_for_memory="no")


# ---- any bytes are a filter ----

FULL_LINE = b"\xff" * 64
TRAILERS = [
    # payload, trailer, form
    (b"", b"", "empty"),
    (b"", b"\xff\x00\x06\x00\x00", "empty"),
    (b"", b"\x00\x00\x00\x00", "empty"),
    (b"\x00", b"\x00" * 5, "always-maybe (no probes)"),
    (bytes(64), b"\x00\x01\x00\x00\x00", "always-maybe (no probes)"),
    (bytes(64), b"\x80\x01\x00\x00\x00", "always-maybe (reserved kind 0x80)"),
    (bytes(64), b"\xfd\x01\x00\x00\x00", "always-maybe (reserved kind 0xfd)"),
    (bytes(64), b"\xfe\x01\x00\x00\x00", "always-maybe (0 blocks, a Ribbon filter has 2"),
    (bytes(64), b"\xfe\x01\x01\x00\x00", "always-maybe (1 blocks, a Ribbon filter has 2"),
    (bytes(65), b"\xfe\x01\x02\x00\x00", "always-maybe (65 bytes are no whole segments"),
    (bytes(64), b"\xff\x00\x06\x00\x00", "fast-local"),
    (bytes(64), b"\xff\x00\x01\x00\x00", "fast-local"),
    (bytes(64), b"\xff\x00\x1e\x00\x00", "fast-local"),
    (bytes(64), b"\xff\x00\x1f\x00\x00", "always-maybe (31 probes"),
    (bytes(64), b"\xff\x00\x00\x00\x00", "always-maybe (0 probes"),
    (bytes(64), b"\xff\x01\x06\x00\x00", "always-maybe (unknown implementation 1)"),
    (bytes(64), b"\xff\x80\x06\x00\x00", "always-maybe (unknown implementation 128)"),
    (bytes(128), b"\xff\x00\x26\x00\x00", "always-maybe (lines of 128 bytes)"),
    (bytes(128), b"\xff\x00\xe6\x00\x00", "always-maybe (lines of 8192 bytes)"),
    (bytes(64), b"\xff\x00\x06\x01\x00", "always-maybe (reserved bytes in use)"),
    (bytes(64), b"\xff\x00\x06\x00\x01", "always-maybe (reserved bytes in use)"),
    (bytes(1), b"\xff\x00\x06\x00\x00", "always-maybe (1 bytes are no whole lines"),
    (bytes(63), b"\xff\x00\x06\x00\x00", "always-maybe (63 bytes are no whole lines"),
    (bytes(100), b"\xff\x00\x06\x00\x00", "always-maybe (100 bytes are no whole lines"),
    (bytes(64), b"\x06\x01\x00\x00\x00", "legacy"),
    (bytes(64), b"\x7f\x01\x00\x00\x00", "legacy"),
    (bytes(192), b"\x06\x03\x00\x00\x00", "legacy"),
    (bytes(384), b"\x06\x03\x00\x00\x00", "legacy"),
    (bytes(1), b"\x06\x01\x00\x00\x00", "legacy"),
    (bytes(64), b"\x06\x00\x00\x00\x00", "always-maybe (64 bytes are no 0 equal lines)"),
    (bytes(64), b"\x06\x03\x00\x00\x00", "always-maybe (64 bytes are no 3 equal lines)"),
    (bytes(64), b"\x06\xff\xff\xff\xff", "always-maybe (64 bytes are no 4294967295 equal"),
    (bytes(288), b"\x06\x03\x00\x00\x00", "always-maybe (lines of 96 bytes"),
]


@pytest.mark.parametrize(("payload", "trailer", "form"), TRAILERS)
def test_trailers(kernel: ModuleType, payload: bytes, trailer: bytes, form: str) -> None:
    read = kernel.RocksDBBloomFilter.from_bytes(payload + trailer)
    assert read.form.startswith(form)
    assert form in repr(read)
    maybe = form.startswith("always-maybe")
    assert read.might_contain(b"") is maybe
    assert read.might_contain_many([b"a", b"b" * 300]) == [maybe, maybe]
    assert (read.expected_fpr, read.fill) == ((1, 1) if maybe else (0, 0))
    assert read.to_bytes() == payload + trailer
    if form in ("fast-local", "legacy"):
        full = kernel.RocksDBBloomFilter.from_bytes(b"\xff" * len(payload) + trailer)
        assert full.might_contain_many([b"", b"a", b"b" * 300]) == [True] * 3
        assert (full.expected_fpr, full.fill) == (1, 1)
        assert full.num_bits == 8 * len(payload)
    else:
        assert read.num_bits == read.num_probes == 0


@examples(150)
@given(
    data=st.binary(max_size=200),
    head=st.sampled_from(
        [
            b"",
            b"\xff",
            b"\xff\x00",
            b"\x06",
            b"\x06\x01\0\0\0",
            b"\xfe\x05\x02",
            b"\xfe\x05\x03",
        ]
    ),
    key=st.binary(max_size=70),
)
def test_any_bytes_are_read(kernel: ModuleType, data: bytes, head: bytes, key: bytes) -> None:
    for each in (data, data + head, data + (head + bytes(5))[:5], bytes(64) + data[:5]):
        read = kernel.RocksDBBloomFilter.from_bytes(each)
        assert read.might_contain(key) in (True, False)
        assert read.to_bytes() == each
        assert 0 <= read.fill <= 1
        assert 0 <= read.expected_fpr <= 1


def test_a_claim_of_many_lines_takes_no_memory(kernel: ModuleType) -> None:
    """Neither four billion lines in few bytes nor one line of megabytes."""
    few = kernel.RocksDBBloomFilter.from_bytes(bytes(64) + b"\x06\xff\xff\xff\x7f")
    assert few.expected_fpr == 1
    one = kernel.RocksDBBloomFilter.from_bytes(bytes(1 << 22) + b"\x06\x01\x00\x00\x00")
    assert (one.form, one.expected_fpr) == ("legacy", 0)


# ---- rates ----


@once
@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (30_000, {"bits_per_key": 2}),
        (30_000, {"bits_per_key": 5}),
        (30_000, {"bits_per_key": 10}),
        (30_000, {"bits_per_key": 10, "num_probes": 3}),
        (30_000, {"fpr": 0.02}),
        (1000, {"bits_per_key": 7, "optimize_filters_for_memory": False}),
        (300, {"bits_per_key": 6.5}),
    ],
)
def test_many_keys_pass_as_expected(
    kernel: ModuleType, count: int, sizes: dict[str, Any], rng: random.Random
) -> None:
    built = kernel.RocksDBBloomFilter.build(random_keys(rng, count), **sizes)
    trials = volume(kernel, 75_000, 150_000, 600_000)
    rate = positives(built, random_keys(rng, trials, length=17)) / trials
    tolerance = max(4 * math.sqrt(rate * (1 - rate) / trials), 0.02 * rate)
    assert rate == pytest.approx(built.expected_fpr, abs=tolerance)
    predicted = rocksdb.predicted_fpr(count, Geometry(built.num_bits // 512, built.num_probes))
    # Filters of few lines differ among themselves.
    assert predicted == pytest.approx(built.expected_fpr, rel=0.03 if count > 1000 else 0.25)
    if "fpr" in sizes:
        assert rate <= sizes["fpr"] * 1.05


@once
@pytest.mark.parametrize(("count", "bits_per_key"), [(20, 5), (51, 10), (60, 6), (150, 7)])
def test_few_keys_pass_as_predicted(
    kernel: ModuleType, count: int, bits_per_key: int, rng: random.Random
) -> None:
    rates, expected = [], []
    filters = volume(kernel, 80, 250, 1000)
    for _ in range(filters):
        keys = [rng.randbytes(17) for _ in range(count)]
        built = kernel.RocksDBBloomFilter.build(keys, bits_per_key=bits_per_key, num_probes=3)
        rates.append(positives(built, [rng.randbytes(19) for _ in range(600)]) / 600)
        expected.append(built.expected_fpr)
        geometry = Geometry(built.num_bits // 512, 3)
    mean = sum(rates) / filters
    error = math.sqrt(sum((rate - mean) ** 2 for rate in rates)) / filters
    wanted = sum(expected) / filters
    assert mean == pytest.approx(wanted, abs=max(4 * error, 0.02 * wanted))
    assert wanted == pytest.approx(rocksdb.predicted_fpr(count, geometry), rel=0.03)


@once
@pytest.mark.parametrize("bits_per_key", [5, 10, 16])
@pytest.mark.parametrize("count", [100, 20_000])
def test_a_legacy_filter_knows_its_own_rate(
    kernel: ModuleType, count: int, bits_per_key: int, rng: random.Random
) -> None:
    """Which is worse than its fill tells: fourfold at 16 bits per key."""
    data = build_legacy(random_keys(rng, count), bits_per_key)
    read = kernel.RocksDBBloomFilter.from_bytes(data)
    trials = 100_000
    hits = positives(read, random_keys(rng, trials, length=17))
    assert hits / trials == pytest.approx(read.expected_fpr, rel=4 * math.sqrt(1 / hits + 1 / 400))
    if bits_per_key == 16:
        assert read.expected_fpr > 2 * occupancy.mean_line_fpr(
            occupancy.count_lines(memoryview(data)[:-5], 64), 512, 11
        )


@pytest.mark.parametrize("count", [30, 1000, 40_000])
def test_the_fill_suggests_the_count(kernel: ModuleType, count: int, rng: random.Random) -> None:
    built = kernel.RocksDBBloomFilter.build(random_keys(rng, count))
    assert rocksdb_forms.estimate_num_keys(built) == pytest.approx(
        count, rel=0.03 + 1 / math.sqrt(count)
    )
    empty = kernel.RocksDBBloomFilter.from_bytes(b"")
    assert rocksdb_forms.estimate_num_keys(empty) == 0


def test_a_form_in_words() -> None:
    assert str(Form("legacy", lines=3, line_bits=512, num_probes=6)) == "legacy"
    assert str(Form("always-maybe", "no probes")) == "always-maybe (no probes)"


def test_the_hash_splits_into_line_and_bits(kernel: ModuleType) -> None:
    """One key at one probe sets the one bit that its hash's halves say."""
    keys = numbers(0, 300)
    one = kernel.RocksDBBloomFilter.build(keys, bits_per_key=2, num_probes=1)
    data = one.to_bytes()
    lines = (len(data) - 5) // 64
    wanted = set()
    for key in keys:
        low, high = xxph3_64(key) % 2**32, xxph3_64(key) >> 32
        wanted.add(512 * (low * lines >> 32) + (high >> 23))
    assert wanted == {i for i in range(512 * lines) if data[i // 8] >> i % 8 & 1}
    assert rocksdb.plan(300, SizingParameter("bits_per_key", 2), 1) == Geometry(lines, 1)
