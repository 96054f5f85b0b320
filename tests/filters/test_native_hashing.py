"""What the compiled filters hash a key to, seen through their answers and their bytes.

``test_native_hashes.py`` asks the functions; here it is every place they are compiled into: probes
of one key and of many, packed keys, digests, and each family's own copy of what is inlined.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest
from xxhash import xxh3_64_intdigest

from filters import PackedKeys
from filters.compat_hashing import cassandra_hash, leveldb_hash, rocksdb_hash, xxph3_64
from tests.filters.cases import Case, needs_native, twins
from tests.filters.test_rocksdb import build_legacy

pytestmark = needs_native

SALT = 0xFEDC_BA98_7654_3210
LENGTHS = [*range(601), 1023, 1024, 1025, 1087, 1088, 1089, 2047, 2048, 2049, 4097, 65_536]

# As sure of themselves as each family gets: a wrong hash is denied.
SURE = [
    Case("classic", {"fpr": 1e-12}),
    Case("counting", {"fpr": 1e-12}),
    Case("cuckoo", {"fingerprint_bits": 32}),
    Case("blocked", {"bits_per_key": 60}),
    Case("binary-fuse", {"fingerprint_bits": 16}),
    Case("xor", {"fingerprint_bits": 16}),
    Case("bumped-ribbon", {"fpr": 2**-32}),
    Case("leveldb", {"bits_per_key": 100}),
    Case("rocksdb", {"bits_per_key": 100}),
    Case("ribbon", {"bits_per_key": 100}),
    Case("cassandra", {"fp_chance": 7e-5}),
]
HASHES: dict[str, Callable[[bytes], int]] = {
    "leveldb": leveldb_hash,
    "rocksdb": xxph3_64,
    "ribbon": xxph3_64,
    "cassandra": cassandra_hash,
}
SEEDS = [0, 1, 2**32, 2**63, 2**64 - 1, 0x9E37_79B9_7F4A_7C15]

every_sure_family = pytest.mark.parametrize("case", SURE, ids=str)


def contents(rng: random.Random) -> list[bytes]:
    """A key of every length of random bytes, of zeros, and of bytes above 127."""
    keys = [rng.randbytes(length) for length in LENGTHS]
    keys += [bytes(length) for length in LENGTHS[1:]]
    return keys + [b"\xff" * length for length in LENGTHS[1:]]


def packed(keys: list[bytes]) -> PackedKeys:
    return PackedKeys(b"".join(keys), offsets=array("q", accumulate(map(len, keys), initial=0)))


def oracle(case: Case, seed: int) -> Callable[[bytes], int]:
    """Who defined the hash, or what is held to published values."""
    if case.salted:
        return lambda key: xxh3_64_intdigest(key, seed)
    return HASHES[case.family]


def wrong_lengths(keys: list[bytes], answers: list[bool]) -> list[int]:
    return sorted({len(key) for key, answer in zip(keys, answers, strict=True) if not answer})


def collected(native: ModuleType, case: Case, seed: int, numbers: list[int]) -> Any:
    digests = case.cls(native).digests(**({"seed": seed} if case.salted else {}))
    for number in numbers:
        digests.add_digest(number)
    return digests


@every_sure_family
def test_every_place_that_hashes_a_key_hashes_it_right(case: Case, rng: random.Random) -> None:
    """Against a filter of digests that the library computed."""
    native = twins()[1]
    keys = contents(rng)
    for seed in [*SEEDS, rng.getrandbits(64)] if case.salted else [0]:
        salt = {"salt": SALT} if case.salted else {}
        numbers = [oracle(case, seed)(key) for key in keys]
        true = case.build(native, collected(native, case, seed, numbers), **salt)
        # Some absent keys, so that "yes" means something.
        shifted = [number ^ 1 << 31 for number in numbers[:200]]
        assert true.count_missing(collected(native, case, seed, shifted)) > 190
        assert wrong_lengths(keys, [true.might_contain(key) for key in keys]) == []
        assert wrong_lengths(keys, true.might_contain_many(keys)) == []
        assert wrong_lengths(keys, true.might_contain_many(packed(keys))) == []
        assert wrong_lengths(keys, true.might_contain_many([bytearray(k) for k in keys])) == []
        for width in (1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 600):
            key = next(key for key in keys if len(key) == width)
            assert true.might_contain_many(PackedKeys(key * 3, width=width)) == [True] * 3
        secrets = {"seed": seed, "salt": SALT} if case.salted else {}
        for given_keys in (keys, packed(keys)):
            assert case.build(native, given_keys, **secrets) == true
        digests = collected(native, case, seed, [])
        for key in keys[:50]:
            digests.add(key)
        digests.add_many(keys[50:700])
        digests.add_many(packed(keys[700:]))
        assert case.build(native, digests, **salt) == true


@pytest.mark.parametrize("case", SURE[:4:2] + SURE[1:2] + SURE[3:4], ids=str)
def test_keys_are_added_and_removed_by_their_right_hash(case: Case, rng: random.Random) -> None:
    native = twins()[1]
    keys = contents(rng)[:700]
    seed = rng.getrandbits(64)
    numbers = [xxh3_64_intdigest(key, seed) for key in keys]
    sizes = {"num_keys": 1000, "seed": seed, "salt": SALT}
    grown, batched = (case.cls(native).with_capacity(**sizes) for _ in range(2))
    for key in keys:
        grown.add(key)
    batched.add_many(packed(keys))
    assert batched == grown
    assert all(grown.might_contain_digest(number) for number in numbers)
    assert grown.count_missing(collected(native, case, seed, numbers)) == 0
    if hasattr(grown, "remove"):
        assert all(grown.remove(key) for key in keys)
        empty = case.cls(native).with_capacity(**sizes)
        assert grown.to_bytes() == empty.to_bytes()


@pytest.mark.parametrize("level", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("case", [SURE[3], SURE[5], SURE[7]], ids=str)
def test_every_level_hashes_alike(case: Case, level: str, rng: random.Random) -> None:
    """Each has its own copy of what is inlined."""
    native = twins()[1]
    simd: Any = import_module("filters.kernels.native.simd")
    if level not in simd.available():
        pytest.skip(f"this processor has no {level}")
    keys = contents(rng)
    seed = rng.getrandbits(64)
    numbers = [oracle(case, seed)(key) for key in keys]
    salt = {"salt": SALT} if case.salted else {}
    before = simd.in_use()
    simd.use(level)
    try:
        true = case.build(native, collected(native, case, seed, numbers), **salt)
    finally:
        simd.use(before)
    assert wrong_lengths(keys, [true.might_contain(key) for key in keys]) == []
    if case.salted:
        assert all(true.might_contain_digest(number) for number in numbers)


def test_legacy_filters_hash_by_the_hash_of_their_day(rng: random.Random) -> None:
    """The readers' bits are set here by the readable hash; sign and all."""
    native = twins()[1]
    keys = contents(rng)
    read = native.RocksDBBloomFilter.from_bytes(build_legacy(keys, 44))
    assert read.form == "legacy"
    assert wrong_lengths(keys, [read.might_contain(key) for key in keys]) == []
    assert wrong_lengths(keys, read.might_contain_many(keys)) == []
    assert wrong_lengths(keys, read.might_contain_many(packed(keys))) == []
    absent = [rng.randbytes(length) for length in range(4, 601)]
    assert sum(read.might_contain_many(absent)) < 30
    # LevelDB's hash is another one wherever the last one to three bytes are above 127.
    other = [b"\xff" * length for length in range(1, 600) if length % 4]
    assert all(leveldb_hash(key) != rocksdb_hash(key) for key in other)


def test_the_secret_seed_decides(rng: random.Random) -> None:
    """A filter under one seed knows nothing of digests under another."""
    native = twins()[1]
    keys = contents(rng)[:300]
    for case in SURE[:5]:
        for seed in SEEDS:
            built = case.build(native, keys, seed=seed, salt=SALT)
            others = [xxh3_64_intdigest(key, seed ^ 1) for key in keys]
            assert sum(map(built.might_contain_digest, others)) < 5
            numbers = [xxh3_64_intdigest(key, seed) for key in keys]
            assert all(map(built.might_contain_digest, numbers))
