"""The xor filter: what is its own beside ``test_peeled.py``."""

from __future__ import annotations

import random
import struct
from types import ModuleType

import pytest

from filters import CorruptFilterError, FilterError, binary_fuse, sizing, xor
from filters.header import OVERHEAD
from filters.kernels.python import peeling
from filters.peeled import Size
from tests.filters.cases import needs_native, random_keys, twins
from tests.filters.test_damage import forged
from tests.filters.test_peeled import random_digests

# Between these numbers of keys, and for good from the third on; docs/families.md has them, too.
SMALLER_FROM, SMALLER_TO, NEVER_FROM = 56, 16_210, 27_453


def bits_saved(count: int, width: int) -> int:
    """How many bits fewer an xor filter takes than a binary fuse filter of the same keys."""
    size = xor.check(fingerprint_bits=width)
    ours, theirs = xor.size_of(count, size), binary_fuse.size_of(count, size)
    return 8 * (binary_fuse.payload_bytes(theirs) - xor.payload_bytes(ours))


@pytest.mark.parametrize("width", [8, 16])
def test_small_sets_take_fewer_bits_than_in_a_binary_fuse_filter_and_large_ones_never(
    width: int, rng: random.Random
) -> None:
    assert all(bits_saved(count, width) > 0 for count in range(SMALLER_FROM, SMALLER_TO + 1))
    assert all(bits_saved(count, width) <= 0 for count in range(NEVER_FROM, 3 * NEVER_FROM))
    assert all(bits_saved(round(10 ** rng.uniform(4.9, 9)), width) < 0 for _ in range(5000))


def test_the_crossover_lies_where_it_is_said_to_lie() -> None:
    def saved(count: int) -> list[int]:
        return [bits_saved(count, width) for width in (8, 16)]

    assert min(saved(SMALLER_FROM - 1)) <= 0
    assert min(saved(SMALLER_TO + 1)) <= 0
    assert max(saved(NEVER_FROM - 1)) > 0


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(
    ("count", "times"), [(1000, 1.272), (10_000, 1.234), (100_000, 1.2304), (1_000_000, 1.2304)]
)
def test_bits_per_key_beside_the_lower_bound(count: int, times: float, width: int) -> None:
    """1.23 slots a key, and what small sets take beyond."""
    bits = sizing.bits_per_key("xor", n=count, fingerprint_bits=width)
    rate = sizing.fpr("xor", n=count, fingerprint_bits=width)
    assert rate == 2.0**-width
    assert bits / sizing.lower_bound(rate) == pytest.approx(times, rel=0.005)


@pytest.mark.parametrize("count", [1000, 10_000, 40_000])
def test_what_is_built_has_the_predicted_size(
    kernel: ModuleType, count: int, rng: random.Random
) -> None:
    """Shards are of slightly different sizes, and each rounds its blocks down."""
    built = kernel.XorFilter.build(random_keys(rng, count))
    payload = (built.size_in_bytes - OVERHEAD) * 8 / count
    assert payload == pytest.approx(sizing.bits_per_key("xor", n=count), rel=2e-4)


@pytest.mark.parametrize(
    ("count", "shards"),
    [(0, 1), (1, 1), (1 << 15, 1), ((1 << 15) + 1, 2), (1_000_000, 32), (1 << 30, 1 << 15)],
)
def test_a_shard_fits_into_the_cache(count: int, shards: int) -> None:
    assert xor.shard_count(count) == shards
    assert 12 * xor.plan(-(-count // shards)).slots < 1 << 19


@pytest.mark.parametrize(("count", "length"), [(0, 10), (1, 11), (2, 11), (1000, 420), (77, 42)])
def test_blocks_are_those_of_the_paper(count: int, length: int) -> None:
    assert xor.plan(count).block_length == length == int(32 + 1.23 * count) // 3


def test_a_key_has_a_slot_in_each_block(kernel: ModuleType, rng: random.Random) -> None:
    """Under blocks of any length, the largest of all included, and all over them."""
    for length in (1, 2, 3, 1000, 2**32 - 1):
        geometry = xor.Geometry(length)
        blocks: list[set[int]] = [set(), set(), set()]
        for value in [0, 2**64 - 1, *(rng.getrandbits(64) for _ in range(500))]:
            for block, slot in enumerate(kernel.xor.slots_of(value, geometry)):
                assert block * length <= slot < (block + 1) * length
                blocks[block].add(slot)
        assert min(map(len, blocks)) >= min(length, 300)


@needs_native
def test_both_kernels_find_the_same_slots_and_shards(rng: random.Random) -> None:
    python, native = (kernel.xor for kernel in twins())  # type: ignore[attr-defined]
    for _ in range(300):
        value, geometry = rng.getrandbits(64), xor.Geometry(rng.randrange(1, 2**32))
        assert native.slots_of(value, geometry) == python.slots_of(value, geometry)
    for count in [*range(40), 300, 1000]:
        mixed, geometry = random_digests(rng, count), xor.plan(count)
        for width in (8, 16):
            one, two = (each.populate(mixed, geometry, width) for each in (python, native))
            assert one == two
            assert one is not None


def test_a_geometry_too_small_for_its_keys_is_no_shard(
    kernel: ModuleType, rng: random.Random
) -> None:
    assert kernel.xor.populate(random_digests(rng, 100), xor.Geometry(32), 8) is None


def test_more_keys_in_a_shard_than_it_holds_are_refused(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but digests chosen for a known salt brings that about."""
    monkeypatch.setattr(xor, "MAX_KEYS_IN_SHARD", 999)
    with pytest.raises(FilterError, match="1000 different keys of a xor .* holds 999"):
        kernel.XorFilter.build(random_keys(rng, 1000))
    assert kernel.XorFilter.build(random_keys(rng, 999)).num_keys == 999


def test_the_largest_shard_is_within_what_the_compiled_builder_tells_apart(
    kernel: ModuleType, rng: random.Random
) -> None:
    """Slots a million apart, in a shard with next to no keys: full ones take seconds."""
    geometry = xor.plan(xor.MAX_KEYS_IN_SHARD)
    mixed = random_digests(rng, 300)
    shard = kernel.xor.populate(mixed, geometry, 16)
    for each in mixed:
        value = peeling.rehash(each, shard.seed)
        places = (2 * slot for slot in kernel.xor.slots_of(value, geometry))
        one, two, three = (
            int.from_bytes(shard.fingerprints[at : at + 2], "little") for at in places
        )
        assert one ^ two ^ three == peeling.fingerprint_of(value, 16)


@needs_native
def test_the_compiled_builder_refuses_what_its_words_cannot_hold() -> None:
    _, native = twins()
    beyond = xor.Geometry((1 << 20) // 3 + 1)
    assert native.xor.populate([1, 2, 3], xor.Geometry(beyond.block_length - 1), 8) is not None
    assert native.xor.populate([1, 2, 3], beyond, 8) is None
    assert native.xor.populate([1, 2, 3], xor.Geometry(0), 8) is None


@pytest.mark.parametrize(("block_length", "reason"), [(0, "no slot"), (12, "do not fit")])
def test_forged_blocks_are_refused(kernel: ModuleType, block_length: int, reason: str) -> None:
    data = kernel.XorFilter.build([b"a", b"b"]).to_bytes()
    assert struct.unpack_from("<L", data, 48) == (11,)
    for length in (block_length, block_length + (1 << 31) if block_length else 0):
        with pytest.raises(CorruptFilterError, match=f"shard 0 of a xor filter claims .*{reason}"):
            kernel.XorFilter.from_bytes(forged(data, 48, "<L", length))
    with pytest.raises(CorruptFilterError, match="3 bytes behind its last shard"):
        kernel.XorFilter.from_bytes(forged(data, 48, "<L", 10))


def test_a_size_is_what_it_takes() -> None:
    assert xor.payload_bytes(Size(4, xor.Geometry(11), 16)) == 4 * (12 + 66)
