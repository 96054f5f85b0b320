"""Sizing: bits per key and rates both ways, counts from the fill, and over-filling."""

from __future__ import annotations

import math
import random
from types import ModuleType
from typing import Any

import pytest

from filters import occupancy, sizing
from filters.families import FAMILIES
from tests.effort import once
from tests.filters.cases import Case, every_family, over_filling, random_keys


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [500, 20_000, None])
@pytest.mark.parametrize("wanted", [0.1, 0.02, 0.004])
def test_a_rate_asked_for_is_met(family: str, n: int | None, wanted: float) -> None:
    size = {FAMILIES[family].rate_parameter: wanted}
    rate = sizing.fpr(family, n=n, **size)
    assert 0 < rate <= wanted
    assert sizing.bits_per_key(family, n=n, **size) > sizing.lower_bound(rate)


@pytest.mark.parametrize(
    "family", ["classic", "blocked", "cuckoo", "rocksdb", "leveldb", "bumped-ribbon"]
)
def test_more_bits_per_key_never_raise_the_rate(family: str) -> None:
    sizes = [7, 8, 10, 12, 14, 16]
    rates = [sizing.fpr(family, n=10_000, bits_per_key=size) for size in sizes]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0] / 5


@pytest.mark.parametrize(
    ("family", "size", "rate", "bits"),
    [
        ("classic", {"bits_per_key": 10}, 0.00819, 10),
        ("classic", {"fpr": 0.01}, 0.01, 9.59),
        ("blocked", {"bits_per_key": 10}, 0.00966, 10),
        ("counting", {"counters_per_key": 10}, 0.00819, 40),
        ("cuckoo", {"fingerprint_bits": 12}, 0.00185, 12.63),
        ("rocksdb", {"bits_per_key": 10}, 0.00966, 10),
        ("binary-fuse", {"fingerprint_bits": 8}, 0.00391, 9.01),
        ("binary-fuse", {"fingerprint_bits": 16}, 1.53e-5, 18.02),
        ("scalable", {"fpr": 0.01}, 0.0015, 13.54),
        ("scalable", {"fpr": 0.01, "capacity": 1024}, 0.008, 33.15),
        ("xor", {"fingerprint_bits": 8}, 0.00391, 9.84),
        ("xor", {"fingerprint_bits": 16}, 1.53e-5, 19.69),
        ("cassandra", {"fp_chance": 0.01}, 0.00943, 10),
        ("cassandra", {"fp_chance": 0.1}, 0.0918, 5),
        ("cassandra", {"fp_chance": 0.5}, 0.748, 1),
        ("bumped-ribbon", {"fpr": 0.01}, 0.01, 6.75),
        ("bumped-ribbon", {"bits_per_key": 10.5}, 0.000758, 10.5),
    ],
    ids=str,
)
def test_textbook_figures(family: str, size: dict[str, float], rate: float, bits: float) -> None:
    assert sizing.fpr(family, **size) == pytest.approx(rate, rel=0.01)
    assert sizing.bits_per_key(family, **size) == pytest.approx(bits, rel=0.01)


@once
@every_family
@pytest.mark.parametrize("n", [1, 77, 5000])
def test_the_predicted_size_is_the_built_one(
    kernel: ModuleType, case: Case, n: int, rng: random.Random
) -> None:
    built = case.build(kernel, random_keys(rng, n))
    prefix = 16 if case.record.answers_ranges and n == 1 else 0  # a lone key is all prefix
    payload = (built.size_in_bytes - prefix - FAMILIES[case.family].overhead) * 8 / n
    # A small cuckoo table may have to grow by a bucket; Ribbon's last segment is a dice, and how
    # many keys a ribbon bumps is chance, and so is how many codes a range filter has.
    exact = 0.06 if case.family == "cuckoo" and n < 1000 else 1e-9
    exact = 128 / n / payload if case.family == "ribbon" else exact
    exact = 0.03 if case.family == "bumped-ribbon" and n > 1000 else exact
    exact = 0.002 if case.record.answers_ranges and n > 1000 else exact
    assert sizing.bits_per_key(case.family, n=n) == pytest.approx(payload, rel=exact)
    stored = (built.size_in_bytes - prefix) * 8 / n
    assert sizing.stored_bits_per_key(case.family, n=n) == pytest.approx(stored, rel=exact)


@once
@every_family
@pytest.mark.parametrize("n", [100, 3000, 30_000])
def test_the_fill_tells_how_many_keys_there_are(
    kernel: ModuleType, case: Case, n: int, rng: random.Random
) -> None:
    built = case.build(kernel, random_keys(rng, n))
    again = case.cls(kernel).from_bytes(built.to_bytes())
    assert sizing.estimate_num_keys(again) == pytest.approx(n, rel=0.1 if n < 1000 else 0.03)


@every_family
def test_the_fill_of_an_empty_filter_tells_of_no_keys(kernel: ModuleType, case: Case) -> None:
    assert sizing.estimate_num_keys(case.build(kernel, [])) == 0


@over_filling
def test_a_full_filter_still_has_an_estimate(kernel: ModuleType) -> None:
    for name in ("ClassicBloomFilter", "BlockedBloomFilter", "CountingBloomFilter"):
        built = getattr(kernel, name).with_capacity(10)
        built.add_many(b"%d" % i for i in range(5000))
        assert built.fill > 0.99
        assert 50 < sizing.estimate_num_keys(built) < math.inf


def test_over_filling_raises_the_rate_as_far_as_theory_says() -> None:
    """At ten bits per key and seven probes: 0.8 %, and 13.8 % at twice the keys."""
    rates = [sizing.fpr("classic", bits_per_key=10, over_filled=x) for x in (1, 1.2, 1.5, 2, 3)]
    assert rates == pytest.approx([0.0082, 0.0190, 0.0489, 0.1379, 0.4007], rel=0.01)
    # Six probes, which over-filling hurts less; the lines' unevenness hardly matters by then.
    assert sizing.fpr("blocked", bits_per_key=10, over_filled=2) == pytest.approx(0.12, rel=0.02)


@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if not family.can_be_over_filled]
)
def test_what_cannot_be_over_filled_says_so(family: str) -> None:
    with pytest.raises(ValueError, match=f"{family} filter cannot be over-filled.*classic"):
        sizing.fpr(family, over_filled=2)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="no family 'clasic': choose blocked, classic"):
        sizing.fpr("clasic", bits_per_key=10)
    with pytest.raises(ValueError, match="one sizing parameter"):
        sizing.fpr("classic", bits_per_key=10, fpr=0.1)
    with pytest.raises(ValueError, match="n is out of range"):
        sizing.bits_per_key("classic", n=-1)
    with pytest.raises(ValueError, match="fpr is out of range"):
        sizing.lower_bound(0)


def test_lower_bound() -> None:
    assert sizing.lower_bound(1 / 256) == 8
    assert sizing.lower_bound(1) == 0


class TestOccupancy:
    """The balls-and-bins formulas against counting."""

    @pytest.mark.parametrize(("balls", "bins", "power"), [(70, 100, 7), (40, 64, 5), (3, 64, 2)])
    def test_power_of_fill(self, balls: int, bins: int, power: int, rng: random.Random) -> None:
        total = 0.0
        for _ in range(20_000):
            total += (len({rng.randrange(bins) for _ in range(balls)}) / bins) ** power
        measured = total / 20_000
        assert occupancy.power_of_fill(balls, bins, power) == pytest.approx(measured, rel=0.03)

    def test_powers_of_nothing_and_of_everything(self) -> None:
        assert occupancy.power_of_fill(0, 100, 3) == 0
        assert occupancy.power_of_fill(10**6, 100, 3) == pytest.approx(1)
        assert occupancy.power_of_fill(10, 100, 0) == 1

    @pytest.mark.parametrize("keys", [1.0, 100.0, 5000.0])
    def test_counting_is_the_inverse_of_filling(self, keys: float) -> None:
        fill = 1 - occupancy.empty_share(keys * 7, 50_000)
        assert occupancy.keys_from_fill(fill, 50_000, 7) == pytest.approx(keys)

    @pytest.mark.parametrize("lines", [1, 2, 500])
    def test_lines_are_a_mixture(self, lines: int, rng: random.Random) -> None:
        keys, probes, total = 51 * lines, 6, 0.0
        rounds = 2000 // lines + 20
        for _ in range(rounds):
            bits: list[set[int]] = [set() for _ in range(lines)]
            for _ in range(keys):
                rng.choice(bits).update(rng.randrange(512) for _ in range(probes))
            total += sum((len(line) / 512) ** probes for line in bits) / lines
        expected: Any = pytest.approx(total / rounds, rel=0.04)
        assert occupancy.line_fpr(keys, lines, probes) == expected
