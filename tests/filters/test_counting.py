"""The counting filter: removal, saturation, and the classic filter it collapses to."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.counting import STUCK
from tests.filters.cases import over_filling, positives, random_keys

KEYS = [b"key%d" % i for i in range(300)]


def counters(built: object) -> list[int]:
    payload = built.to_bytes()[40:-8]  # type: ignore[attr-defined]
    return [count for pair in payload for count in (pair & 15, pair >> 4)]


def test_removing_everything_leaves_nothing(kernel: ModuleType) -> None:
    built = kernel.CountingBloomFilter.build(KEYS)
    for key in KEYS:
        assert built.remove(key)
    assert built.num_keys == 0
    assert not any(counters(built))
    assert positives(built, KEYS) == 0


def test_removing_some_keeps_the_others(kernel: ModuleType, rng: random.Random) -> None:
    built = kernel.CountingBloomFilter.build(KEYS)
    gone = rng.sample(KEYS, 150)
    for key in gone:
        assert built.remove(key)
    assert all(built.might_contain(key) for key in KEYS if key not in gone)
    assert positives(built, gone) < 10
    assert built.num_keys == 150


def test_a_key_known_to_be_absent_is_not_removed(kernel: ModuleType) -> None:
    built = kernel.CountingBloomFilter.build(KEYS)
    before = built.to_bytes()
    absent = [b"other%d" % i for i in range(500) if not built.might_contain(b"other%d" % i)]
    assert len(absent) > 400
    assert not any(built.remove(key) for key in absent)
    assert built.to_bytes() == before


@over_filling
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=200))
def test_adds_and_removes_keep_every_key_that_is_left(
    kernel: ModuleType, steps: list[tuple[bool, int]]
) -> None:
    built = kernel.CountingBloomFilter.with_capacity(20)
    left = dict.fromkeys(range(21), 0)
    ever_stuck = False
    for adds, number in steps:
        key = b"key%d" % number
        if adds:
            built.add(key)
            left[number] += 1
        elif left[number]:
            assert built.remove(key)
            left[number] -= 1
        ever_stuck = ever_stuck or STUCK in counters(built)
        assert all(built.might_contain(b"key%d" % n) for n, copies in left.items() if copies)
    assert built.num_keys == sum(left.values())
    if not ever_stuck and not any(left.values()):
        assert not any(counters(built))


@over_filling
def test_a_counter_that_reached_fifteen_stays(kernel: ModuleType) -> None:
    built = kernel.CountingBloomFilter.with_capacity(10)
    for _ in range(40):
        built.add(b"often")
    assert max(counters(built)) == STUCK
    for _ in range(40):
        assert built.remove(b"often")
    assert built.might_contain(b"often")
    assert max(counters(built)) == STUCK
    assert built.num_keys == 0


def test_a_position_that_comes_twice_counts_once(kernel: ModuleType) -> None:
    """With 64 probes in 64 counters most keys meet themselves."""
    built = kernel.CountingBloomFilter.with_capacity(1, num_probes=64)
    built.add(b"key")
    assert set(counters(built)) == {0, 1}
    assert built.remove(b"key")
    assert not any(counters(built))


@pytest.mark.parametrize("size", [{}, {"counters_per_key": 7.3}, {"fpr": 0.02}], ids=str)
@pytest.mark.parametrize("count", [0, 1, 50, 3000])
def test_it_collapses_to_the_classic_filter_of_the_same_keys(
    kernel: ModuleType, size: dict[str, float], count: int, rng: random.Random
) -> None:
    keys = random_keys(rng, count)
    bits = {"bits_per_key" if name == "counters_per_key" else name: v for name, v in size.items()}
    secrets = {"seed": rng.getrandbits(64), "salt": rng.getrandbits(64)}
    collapsed = kernel.CountingBloomFilter.build(keys, **size, **secrets).collapse()
    assert collapsed == kernel.ClassicBloomFilter.build(keys, **bits, **secrets)
    assert type(collapsed) is kernel.ClassicBloomFilter


def test_add_says_whether_the_key_was_new(kernel: ModuleType) -> None:
    built = kernel.CountingBloomFilter.with_capacity(100)
    assert built.add(b"key") is True
    assert built.add(b"key") is False
    assert built.num_keys == 2
