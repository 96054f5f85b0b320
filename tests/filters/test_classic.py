"""The classic filter: positions at any size."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType

import pytest

from filters import classic
from filters.sizing_parameters import SizingParameter


def positions_of(kernel: ModuleType) -> Callable[[int, int, int], Iterable[int]]:
    positions: Callable[[int, int, int], Iterable[int]]
    positions = import_module(f"{kernel.__name__}.chain").positions
    return positions


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000, 2**20 + 7, 2**32, 2**32 + 1, 2**40 - 1, 2**40])
def test_positions_lie_within_any_size(kernel: ModuleType, size: int, rng: random.Random) -> None:
    """Positions are arithmetic alone: 2^40 bits need no array."""
    for _ in range(300):
        mixed = rng.getrandbits(64)
        positions = list(positions_of(kernel)(mixed, size, 64))
        assert len(positions) == 64
        assert all(0 <= position < size for position in positions)


def test_positions_reach_every_part_of_a_huge_array(kernel: ModuleType, rng: random.Random) -> None:
    """A 32-bit product or hash somewhere on the way would leave parts of it empty."""
    parts: Counter[int] = Counter()
    low: Counter[int] = Counter()
    for _ in range(4000):
        for position in positions_of(kernel)(rng.getrandbits(64), 2**40, 8):
            parts[position >> 35] += 1
            low[position & 31] += 1
    for counts in (parts, low):
        assert len(counts) == 32
        assert all(850 < count < 1150 for count in counts.values())


def test_each_probe_is_a_hash_of_its_own(kernel: ModuleType, rng: random.Random) -> None:
    """In even steps, the difference of the first two positions would give away the third."""
    steps = Counter()
    for _ in range(2000):
        one, two, three = positions_of(kernel)(rng.getrandbits(64), 1000, 3)
        steps[(three - two) % 1000 - (two - one) % 1000] += 1
    assert steps.most_common(1)[0][1] < 20


def test_more_than_the_largest_size_is_refused() -> None:
    largest = classic.plan(classic.MAX_BITS // 64, SizingParameter("bits_per_key", 64))
    assert largest.bits == classic.MAX_BITS == 2**40
    with pytest.raises(
        ValueError, match="size of 1099511627840, allowed are 1099511627776: split the keys"
    ):
        classic.plan(classic.MAX_BITS // 64 + 1, SizingParameter("bits_per_key", 64))


@pytest.mark.parametrize(("bits_per_key", "probes"), [(1, 1), (5, 3), (8, 6), (10, 7), (16, 11)])
def test_the_probe_count_is_the_best_whole_number(bits_per_key: int, probes: int) -> None:
    assert classic.best_probes(bits_per_key) == probes
    best = classic.asymptotic_fpr(bits_per_key, probes)
    others = (classic.asymptotic_fpr(bits_per_key, k) for k in range(1, 30))
    assert best == min(others)


def test_num_probes_overrides_the_best(kernel: ModuleType) -> None:
    built = kernel.ClassicBloomFilter.build([b"a", b"b"], num_probes=2, seed=1, salt=1)
    assert built.num_probes == 2
    assert built.fill <= 4 / built.num_bits
