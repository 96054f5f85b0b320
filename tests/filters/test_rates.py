"""False-positive rates: what is measured is what is expected, from both sides."""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from types import ModuleType

import pytest

from filters import PackedKeys, classic, kernels, sizing
from filters.hashing import digest
from tests.effort import once, volume
from tests.filters.cases import (
    DEFAULTS,
    SALTED,
    SALTED_DIGESTED_DEFAULTS,
    Case,
    every_salted_family,
    over_filling,
    positives,
    random_keys,
)

pytestmark = once


def predicted_fpr(case: Case, count: int | None = None, **more: float) -> float:
    """The rate that theory gives a filter before it is built."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sizing.fpr(case.family, n=count, **case.sizes, **more)


COUNTED = [case for case in SALTED if predicted_fpr(case) > 0.001]
"""Those whose absent keys pass often enough to be counted."""

every_counted_case = pytest.mark.parametrize("case", COUNTED, ids=str)


def tolerance(rate: float, trials: int) -> float:
    """Four standard errors of a measured rate, or two percent of it, whichever is more."""
    return max(4 * math.sqrt(rate * (1 - rate) / trials), 0.02 * rate)


@every_counted_case
def test_many_keys(kernel: ModuleType, case: Case, rng: random.Random) -> None:
    keys = random_keys(rng, 30_000)
    built = case.build(kernel, keys, seed=rng.getrandbits(64), salt=rng.getrandbits(64))
    trials = volume(kernel, 50_000, 200_000, 1_000_000)
    measured = positives(built, random_keys(rng, trials, length=17)) / trials
    assert measured == pytest.approx(built.expected_fpr, abs=tolerance(measured, trials))


SMALL = [
    *(case for case in COUNTED if not case.record.answers_ranges),
    Case("classic", {"bits_per_key": 16}),
    Case("blocked", {"bits_per_key": 12}),
    Case("cuckoo", {"fingerprint_bits": 10}),
]


@pytest.mark.parametrize("case", SMALL, ids=str)
@pytest.mark.parametrize("count", [10, 100, 1000])
def test_few_keys_over_many_salts(
    kernel: ModuleType, case: Case, count: int, rng: random.Random
) -> None:
    """A rate of few keys varies from salt to salt, so that the mean of many filters is compared."""
    rounds = volume(kernel, 50, 200, 1000)
    keys = random_keys(rng, count)
    digests = [rng.getrandbits(64) for _ in range(2000)]
    rates, expected = [], []
    for _ in range(rounds):
        built = case.build(kernel, keys, seed=1, salt=rng.getrandbits(64))
        sample = rng.sample(digests, 1000)
        rates.append(sum(map(built.might_contain_digest, sample)) / len(sample))
        expected.append(built.expected_fpr)
    mean, spread = sum(rates) / rounds, _deviation(rates) / math.sqrt(rounds)
    wanted = sum(expected) / rounds
    assert mean == pytest.approx(wanted, abs=max(4 * spread, 0.02 * wanted, 2e-5))


@pytest.mark.parametrize("count", [10, 1000])
@pytest.mark.parametrize("bits_per_key", [8, 16])
def test_the_multiply_chain_meets_the_theory_where_double_hashing_does_not(
    kernel: ModuleType, count: int, bits_per_key: int, rng: random.Random
) -> None:
    """Against the prediction from sizes alone, not from the fill."""
    digests = [rng.getrandbits(64) for _ in range(4000)]
    rates = []
    for _ in range(volume(kernel, 75, 300, 1500)):
        built = kernel.ClassicBloomFilter.build(
            random_keys(rng, count), bits_per_key=bits_per_key, seed=rng.getrandbits(64)
        )
        sample = rng.sample(digests, 2000)
        rates.append(sum(map(built.might_contain_digest, sample)) / len(sample))
    geometry = classic.Geometry(built.num_bits, built.num_probes)
    predicted = classic.predicted_fpr(count, geometry)
    spread = _deviation(rates) / math.sqrt(len(rates))
    assert sum(rates) / len(rates) == pytest.approx(
        predicted, abs=max(4 * spread, 0.02 * predicted)
    )


@every_counted_case
def test_predictions_before_building_match_what_is_built(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    built = case.build(kernel, random_keys(rng, 30_000))
    assert predicted_fpr(case, 30_000) == pytest.approx(built.expected_fpr, rel=0.04)


@pytest.mark.parametrize("fpr", [0.3, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("count", [1, 10, 300, 20_000])
@every_salted_family
def test_a_rate_asked_for_is_a_ceiling_at_any_size(
    kernel: ModuleType, case: Case, fpr: float, count: int, rng: random.Random
) -> None:
    rates = []
    for _ in range(5 if count > 1000 else volume(kernel, 25, 100, 500)):
        built = case.build(kernel, random_keys(rng, count), fpr=fpr)
        rates.append(built.expected_fpr)
    mean, spread = sum(rates) / len(rates), _deviation(rates) / math.sqrt(len(rates))
    assert mean <= fpr * 1.002 + 4 * spread


@over_filling
@pytest.mark.parametrize(
    "case", [case for case in DEFAULTS if case.record.can_be_over_filled], ids=str
)
@pytest.mark.parametrize("factor", [1.2, 2, 3])
def test_over_filling_costs_what_is_predicted(
    kernel: ModuleType, case: Case, factor: float, rng: random.Random
) -> None:
    capacity, trials = 10_000, 60_000
    built = case.cls(kernel).with_capacity(capacity)
    built.add_many(random_keys(rng, round(factor * capacity)))
    measured = positives(built, random_keys(rng, trials, length=17)) / trials
    assert built.expected_fpr == pytest.approx(
        predicted_fpr(case, capacity, over_filled=factor), rel=0.05
    )
    assert measured == pytest.approx(built.expected_fpr, abs=tolerance(measured, trials))


@pytest.mark.skipif("native" not in kernels.available(), reason="it takes many absent keys")
def test_short_fingerprints_agree_in_both_buckets_or_in_none(rng: random.Random) -> None:
    """Taking the slots of two buckets for independent would predict one percent too much."""
    kernel = kernels.load("native")
    keys, absent = (PackedKeys(rng.randbytes(16 * n), width=16) for n in (100_000, 1_000_000))
    built = [kernel.CuckooFilter.build(keys, fingerprint_bits=6) for _ in range(3)]
    passed = sum(sum(each.might_contain_many(absent)) for each in built)
    expected = sum(each.expected_fpr for each in built) * len(absent)
    assert passed == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("bits", [16, 24, 32])
def test_cuckoo_fingerprints_are_uniform(kernel: ModuleType, bits: int, rng: random.Random) -> None:
    """Rates too rare to count follow from fingerprints that take every value alike."""
    built = kernel.CuckooFilter.build(random_keys(rng, 40_000), fingerprint_bits=bits)
    packed = int.from_bytes(built.to_bytes()[40:-8], "little")
    slots = [packed >> shift & (1 << bits) - 1 for shift in range(0, 6000 * bits, bits)]
    used = [slot for slot in slots if slot]
    _assert_uniform([slot & 0xFF for slot in used], 256)
    _assert_uniform([slot >> bits - 8 for slot in used], 256)


@pytest.mark.parametrize(("name", "row"), [("BinaryFuseFilter", 16), ("XorFilter", 12)])
def test_peeled_fingerprints_of_16_bits_are_uniform(
    kernel: ModuleType, name: str, row: int, rng: random.Random
) -> None:
    built = getattr(kernel, name).build(random_keys(rng, 30_000), fingerprint_bits=16)
    table = built.to_bytes()[40 + row : -8]
    low, high = table[0::2], table[1::2]
    pairs = [(one, two) for one, two in zip(low, high, strict=True) if one or two]
    _assert_uniform([one for one, _ in pairs], 256)
    _assert_uniform([two for _, two in pairs], 256)


def _assert_uniform(values: list[int], classes: int) -> None:
    expected = len(values) / classes
    counts = Counter(values)
    chi_square = sum((counts[value] - expected) ** 2 / expected for value in range(classes))
    assert abs(chi_square - (classes - 1)) < 5 * math.sqrt(2 * (classes - 1))


def _deviation(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


FLOODS = [
    ("low", 12),
    ("low", 24),
    ("high", 12),
    ("high", 24),
]

OF_A_RATE = [
    Case(case.family, {case.record.rate_parameter: 0.03}) for case in SALTED_DIGESTED_DEFAULTS
]


@pytest.mark.parametrize("case", OF_A_RATE, ids=str)
@pytest.mark.parametrize(("side", "bits"), FLOODS)
def test_digests_that_share_bits_do_not_flood_a_filter(
    kernel: ModuleType, case: Case, side: str, bits: int, rng: random.Random
) -> None:
    """Keys chosen for what their digests have in common fill a salted filter like any others."""
    shared = rng.getrandbits(bits)

    def hostile() -> int:
        rest = rng.getrandbits(64 - bits)
        return rest << bits | shared if side == "low" else shared << 64 - bits | rest

    count, trials = 20_000, volume(kernel, 30_000, 120_000, 600_000)
    members = case.cls(kernel).digests()
    for _ in range(count):
        members.add_digest(hostile())
    built = case.build(kernel, members)
    honest = predicted_fpr(case, count)
    absent = sum(built.might_contain_digest(hostile()) for _ in range(trials)) / trials
    others = sum(built.might_contain_digest(rng.getrandbits(64)) for _ in range(trials)) / trials
    for measured in (absent, others):
        assert measured <= 1.05 * honest + 4 * math.sqrt(honest / trials)


@pytest.mark.parametrize("case", OF_A_RATE, ids=str)
def test_false_positives_of_one_filter_do_not_pass_another(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """Same keys and seed, another salt: what passed one filter is nothing special to the other."""
    keys, seed = random_keys(rng, 5000), rng.getrandbits(64)
    one, two = (case.build(kernel, keys, seed=seed, salt=rng.getrandbits(64)) for _ in range(2))
    absent = random_keys(rng, 150_000, length=17)
    passed = [key for key, yes in zip(absent, one.might_contain_many(absent), strict=True) if yes]
    assert len(passed) > 300
    honest = two.expected_fpr
    replayed = positives(two, passed) / len(passed)
    assert replayed <= 1.05 * honest + 4 * math.sqrt(honest / len(passed))


def test_without_the_second_half_of_the_product_the_flood_would_come(rng: random.Random) -> None:
    """Why mix() folds: a plain product keeps what digests share below, whatever the salt."""
    from filters.hashing import GOLDEN64, MASK64, mix

    salt = rng.getrandbits(64)
    flood = [rng.getrandbits(40) << 24 | 0xABCDEF for _ in range(1000)]
    assert len({(each ^ salt) * GOLDEN64 & MASK64 & 0xFFFFFF for each in flood}) == 1
    assert len({mix(each, salt) & 0xFFFFFF for each in flood}) > 990
    assert digest(b"", 0) != digest(b"", 1)
