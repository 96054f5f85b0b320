"""Binary fuse and xor alike: every size, every pattern of duplicates, shards, sizes."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import FilterError, binary_fuse, kernels, peeled, xor
from filters.hashing import mix
from filters.header import OVERHEAD
from filters.kernels.python.peeled import cut
from tests.effort import examples, once
from tests.filters.cases import class_of, positives, random_keys

PEELED: tuple[Any, ...] = (binary_fuse, xor)

every_peeled_family = pytest.mark.parametrize("family", PEELED, ids=lambda each: each.FAMILY)


def random_digests(rng: random.Random, count: int) -> list[int]:
    return sorted({rng.getrandbits(64) for _ in range(count)})


def cls(kernel: ModuleType, family: Any) -> Any:
    return class_of(kernel, family.FAMILY)


def shard_of(kernel: ModuleType, family: Any, mixed: list[int], width: int) -> Any:
    """The shard that this kernel builds of salted digests."""
    return getattr(kernel, family.FAMILY.replace("-", "_")).build_shard(mixed, width)


@once
@every_peeled_family
def test_no_size_up_to_twenty_thousand_fails(
    kernel: ModuleType, family: Any, rng: random.Random
) -> None:
    """In steps that meet every segment length; each size once is the long run's."""
    digests = [rng.getrandbits(64) for _ in range(20_000)]
    steps = [*range(200), *range(200, 4000, 61), *range(4000, 20_001, 397)]
    if family is xor and kernel is kernels.load("python"):
        steps = steps[::5]  # peeled in Python, each takes a fifth of a second
    for count in steps:
        shard = shard_of(kernel, family, sorted(digests[:count]), 8 << count % 2)
        assert shard.geometry.slots <= max(12, 1.05 * family.plan(count).slots)


@every_peeled_family
@examples(60)
@given(
    pattern=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 30)), max_size=80),
    width=st.sampled_from([8, 16]),
    shuffler=st.randoms(use_true_random=False),
)
def test_no_pattern_of_duplicates_fails(
    kernel: ModuleType,
    family: Any,
    pattern: list[tuple[int, int]],
    width: int,
    shuffler: random.Random,
) -> None:
    keys = [b"key%d" % number for number, copies in pattern for _ in range(copies)]
    shuffler.shuffle(keys)
    built = cls(kernel, family).build(keys, fingerprint_bits=width)
    assert built.num_keys == len(set(keys))
    assert all(built.might_contain_many(keys))


@once
@every_peeled_family
@pytest.mark.parametrize("copies", [2, 4, 25])
def test_large_sets_of_duplicates_build(
    kernel: ModuleType, family: Any, copies: int, rng: random.Random
) -> None:
    """Each key twice, shuffled, is what the library's own deduplication cannot sort out."""
    keys = random_keys(rng, 50_000 // copies) * copies
    rng.shuffle(keys)
    built = cls(kernel, family).build(keys)
    assert built.num_keys == len(keys) // copies
    assert all(built.might_contain_many(keys))


@every_peeled_family
def test_digests_that_only_differ_above_still_build(kernel: ModuleType, family: Any) -> None:
    """Digests equal in their low 32 bits, which other implementations sort wrongly."""
    digests = sorted({mix(number << 32 | 0xDEAD, 0) for number in range(20_000)})
    assert shard_of(kernel, family, digests, 8).geometry == family.plan(len(digests))
    raw = sorted(number << 32 | 0xDEAD for number in range(20_000))
    assert shard_of(kernel, family, raw, 8) is not None


@once
@every_peeled_family
def test_a_set_is_cut_into_shards_and_a_probe_touches_one(
    kernel: ModuleType, family: Any, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "KEYS_PER_SHARD", 1000)
    keys = random_keys(rng, 15_000)
    for width in (8, 16):
        built = cls(kernel, family).build(keys, fingerprint_bits=width)
        assert built.num_shards == 16
        again = cls(kernel, family).from_bytes(built.to_bytes())
        assert again.num_shards == 16
        assert all(again.might_contain_many(keys))
        others = positives(again, random_keys(rng, 20_000, length=9)) / 20_000
        assert others == pytest.approx(2.0**-width, abs=0.002)
        payload = built.size_in_bytes - OVERHEAD
        assert payload * 8 / 15_000 < 1.6 * width


def test_cutting_keeps_every_digest_in_order(rng: random.Random) -> None:
    mixed = [0, *random_digests(rng, 5000), 2**64 - 1]
    assert cut(mixed, 1) == [mixed]
    parts = cut(mixed, 8)
    assert len(parts) == 8
    assert [digest for part in parts for digest in part] == mixed
    for index, part in enumerate(parts):
        assert {digest >> 61 for digest in part} == {index}


@every_peeled_family
@pytest.mark.parametrize(
    ("size", "bits"),
    [
        ({}, 8),
        ({"bits_per_key": 10}, 8),
        ({"bits_per_key": 17.9}, 8),
        ({"bits_per_key": 20}, 16),
        ({"fpr": 0.5}, 8),
        ({"fpr": 1 / 256}, 8),
        ({"fpr": 0.0039}, 16),
        ({"fingerprint_bits": 16}, 16),
    ],
    ids=str,
)
def test_sizes_become_eight_or_sixteen_bits(
    kernel: ModuleType, family: Any, size: dict[str, float], bits: int
) -> None:
    assert cls(kernel, family).build([b"a"], **size).fingerprint_bits == bits


@pytest.mark.parametrize(
    ("family", "least", "enough"),
    [(binary_fuse, 9, 18), (xor, 9.84, 19.68)],
    ids=["binary-fuse", "xor"],
)
def test_sixteen_bits_are_taken_from_where_they_fit(
    family: Any, least: float, enough: float
) -> None:
    def bits(size: float) -> int:
        return int(family.fingerprint_bits_for(family.check(bits_per_key=size)))

    assert [bits(least), bits(enough - 0.001), bits(enough)] == [8, 8, 16]
    with pytest.raises(ValueError, match=f"bits_per_key of a {family.FAMILY} filter is out"):
        bits(least - 0.001)


@every_peeled_family
@pytest.mark.parametrize("bits", [7, 9, 12, 15, 17])
def test_other_fingerprints_are_refused(kernel: ModuleType, family: Any, bits: int) -> None:
    with pytest.raises(ValueError, match=f"fingerprint_bits of a {family.FAMILY} filter is"):
        cls(kernel, family).build([b"a"], fingerprint_bits=bits)


@every_peeled_family
def test_every_geometry_is_larger_than_the_one_that_failed(family: Any) -> None:
    for count in (0, 1, 10, 3000, 30_000):
        tried = []
        with pytest.raises(FilterError, match=f"no {family.FAMILY} filter of {count} keys.*memory"):
            family.build_shard(count, tried.append)
        slots = [geometry.slots for geometry in tried]
        assert slots == sorted(set(slots))
        assert len(slots) == peeled.GEOMETRIES
        assert slots[0] == family.plan(count).slots
        assert slots[-1] > 1.9 * slots[0]


@every_peeled_family
def test_a_larger_geometry_is_used_where_no_seed_fits_the_first(
    kernel: ModuleType, family: Any, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight = {binary_fuse: binary_fuse.Geometry(32, 1), xor: xor.Geometry(32)}[family]
    monkeypatch.setattr(family, "plan", lambda _: tight)
    mixed = random_digests(rng, 100)
    assert tight.slots < 100
    shard = shard_of(kernel, family, mixed, 8)
    assert shard.geometry.slots > 100
    assert family.build_shard(100, lambda geometry: geometry) == tight


@every_peeled_family
def test_geometry_is_read_not_recomputed(
    kernel: ModuleType, family: Any, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = random_keys(rng, 3000)
    data = cls(kernel, family).build(keys).to_bytes()

    def not_for_readers(*_: Any) -> Any:
        pytest.fail("the geometry was recomputed")

    monkeypatch.setattr(family, "plan", not_for_readers)
    assert all(cls(kernel, family).from_bytes(data).might_contain_many(keys))
