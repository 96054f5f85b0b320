"""The scalable filter: its rate while it grows, its slices, its bounds, and going on from bytes."""

from __future__ import annotations

import gc
import math
import random
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from filters import CapacityError, CorruptFilterError, PackedKeys, scalable, sizing
from filters.hashing import digest
from tests.filters.cases import needs_native, positives, random_keys, twins
from tests.filters.test_damage import forged

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
SIZING_PARAMETERS: list[dict[str, Any]] = [
    {},
    {"fpr": 0.5, "tightening": 0.5},  # whose first slice has two probes
    {"fpr": 1e-4, "tightening": 0.95},
]
every_size = pytest.mark.parametrize("size", SIZING_PARAMETERS, ids=str)


def begun(kernel: ModuleType, capacity: int | None = None, **more: Any) -> Any:
    return kernel.ScalableBloomFilter.with_capacity(capacity, seed=SEED, salt=SALT, **more)


def slices_of(data: bytes) -> list[tuple[int, int, int]]:
    """Bits, probes and bits set of each slice, by the page's layout."""
    count, start = data[16], 64 + 16 * data[16]
    found = []
    for row in range(64, 64 + 16 * count, 16):
        bits, probes = (int.from_bytes(data[at : at + 8], "little") for at in (row, row + 8))
        used = int.from_bytes(data[start : start + bits // 8], "little").bit_count()
        found.append((bits, probes, used))
        start += bits // 8
    return found


# ---- the rate ----


@every_size
@pytest.mark.parametrize("growth", [2, 4])
def test_the_rate_exceeds_the_one_asked_for_at_no_moment(
    kernel: ModuleType, size: dict[str, Any], growth: int, rng: random.Random
) -> None:
    """By the bits that are set, which are all there is to it; up to eight full slices."""
    grown = begun(kernel, 4 if growth == 2 else 1, growth=growth, **size)
    highest = 0.0
    while grown.num_slices < (9 if growth == 2 else 6):
        grown.add(rng.randbytes(12))
        if grown.num_keys % 7 == 0 or grown.num_keys < 200:
            highest = max(highest, grown.expected_fpr)
            assert grown.expected_fpr <= grown.fpr
    assert highest > grown.fpr / 50


@every_size
def test_each_slice_is_filled_up_to_its_own_rate(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    grown = begun(kernel, 5, **size)
    grown.add_many(random_keys(rng, 1500))
    terms = scalable.check(**size).begun(5)
    slices = slices_of(grown.to_bytes())
    assert len(slices) == grown.num_slices >= 8
    for index, (bits, probes, used) in enumerate(slices[:-1]):
        assert (used / bits) ** probes <= terms.fpr_of(index) * (1 + 1e-12)
        limit = terms.limit_of(index, scalable.Geometry(bits, probes))
        assert limit - probes < used <= limit
    assert sum(map(terms.fpr_of, range(scalable.MAX_SLICES))) <= terms.fpr


@pytest.mark.parametrize("size", [{"fpr": 0.05}, {"fpr": 0.3, "tightening": 0.5, "growth": 4}])
def test_what_passes_is_what_is_expected_as_it_grows(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    """From both sides, and within the size, at three moments up to nine slices."""
    grown, trials = begun(kernel, 20, **size), 30_000
    for count in (100, 1000, 6000):
        grown.add_many(random_keys(rng, count))
        rate = positives(grown, random_keys(rng, trials, length=17)) / trials
        error = math.sqrt(grown.expected_fpr * (1 - grown.expected_fpr) / trials)
        assert abs(rate - grown.expected_fpr) <= 4 * error
        assert rate <= grown.fpr + 4 * error
    assert grown.num_slices >= 5


def test_a_false_positive_of_one_slice_is_nothing_special_to_another(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Else the slices' rates would not add up to what is expected: each has a salt of its own."""
    grown = begun(kernel, 100, fpr=0.5, tightening=0.95)
    grown.add_many(random_keys(rng, 2000))
    data = grown.to_bytes()
    slices = slices_of(data)
    absent = [rng.getrandbits(64) for _ in range(30_000)]
    passed = sum(map(grown.might_contain_digest, absent)) / len(absent)
    denied = math.prod(1 - (used / bits) ** probes for bits, probes, used in slices)
    assert grown.expected_fpr == pytest.approx(1 - denied)
    assert passed == pytest.approx(1 - denied, abs=4 * math.sqrt(denied / len(absent)))


# ---- the keys ----


@every_size
def test_nothing_is_lost_while_it_grows(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    keys = random_keys(rng, 1200)
    rng.shuffle(keys)
    grown = begun(kernel, 3, **size)
    members = grown.digests(seed=SEED)
    for start in range(0, len(keys), 100):
        grown.add_many(keys[start : start + 100])
        members.add_many(keys[start : start + 100])
        assert all(grown.might_contain_many(keys[: start + 100]))
        assert all(map(grown.might_contain, keys[start : start + 100]))
        assert all(grown.might_contain_digest(digest(key, SEED)) for key in keys[: start + 20])
        assert grown.count_missing(members) == 0


def test_what_is_there_already_takes_no_room(kernel: ModuleType, rng: random.Random) -> None:
    keys = random_keys(rng, 1000)
    grown = begun(kernel, 10, fpr=0.2)
    told = [grown.add(key) for key in keys]
    assert 800 < sum(told) < 1000
    assert grown.num_keys == sum(told)
    before = grown.to_bytes()
    assert not any(map(grown.add, keys * 3))
    for form in (list, tuple, iter):
        grown.add_many(form(keys * 3))
    assert grown.to_bytes() == before
    absent = (rng.randbytes(20) for _ in range(10_000))
    taken_for_known = next(key for key in absent if grown.might_contain(key))
    assert grown.add(taken_for_known) is False
    assert grown.to_bytes() == before


def test_capacities_double_or_quadruple(kernel: ModuleType, rng: random.Random) -> None:
    for growth, expected in ((2, [300, 900, 2100, 4500]), (4, [300, 1500, 6300])):
        grown, found = begun(kernel, 300, growth=growth), [300]
        assert grown.capacity == 300
        for key in random_keys(rng, 4000):
            before = grown.num_keys
            grown.add(key)
            if grown.capacity != found[-1]:
                assert before == pytest.approx(found[-1], rel=0.06)
                found.append(grown.capacity)
        assert found == expected
        assert grown.num_slices == len(expected)


def test_who_says_nothing_begins_with_a_thousand_keys(kernel: ModuleType) -> None:
    grown = kernel.ScalableBloomFilter.with_capacity()
    assert (grown.capacity, grown.num_slices, grown.fpr, grown.num_keys) == (1024, 1, 0.01, 0)
    assert kernel.ScalableBloomFilter.with_capacity(0).capacity == 1
    assert kernel.ScalableBloomFilter.build([]).capacity == 64


@pytest.mark.parametrize("count", [0, 3, 64, 65, 1000])
def test_what_is_built_is_one_slice_and_goes_on_growing(
    kernel: ModuleType, count: int, rng: random.Random
) -> None:
    keys, more = random_keys(rng, count), random_keys(rng, 2000, length=9)
    built = kernel.ScalableBloomFilter.build(keys * 2, fpr=0.02)
    assert (built.num_slices, built.num_keys, built.capacity) == (1, count, max(64, count))
    assert built.expected_fpr <= 0.02 * 0.15 * 1.5
    again = kernel.ScalableBloomFilter.from_bytes(built.to_bytes())
    for grown in (built, again):
        grown.add_many(more)
        assert all(grown.might_contain_many(keys + more))
        assert grown.num_slices > 1
        assert grown.expected_fpr <= 0.02
    assert again == built


def test_like_a_grown_one_is_as_that_began(kernel: ModuleType, rng: random.Random) -> None:
    keys = random_keys(rng, 500)
    first = begun(kernel, 10, fpr=0.05, tightening=0.7, growth=4)
    empty = first.to_bytes()
    first.add_many(keys)
    second = kernel.ScalableBloomFilter.with_capacity(like=first)
    assert second.to_bytes() == empty
    second.add_many(keys)
    assert second == first


# ---- going on from bytes ----


def packed(keys: list[bytes]) -> PackedKeys:
    ends = array("i", [0])
    for key in keys:
        ends.append(ends[-1] + len(key))
    return PackedKeys(b"".join(keys), offsets=ends)


@every_size
def test_what_was_saved_goes_on_as_if_it_never_had_been(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    """Read back before a key, amid a slice or at its end, and whatever form the keys come in."""
    keys = random_keys(rng, 1500)
    keys += rng.choices(keys, k=500)
    rng.shuffle(keys)
    whole = begun(kernel, 7, **size)
    for key in keys:
        whole.add(key)
    parts, done = begun(kernel, 7, **size), 0
    forms: list[Callable[[list[bytes]], Any]] = [list, tuple, iter, packed]
    while done < len(keys):
        some = rng.choice((1, 2, 30, 600))
        parts.add_many(rng.choice(forms)(keys[done : done + some]))
        parts = type(parts).from_bytes(rng.choice((bytes, bytearray))(parts.to_bytes()))
        done += some
    assert parts.to_bytes() == whole.to_bytes()
    assert parts.num_slices == whole.num_slices >= 8


@needs_native
def test_each_kernel_goes_on_where_the_other_stopped(rng: random.Random) -> None:
    python, native = twins()
    alone = begun(python, 11, fpr=0.03)
    shared = begun(native, 11, fpr=0.03)
    for turn in range(12):
        keys = random_keys(rng, 150)
        alone.add_many(keys)
        shared.add_many(keys)
        assert shared.to_bytes() == alone.to_bytes()
        assert (shared.fill, shared.expected_fpr) == (alone.fill, alone.expected_fpr)
        cls = (python, native)[turn % 2].ScalableBloomFilter
        shared = cls.from_bytes(shared.to_bytes())
    assert shared.num_slices >= 7


def test_every_slice_of_a_view_is_copied_and_the_buffer_let_go(
    kernel: ModuleType, rng: random.Random
) -> None:
    grown = begun(kernel, 50)
    grown.add_many(random_keys(rng, 700))
    assert grown.num_slices >= 4
    data = bytearray(grown.to_bytes())
    view = kernel.ScalableBloomFilter.from_bytes(memoryview(data).toreadonly())
    view.add(b"one more")
    whole = view.to_bytes()
    gc.collect()
    data.clear()  # BufferError if anything still held it
    assert view.to_bytes() == whole


def test_no_view_is_written_to(kernel: ModuleType, rng: random.Random) -> None:
    grown = begun(kernel, 50)
    grown.add_many(random_keys(rng, 700))
    data = grown.to_bytes()
    kept = bytes(bytearray(data))
    views = [kernel.ScalableBloomFilter.from_bytes(memoryview(data)) for _ in range(2)]
    for view in views:
        view.add_many(random_keys(rng, 3000, length=11))
        assert view.num_slices > grown.num_slices
    assert data == kept
    assert views[0] != views[1]


# ---- where it ends ----


def test_more_slices_than_are_allowed_are_refused(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalable, "MAX_SLICES", 3)
    refused(kernel, rng, "scalable filter has 3 slices.*allowed are 3: begin another filter")


def test_more_bits_than_are_allowed_are_refused(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalable, "MAX_BITS", 1500)
    refused(kernel, rng, r"scalable filter of \d+ bits is full.*1500 that are allowed: begin")
    with pytest.raises(ValueError, match="starts with 200 keys at fpr=0.01 takes more than"):
        begun(kernel, 200)


def refused(kernel: ModuleType, rng: random.Random, reason: str) -> None:
    """A filter of capacity 10 comes to its end, says so, and stays as it is."""
    keys = random_keys(rng, 600)
    grown = begun(kernel, 10)
    taken = []

    def take_all() -> None:
        for key in keys:
            grown.add(key)
            taken.append(key)

    with pytest.raises(CapacityError, match=reason):
        take_all()
    before = grown.to_bytes()
    assert 50 < len(taken) < 90
    assert all(grown.might_contain_many(taken))
    assert not grown.add(taken[0])
    for form in (list, tuple, iter, packed):
        with pytest.raises(CapacityError, match=reason):
            grown.add_many(form([*taken, *keys]))
        assert grown.to_bytes() == before
        again = begun(kernel, 10)
        with pytest.raises(CapacityError, match=reason):
            again.add_many(form(keys))
        assert again.to_bytes() == before
    reopened = kernel.ScalableBloomFilter.from_bytes(before)
    with pytest.raises(CapacityError, match=reason):
        reopened.add_many(keys)
    assert reopened.to_bytes() == before
    assert reopened.expected_fpr <= reopened.fpr


def test_sizes_that_cannot_be_are_refused(kernel: ModuleType) -> None:
    cls = kernel.ScalableBloomFilter
    for make in (lambda **size: cls.build([], **size), lambda **size: cls.with_capacity(5, **size)):
        with pytest.raises(ValueError, match="growth of a scalable filter is 2 or 4, not 3"):
            make(growth=3)
        with pytest.raises(ValueError, match=r"tightening of a scalable.*allowed are 0.5 to 0.95"):
            make(tightening=1)
        with pytest.raises(ValueError, match="fpr of a scalable filter is out of range: 0.6"):
            make(fpr=0.6)


@pytest.mark.parametrize("fpr", [0.5, 1e-9])
@pytest.mark.parametrize("tightening", [0.5, 0.95])
@pytest.mark.parametrize("growth", [2, 4])
def test_every_slice_there_may_ever_be_has_room_for_a_key(
    fpr: float, tightening: float, growth: int
) -> None:
    """Else a chain would grow for ever without taking it."""
    terms = scalable.check(capacity=1, fpr=fpr, tightening=tightening, growth=growth)
    slices: list[scalable.Geometry] = [scalable.first(terms)]
    for _ in range(1, 15):
        slices.append(scalable.following(terms, slices))
    for index, geometry in enumerate(slices):
        assert geometry.num_probes <= terms.limit_of(index, geometry) <= geometry.bits


@pytest.mark.parametrize("fpr", [0.5, 0.3, 0.01, 1e-9])
@pytest.mark.parametrize("tightening", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("growth", [2, 4])
def test_no_slice_of_our_own_is_refused_for_its_size(
    fpr: float, tightening: float, growth: int
) -> None:
    """Behind first slices of any size, on all the way to the most bits there may be."""
    for capacity in (1, 2, 7, 64, 1000, 10**6, 10**9):
        terms = scalable.check(capacity=capacity, fpr=fpr, tightening=tightening, growth=growth)
        slices = [scalable.first(terms)]
        used = slices[0].bits
        while used + (bits := terms.geometry_of(len(slices)).bits) <= scalable.MAX_BITS:
            assert bits < 6.001 * used
            slices.append(scalable.following(terms, slices))
            used += bits
        with pytest.raises(CapacityError, match=f"would exceed the {scalable.MAX_BITS}"):
            scalable.following(terms, slices)


@pytest.mark.parametrize("capacity", [2_000, 9 * 10**8, 2**40])
def test_terms_that_claim_more_than_there_is_allocate_nothing(
    kernel: ModuleType, capacity: int
) -> None:
    """A slice of 64 bits, nearly full, and terms that lead to one of gigabytes."""
    small = begun(kernel, 1, tightening=0.5)
    assert slices_of(small.to_bytes())[0][0] == 64
    while small.add(b"%d" % small.num_keys) and small.fill < 0.4:
        pass
    data = forged(small.to_bytes(), 40, "<Q", capacity)
    claims = kernel.ScalableBloomFilter.from_bytes(data)
    assert claims.might_contain(b"0")
    like = kernel.ScalableBloomFilter.with_capacity(like=claims)
    reason = f"claims capacity={capacity} .* has 64 bits; allowed are 8 times as many|exceed"
    keys = [b"more %d" % number for number in range(100)]
    for built in (claims, like):
        for form in (list, tuple, iter, packed):
            with pytest.raises(CapacityError, match=reason):
                built.add_many(form(keys))
        full = built.to_bytes()
        new = next(key for key in keys if not built.might_contain(key))
        with pytest.raises(CapacityError, match=reason):
            built.add(new)
        assert built.num_slices == 1
        assert built.to_bytes() == full
        assert len(full) == 96
        assert kernel.ScalableBloomFilter.from_bytes(full) == built


def test_a_large_capacity_that_was_asked_for_goes_on_from_its_bytes(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Empty as it is, the payload has the bits that its next slice is measured by."""
    began = begun(kernel, 5_000, fpr=0.5, tightening=0.5, growth=4)
    again = kernel.ScalableBloomFilter.from_bytes(began.to_bytes())
    keys = random_keys(rng, 9_000)
    again.add_many(keys)
    assert again.num_slices == 2
    assert all(again.might_contain_many(keys))


def test_forged_terms_and_geometries_lead_to_no_loop_and_no_crash(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Whatever the terms say of slices that are there: new ones have room, or there is an error."""
    grown = begun(kernel, 10)
    grown.add_many(random_keys(rng, 25))
    data = grown.to_bytes()
    for offset, layout, value in (
        (40, "<Q", 1),
        (40, "<Q", 2**40),
        (48, "<d", 1e-9),
        (48, "<d", 0.5),
        (56, "<d", 0.5),
        (72, "<Q", 64),
        (72, "<Q", 1),
        (88, "<Q", 64),
        (88, "<Q", 1),
    ):
        odd = kernel.ScalableBloomFilter.from_bytes(forged(data, offset, layout, value))
        keys = random_keys(rng, 200)
        try:
            odd.add_many(keys)
        except CapacityError:
            assert value == 2**40
            continue
        assert all(odd.might_contain_many(keys))
    with pytest.raises(CorruptFilterError, match="claims fpr=nan; allowed are 1e-09 to 0.5"):
        kernel.ScalableBloomFilter.from_bytes(forged(data, 48, "<d", math.nan))


# ---- sizing ----


@pytest.mark.parametrize("size", [{}, {"fpr": 0.1, "growth": 4, "tightening": 0.6}], ids=str)
@pytest.mark.parametrize(("capacity", "count"), [(64, 1500), (100, 90), (200, 4500)])
def test_what_has_grown_is_as_large_as_was_predicted(
    kernel: ModuleType, size: dict[str, Any], capacity: int, count: int, rng: random.Random
) -> None:
    grown = begun(kernel, capacity, **size)
    grown.add_many(random_keys(rng, count))
    predicted: Any = {"n": count, "capacity": capacity, **size}
    payload = (grown.size_in_bytes - 48) * 8 / count
    assert sizing.bits_per_key("scalable", **predicted) == pytest.approx(payload, rel=1e-9)
    assert sizing.fpr("scalable", **predicted) == pytest.approx(grown.expected_fpr, rel=0.3)
    assert sizing.fpr("scalable", **predicted) <= grown.fpr


def test_the_default_tightening_is_never_far_from_the_best() -> None:
    """The table beside it: the mean over one doubling of the number of keys."""
    built = [
        sizing.bits_per_key("scalable", tightening=tightening)
        for tightening in (0.5, 0.8, 0.85, 0.9)
    ]
    assert built == pytest.approx([11.0, 12.9, 13.5, 14.4], abs=0.06)
    assert built[2] < built[0] + 2.6
    for doublings, stated in (
        (2, (19, 20, 20, 21)),
        (4, (23, 21, 21, 22)),
        (8, (32, 24, 24, 24)),
        (12, (40, 27, 26, 25)),
        (16, (49, 30, 28, 27)),
    ):
        parts = [2 ** (doublings + part / 8) for part in range(8)]
        for tightening, bits in zip((0.5, 0.8, 0.85, 0.9), stated, strict=True):
            terms = {"capacity": 1024, "tightening": tightening}
            sizes = [sizing.bits_per_key("scalable", n=int(1024 * x), **terms) for x in parts]
            mean = sum(sizes) / len(sizes)
            assert mean == pytest.approx(bits, abs=0.6)
            if tightening == scalable.DEFAULT_TIGHTENING:
                assert mean < min(stated) + 2.6
