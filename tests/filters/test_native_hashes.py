"""The compiled hashes, against the library and the readable ones, at every length."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

import pytest

from filters import compat_hashing, hashing
from tests.filters.cases import needs_native

pytestmark = needs_native

LENGTHS = [*range(601), 1023, 1024, 1025, 2048, 2049, 4095, 4096, 10_000, 65_535, 70_001]


@pytest.fixture(scope="module")
def native() -> Any:
    return import_module("filters.kernels.native.hashing")


def contents(rng: random.Random, length: int) -> list[bytes]:
    return [rng.randbytes(length), bytes(length), b"\xff" * length]


def test_xxh3_under_any_seed(native: Any, rng: random.Random) -> None:
    for length in LENGTHS:
        for key in contents(rng, length):
            for seed in (0, 2**64 - 1, rng.getrandbits(64)):
                assert native.digest(key, seed) == hashing.digest(key, seed), (key, seed)


def test_the_hashes_of_the_ancestors(native: Any, rng: random.Random) -> None:
    for length in LENGTHS:
        for key in contents(rng, length):
            assert native.xxph3_64(key) == compat_hashing.xxph3_64(key), key
            assert native.cassandra_hash(key) == compat_hashing.cassandra_hash(key), key
            for name in ("leveldb_hash", "rocksdb_hash"):
                assert getattr(native, name)(key) == getattr(compat_hashing, name)(key), key
                seed = rng.getrandbits(32)
                ours = getattr(native, name)(key, seed)
                assert ours == getattr(compat_hashing, name)(key, seed), (key, seed)


def test_the_salt_is_folded_in_alike(native: Any, rng: random.Random) -> None:
    numbers = [0, 1, 2**63, 2**64 - 1, *(rng.getrandbits(64) for _ in range(300))]
    for digest in numbers:
        for salt in numbers[:20]:
            assert native.mix(digest, salt) == hashing.mix(digest, salt)


def test_keys_are_bytes_like_or_text_and_seeds_have_64_bits(native: Any) -> None:
    assert native.digest(bytearray(b"key"), 7) == native.digest(memoryview(b"key"), 7)
    assert native.digest("k\u00e9y", 7) == native.digest("k\u00e9y".encode(), 7)
    with pytest.raises(TypeError, match="a key is bytes-like or str, not int: pass bytes"):
        native.digest(7, 7)
    with pytest.raises(OverflowError):
        native.digest(b"key", 2**64)
    with pytest.raises(OverflowError):
        native.digest(b"key", -1)
