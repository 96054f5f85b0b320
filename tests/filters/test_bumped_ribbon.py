"""Bumped ribbon: any rate at nearly the fewest bits, and no set that fails to build."""

from __future__ import annotations

import math
import random
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import FilterError, bumped_ribbon, kernels, sizing
from filters.bumped_ribbon import Columns, Layer
from filters.hashing import MASK64
from filters.kernels.python import banding
from filters.kernels.python.bumped_ribbon import bands_of
from filters.sizing_parameters import SizingParameter
from tests.effort import effort, examples, once
from tests.filters.cases import needs_native, random_keys, twins

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210


def digests_of(kernel: ModuleType, numbers: list[int]) -> Any:
    """A collection of these digests, in this order."""
    digests = kernel.BumpedRibbonFilter.digests(seed=SEED)
    for number in numbers:
        digests.add_digest(number)
    return digests


def random_filter(kernel: ModuleType, rng: random.Random, count: int, **size: float) -> Any:
    numbers = [rng.getrandbits(64) for _ in range(count)]
    return kernel.BumpedRibbonFilter.build(
        digests_of(kernel, numbers), salt=rng.getrandbits(64), **size
    )


# ---- no set fails ----


def test_no_size_up_to_twenty_thousand_fails(kernel: ModuleType, rng: random.Random) -> None:
    """In steps that meet every number of layers; each size once is the long run's."""
    numbers = [rng.getrandbits(64) for _ in range(20_000)]
    sparse = kernel.__name__.endswith("python")
    steps = [*range(0, 150, 1 + 6 * sparse), *range(150, 4000, 61 + 700 * sparse)]
    for count in [*steps, 1399, 1400, *([] if sparse else range(4000, 20_001, 397))]:
        digests = digests_of(kernel, numbers[:count])
        built = kernel.BumpedRibbonFilter.build(digests, fpr=0.02, salt=SALT)
        assert built.num_keys == count
        assert built.count_missing(digests) == 0
        assert built.num_left_over <= max(16, 0.02 * count)


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 30)), max_size=80),
    st.randoms(use_true_random=False),
)
def test_no_pattern_of_duplicates_fails(
    kernel: ModuleType, pattern: list[tuple[int, int]], shuffler: random.Random
) -> None:
    keys = [b"key%d" % number for number, copies in pattern for _ in range(copies)]
    shuffler.shuffle(keys)
    built = kernel.BumpedRibbonFilter.build(keys, seed=SEED, salt=SALT)
    assert built.num_keys == len(set(keys))
    assert all(built.might_contain_many(keys))
    assert built == kernel.BumpedRibbonFilter.build(sorted(set(keys)), seed=SEED, salt=SALT)


def unstepped(value: int) -> int:
    """The number whose step this is."""
    for multiplier in (0xC4CE_B9FE_1A85_EC53, 0xFF51_AFD7_ED55_8CCD):
        value = (value ^ value >> 33) * pow(multiplier, -1, 1 << 64) & MASK64
    return (value ^ value >> 33) - bumped_ribbon.STEP & MASK64


@pytest.mark.parametrize("spread", [1, 1 << 20, 1 << 50])
def test_hashes_that_all_start_together_are_bumped_and_kept(
    spread: int, rng: random.Random
) -> None:
    """The worst there can be: one bucket is asked for by all, which no salted digests do."""
    start = rng.getrandbits(63)
    hashes = [start + number * spread for number in range(3000)]
    mixed = [unstepped(value) for value in hashes]
    assert [banding.stepped(value) for value in mixed] == hashes
    bands, left_over = bands_of(mixed, SizingParameter("fpr", 0.01))
    assert len(bands[0].bumped) > 2500
    assert len(bands) <= bumped_ribbon.MAX_LAYERS
    assert left_over == sorted(set(left_over))
    owned = sum(sum(map(bool, each.coefficients)) for each in bands)
    assert owned + len(left_over) == 3000


def test_more_keys_than_layers_can_hold_are_left_over(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bumped_ribbon, "MAX_BLOCKS", 2)
    numbers = [rng.getrandbits(64) for _ in range(5000)]
    digests = digests_of(kernel, numbers)
    built = kernel.BumpedRibbonFilter.build(digests, salt=SALT)
    assert built.num_layers == bumped_ribbon.MAX_LAYERS
    assert built.num_left_over > 3500
    again = kernel.BumpedRibbonFilter.from_bytes(built.to_bytes())
    assert again.count_missing(digests) == 0
    assert again.num_left_over == built.num_left_over


# ---- the bits it takes, and the rate ----

RATES = [0.1, 0.0123, 0.01, 0.001, 1e-4, 1e-6]


@pytest.mark.skipif("native" not in kernels.available(), reason="it takes many keys")
@pytest.mark.parametrize("fpr", RATES)
@pytest.mark.parametrize(
    ("count", "times"),
    [(10_000, 5), (100_000, 2), pytest.param(1_000_000, 1, marks=effort("full"))],
)
def test_a_rate_costs_what_it_should(
    fpr: float, count: int, times: int, rng: random.Random
) -> None:
    """All stored bits within 6 % of the bound; at 10 % one in ten of the smallest is not."""
    native = kernels.load("native")
    numbers = [rng.getrandbits(64) for _ in range(count)]
    digests = digests_of(native, numbers)
    sizes = []
    for _ in range(times):
        built = native.BumpedRibbonFilter.build(digests, fpr=fpr, salt=rng.getrandbits(64))
        assert 0.99 * fpr < built.expected_fpr <= fpr * (1 + 1e-9)
        sizes.append(built.bits_per_key / sizing.lower_bound(fpr))
    assert sum(sizes) / times < 1.06
    assert max(sizes) < (1.075 if count == 10_000 and fpr == 0.1 else 1.06)
    predicted = sizing.bits_per_key("bumped-ribbon", n=count, fpr=fpr) + 384 / count
    stated = 0.02 if count == 10_000 else 0.01
    assert sum(sizes) / times * sizing.lower_bound(fpr) == pytest.approx(predicted, rel=stated)


@once
@pytest.mark.parametrize("bits_per_key", [1.1, 2, 4.3, 10, 10.5, 21.75, 34])
@pytest.mark.parametrize("count", [5000, 12_000])
def test_a_size_is_a_ceiling_that_is_used(
    kernel: ModuleType, bits_per_key: float, count: int, rng: random.Random
) -> None:
    built = random_filter(kernel, rng, count, bits_per_key=bits_per_key)
    payload = 8 * (built.size_in_bytes - 48) / count
    # One column there is at least, and 32 there are at most.
    assert payload <= max(bits_per_key, 1.22)
    assert payload > min(bits_per_key, 32) - 64 / count
    # What a block more or less leaves for the columns.
    rate = sizing.fpr("bumped-ribbon", n=count, bits_per_key=bits_per_key)
    doublings = math.log2(built.expected_fpr / rate)
    assert abs(doublings) < 0.1 + 200 * bits_per_key / count


def test_few_keys_keep_their_columns(kernel: ModuleType, rng: random.Random) -> None:
    """A size that has no room for anything but what is not columns is exceeded."""
    for count in (22, 50, 200):
        built = random_filter(kernel, rng, count, bits_per_key=10)
        assert built.num_columns >= 9
        assert built.expected_fpr <= 2**-9


@pytest.mark.parametrize("fpr", [2**-32, 1e-9, 1e-5, 0.0077, 0.25, 0.3, 0.5])
@pytest.mark.parametrize("count", [20, 100, 3000])
def test_the_ceiling_is_met_with_the_fewest_wide_blocks(
    kernel: ModuleType, fpr: float, count: int, rng: random.Random
) -> None:
    built = random_filter(kernel, rng, count, fpr=fpr)
    assert built.expected_fpr <= fpr * (1 + 1e-9)
    _, layers, columns, _ = bumped_ribbon.decode(built.to_bytes())
    if columns.wide_blocks > 1:
        fewer = Columns(columns.narrow, columns.wide_blocks - 2)  # one may have no starts
        assert bumped_ribbon.expected_fpr(layers, fewer) > fpr
    elif columns.narrow > 1:
        fewer = Columns(columns.narrow - 1, sum(layer.blocks for layer in layers))
        assert (
            not layers or bumped_ribbon.expected_fpr(layers, Columns(columns.narrow, 0)) > fpr / 2
        )


def test_the_expected_rate_is_what_every_start_answers(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Start by start, with codes of every kind."""
    for _ in range(30):
        layers = [
            Layer(blocks, bytes(rng.choice((0, 0, 0, 1, 2, 3)) for _ in range(blocks // 2)))
            for blocks in (rng.randrange(2, 12), rng.randrange(2, 6))
        ]
        blocks = sum(layer.blocks for layer in layers)
        columns = Columns(rng.randrange(1, 9), rng.randrange(blocks))
        rate, arriving, first = 0.0, 1.0, 0
        for layer in layers:
            bumped = 0
            for start in range(layer.starts):
                if start % 128 < bumped_ribbon.THRESHOLDS[layer.codes[start // 128]]:
                    bumped += 1
                    continue
                wide = first + start // 64 >= blocks - columns.wide_blocks
                rate += arriving / layer.starts * 2.0 ** -(columns.narrow + wide)
            arriving *= bumped / layer.starts
            first += layer.blocks
        assert bumped_ribbon.expected_fpr(layers, columns) == pytest.approx(rate)


@once
@pytest.mark.parametrize("size", [{"fpr": 0.01}, {"fpr": 0.2}, {"bits_per_key": 9.6}])
@pytest.mark.parametrize("count", [1, 15, 16, 40, 300, 1399, 1400, 30_000])
def test_predictions_hold(
    kernel: ModuleType, count: int, size: dict[str, float], rng: random.Random
) -> None:
    """Within 3 % of the payload; in a small set a block or a few hashes more or less."""
    built = random_filter(kernel, rng, count, **size)
    predicted = sizing.bits_per_key("bumped-ribbon", n=count, **size) * count / 8
    assert predicted == pytest.approx(built.size_in_bytes - 48, rel=0.03, abs=200)
    if "fpr" in size:
        rate = sizing.fpr("bumped-ribbon", n=count, **size)
        assert rate == pytest.approx(built.expected_fpr, rel=0.1)


def test_a_plan_for_very_many_keys_costs_no_memory() -> None:
    size = bumped_ribbon.plan(1 << 40, SizingParameter("fpr", 0.01))
    assert sizing.bits_per_key("bumped-ribbon", n=10**9, fpr=0.01) < 1.02 * math.log2(100)
    assert len(size.layers) <= bumped_ribbon.MAX_LAYERS


# ---- two kernels, one filter ----


@needs_native
@pytest.mark.parametrize("sections", [1, 2, 3, 40])
def test_twins_band_sections_alike(
    sections: int, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large layer is banded at four places at a time; here a small one is."""
    monkeypatch.setattr(bumped_ribbon, "MIN_SECTION_BUCKETS", sections)
    numbers = [rng.getrandbits(64) for _ in range(22_000)]
    one, two = (
        kernel.BumpedRibbonFilter.build(digests_of(kernel, numbers), salt=SALT)
        for kernel in twins()
    )
    assert one.to_bytes() == two.to_bytes()
    assert one.num_layers >= 2


@needs_native
def test_twins_bump_alike_whatever_the_geometry(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers that are far too small, so that every code and whole buckets are bumped."""
    codes: set[int] = set()
    for _ in range(12):
        shape = [rng.randrange(2, 30) for _ in range(rng.randrange(1, 9))]
        monkeypatch.setattr(
            bumped_ribbon, "blocks_for", lambda keys, layers, size, shape=shape: shape[layers:][:1]
        )
        numbers = [rng.getrandbits(64) for _ in range(rng.randrange(1, 3000))]
        size = rng.choice([{"fpr": 0.01}, {"fpr": 0.4}, {"bits_per_key": 7.7}])
        one, two = (
            kernel.BumpedRibbonFilter.build(digests_of(kernel, numbers), salt=SALT, **size)
            for kernel in twins()
        )
        assert one.to_bytes() == two.to_bytes()
        assert (one.num_layers, one.num_left_over) == (two.num_layers, two.num_left_over)
        for layer in bumped_ribbon.decode(two.to_bytes())[1]:
            codes |= set(layer.codes)
        asked = [rng.getrandbits(64) for _ in range(300)]
        for number in numbers + asked:
            assert one.might_contain_digest(number) == two.might_contain_digest(number)
        assert all(two.might_contain_digest(number) for number in numbers)
    assert codes == {0, 1, 2, 3}


@needs_native
@pytest.mark.parametrize("columns", [*range(1, 18), 24, 25, 31, 32])
def test_every_instruction_set_compares_every_number_of_columns_alike(
    columns: int, rng: random.Random
) -> None:
    python, native = twins()
    simd: Any = import_module("filters.kernels.native.simd")
    data = random_filter(python, rng, 800, fpr=max(2**-32, 2.0**-columns / 1.4)).to_bytes()
    reference = python.BumpedRibbonFilter.from_bytes(data)
    keys = random_keys(rng, 300)
    wanted = reference.might_contain_many(keys)
    before = simd.in_use()
    try:
        for level in simd.available():
            simd.use(level)
            built = native.BumpedRibbonFilter.from_bytes(data)
            assert built.might_contain_many(keys) == wanted
            assert [built.might_contain(key) for key in keys] == wanted
            members = native.BumpedRibbonFilter.build(keys, fpr=2.0**-columns)
            assert all(members.might_contain_many(keys))
    finally:
        simd.use(before)


@needs_native
def test_a_filter_that_denies_its_keys_is_not_handed_out(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What unsound memory does, done by hand: the codes are lost after banding."""
    native = twins()[1]
    whole = bumped_ribbon.head_of
    monkeypatch.setattr(
        bumped_ribbon,
        "head_of",
        lambda layers: whole(layers)[: 4 + 4 * len(layers)].ljust(len(whole(layers)), b"\0"),
    )
    with pytest.raises(FilterError, match=r"bumped-ribbon filter of 3000 keys denies \d+ of them"):
        random_filter(native, rng, 3000)
