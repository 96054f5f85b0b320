"""Measuring a filter: no key of its own is denied, and absent keys are absent, and alike."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import BlockedBloomFilter, CassandraBloomFilter, LevelDBBloomFilter
from filters.errors import CorruptFilterError
from lsm.survey.absent_keys import SAMPLED_KEYS, Sample
from lsm.survey.found import FilterFound, Guard
from lsm.survey.measure import Measured, measure, together, wilson
from tests.effort import by_effort


@attrs.define
class Exact:
    """What is in passes, and nothing else; it keeps what it was asked for."""

    known: set[bytes]
    asked: list[bytes] = attrs.field(factory=list)

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        self.asked += keys
        return [key in self.known for key in keys]


def found(reader: Any, keys: Iterable[bytes] | None, **known: Any) -> FilterFound:
    return FilterFound(
        where="filter block",
        offset=0,
        size=0,
        family=None,
        form="of a test",
        guard=Guard(),
        reader=reader,
        keys=None if keys is None else lambda: iter(keys),
        **known,
    )


@pytest.fixture
def users(rng: random.Random) -> list[bytes]:
    return sorted({b"user-%08x" % rng.getrandbits(32) for _ in range(5000)})


def test_a_filter_does_as_it_promises(users: list[bytes]) -> None:
    for built in (
        LevelDBBloomFilter.build(users, bits_per_key=10),
        CassandraBloomFilter.build(users, fp_chance=0.1),
        BlockedBloomFilter.build(users, fpr=0.003),
    ):
        measured = measure(found(built, users, expected_fpr=built.expected_fpr), 20_000, seed=1)
        assert (measured.keys, measured.denied, measured.denied_keys) == (len(users), 0, ())
        assert measured.absent == 20_000
        assert measured.verdict == "as promised"
        low, high = measured.interval
        assert measured.rate is not None
        assert low < measured.rate < high
        assert measured.shape == "same lengths, same bytes at each place"


def test_a_key_that_is_denied_is_found(users: list[bytes], rng: random.Random) -> None:
    """Any single one, by clearing a bit of it in a format that nothing guards."""
    for _ in range(by_effort(20, 100, 500)):
        data = bytearray(LevelDBBloomFilter.build(users).to_bytes())
        hidden = rng.choice(
            [bit for bit in range(8 * len(data) - 8) if data[bit >> 3] >> bit % 8 & 1]
        )
        data[hidden >> 3] ^= 1 << hidden % 8
        damaged = LevelDBBloomFilter.from_bytes(bytes(data))
        denied = [key for key in users if not damaged.might_contain(key)]
        measured = measure(found(damaged, users), 1, seed=1)
        assert measured.denied == len(denied) > 0
        assert measured.denied_keys == tuple(denied[:5])


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("kind", [CassandraBloomFilter, LevelDBBloomFilter])
def test_every_single_flip_that_hides_a_key_is_found(kind: Any, count: int) -> None:
    """Wherever it is, lengths and probes included; or the filter is refused."""
    keys = [b"key%d" % number for number in range(count)]
    data = kind.build(keys).to_bytes()
    hiding = refused = 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        try:
            damaged = kind.from_bytes(bytes(flipped))
        except CorruptFilterError:
            refused += 1
            continue
        denied = [key for key in keys if not damaged.might_contain(key)]
        hiding += bool(denied)
        assert measure(found(damaged, keys), 1, seed=1).denied == len(denied), bit
    assert hiding >= kind.build(keys).num_probes
    assert hiding + refused < 8 * len(data)


@given(
    keys=st.sets(st.binary(max_size=3), max_size=60) | st.sets(st.binary(max_size=40), max_size=60),
    count=st.integers(0, 300),
    seed=st.integers(0, 1 << 64),
)
def test_absent_keys_are_absent_and_each_is_asked_once(
    keys: set[bytes], count: int, seed: int
) -> None:
    exact = Exact(keys)
    measured = measure(found(exact, sorted(keys)), count, seed)
    absent = exact.asked[len(keys) :]
    assert exact.asked[: len(keys)] == sorted(keys)
    assert len(absent) == len(set(absent)) == measured.absent == count
    assert (measured.passed, measured.denied) == (0, 0)


def test_absent_keys_look_like_those_that_are_there(users: list[bytes]) -> None:
    keys = users[:300] + [b"key-%05d" % (33 * number) for number in range(300)]
    exact = Exact(set(keys))
    measure(found(exact, keys), 1000, seed=3)
    absent = exact.asked[len(keys) :]
    for length in (9, 13):
        there = [key for key in keys if len(key) == length]
        made = [key for key in absent if len(key) == length]
        assert 350 < len(made) < 650
        for place in range(length):
            assert {key[place] for key in made} <= {key[place] for key in there}
    assert {len(key) for key in absent} == {9, 13}


@pytest.mark.parametrize(
    ("keys", "shape"),
    [
        ([b"%03d" % number for number in range(1000)], "one byte changed"),
        ([bytes((number,)) for number in range(256)], "16 bytes longer"),
        ([b""], "16 bytes longer"),
        ([], "any 16 bytes"),
    ],
)
def test_keys_that_leave_no_others_alike_have_others_beside_them(
    keys: list[bytes], shape: str
) -> None:
    exact = Exact(set(keys))
    measured = measure(found(exact, keys), 500, seed=1)
    assert (measured.absent, measured.passed, measured.shape) == (500, 0, shape)


def test_what_is_left_of_one_shape_is_filled_up_with_the_next() -> None:
    keys = [b"%03d" % number for number in range(1000) if number % 7]  # which leaves 143
    measured = measure(found(Exact(set(keys)), keys), 500, seed=1)
    assert measured.absent == 500
    assert measured.shape == "same lengths, same bytes at each place; one byte changed"


def test_without_keys_any_others_are_asked_for() -> None:
    built = CassandraBloomFilter.build([b"%d" % number for number in range(1000)], fp_chance=0.1)
    measured = measure(found(built, None, expected_fpr=built.expected_fpr), 5000, seed=1)
    assert (measured.keys, measured.denied, measured.absent) == (None, 0, 5000)
    assert measured.verdict == "as promised"
    assert measured.shape == "any 16 bytes"


def test_a_seed_says_which_keys_are_asked_for(users: list[bytes]) -> None:
    asked = []
    for seed in (1, 1, 2):
        exact = Exact(set(users))
        measure(found(exact, users), 100, seed)
        asked.append(exact.asked[len(users) :])
    assert asked[0] == asked[1] != asked[2]


def test_what_differs_by_more_than_chance_is_told() -> None:
    def verdict(passed: int, absent: int, promised: float | None) -> str:
        return Measured(
            where="",
            keys=None,
            denied=0,
            denied_keys=(),
            absent=absent,
            passed=passed,
            shape="",
            promised=promised,
        ).verdict

    assert verdict(110, 10_000, 0.01) == "as promised"
    assert verdict(200, 10_000, 0.01) == "higher"
    assert verdict(50, 10_000, 0.01) == "lower"
    assert verdict(2, 100, 0.01) == "as promised"  # too few to tell
    assert verdict(10_800, 1_000_000, 0.01) == "as promised"  # within what promises are off
    assert verdict(0, 10_000, 0.0) == "as promised"
    assert verdict(1, 100, None) == verdict(0, 0, 0.5) == "nothing promised"


def test_parts_are_taken_together_by_how_often_each_was_asked() -> None:
    one = Measured(
        where="partition 1 of 2",
        keys=10,
        denied=1,
        denied_keys=(b"a",),
        absent=300,
        passed=3,
        shape="alike",
        promised=0.02,
    )
    other = attrs.evolve(
        one, keys=5, denied=5, denied_keys=(b"b",) * 5, absent=100, passed=5, promised=0.06
    )
    both = together([one, other])
    assert both == attrs.evolve(
        one,
        where="2 filters",
        keys=15,
        denied=6,
        denied_keys=(b"a", b"b", b"b", b"b", b"b"),
        absent=400,
        passed=8,
        promised=pytest.approx(0.03),
    )
    assert together([one]) == one
    unknown = together([attrs.evolve(one, keys=None, promised=None), other])
    assert (unknown.keys, unknown.promised) == (None, None)


def test_intervals_are_wilsons() -> None:
    assert wilson(10, 100, 1.96) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert wilson(0, 10, 1.96) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(10, 10, 1.96) == pytest.approx((0.7225, 1), abs=1e-4)
    assert wilson(0, 0, 1.96) == (0, 1)
    for count in (7, 1000, 100_000):
        for z in (1.96, 3.29):
            assert wilson(0, count, z)[0] == 0
            assert wilson(count, count, z)[1] == 1


def test_keys_are_read_and_never_kept() -> None:
    """100,000 of them would take 5 MB."""

    def keys() -> Iterator[bytes]:
        return (b"key%012d" % (7 * number) for number in range(100_000))

    @attrs.frozen
    class Anything:
        def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
            return [True] * len(keys)

    watched = []
    filter = attrs.evolve(found(Anything(), None), keys=keys)
    tracemalloc.start()
    try:
        measured = measure(filter, 1000, seed=1, watch=watched.append)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (measured.keys, measured.absent) == (100_000, 1000)
    assert peak < 3 << 20
    assert sum(watched) == 200_000  # once for themselves, once for those that are absent


def test_a_filter_that_cannot_be_asked_is_refused_with_its_problem() -> None:
    with pytest.raises(ValueError, match="filter block cannot be asked: it is encrypted"):
        measure(found(None, [], problem="it is encrypted"), 1, seed=1)


@given(sizes=st.lists(st.integers(0, 4000), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_a_sample_is_the_same_however_keys_come(sizes: list[int], seed: int) -> None:
    keys = [b"%d" % number for number in range(sum(sizes))]
    whole, parts = Sample(random.Random(seed)), Sample(random.Random(seed))
    whole.add(keys)
    start = 0
    for size in sizes:
        parts.add(keys[start : start + size])
        start += size
    assert whole.keys == parts.keys
    assert len(set(whole.keys)) == len(whole.keys) == min(SAMPLED_KEYS, len(keys))


def test_each_key_has_the_same_chance_to_be_in_a_sample(rng: random.Random) -> None:
    count, parts = 10 * SAMPLED_KEYS, 10
    hits = [0] * parts
    for _ in range(10):
        sample = Sample(rng)
        sample.add([number.to_bytes(4, "big") for number in range(count)])
        for key in sample.keys:
            hits[int.from_bytes(key, "big") * parts // count] += 1
    mean = 10 * SAMPLED_KEYS / parts
    assert all(abs(each - mean) < 6 * mean**0.5 for each in hits), hits
