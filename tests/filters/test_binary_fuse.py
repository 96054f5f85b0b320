"""Binary fuse: both builders, the sizes that fail elsewhere, and the library's traps."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import struct
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from filters import FilterError, binary_fuse
from filters.binary_fuse import Geometry
from filters.kernels import fuse_library
from filters.kernels.python.binary_fuse import populate
from tests.filters.cases import random_keys
from tests.filters.test_peeled import random_digests

needs_library = pytest.mark.skipif(
    fuse_library.why_not() is not None, reason=str(fuse_library.why_not())
)


@needs_library
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("count", [*range(33), 100, 333, 1000, 3333, 4097, 11_480, 20_000, 60_000])
def test_the_library_and_python_build_the_same_bytes(
    width: int, count: int, rng: random.Random
) -> None:
    mixed = random_digests(rng, count)
    geometry = binary_fuse.plan(count)
    ours = populate(mixed, geometry, width)
    theirs = fuse_library.populate(mixed, geometry, width)
    assert ours == theirs
    assert ours is not None
    assert type(ours.fingerprints) is bytes


@needs_library
def test_both_builders_fail_on_the_same_geometry(rng: random.Random) -> None:
    mixed = random_digests(rng, 100)
    tight = Geometry(segment_length=32, segment_count=1)
    assert tight.slots < 100
    assert populate(mixed, tight, 8) is None
    assert fuse_library.populate(mixed, tight, 8) is None


@pytest.mark.parametrize("count", [3450, 3500, 11_480, 11_504, 11_521, 13_500, 38_200])
def test_the_sizes_that_fail_elsewhere_build_at_the_first_geometry(
    kernel: ModuleType, count: int, rng: random.Random
) -> None:
    for _ in range(5):
        shard = kernel.binary_fuse.build_shard(random_digests(rng, count), 8)
        assert shard.geometry == binary_fuse.plan(count)


@pytest.mark.parametrize(
    ("count", "shards"),
    [(0, 1), (1, 1), (1 << 20, 1), ((1 << 20) + 1, 2), (8_400_000, 16), (1 << 30, 1024)],
)
def test_shards_hold_at_most_a_million_keys_or_so(count: int, shards: int) -> None:
    assert binary_fuse.shard_count(count) == shards


@pytest.mark.parametrize("count", [1000, 10_000, 100_000])
def test_size_in_bits_per_key(kernel: ModuleType, count: int, rng: random.Random) -> None:
    expected = {1000: 11.6, 10_000: 10.1, 100_000: 9.5}[count]
    built = kernel.BinaryFuseFilter.build(random_keys(rng, count))
    assert built.bits_per_key <= expected * 1.02


class TestTheLibrary:
    """What pyfusefilter does to those who trust it, and that it does not happen here."""

    @needs_library
    def test_input_is_left_alone(self, rng: random.Random) -> None:
        """populate() writes into its input where it finds duplicates, const or not."""
        mixed = random_digests(rng, 3000)
        mixed = sorted(mixed + mixed[:20])
        kept = list(mixed)
        given_array = array("Q", mixed)
        fuse_library.populate(given_array, binary_fuse.plan(len(mixed)), 8)
        assert mixed == kept
        assert list(given_array) == kept

    @needs_library
    def test_failure_is_never_a_filter(
        self, rng: random.Random, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """populate() returns False on failure and leaves an array that denies its keys."""
        monkeypatch.setattr(binary_fuse, "plan", lambda _: Geometry(16, 1))
        shard_of = sys.modules["filters.kernels.python.binary_fuse"].build_shard
        mixed = random_digests(rng, 400)
        shard = shard_of(mixed, 8)
        assert shard.geometry.slots > 400

    @needs_library
    @pytest.mark.parametrize("width", [8, 16])
    def test_its_cliff_past_eight_million_keys_is_out_of_reach(self, width: int) -> None:
        """Its 8-bit builder loses the upper bits of a product from 2^32 / 512 keys on."""
        assert 2 * binary_fuse.KEYS_PER_SHARD < 2**32 // 512
        assert binary_fuse.shard_count(30_000_000) * binary_fuse.KEYS_PER_SHARD >= 30_000_000
        assert (
            binary_fuse.size_of(30_000_000, binary_fuse.check(fingerprint_bits=width)).shards == 32
        )

    @needs_library
    def test_a_changed_struct_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(fuse_library._FIELDS, "Salt", "uint64_t")
        fuse_library.why_not.cache_clear()
        try:
            assert "another binary_fuse8_t" in str(fuse_library.why_not())
        finally:
            monkeypatch.undo()
            fuse_library.why_not.cache_clear()
        assert fuse_library.why_not() is None

    def test_without_it_python_builds_the_same_filter(
        self, kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keys = random_keys(rng, 2000)
        with_library = kernel.BinaryFuseFilter.build(keys, seed=1, salt=2)
        monkeypatch.setitem(sys.modules, "pyfusefilter", None)
        monkeypatch.setitem(sys.modules, "pyfusefilter._xorfilter", None)
        fuse_library.why_not.cache_clear()
        try:
            assert "pyfusefilter is not installed" in str(fuse_library.why_not())
            assert kernel.BinaryFuseFilter.build(keys, seed=1, salt=2) == with_library
        finally:
            monkeypatch.undo()
            fuse_library.why_not.cache_clear()

    def test_keys_are_hashed_as_bytes(self, kernel: ModuleType) -> None:
        """Its class API hashes str(key): a memoryview by its address, b'a' like "b'a'"."""
        built = kernel.BinaryFuseFilter.build([memoryview(b"key")], fingerprint_bits=16)
        assert built.might_contain(b"key")
        assert not built.might_contain(b"b'key'")

    def test_copies_own_what_they_answer_from(self, kernel: ModuleType) -> None:
        """A copy of its objects shares memory that the first of them frees."""
        keys = [b"%d" % i for i in range(500)]
        built = kernel.BinaryFuseFilter.build(keys)
        copies = [copy.copy(built), copy.deepcopy(built), pickle.loads(pickle.dumps(built))]
        del built
        gc.collect()
        assert all(all(each.might_contain_many(keys)) for each in copies)

    def test_two_threads_may_build_at_once(self, kernel: ModuleType, rng: random.Random) -> None:
        """It gives up the GIL while it builds; no state is shared between two builds."""
        sets = [random_keys(rng, 4000) for _ in range(8)]
        with ThreadPoolExecutor(4) as pool:
            built = list(pool.map(lambda keys: kernel.BinaryFuseFilter.build(keys), sets))
        for each, keys in zip(built, sets, strict=True):
            assert all(each.might_contain_many(keys))

    def test_nothing_on_disk_is_given_to_it(self, kernel: ModuleType) -> None:
        """Its deserialize() follows forged lengths out of bounds; ours refuses them."""
        keys = [b"%d" % i for i in range(50)]
        data = kernel.BinaryFuseFilter.build(keys).to_bytes()
        foreign = struct.pack("<QLLLLL", 1, 50, 16, 3, 48, 2**32 - 1) + bytes(80)
        for wrong in (b"", foreign, foreign[:28], data[:60], data[28:]):
            with pytest.raises(FilterError):
                kernel.BinaryFuseFilter.from_bytes(wrong)
