"""LevelDB's filter: its bytes against the engine's own, its rates against measurement."""

from __future__ import annotations

import math
import random
import struct
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import leveldb, sampling
from filters.compat_hashing import leveldb_hash
from filters.leveldb import Geometry
from filters.leveldb_rates import NUM_KEYS, RATES
from filters.sizing_parameters import SizingParameter
from tests.effort import examples, once
from tests.filters.cases import positives, random_keys
from tests.filters.sstables import FilterWindow, leveldb_windows

DATA = Path(__file__).parent.parent / "data" / "leveldb"
HELLO_WORLD = bytes.fromhex("114000414410401006")


def numbers(start: int, stop: int) -> list[bytes]:
    return [struct.pack("<I", number) for number in range(start, stop)]


# ---- bytes ----


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([b"hello", b"world"], HELLO_WORLD.hex()),
        ([], "000000000000000006"),
        ([b"\xc3\x97", b"\xe2\x99\xa5"], "808818002122000406"),
    ],
)
def test_exact_bytes(kernel: ModuleType, keys: list[bytes], expected: str) -> None:
    built = kernel.LevelDBBloomFilter.build(keys)
    assert built.to_bytes().hex() == expected
    assert kernel.LevelDBBloomFilter.build(reversed(keys)) == built


@pytest.mark.parametrize(
    ("count", "size", "false_positives", "hashed"),
    [
        (1, 9, 23, 0x8EEAE6A6),
        (10, 14, 163, 0xE5540FF8),
        (100, 126, 83, 0xCAF5DD19),
        (1000, 1251, 90, 0xC133060E),
        (10_000, 12_501, 81, 0xAA73C20A),
    ],
)
def test_numbers_as_keys(
    kernel: ModuleType, count: int, size: int, false_positives: int, hashed: int
) -> None:
    built = kernel.LevelDBBloomFilter.build(numbers(0, count))
    assert built.size_in_bytes == size
    assert leveldb_hash(built.to_bytes()) == hashed
    assert all(built.might_contain_many(numbers(0, count)))
    assert positives(built, numbers(10**9, 10**9 + 10_000)) == false_positives


@pytest.mark.parametrize(
    ("bits_per_key", "probes"),
    [(1, 1), (2, 1), (3, 2), (5, 3), (10, 6), (16, 11), (20, 13), (43, 29), (44, 30), (100, 30)],
)
def test_probe_counts(kernel: ModuleType, bits_per_key: int, probes: int) -> None:
    built = kernel.LevelDBBloomFilter.build(numbers(0, 7), bits_per_key=bits_per_key)
    assert built.num_probes == probes == built.to_bytes()[-1]
    assert built.num_bits == max(64, math.ceil(7 * bits_per_key / 8) * 8)


@pytest.mark.parametrize(
    ("name", "internal_keys", "windows", "entries"),
    [
        ("db_200users", True, 1, 201),
        ("raw_3keys", False, 1, 3),
        ("raw_500keys_bs1024", False, 7, 500),
    ],
)
def test_filters_of_kept_tables(
    kernel: ModuleType, name: str, internal_keys: bool, windows: int, entries: int
) -> None:
    """``raw`` tables were written without sequence numbers; 201 entries are 200 and a deletion."""
    table = (DATA / f"{name}.ldb").read_bytes()
    read = leveldb_windows(table, internal_keys=internal_keys)
    assert len(read) == windows
    assert sum(len(window.keys) for window in read) == entries
    check_windows(kernel, read, bits_per_key=10)


def check_windows(kernel: ModuleType, windows: list[FilterWindow], bits_per_key: int) -> None:
    """Every filter of a table is what we build of the same keys, and one of none is no bytes."""
    for window in windows:
        if not window.keys:
            assert window.filter == b""
            continue
        built = kernel.LevelDBBloomFilter.build(window.keys, bits_per_key=bits_per_key)
        assert built.to_bytes() == window.filter
        assert built.num_keys == len(window.keys)
        read = kernel.LevelDBBloomFilter.from_bytes(window.filter)
        assert all(read.might_contain_many(window.keys))


@pytest.mark.parametrize("bits_per_key", [1, 5, 10, 20, 50])
def test_filters_of_a_table_that_leveldb_writes_now(
    kernel: ModuleType, bits_per_key: int, tmp_path: Path, rng: random.Random
) -> None:
    """With keys of 0 to 300 bytes, several versions, deletions, and values larger than a window."""
    plyvel = pytest.importorskip("plyvel")
    options = {"bloom_filter_bits": bits_per_key, "compression": None}
    keys = [rng.randbytes(length) for length in range(301)]
    with plyvel.DB(str(tmp_path), create_if_missing=True, **options) as db:
        for version in range(3):
            for key in keys[version:]:
                db.put(key, rng.randbytes(rng.choice((0, 20, 300, 5000))))
        for key in keys[::7]:
            db.delete(key)
    # Opened again, the log becomes a table as it is: every version of every key is an entry.
    with plyvel.DB(str(tmp_path), **options):
        pass
    tables = [leveldb_windows(path.read_bytes()) for path in tmp_path.glob("*.ldb")]
    windows = [window for table in tables for window in table]
    assert sum(len(window.keys) for window in windows) == 3 * 301 - 3 + len(keys[::7])
    assert any(not window.keys for window in windows)
    check_windows(kernel, windows, bits_per_key)


def test_filters_of_a_compacted_table(
    kernel: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    plyvel = pytest.importorskip("plyvel")
    keys = random_keys(rng, 3000)
    options = {"bloom_filter_bits": 10, "compression": None}
    with plyvel.DB(str(tmp_path), create_if_missing=True, **options) as db:
        for key in keys:
            db.put(key, bytes(10))
        db.compact_range()
        [path] = tmp_path.glob("*.ldb")
        windows = leveldb_windows(path.read_bytes())
    assert [key for window in windows for key in window.keys] == keys
    check_windows(kernel, windows, bits_per_key=10)


# ---- any bytes are a filter ----


@pytest.mark.parametrize("data", [b"", b"\x06", b"\x1f"])
def test_fewer_than_two_bytes_say_no(kernel: ModuleType, data: bytes) -> None:
    read = kernel.LevelDBBloomFilter.from_bytes(data)
    assert not read.might_contain(b"")
    assert read.might_contain_many([b"a", b"b"]) == [False, False]
    assert (read.expected_fpr, read.fill, read.num_keys) == (0, 0, None)
    assert (read.num_bits, read.num_probes) == (0, 0)
    assert read.to_bytes() == data


@pytest.mark.parametrize("probes", [0, 31, 32, 127, 128, 255])
def test_no_probes_or_reserved_ones_say_maybe(kernel: ModuleType, probes: int) -> None:
    read = kernel.LevelDBBloomFilter.from_bytes(bytes(8) + bytes([probes]))
    assert read.might_contain(b"")
    assert all(read.might_contain_many(numbers(0, 100)))
    assert read.expected_fpr == 1
    assert read.num_probes == probes


def test_readers_use_the_stored_probes_and_size(kernel: ModuleType) -> None:
    keys = numbers(0, 50)
    for probes in range(1, 31):
        built = kernel.LevelDBBloomFilter.build(keys, bits_per_key=11, num_probes=probes)
        read = kernel.LevelDBBloomFilter.from_bytes(built.to_bytes())
        assert (read.num_probes, read.num_bits) == (probes, 552)
        assert all(read.might_contain_many(keys))
        assert not all(read.might_contain_many(numbers(10**9, 10**9 + 100)))


def reference_answer(data: bytes, key: bytes) -> bool:
    """LevelDB's reader, written once more."""
    if len(data) < 2:
        return False
    h, probes = leveldb_hash(key), data[-1]
    if probes > 30:
        return True
    places = [(h + i * (h >> 17 | h << 15 & 2**32 - 1)) % 2**32 for i in range(probes)]
    places = [place % (8 * len(data) - 8) for place in places]
    return all(data[place // 8] & 1 << place % 8 for place in places)


@given(data=st.binary(max_size=100), probes=st.integers(0, 40), key=st.binary(max_size=70))
def test_any_bytes_answer_as_leveldb_does(
    kernel: ModuleType, data: bytes, probes: int, key: bytes
) -> None:
    for each in (data, data + bytes([probes]), b"\xff" * 8 + data + bytes([probes])):
        read = kernel.LevelDBBloomFilter.from_bytes(each)
        assert read.might_contain(key) == reference_answer(each, key)
        assert read.to_bytes() == each
        assert 0 <= read.fill <= 1


def test_any_bytes_have_a_rate(kernel: ModuleType, rng: random.Random) -> None:
    for size in (2, 3, 9, 100, 5000):
        for _ in range(4):
            read = kernel.LevelDBBloomFilter.from_bytes(rng.randbytes(size - 1) + b"\x02")
            assert 0 <= read.expected_fpr <= 1
            assert "unknown keys" in repr(read)


# ---- the guarantee ----


@examples(40)
@given(
    keys=st.lists(st.binary(max_size=70), max_size=60),
    bits_per_key=st.integers(1, 100),
    num_probes=st.none() | st.integers(1, 30),
)
def test_no_key_is_lost(
    kernel: ModuleType, keys: list[bytes], bits_per_key: int, num_probes: int | None
) -> None:
    keys = [*keys, *keys[:5], bytes(65535)]
    built = kernel.LevelDBBloomFilter.build(keys, bits_per_key=bits_per_key, num_probes=num_probes)
    assert built.num_keys == len(keys)
    assert all(built.might_contain_many(keys))
    sizes = {"bits_per_key": bits_per_key, "num_probes": num_probes}
    assert built == kernel.LevelDBBloomFilter.build(sorted(keys), **sizes)
    assert all(kernel.LevelDBBloomFilter.from_bytes(built.to_bytes()).might_contain_many(keys))


# ---- sizes ----


@pytest.mark.parametrize("value", [0.5, 9.5, 10.25, 99.9])
def test_fractions_of_a_bit_are_refused_with_the_reason(kernel: ModuleType, value: float) -> None:
    if value < 1:
        with pytest.raises(ValueError, match="allowed are 1 to 100"):
            kernel.LevelDBBloomFilter.build([], bits_per_key=value)
    else:
        message = f"whole number.*{math.floor(value)} or {math.ceil(value)}"
        with pytest.raises(ValueError, match=message):
            kernel.LevelDBBloomFilter.build([], bits_per_key=value)


def test_a_whole_float_is_whole(kernel: ModuleType) -> None:
    keys = numbers(0, 100)
    assert kernel.LevelDBBloomFilter.build(keys, bits_per_key=12.0) == (
        kernel.LevelDBBloomFilter.build(keys, bits_per_key=12)
    )


@pytest.mark.parametrize(
    "sizes",
    [{"bits_per_key": 101}, {"fpr": 0.6}, {"fpr": 9e-5}, {"num_probes": 0}, {"num_probes": 31}],
)
def test_ranges(kernel: ModuleType, sizes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"out of range.*allowed are"):
        kernel.LevelDBBloomFilter.build([], **sizes)


@pytest.mark.parametrize("fpr", [0.5, 0.1, 0.01, 0.001, 0.0001])
@pytest.mark.parametrize("count", [12, 150, 4000, 40_000, 300_000])
def test_fpr_takes_the_fewest_whole_bits_that_grant_it(count: int, fpr: float) -> None:
    chosen = leveldb.bits_per_key_for_fpr(count, fpr)
    assert leveldb.typical_fpr(count, chosen) <= fpr
    assert all(leveldb.typical_fpr(count, fewer) > fpr for fewer in range(1, chosen))
    geometry = leveldb.plan(count, SizingParameter("fpr", fpr))
    assert geometry == Geometry(leveldb.bits_for(count, chosen), leveldb.default_probes(chosen))
    assert leveldb.predicted_fpr(count, geometry) <= fpr


@pytest.mark.parametrize(("count", "fpr"), [(0, 1e-4), (1, 1e-4), (2, 1e-4), (3_000_000, 1e-4)])
def test_an_unattainable_fpr_comes_close_to_the_best(count: int, fpr: float) -> None:
    bits_per_key = leveldb.bits_per_key_for_fpr(count, fpr)
    best = min(leveldb.typical_fpr(count, bits) for bits in range(1, 101)) if count else 0
    assert fpr < best or count == 0
    assert (
        leveldb.predicted_fpr(count, leveldb.plan(count, SizingParameter("fpr", fpr))) <= 1.1 * best
    )
    assert bits_per_key == 1 if count == 0 else bits_per_key < 101


# ---- rates ----


def mean_and_error(values: list[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


@once
@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (1, {"bits_per_key": 10}),
        (3, {"bits_per_key": 20}),
        (10, {"bits_per_key": 10}),
        (20, {"bits_per_key": 16}),
        (97, {"bits_per_key": 5}),
        (97, {"bits_per_key": 10}),
        (19, {"fpr": 0.02}),
    ],
)
def test_few_keys_pass_as_predicted(
    kernel: ModuleType, count: int, sizes: dict[str, Any], rng: random.Random
) -> None:
    """Every filter has a rate of its own, so many are built, and each is asked a little.

    Always for other keys: few of the absent ones make most of the hits, those whose step is small.
    """
    rates = []
    filters = max(120, 6000 // count)
    geometry = None
    for _ in range(filters):
        keys = [rng.randbytes(17) for _ in range(count)]
        built = kernel.LevelDBBloomFilter.build(keys, **sizes)
        geometry = Geometry(built.num_bits, built.num_probes)
        asked = [rng.randbytes(19) for _ in range(150_000 // filters)]
        rates.append(positives(built, asked) / len(asked))
    mean, error = mean_and_error(rates)
    assert geometry is not None
    predicted = leveldb.predicted_fpr(count, geometry)
    # The table was measured too. Beyond twenty keys it also averages over unlike neighbours.
    error = math.hypot(error, predicted / math.sqrt(4000))
    spread = 0 if count <= 20 else 0.06
    assert mean == pytest.approx(predicted, abs=4 * error + spread * predicted)


@once
@pytest.mark.parametrize(
    ("count", "bits_per_key"), [(300, 10), (2000, 5), (2000, 10), (30_000, 10), (60_000, 8)]
)
def test_a_filter_knows_its_own_rate(
    kernel: ModuleType, count: int, bits_per_key: int, rng: random.Random
) -> None:
    """Within the error of 400 hits and of the measurement; 300,000 bits resonate."""
    built = kernel.LevelDBBloomFilter.build(random_keys(rng, count), bits_per_key=bits_per_key)
    trials = 100_000
    hits = positives(built, random_keys(rng, trials, length=17))
    error = math.sqrt(1 / hits + 1 / 400)
    assert hits / trials == pytest.approx(built.expected_fpr, rel=4 * error)
    assert built.expected_fpr == kernel.LevelDBBloomFilter.from_bytes(built.to_bytes()).expected_fpr
    if (count, bits_per_key) == (30_000, 10):
        assert built.expected_fpr > 1.15 * built.fill**built.num_probes


def test_a_filter_too_good_to_be_measured_has_a_rate(kernel: ModuleType) -> None:
    built = kernel.LevelDBBloomFilter.build(numbers(0, 2000), bits_per_key=60)
    # No hit at all, or one of the samples happened to be one.
    assert 0.9 * 2000 / 2**32 < built.expected_fpr < 1e-4
    assert kernel.LevelDBBloomFilter.from_bytes(bytes(100) + b"\x06").expected_fpr == 0


@pytest.mark.parametrize("rate", [0.05, 0.002, 0.0005])
def test_what_is_sampled_scatters_as_much_as_it_says(rate: float, rng: random.Random) -> None:
    """Rare hits run out of samples before there are enough of them, and tell less."""

    def passes(start: int, asked: int) -> bool:
        return (asked * 0x9E37_79B1 ^ start) & 0xFFFF_FFFF < rate * 2**32

    starts = [rng.getrandbits(32) for _ in range(12)]
    measured = [sampling.hit_rate(partial(passes, start)) for start in starts]
    spread = math.sqrt(sum((each / rate - 1) ** 2 for each in measured) / len(measured))
    assert 0.4 * sampling.error_of(rate) < spread < 1.8 * sampling.error_of(rate)


def test_why_probes_are_not_independent() -> None:
    """The second is never 1 modulo 3; the third takes no more than 196,606 values."""
    np = pytest.importorskip("numpy")
    low32 = np.uint64(2**32 - 1)
    h = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, dtype=np.uint64)
    step = (h >> np.uint64(17) | h << np.uint64(15)) & low32
    values = [(h + np.uint64(probe) * step) & low32 for probe in range(4)]
    assert 1 not in values[1] % np.uint64(3)
    distinct = [len(np.unique(each)) for each in values]
    assert 150_000 < distinct[2] <= 196_606
    assert min(distinct[0], distinct[1], distinct[3]) > 1_000_000


@pytest.mark.parametrize(
    ("bits_per_key", "num_keys", "tolerance"),
    [
        (10, 1, 0), (5, 7, 0), (10, 12, 0), (16, 20, 0), (30, 3, 0),
        (10, 1000, 0.06), (16, 300, 0.12), (7, 5000, 0.06), (10, 1_000_000, 0.08),
    ],
)  # fmt: skip
def test_the_table_is_what_is_measured(
    bits_per_key: int, num_keys: int, tolerance: float, rng: random.Random
) -> None:
    """Within four standard errors, and of a median over neighbours within their spread."""
    np = pytest.importorskip("numpy")
    from benchmarks.leveldb_rates import ENOUGH_HITS, measure

    bits, probes = leveldb.bits_for(num_keys, bits_per_key), leveldb.default_probes(bits_per_key)
    generator = np.random.default_rng(rng.getrandbits(64))
    hits, samples = measure(num_keys, bits, probes, generator, enough=6000, most=1 << 24)
    written = RATES[bits_per_key][NUM_KEYS.index(num_keys)]
    # Hits in one filter are not independent for few keys, hence the third term of the error.
    error = math.sqrt(1 / hits + 1 / ENOUGH_HITS + (0.01**2 if num_keys <= 20 else 0))
    assert hits / samples == pytest.approx(written, rel=tolerance + 4 * error)


def test_the_table_is_as_its_script_writes_it() -> None:
    pytest.importorskip("numpy")
    from benchmarks.leveldb_rates import SEED, TABLE, module

    rows = {bits_per_key: list(row) for bits_per_key, row in RATES.items()}
    assert module(rows, SEED) == TABLE.read_text()


def test_the_table_covers_what_can_be_asked_for() -> None:
    assert (min(RATES), max(RATES)) == (1, leveldb.MAX_BITS_PER_KEY)
    assert tuple(sorted(RATES)) == tuple(RATES)
    assert tuple(sorted(set(NUM_KEYS))) == NUM_KEYS
    for bits_per_key, row in RATES.items():
        assert len(row) == len(NUM_KEYS)
        assert all(0 < rate < 1 for rate in row), bits_per_key
        assert all(rate >= 0.995 * n / 2**32 for rate, n in zip(row, NUM_KEYS, strict=True))


@pytest.mark.parametrize("count", [1, 20, 22, 137, 1234, 99_999, 10**7, 10**8, 10**10])
def test_predictions_between_and_beyond_the_tables_cells(count: int) -> None:
    for bits_per_key in (1, 10, 33, 50, 99, 100):
        geometry = leveldb.plan(count, SizingParameter("bits_per_key", bits_per_key))
        assert 0 < leveldb.predicted_fpr(count, geometry) <= 1
        column = min(range(len(NUM_KEYS)), key=lambda i: abs(NUM_KEYS[i] - count))
        if bits_per_key in RATES and NUM_KEYS[column] == count:
            # Not equal where 64 bits are the least and two rows measure the same geometry.
            written = RATES[bits_per_key][column]
            assert leveldb.predicted_fpr(count, geometry) == pytest.approx(written, rel=0.02)


@pytest.mark.parametrize("bits_per_key", [5, 10, 16])
@pytest.mark.parametrize("count", [1000, 10_000, 100_000, 1_000_000, 10_000_000])
def test_the_model_comes_near_the_table(bits_per_key: int, count: int) -> None:
    geometry = leveldb.plan(count, SizingParameter("bits_per_key", bits_per_key))
    modelled = leveldb.modelled_fpr(count, geometry)
    assert modelled == pytest.approx(leveldb.predicted_fpr(count, geometry), rel=0.25)


@pytest.mark.parametrize("num_probes", [1, 2, 3, 9])
def test_other_probe_counts_are_modelled(
    kernel: ModuleType, num_probes: int, rng: random.Random
) -> None:
    keys = random_keys(rng, 4000)
    built = kernel.LevelDBBloomFilter.build(keys, num_probes=num_probes)
    predicted = leveldb.predicted_fpr(4000, Geometry(built.num_bits, num_probes))
    trials = 60_000
    hits = positives(built, random_keys(rng, trials, length=17))
    assert hits / trials == pytest.approx(predicted, rel=0.1 + 4 / math.sqrt(hits))


@pytest.mark.parametrize("bits_per_key", [4, 10, 20])
@pytest.mark.parametrize("count", [20, 500, 5000, 60_016])
def test_the_fill_suggests_the_count(
    kernel: ModuleType, count: int, bits_per_key: int, rng: random.Random
) -> None:
    built = kernel.LevelDBBloomFilter.build(random_keys(rng, count), bits_per_key=bits_per_key)
    geometry = Geometry(built.num_bits, built.num_probes)
    estimate = leveldb.count_from_fill(built.fill, geometry)
    assert estimate == pytest.approx(count, rel=0.03 + 1 / math.sqrt(count))
