"""Sizes by rate: what one look after the other finds is found with a few."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from filters import advice, blocked, classic, occupancy
from filters.rate_search import RateSearch, bits_of_many
from filters.sizing_parameters import SizingParameter, smallest
from tests.effort import by_effort

CASES = by_effort(40, 400, 4000)

# What every search may take: approaching, both sides, and what is left between them.
MOST_LOOKS = 45


def one_by_one(num_keys: int, fpr: float, num_probes: int | None) -> int:
    """The lines of a blocked filter by a bisection that looks at each size it comes to."""

    def is_enough(lines: int) -> bool:
        size = lines * blocked.LINE_BITS / max(1, num_keys)
        geometry = blocked.Geometry(lines, num_probes or blocked.best_probes(size))
        return blocked.predicted_fpr(num_keys, geometry) <= fpr

    return smallest(is_enough, max(1, num_keys // blocked.LINE_BITS), blocked.MAX_LINES)


def one_by_one_of_classic(num_keys: int, fpr: float, num_probes: int | None) -> int:
    def is_enough(size: int) -> bool:
        probes = num_probes or classic.best_probes(8 * size / max(1, num_keys))
        return classic.predicted_fpr(num_keys, classic.Geometry(8 * size, probes)) <= fpr

    return 8 * smallest(is_enough, classic.MIN_BITS // 8, classic.MAX_BITS // 8)


def drawn(rng: random.Random) -> tuple[int, float, int | None]:
    num_keys = rng.choice((rng.randrange(60), int(2 ** rng.uniform(0, 24))))
    return num_keys, 2 ** -rng.uniform(1, 26), rng.choice((None, None, rng.randint(1, 32)))


def test_sizes_are_those_that_looking_at_each_would_find(rng: random.Random) -> None:
    for _ in range(CASES):
        asked = drawn(rng)
        assert blocked.lines_for_fpr(*asked) == one_by_one(*asked), asked
        assert classic.bits_for_fpr(*asked) == one_by_one_of_classic(*asked), asked


# Of 1,000,000 and 17,000 keys at 1 % and 0.1 %, as they have been since there are these families.
@pytest.mark.parametrize(
    ("num_keys", "fpr", "lines", "bits"),
    [
        (1_000_000, 0.01, 19_371, 9_592_960),
        (1_000_000, 0.001, 30_362, 14_377_648),
        (17_000, 0.01, 330, 163_088),
        (17_000, 0.001, 517, 244_424),
    ],
)
def test_sizes_are_what_they_were(num_keys: int, fpr: float, lines: int, bits: int) -> None:
    assert blocked.lines_for_fpr(num_keys, fpr, None) == lines
    assert classic.bits_for_fpr(num_keys, fpr, None) == bits


def test_few_looks_are_taken(rng: random.Random) -> None:
    total = 0
    for _ in range(CASES):
        num_keys, fpr, _ = drawn(rng)
        looked: list[int] = []

        def rate_of(size: int, probes: int, keys: int = num_keys) -> float:
            looked.append(size)  # noqa: B023 - called before the next round
            return classic.predicted_fpr(keys, classic.Geometry(8 * size, probes))

        def probes_of(size: int, keys: int = num_keys) -> int:
            return classic.best_probes(8 * size / max(1, keys))

        search = RateSearch(rate_of, probes_of, fpr, 8, classic.MAX_BITS // 8)
        search.smallest(num_keys * bits_of_many(fpr, None) / 8)
        assert len(looked) <= MOST_LOOKS
        total += len(looked)
    assert total <= 12 * CASES


def test_a_wrong_guess_costs_looks_and_changes_nothing() -> None:
    def rate_of(size: int, probes: int) -> float:
        return classic.predicted_fpr(50_000, classic.Geometry(8 * size, probes))

    for near in (0, 1, 1e3, 1e9, 1e15):
        search = RateSearch(rate_of, lambda size: 7, 0.01, 8, classic.MAX_BITS // 8)
        found = search.smallest(near)
        assert rate_of(found, 7) <= 0.01 < rate_of(found - 1, 7)


def check_wavy(width: int, ceiling: float, near: float) -> None:
    """The search finds what looking at each size finds, where rates rise as probes change."""

    def probes_of(size: int) -> int:
        return 1 + size // width

    def rate_of(size: int, probes: int) -> float:
        return math.exp(-size / 300) * (1.04 if probes % 2 else 1.0)

    found = RateSearch(rate_of, probes_of, ceiling, 1, 10_000).smallest(near)
    assert found == smallest(lambda size: rate_of(size, probes_of(size)) <= ceiling, 1, 10_000)


def test_more_probes_may_have_a_higher_rate(rng: random.Random) -> None:
    """By some percent, as where their number is chosen from a table."""
    for _ in range(CASES):
        halvings = rng.uniform(0.5, 8)
        near = 300 * halvings * rng.uniform(0.8, 1.2)
        check_wavy(rng.randrange(1, 60), math.exp(-halvings), near)


def test_what_no_size_keeps_is_beyond_the_largest() -> None:
    search = RateSearch(lambda size, probes: 0.5, lambda size: 1, 0.01, 1, 1000)
    assert search.smallest(100) == 1001


@pytest.mark.parametrize("probes", [None, 1, 3, 30])
def test_the_bits_of_many_keys(probes: int | None) -> None:
    for fpr in (0.3, 0.01, 1e-6):
        bits = bits_of_many(fpr, probes)
        rate = classic.asymptotic_fpr(bits, probes or max(1, round(-math.log2(fpr))))
        assert rate == pytest.approx(fpr, rel=0.05 if probes is None else 1e-6)


def naive_moment(num_keys: float, lines: int, probes: int, power: int) -> float:
    """The mixture over how many keys share a line, term by term."""
    mean = num_keys / lines
    spread = 12 * math.sqrt(mean) + 12
    low, high = max(0, math.floor(mean - spread)), min(math.ceil(mean + spread), round(num_keys))
    total = 0.0
    for keys in range(low, high + 1):
        log = (
            math.lgamma(num_keys + 1)
            - math.lgamma(keys + 1)
            - math.lgamma(num_keys - keys + 1)
            + keys * math.log(1 / lines)
            + (num_keys - keys) * math.log1p(-1 / lines)
        )
        total += math.exp(log) * occupancy.power_of_fill(keys * probes, 512, power)
    return total


def test_a_lines_rate_is_the_sum_to_the_last_bit(rng: random.Random) -> None:
    cases = [(2.0, 2, 1), (0.4, 2, 3), (64.0, 2, 6), (1e6, 700, 6), (127.6, 3, 4)]
    for _ in range(CASES):
        keys = 2 ** rng.uniform(0, 24)
        lines = max(2, round(keys / rng.uniform(5, 400)))
        cases.append((rng.choice((keys, float(round(keys)))), lines, rng.randint(1, 32)))
    for (keys, lines, probes), power in itertools.product(cases, (1, 7)):
        expected = naive_moment(keys, lines, probes, power)
        assert occupancy.line_moment(keys, lines, probes, power) == expected


def test_advice_is_followed_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(advice.UnwiseSizeError):
        advice.strictly(blocked.check, bits_per_key=20)
    wise = advice.strictly(blocked.check, bits_per_key=10)
    assert wise == SizingParameter("bits_per_key", 10)
    advice.silently(blocked.check, bits_per_key=20)
    advice.strictly(advice.silently, blocked.check, bits_per_key=20)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="above 16"):
        blocked.check(bits_per_key=20)


def test_advice_is_followed_also_by_who_was_given_it() -> None:
    with pytest.raises(advice.UnwiseSizeError):
        advice.silently(advice.strictly, blocked.check, fpr=1e-6)
