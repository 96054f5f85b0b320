"""Cassandra's filter: the bytes of real files, their versions, its real rates, and the page."""

from __future__ import annotations

import math
import pickle
import random
import re
import struct
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters import CorruptFilterError, PackedKeys, cassandra, kernels, sampling, sizing
from filters.cassandra import Geometry
from filters.compat_hashing import cassandra_hash
from filters.sizing_parameters import SizingParameter
from policies import BuildContext, VerifiedBuilder
from tests.effort import by_effort, examples
from tests.filters.cases import positives, random_keys
from tests.filters.independent_cassandra import Reader, murmur
from tests.filters.independent_reader import RefusedError
from tests.filters.test_family_formats import table_rows

PAGE = Path(__file__).parents[2] / "docs" / "cassandra-format.md"
VERSIONS = ("jb", "ka", "la", "lb", "ma", "mc", "me", "na", "nb", "nc", "oa", "da")
OLD_ORDER, OLD_LAYOUT = VERSIONS[:4], VERSIONS[:7]


def numbers(start: int, stop: int) -> list[bytes]:
    """Partition keys of type int."""
    return [struct.pack(">i", number) for number in range(start, stop)]


TEN = numbers(1, 11)
TEXTS = [b"%d" % number for number in range(5)]

# Version, keys and bytes of files that Cassandra wrote; the last of each line is ours of no keys.
FILES = [
    ("ka", TEN, "0000000500000002 23664c448214b822 e543142008053950"),
    ("ma", TEN, "0000000500000002 84e228e0800e2836 eb22d24ac8822a00"),
    ("na", TEN, "0000000500000002 36280e80e028e284 002a82c84ad222eb"),
    ("me", TEXTS, "0000000500000002 0004010006214284 08c000042002a600"),
    *[
        (version, TEXTS, "0000000500000002 8442210600010400 00a602200400c008")
        for version in ("na", "nb", "oa", "da")
    ],
    ("na", [], "0000000500000001 0000000000000000"),
    ("me", [], "0000000500000001 0000000000000000"),
]
every_file = pytest.mark.parametrize(("version", "keys", "data"), FILES)


def build(kernel: ModuleType, keys: Any, **sizes: Any) -> Any:
    return kernel.CassandraBloomFilter.build(keys, **sizes)


def read(kernel: ModuleType, data: bytes, version: str = "na") -> Any:
    return kernel.CassandraBloomFilter.from_bytes(data, sstable_version=version)


# ---- real files ----


@every_file
def test_real_files_are_read(
    kernel: ModuleType, version: str, keys: list[bytes], data: str
) -> None:
    raw = bytes.fromhex(data)
    found = read(kernel, raw, version)
    assert all(found.might_contain_many(keys))
    assert all(found.might_contain(key) for key in keys)
    assert positives(found, numbers(10**6, 10**6 + 1000)) < 30
    assert (found.num_probes, found.num_keys) == (5, None)
    assert found.num_bits == 8 * (len(raw) - 8)
    assert found.has_old_hash_order == (version == "ka")
    assert found.to_bytes(sstable_version=version) == raw
    assert found.size_in_bytes == len(raw)


@pytest.mark.parametrize(("version", "keys", "data"), FILES[1:])
def test_real_files_are_written(
    kernel: ModuleType, version: str, keys: list[bytes], data: str
) -> None:
    """From the keys and the estimate; all but the first, whose order nobody writes any more."""
    for estimate in (None, len(keys)):
        built = build(kernel, keys, expected_keys=estimate)
        assert built.to_bytes(sstable_version=version) == bytes.fromhex(data)
    assert build(kernel, keys).num_keys == len(keys)


def test_the_old_order_is_that_of_released_versions_below_ma(kernel: ModuleType) -> None:
    """A sample of 3.0's early days is called ``la`` and has the new order: it is read as ``ma``."""
    sample = bytes.fromhex(FILES[1][2])
    assert all(read(kernel, sample, "ma").might_contain_many(TEN))
    assert not all(read(kernel, sample, "la").might_contain_many(TEN))
    assert not all(read(kernel, bytes.fromhex(FILES[0][2]), "ma").might_contain_many(TEN))


def test_the_two_orders_set_different_bits(kernel: ModuleType) -> None:
    old, new = (read(kernel, bytes.fromhex(FILES[i][2]), FILES[i][0]) for i in (0, 1))
    assert old != new
    assert new != old
    assert old == read(kernel, bytes.fromhex(FILES[0][2]), "jb")
    assert new == read(kernel, bytes.fromhex(FILES[2][2]), "na") == build(kernel, TEN)
    assert old != FILES[0][2]
    for each in (old, new):
        again = pickle.loads(pickle.dumps(each))
        assert again == each
        assert again.has_old_hash_order == each.has_old_hash_order
        assert all(again.might_contain_many(TEN))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_says_order_and_layout(version: str) -> None:
    layout = cassandra.layout_of(version)
    assert layout.old_order == (version in OLD_ORDER)
    assert layout.reversed_words == (version in OLD_LAYOUT)


@pytest.mark.parametrize("count", [0, 1, 10, 700])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_filter_survives_every_version_of_its_order(
    kernel: ModuleType, version: str, count: int, rng: random.Random
) -> None:
    keys, absent = random_keys(rng, count), random_keys(rng, 500, length=9)
    built = build(kernel, keys)
    if version in OLD_ORDER:
        with pytest.raises(ValueError, match=f"new hash order.*not {version!r}"):
            built.to_bytes(sstable_version=version)
        built = read(kernel, built.to_bytes(sstable_version="me"), version)
        with pytest.raises(ValueError, match="old hash order.*'ja' to 'lz', not 'na'"):
            built.to_bytes()
    again = read(kernel, built.to_bytes(sstable_version=version), version)
    assert again == built
    assert again.to_bytes(sstable_version=version) == built.to_bytes(sstable_version=version)
    assert again.might_contain_many(keys + absent) == built.might_contain_many(keys + absent)
    assert (again.fill, again.num_bits, again.num_probes) == (
        built.fill,
        built.num_bits,
        built.num_probes,
    )


@pytest.mark.parametrize("wrong", ["", "n", "nan", "NA", "zz", "ha", "ä!", "n1", "\0a", "aa"])
def test_unknown_versions_are_refused_with_those_that_are_known(
    kernel: ModuleType, wrong: str
) -> None:
    says = r"allowed are two lowercase letters.*j, k or l.*m \(3\), n \(4\), o or d.*'na'"
    with pytest.raises(ValueError, match=says):
        read(kernel, bytes.fromhex(FILES[2][2]), wrong)
    with pytest.raises(ValueError, match=says):
        build(kernel, TEN).to_bytes(sstable_version=wrong)


# ---- the answers of an independent reader ----


@examples(60)
@given(
    keys=st.lists(st.binary(max_size=40), max_size=40),
    fp_chance=st.floats(6.72e-05, 0.999),
    version=st.sampled_from(VERSIONS),
)
def test_an_independent_reader_agrees(
    kernel: ModuleType, keys: list[bytes], fp_chance: float, version: str
) -> None:
    built = build(kernel, keys, fp_chance=fp_chance)
    assert all(built.might_contain_many(keys))
    written = built.to_bytes(sstable_version="me" if version in OLD_LAYOUT else "na")
    found, reader = read(kernel, written, version), Reader(written, version)
    asked = keys + [b"absent%d" % number for number in range(30)]
    assert found.might_contain_many(asked) == [reader.answer(key) for key in asked]


@examples(100)
@given(key=st.binary(max_size=70))
def test_an_independent_hash_agrees(key: bytes) -> None:
    h1, h2 = murmur(key)
    assert cassandra_hash(key) == h1 << 64 | h2


EXTREMES = [0, 1, 63, 64, 127, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 64, 2**64 - 1]


@pytest.mark.parametrize("version", ["la", "me", "na"])
@pytest.mark.parametrize("words", [1, 2, 3, 7, 64, 1000])
def test_numbers_at_the_edges_find_their_bit(kernel: ModuleType, version: str, words: int) -> None:
    """Among them the one whose absolute value Java cannot say, and steps that wrap at once."""
    data = struct.pack(">ii", 3, words) + random.Random(words).randbytes(8 * words)
    found = read(kernel, data, version)
    for h1 in EXTREMES:
        for h2 in EXTREMES:
            base, step = (h1, h2) if version == "la" else (h2, h1)
            expected = True
            for index in range(3):
                signed = (base + index * step + 2**63) % 2**64 - 2**63
                # As Java divides: towards zero, the remainder with the sign of what is divided.
                quotient = abs(signed) // (64 * words) * (1 if signed >= 0 else -1)
                place = abs(signed - quotient * 64 * words)
                byte = place // 8 ^ (7 if version in OLD_LAYOUT else 0)
                expected = expected and bool(data[8 + byte] >> place % 8 & 1)
            digests = kernel.CassandraBloomFilter.digests()
            digests.add_digest(h1 << 64 | h2)
            assert found.count_missing(digests) == (not expected), (h1, h2)


# ---- sizes ----


@pytest.mark.parametrize(
    ("fp_chance", "num_probes", "buckets"),
    [
        (0.9, 2, 1), (0.393, 2, 1), (0.392, 1, 3), (0.25, 2, 3), (0.2, 2, 4), (0.15, 3, 4),
        (0.1, 3, 5), (0.05, 3, 7), (0.02, 4, 9), (0.01, 5, 10), (0.005, 5, 12), (0.001, 7, 15),
        (0.0005, 10, 16), (0.0001, 10, 20), (7e-5, 13, 20), (6.71e-5, 14, 20),
    ],
)  # fmt: skip
def test_probes_and_buckets_are_cassandras(
    kernel: ModuleType, fp_chance: float, num_probes: int, buckets: int, rng: random.Random
) -> None:
    assert cassandra.specification(fp_chance) == (num_probes, buckets)
    if fp_chance == 6.71e-5:  # which the table grants, and no schema may ask for
        return
    for count in (0, 1, 44, 500):
        built = build(kernel, random_keys(rng, count), fp_chance=fp_chance)
        assert built.num_probes == num_probes
        assert built.num_bits == 64 * math.ceil((count * buckets + 20) / 64)


def test_the_best_probes_of_each_row() -> None:
    best = (1, 1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14)
    assert best == cassandra.BEST_PROBES
    assert max(best) == cassandra.MAX_PROBES


@pytest.mark.parametrize(("buckets", "edge"), [(10, 44), (10, 108), (5, 88)])
def test_bits_are_whole_words_and_all_of_them_are_used(
    kernel: ModuleType, buckets: int, edge: int, rng: random.Random
) -> None:
    size = {10: 0.01, 5: 0.1}[buckets]
    keys = random_keys(rng, edge + 2)
    sizes = [build(kernel, keys[:count], fp_chance=size).num_bits for count in range(edge + 2)]
    assert sizes == [-(-(count * buckets + 20) // 64) * 64 for count in range(edge + 2)]
    used = 0
    for _ in range(40):
        data = build(kernel, random_keys(rng, edge), fp_chance=size).to_bytes()
        used |= int.from_bytes(data[-8:], "little")
    assert used == 2**64 - 1


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ({"fp_chance": 6.71e-05}, "demands more than that, and at most 1"),
        ({"fp_chance": 6.7e-05}, "allowed are 6.71e-05 to 1"),
        ({"fp_chance": 1.0001}, "allowed are 6.71e-05 to 1"),
        ({"expected_keys": -1}, "expected_keys of a cassandra filter is out of range: -1"),
    ],
)
def test_limits_are_cassandras(kernel: ModuleType, size: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        build(kernel, TEN, **size)
    assert build(kernel, TEN, fp_chance=math.nextafter(6.71e-05, 1)).num_probes == 14


def test_more_words_than_cassandra_counts_are_refused(kernel: ModuleType) -> None:
    most = (64 * cassandra.MAX_WORDS - 20) // 10
    assert cassandra.plan(most, SizingParameter("fp_chance", 0.01)).bits == 64 * cassandra.MAX_WORDS
    for estimate in (most + 7, 1 << 40):
        with pytest.raises(ValueError, match="split the keys, or take a higher fp_chance"):
            build(kernel, TEN, expected_keys=estimate)


def test_an_estimate_stands_in_the_place_of_the_number(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys = random_keys(rng, 1000)
    exact = build(kernel, keys)
    for estimate in (0, 1, 400, 1000, 5000):
        built = build(kernel, keys, expected_keys=estimate)
        assert built.num_bits == build(kernel, [], expected_keys=estimate).num_bits
        assert all(built.might_contain_many(keys))
        assert built.num_keys == 1000
        assert (built == exact) == (estimate == 1000)
    crowded = build(kernel, keys, expected_keys=400)
    trials = random_keys(rng, 20_000, length=17)
    assert positives(crowded, trials) / 20_000 == pytest.approx(crowded.expected_fpr, rel=0.06)
    assert sizing.estimate_num_keys(crowded) == pytest.approx(1000, rel=0.05)


def test_a_key_that_follows_itself_is_not_counted(kernel: ModuleType) -> None:
    rows = [key for key in TEN for _ in range(20)]
    built = build(kernel, rows)
    assert built.num_keys == 10
    assert built == build(kernel, TEN)
    apart = build(kernel, TEN * 20)
    assert apart.num_keys == 200
    assert apart.num_bits > built.num_bits
    # Both halves of a digest count.
    digests = kernel.CassandraBloomFilter.digests()
    for digest in (1 << 64 | 2, 1 << 64 | 3, 2 << 64 | 3, 2 << 64 | 3):
        digests.add_digest(digest)
    assert build(kernel, digests).num_keys == 3


# ---- every key is present ----


def test_a_chance_of_one_makes_every_key_present(kernel: ModuleType) -> None:
    for keys in ([], TEN):
        built = build(kernel, keys, fp_chance=1.0)
        assert built.to_bytes() == built.to_bytes(sstable_version="ka") == b""
        assert (built.num_keys, built.num_bits, built.num_probes) == (len(keys), 0, 0)
        for each in (built, *(read(kernel, b"", version) for version in VERSIONS)):
            assert each.might_contain(b"anything")
            assert each.might_contain_many([*TEN, b""]) == [True] * 11
            assert (each.fill, each.expected_fpr, each.size_in_bytes) == (1, 1, 0)
            assert each == built
            assert pickle.loads(pickle.dumps(each)) == built
            assert sizing.estimate_num_keys(each) == 0
    assert sizing.fpr("cassandra", fp_chance=1) == 1
    assert sizing.bits_per_key("cassandra", fp_chance=1) == 0


def test_a_policy_declines_where_every_key_is_to_be_present() -> None:
    policy = policies.create("cassandra", fp_chance=1)
    assert policy.create_filter(TEN) is None
    builder = VerifiedBuilder(policy, BuildContext())
    builder.add_many(TEN)
    result = builder.finish()
    assert (result.state, result.filter) == ("declined", None)
    assert policy.open(b"").might_contain(b"anything")


# ---- damage ----


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("00", "cut short: 1 bytes, its header alone takes 8"),
        ("00000005000000", "cut short: 7 bytes"),
        (
            "0000000000000001 0000000000000000",
            "claims 0 probes .bytes 0 to 3.; allowed are 1 to 14",
        ),
        ("0000000f00000001 0000000000000000", "claims 15 probes"),
        ("8000000500000001 0000000000000000", "claims -2147483643 probes"),
        ("ffffffff00000001 0000000000000000", "claims -1 probes"),
        ("0500000001000000 0000000000000000", "claims 83886080 probes"),
        ("0000000500000000", "claims 0 words .bytes 4 to 7.; allowed are 1 to 2147483647"),
        ("00000005ffffffff", "claims -1 words"),
        ("0000000580000000", "claims -2147483648 words"),
        ("000000057fffffff 0000000000000000", "takes 17179869184 bytes, and has 16"),
        ("0000000500000001", "filter of 1 words .bytes 4 to 7. takes 16 bytes, and has 8"),
        ("0000000500000001 00000000000000", "takes 16 bytes, and has 15"),
        ("0000000500000001 0000000000000000 00", "takes 16 bytes, and has 17"),
        ("0000000500000002 0000000000000000", "takes 24 bytes, and has 16"),
    ],
)
def test_what_can_be_told_to_be_damaged_is_refused(
    kernel: ModuleType, data: str, says: str
) -> None:
    for version in ("ka", "me", "na"):
        with pytest.raises(CorruptFilterError, match=says):
            read(kernel, bytes.fromhex(data), version)
    with pytest.raises(RefusedError):
        Reader(bytes.fromhex(data), "na")


def test_every_truncation_is_noticed_but_that_to_nothing(kernel: ModuleType) -> None:
    data = build(kernel, TEN).to_bytes()
    for length in range(1, len(data)):
        with pytest.raises(CorruptFilterError):
            read(kernel, data[:length])
    assert read(kernel, b"").might_contain(b"absent")


def test_a_lost_bit_is_noticed_where_there_is_a_checksum(kernel: ModuleType) -> None:
    """In the bare bytes only the header's are; in the block of a table all of them."""
    policy = policies.create("cassandra")
    data = policy.create_filter(TEN)
    assert data is not None
    noticed = lost = 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            found = read(kernel, bytes(flipped))
        except CorruptFilterError:
            noticed += 1
            continue
        lost += not all(found.might_contain_many(TEN))
    assert noticed >= 60  # of 64; what is left are other numbers of probes
    assert lost > 30
    block = policies.encode_block(policy, data, num_keys=10)
    start = block.index(data)
    for place in range(start, start + len(data)):
        damaged = block[:place] + bytes([block[place] ^ 1]) + block[place + 1 :]
        with pytest.raises(policies.CorruptBlockError):
            policies.open_block(damaged)


@examples(80)
@given(
    probes=st.integers(-2, 16),
    words=st.integers(-2, 6),
    body=st.binary(max_size=50),
    fit=st.booleans(),
)
def test_any_bytes_are_refused_by_both_or_read_alike(
    kernel: ModuleType, probes: int, words: int, body: bytes, fit: bool
) -> None:
    if fit:
        body = (body or b"\0") * (8 * max(words, 0))
        body = body[: 8 * max(words, 0)]
    data = struct.pack(">ii", probes, words) + body
    for version in ("la", "me", "na"):
        try:
            reader = Reader(data, version)
        except RefusedError:
            with pytest.raises(CorruptFilterError):
                read(kernel, data, version)
            continue
        found = read(kernel, data, version)
        assert found.might_contain_many(TEN + TEXTS) == [reader.answer(key) for key in TEN + TEXTS]
        assert 0 <= found.fill <= 1
        if "native" in kernel.__name__:  # for the readable one measures slowly
            assert 0 <= found.expected_fpr <= 1
        assert "unknown keys" in repr(found)


# ---- rates ----

needs_speed = pytest.mark.skipif(
    "native" not in kernels.available(), reason="it takes many absent keys"
)


def packed(keys: list[bytes]) -> PackedKeys:
    return PackedKeys(b"".join(keys), width=len(keys[0]))


@pytest.mark.parametrize(
    ("fp_chance", "trials"), [(0.5, 20_000), (0.1, 40_000), (0.01, 100_000), (0.001, 300_000)]
)
@pytest.mark.parametrize("sequential", [False, True])
@needs_speed
def test_many_keys_pass_as_expected(
    fp_chance: float, trials: int, sequential: bool, rng: random.Random
) -> None:
    """Numbers in sequence like any other keys."""
    native, count = kernels.load("native"), 30_000
    if sequential:
        keys, absent = numbers(0, count), numbers(count, count + trials)
    else:
        keys, absent = random_keys(rng, count), random_keys(rng, trials, length=17)
    built = build(native, keys, fp_chance=fp_chance)
    measured = sum(built.might_contain_many(packed(absent))) / trials
    error = max(4 * math.sqrt(measured * (1 - measured) / trials), 0.02 * measured)
    assert measured == pytest.approx(built.expected_fpr, abs=error)
    predicted = sizing.fpr("cassandra", n=count, fp_chance=fp_chance)
    assert predicted == pytest.approx(built.expected_fpr, rel=0.04)


@pytest.mark.parametrize("fp_chance", [0.1, 0.01, 0.001, 0.0001])
@pytest.mark.parametrize("count", [3, 10, 15, 20, 30, 100, 300])
@needs_speed
def test_few_keys_pass_as_expected_over_many_filters(
    fp_chance: float, count: int, rng: random.Random
) -> None:
    """Even steps raise the rate by what the model says, on either side of where it is measured."""
    native = kernels.load("native")
    filters, trials = by_effort(40, 120, 500), 4000
    rates, expected = [], []
    for _ in range(filters):
        keys = PackedKeys(rng.randbytes(16 * count), width=16)
        built = build(native, keys, fp_chance=fp_chance)
        asked = PackedKeys(rng.randbytes(17 * trials), width=17)
        rates.append(sum(built.might_contain_many(asked)) / trials)
        expected.append(built.expected_fpr)
    mean, hoped = sum(rates) / filters, sum(expected) / filters
    spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates)) / filters
    # A sampled rate errs by chance, a modelled one by a share of what the steps add.
    assert mean == pytest.approx(hoped, abs=4 * spread + 0.08 * hoped)
    predicted = sizing.fpr("cassandra", n=count, fp_chance=fp_chance)
    assert mean == pytest.approx(predicted, abs=4 * spread + 0.35 * predicted)
    if fp_chance == 0.01 and count == 10:
        independent = cassandra.plan(count, SizingParameter("fp_chance", fp_chance))
        alone = (1 - (1 - 1 / independent.bits) ** (5 * count)) ** 5
        assert mean > 1.3 * alone


def test_small_filters_are_measured_and_large_ones_are_not(
    kernel: ModuleType, rng: random.Random
) -> None:
    for count, sampled in ((10, True), (1000, False)):
        built = build(kernel, random_keys(rng, count))
        geometry = Geometry(built.num_bits, built.num_probes)
        assert cassandra.should_be_sampled(built.fill, geometry) == sampled
        modelled = cassandra.modelled_fpr(built.fill, geometry)
        assert (built.expected_fpr == modelled) == (not sampled)
        # A filter of few keys has a rate of its own.
        assert built.expected_fpr == pytest.approx(modelled, rel=2 if sampled else 0)
        for version in ("me", "na"):
            again = read(kernel, built.to_bytes(sstable_version=version), version)
            assert again.expected_fpr == built.expected_fpr
    assert build(kernel, []).expected_fpr == 0


def test_both_kernels_measure_alike(rng: random.Random) -> None:
    keys = random_keys(rng, 15)
    found = {name: build(kernels.load(name), keys).expected_fpr for name in kernels.available()}
    assert len(set(found.values())) == 1
    built = build(kernels.load("python"), keys)
    probe = built._might_contain_digest
    assert sampling.hit_rate(probe, sampling.wide_sample_hash) == built.expected_fpr


def test_two_probes_are_as_good_as_independent_ones() -> None:
    assert cassandra.excess_fpr(0.5, Geometry(64, 2)) == 0
    assert cassandra.excess_fpr(0.5, Geometry(64, 3)) > 0


# ---- the page ----


@cache
def sections() -> dict[str, str]:
    """The page, cut at its headings."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_programs_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", sections()["Looking into a file"], re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["7 may be there", "1000 is not there"]
    assert printed[2].startswith("5 probes, 128 bits, 34% of them set")


def test_the_versions_of_the_page_are_those_of_the_code() -> None:
    rows = table_rows(sections()["Versions"])
    stated = []
    for names, _, layout, order in rows:
        for version in re.findall(r"`(..)`", names):
            found = cassandra.layout_of(version)
            assert found.reversed_words == (layout == "old")
            assert found.old_order == order.startswith("`h1`")
            stated.append(version)
    assert set(VERSIONS) <= set(stated)


def test_the_hashes_of_the_page() -> None:
    rows = table_rows(sections()["From key to bits"])
    assert len(rows) == 6
    for key, h1, h2 in rows:
        data = b"" if key == "nothing" else bytes.fromhex(key.strip("`"))
        assert cassandra_hash(data) == int(h1, 16) << 64 | int(h2, 16)


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    rows = table_rows(sections()["Size"])
    rates, results = rows[:19], rows[19:]
    for buckets, row in enumerate(rates, start=2):
        entries = [entry.strip("*") for entry in row[1:] if entry]
        assert [float(entry) for entry in entries] == list(cassandra.RATES[buckets][1:])
        (best,) = (index for index, entry in enumerate(row[1:], 1) if entry.startswith("**"))
        assert (int(row[0]), best) == (buckets, cassandra.BEST_PROBES[buckets])
    triples = [row[start : start + 3] for row in results for start in (0, 4, 8)]
    assert len(triples) == 15
    for fp_chance, num_probes, buckets in triples:
        assert cassandra.specification(float(fp_chance)) == (int(num_probes), int(buckets))


def test_the_files_of_the_page(kernel: ModuleType) -> None:
    rows = table_rows(sections()["Examples"])
    assert len(rows) == 9
    for (version, data), keys in zip(rows, [TEN] * 3 + [TEXTS] * 5 + [[]], strict=True):
        raw = bytes.fromhex(data.strip("`"))
        found = read(kernel, raw, version.strip("`"))
        assert all(found.might_contain_many(keys))
        if not found.has_old_hash_order:
            assert build(kernel, keys).to_bytes(sstable_version=version.strip("`")) == raw


def test_the_rates_of_the_page_are_what_is_predicted() -> None:
    rows = table_rows(sections()["Rates"])
    assert len(rows) >= 6
    for fp_chance, *cells in rows:
        for cell, count in zip(cells, (10, 100, 1000, 1_000_000), strict=True):
            stated = float(cell.rstrip(" %")) / 100
            predicted = sizing.fpr("cassandra", n=count, fp_chance=float(fp_chance))
            assert stated == pytest.approx(predicted, rel=0.02), (fp_chance, count)
