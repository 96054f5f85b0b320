"""The range filter: no range that holds a key is denied, and others as often as theory has it."""

from __future__ import annotations

import math
import random
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from filters import CorruptFilterError, elias_fano, grafite, sizing
from filters.header import OVERHEAD
from tests.effort import by_effort, examples, once, volume
from tests.filters import independent_reader
from tests.filters.cases import needs_native, random_keys, twins
from tests.filters.test_key_numbers import key_sets, short_keys

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
SIZES: list[dict[str, Any]] = [
    {"bits_per_key": 3},
    {"bits_per_key": 14},
    {"bits_per_key": 64},
    {"fpr": 0.01, "range_length": 2**32},
]
WIDTH = 8


def packed(number: int) -> bytes:
    return number.to_bytes(WIDTH, "big")


def holds_one(ordered: list[bytes], low: bytes | None, high: bytes | None) -> bool:
    first = 0 if low is None else bisect_left(ordered, low)
    return first < len(ordered) and (high is None or ordered[first] < high)


def bounds_near(keys: list[bytes], more: list[bytes]) -> Iterator[bytes | None]:
    yield from (None, b"", b"\xff" * 20, *keys, *more)
    for key in keys:
        yield from (key[:-1], key + b"\x00", key + b"\xff", key[:3], key[:-1] + b"\xff\xff")


# --- answers --------------------------------------------------------------------------------------


@examples(60)
@given(keys=key_sets, more=st.lists(short_keys, max_size=4), size=st.sampled_from(SIZES))
@example(keys=[b""], more=[], size={})
@example(keys=[b"", b"\x00", b"\x00\x00"], more=[b"\x00\x00\x00"], size={})
@example(keys=[b"\xff" * 9, b"\xff" * 8, b"\xff" * 30], more=[], size={})
@example(keys=[b"prefix", b"prefixes"], more=[b"pre", b"prefix\x00"], size={})
def test_no_range_that_holds_a_key_is_denied(
    kernel: ModuleType, keys: list[bytes], more: list[bytes], size: dict[str, Any]
) -> None:
    built = kernel.GrafiteFilter.build(keys, seed=SEED, salt=SALT, **size)
    again = kernel.GrafiteFilter.from_bytes(built.to_bytes())
    ordered, bounds = sorted(set(keys)), list(bounds_near(keys, more))
    assert all(built.might_contain_many(keys))
    for low in bounds:
        for high in bounds:
            answer = built.may_contain_range(low, high)
            assert answer or not holds_one(ordered, low, high), (low, high)
            assert again.may_contain_range(low, high) is answer


@examples(60)
@given(keys=key_sets, more=st.lists(short_keys, max_size=4), size=st.sampled_from(SIZES))
def test_the_page_answers_as_the_code_does(
    kernel: ModuleType, keys: list[bytes], more: list[bytes], size: dict[str, Any]
) -> None:
    built = kernel.GrafiteFilter.build(keys, seed=SEED, salt=SALT, **size)
    reader: Any = independent_reader.read(built.to_bytes())
    bounds = [each for each in bounds_near(keys, more) if each is not None]
    assert [reader.answer(key) for key in bounds] == built.might_contain_many(bounds)
    for low in bounds[::3]:
        for high in bounds:
            assert reader.answer_range(low, high) == built.may_contain_range(low, high)


@needs_native
@examples(100)
@given(keys=key_sets, more=st.lists(short_keys, max_size=4), size=st.sampled_from(SIZES))
def test_twins_answer_alike_for_ranges(
    keys: list[bytes], more: list[bytes], size: dict[str, Any]
) -> None:
    one, two = (
        kernel.GrafiteFilter.build(keys, seed=SEED, salt=SALT, **size) for kernel in twins()
    )
    assert one.to_bytes() == two.to_bytes()
    bounds = list(bounds_near(keys, more))
    for low in bounds:
        for high in bounds:
            assert one.may_contain_range(low, high) is two.may_contain_range(low, high)


@needs_native
@pytest.mark.parametrize(
    ("step", "count"), [(1, 1500), (7, 1500), (64, 1500), (2**40, 1500), (3, 30_000)]
)
@pytest.mark.parametrize("size", SIZES[:3], ids=str)
def test_twins_answer_alike_where_codes_crowd(
    step: int, count: int, size: dict[str, Any], rng: random.Random
) -> None:
    """Numbers in a row have codes in a row: full buckets, and long runs of empty ones."""
    first = rng.randrange(2**40)
    numbers = [first + index * step for index in range(count)]
    keys = list(map(packed, numbers))
    one, two = (
        kernel.GrafiteFilter.build(keys, seed=SEED, salt=SALT, **size) for kernel in twins()
    )
    assert one == two
    for _ in range(by_effort(2000, 10_000, 100_000)):
        low = rng.choice(numbers) + rng.choice((-70, -1, 0, 1, rng.randrange(2**22)))
        low, length = max(0, low), rng.choice((1, 2, 60, 5000, 2**21, 2**33))
        asked = packed(low), packed(low + length)
        assert one.may_contain_range(*asked) is two.may_contain_range(*asked)


def test_bounds_have_the_forms_of_keys(kernel: ModuleType) -> None:
    built = kernel.GrafiteFilter.build([b"b"])
    for form in (bytes, bytearray, memoryview):
        assert built.may_contain_range(form(b"a"), form(b"c")) is True
        assert built.may_contain_range(form(b"c"), None) is False
    assert built.may_contain_range("a", "c") is True
    assert built.may_contain_range("c", None) is False
    for wrong in (7, 1.5, ["a"]):
        with pytest.raises(TypeError, match="a key is bytes-like or str, not"):
            built.may_contain_range(wrong, None)
        with pytest.raises(TypeError, match="a key is bytes-like or str, not"):
            built.may_contain_range(b"a", wrong)


def test_an_empty_filter_denies_every_range(kernel: ModuleType) -> None:
    built = kernel.GrafiteFilter.build([])
    for bounds in ((None, None), (b"", None), (None, b"\xff" * 9), (b"a", b"b")):
        assert built.may_contain_range(*bounds) is False
    assert (built.num_keys, built.num_codes, built.expected_range_fpr(32)) == (0, 0, 0)


def test_ranges_outside_the_common_prefix_are_denied(kernel: ModuleType) -> None:
    keys = [b"user:%06d" % number for number in range(0, 3000, 3)]
    built = kernel.GrafiteFilter.build(keys)
    assert b"user:00" in built.to_bytes()
    for low, high in ((None, b"user:"), (b"a", b"user:00"), (b"user;", None), (b"v", b"w")):
        assert built.may_contain_range(low, high) is False
    for low, high in ((None, None), (b"", b"v"), (b"user:", b"user;"), (b"user", b"user:01")):
        assert built.may_contain_range(low, high) is True
    assert not any(map(built.might_contain, (b"", b"user:", b"user:1", b"other")))


def test_keys_that_differ_behind_the_number_are_one(kernel: ModuleType) -> None:
    built = kernel.GrafiteFilter.build([b"12345678a", b"12345678b", b"x"])
    assert built.num_keys == 2
    assert built.may_contain_range(b"12345678c", b"12345678d") is True
    assert built.might_contain(b"12345678 whatever")


# --- rates and sizes ------------------------------------------------------------------------------


def rates(
    kernel: ModuleType,
    rng: random.Random,
    length: int,
    start: Callable[[list[int]], int],
    numbers: list[int],
    bits_per_key: float = 14,
) -> tuple[float, float, float]:
    """The mean rate of empty ranges over filters under many salts, its error, and the bound."""
    found = []
    bound = length / 2 ** (bits_per_key - 2)
    ordered, keys = sorted(numbers), list(map(packed, numbers))
    for _ in range(volume(kernel, 12, 40, 400)):
        built = kernel.GrafiteFilter.build(
            keys, bits_per_key=bits_per_key, seed=rng.getrandbits(64), salt=rng.getrandbits(64)
        )
        asked = maybes = 0
        while asked < 500:
            low = start(ordered)
            first = bisect_left(ordered, low)
            if low + length >= 2**64 or (first < len(ordered) and ordered[first] < low + length):
                continue
            asked += 1
            maybes += built.may_contain_range(packed(low), packed(low + length))
        found.append(maybes / asked)
    mean = sum(found) / len(found)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in found) / (len(found) - 1))
    return mean, deviation / math.sqrt(len(found)), bound


@once
@pytest.mark.parametrize("length", [1, 32, 1024])
def test_uniform_ranges_pass_as_often_as_theory_has_it(
    kernel: ModuleType, length: int, rng: random.Random
) -> None:
    """Two-sided: far from all keys the rate is known, not only bounded."""
    bits = 8 if length == 1 else 14
    numbers = [rng.getrandbits(64) for _ in range(4000)]
    mean, error, bound = rates(kernel, rng, length, lambda _: rng.getrandbits(64), numbers, bits)
    expected = grafite.range_fpr(4000, 4000 * 2 ** (bits - 2), length)
    assert mean == pytest.approx(expected, abs=max(4 * error, 0.02 * expected))
    assert mean <= bound + 4 * error


@once
@pytest.mark.parametrize("length", [1, 32, 1024])
def test_ranges_next_to_keys_pass_no_more_often(
    kernel: ModuleType, length: int, rng: random.Random
) -> None:
    """Two-sided where keys are far apart: the key beside a range says nothing about others."""
    bits = 8 if length == 1 else 14
    numbers = [rng.getrandbits(64) for _ in range(4000)]
    mean, error, bound = rates(
        kernel, rng, length, lambda keys: rng.choice(keys) + 1, numbers, bits
    )
    expected = grafite.range_fpr(3999, 4000 * 2 ** (bits - 2), length)
    assert mean == pytest.approx(expected, abs=max(4 * error, 0.03 * expected))
    assert mean <= bound + 4 * error


@once
@pytest.mark.parametrize("length", [32, 1024])
@pytest.mark.parametrize("stride", [2**11, 2**22])
def test_the_bound_holds_among_keys_at_equal_distances(
    kernel: ModuleType, length: int, stride: int, rng: random.Random
) -> None:
    numbers = [rng.getrandbits(40) + index * stride for index in range(4000)]
    mean, error, bound = rates(
        kernel, rng, length, lambda keys: rng.choice(keys) + rng.randrange(1, 50), numbers
    )
    assert mean <= bound + 4 * error


def test_keys_within_one_block_are_told_exactly(kernel: ModuleType) -> None:
    """As keys that are counted up are: their numbers are fewer than the codes."""
    keys = [packed(index) for index in range(0, 3000, 3)]
    built = kernel.GrafiteFilter.build(keys, bits_per_key=14)
    for index in range(0, 2990, 3):
        assert built.may_contain_range(packed(index), packed(index + 1))
        high = packed(index + 3)
        if not high.endswith(b"\x00"):  # which is the number of shorter keys, too
            assert not built.may_contain_range(packed(index + 1), high)
    assert not any(built.might_contain(packed(index)) for index in range(3000) if index % 3)


@pytest.mark.parametrize("count", [1000, 20_000])
def test_bits_at_a_rate_of_one_percent(kernel: ModuleType, count: int, rng: random.Random) -> None:
    built = kernel.GrafiteFilter.build(random_keys(rng, count), fpr=0.01)
    assert 8 * (built.size_in_bytes - OVERHEAD) / count <= 8.7
    assert built.expected_fpr <= 0.01
    assert sizing.bits_per_key("grafite", fpr=0.01) <= math.log2(100) + 2


@pytest.mark.parametrize("bits", [3, 3.3, 5, 7.9, 14, 30.5, 50])
def test_no_size_is_exceeded(kernel: ModuleType, bits: float, rng: random.Random) -> None:
    built = kernel.GrafiteFilter.build(random_keys(rng, 2000), bits_per_key=bits)
    assert 8 * (built.size_in_bytes - OVERHEAD - grafite.FIXED_BYTES) <= 2000 * bits + 16


def test_a_rate_is_that_of_ranges_of_a_length(kernel: ModuleType, rng: random.Random) -> None:
    keys = random_keys(rng, 1000)
    for length in (1, 32, 1024):
        built = kernel.GrafiteFilter.build(keys, fpr=0.02, range_length=length)
        assert built.expected_range_fpr(length) == pytest.approx(0.02, rel=0.03)
        assert built.expected_range_fpr(length) <= 0.02
        assert built.expected_range_fpr(2**64) == 1
    alone = kernel.GrafiteFilter.build(keys, range_length=64, seed=SEED, salt=SALT)
    usual = {"fpr": 0.01, "range_length": 64, "seed": SEED, "salt": SALT}
    assert alone == kernel.GrafiteFilter.build(keys, **usual)


# --- bytes ----------------------------------------------------------------------------------------


def signed(body: bytes | bytearray) -> bytes:
    return bytes(body) + struct.pack("<Q", xxh3_64_intdigest(bytes(body)))


def test_a_filter_whose_codes_became_others_is_found_out(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Where damage is such that the checksum cannot tell: it was made over the damaged bits."""
    cls = kernel.GrafiteFilter
    collected = cls.digests(seed=SEED)
    collected.add_many(random_keys(rng, 300))
    data = cls.build(collected, salt=SALT).to_bytes()
    layout = elias_fano.Layout.of(*struct.unpack("<Q", data[16:24]), 300)
    low = 40 + grafite.FIXED_BYTES
    high = low + layout.low_bytes
    for place in rng.sample(range(low, high), 20):
        wrong = bytearray(data[:-8])
        wrong[place] ^= 0x18
        assert cls.from_bytes(signed(wrong)).count_missing(collected) > 0
    for place in range(high, len(data) - 8):
        wrong = bytearray(data[:-8])
        wrong[place] ^= 1 << (wrong[place].bit_length() - 1 if wrong[place] else 0)
        with pytest.raises(CorruptFilterError, match=r"codes in its buckets|behind the last"):
            cls.from_bytes(signed(wrong))


def test_a_collection_of_other_keys_is_counted(kernel: ModuleType, rng: random.Random) -> None:
    keys, others = random_keys(rng, 200), random_keys(rng, 500, length=8)
    built = kernel.GrafiteFilter.build(keys)
    collected = kernel.GrafiteFilter.digests()
    collected.add_many(keys + others)
    assert built.count_missing(collected) == built.might_contain_many(others).count(False)
    prefixed = kernel.GrafiteFilter.digests()
    prefixed.add_many([b"\x00some prefix" + packed(number) for number in range(50)])
    assert built.count_missing(prefixed) == 50


def test_digests_and_numbers_do_not_pass_for_each_other(kernel: ModuleType) -> None:
    digests, numbers = kernel.CuckooFilter.digests(), kernel.GrafiteFilter.digests()
    for wrong in (digests, [b"key"], None):
        with pytest.raises(TypeError, match="count_missing takes digests"):
            kernel.GrafiteFilter.build([]).count_missing(wrong)
    with pytest.raises(TypeError):
        kernel.GrafiteFilter.build(digests)
    with pytest.raises(TypeError):
        kernel.CuckooFilter.build(numbers)
    with pytest.raises(TypeError, match="count_missing takes digests"):
        kernel.CuckooFilter.build([]).count_missing(numbers)
    with pytest.raises(ValueError, match="taken under another seed"):
        kernel.GrafiteFilter.build(kernel.GrafiteFilter.digests(seed=1), seed=2)


def test_more_codes_than_there_can_be_are_refused() -> None:
    with pytest.raises(ValueError, match="split the keys over several filters"):
        grafite.plan(2**30, grafite.check(fpr=1e-8, range_length=2**20))
    assert grafite.plan(2**30, grafite.check(bits_per_key=64)).universe == 2**63
    with pytest.raises(ValueError, match="range_length .* asks for a size: leave one"):
        grafite.check(bits_per_key=10, range_length=32)
