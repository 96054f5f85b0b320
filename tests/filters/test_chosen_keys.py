"""Keys and digests that somebody chose: one key millions of times, digests for a known salt.

Whatever they are, a build ends, keeps every key, and counts a key that comes again once; or it is
refused with the reason, and what to do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from filters import FilterError, xor
from filters.families import FAMILIES
from filters.hashing import mix
from tests.effort import by_effort
from tests.filters.cases import Case, class_of, every_family

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
DISTINCT = [b"key%d" % i for i in range(1000)]


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


# ---- one key, over and over ----


@every_family
def test_one_key_many_times_is_one_key(kernel: ModuleType, case: Case) -> None:
    """LevelDB alone counts every time, and sizes its filter by that, too."""
    compiled = kernel.__name__.endswith("native")
    times = by_effort(50_000, 500_000, 10_000_000) if compiled else by_effort(9_000, 9_000, 10**6)
    built = case.build(kernel, [b"same"] * times, **secrets(case))
    assert built.might_contain(b"same")
    if case.family == "leveldb":
        assert built.num_keys == times
    else:
        assert built.to_bytes() == case.build(kernel, [b"same"], **secrets(case)).to_bytes()


@pytest.mark.parametrize("form", ["list", "digests"])
def test_a_key_that_comes_more_often_than_a_shard_holds_keys_is_one_key(
    kernel: ModuleType, form: str
) -> None:
    """As many as that are a sign of chosen digests, unless they are all the same."""
    keys: Any = [b"same"] * (xor.MAX_KEYS_IN_SHARD + 1) + DISTINCT
    if form == "digests":
        collected = kernel.XorFilter.digests(seed=SEED)
        collected.add_many(keys)
        built = kernel.XorFilter.build(collected, salt=SALT)
    else:
        built = kernel.XorFilter.build(keys, seed=SEED, salt=SALT)
    assert built == kernel.XorFilter.build([b"same", *DISTINCT], seed=SEED, salt=SALT)
    assert built.num_keys == 1001


def test_repeats_beside_too_many_different_keys_are_not_counted(
    kernel: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xor, "MAX_KEYS_IN_SHARD", 999)
    says = "1000 different keys of a xor .* holds 999: .* chosen for this salt; build without salt="
    with pytest.raises(FilterError, match=says) as refused:
        kernel.XorFilter.build(DISTINCT * 3, seed=SEED, salt=SALT)
    assert refused.value.__context__ is None
    assert kernel.XorFilter.build(DISTINCT[1:] * 3, seed=SEED, salt=SALT).num_keys == 999


# ---- digests for a known salt ----


def patterns(count: int) -> Iterator[tuple[str, list[int]]]:
    """Digests that share most of their bits, or come in even steps."""
    yield "ascending", list(range(count))
    yield "equal above", [(0xABCDE << 44) + i for i in range(count)]
    yield "equal below", [i << 40 & 2**64 - 1 for i in range(count)]
    yield "equal but for the middle", [i << 20 for i in range(count)]
    yield "next to the largest", [2**64 - 1 - i for i in range(count)]
    yield "two in turn", [7, 8] * (count // 2)
    yield "one bit each", [1 << i % 64 for i in range(count)]


def drawn(rng: random.Random, count: int, wanted: Callable[[int], bool]) -> list[int]:
    """Digests as an attacker finds them who knows the salt: by trying, until they suit."""
    found: list[int] = []
    while len(found) < count:
        digest = rng.getrandbits(64)
        if wanted(mix(digest, SALT)):
            found.append(digest)
    return found


def assert_nothing_is_lost(cls: Any, numbers: list[int], salted: bool) -> Any:
    digests = cls.digests(seed=SEED) if salted else cls.digests()
    for number in numbers:
        digests.add_digest(number)
    built = cls.build(digests, salt=SALT) if salted else cls.build(digests)
    assert built.count_missing(digests) == 0
    again = cls.from_bytes(built.to_bytes())
    assert again.count_missing(digests) == 0
    return built


DIGESTED = {"leveldb", "cassandra"}  # their digests are no 64 bits wide
every_family_of_64_bits = pytest.mark.parametrize(
    "name",
    [
        name
        for name, family in FAMILIES.items()
        if name not in DIGESTED and not family.answers_ranges
    ],
)


@every_family_of_64_bits
def test_digests_in_patterns_lose_no_key(kernel: ModuleType, name: str) -> None:
    compiled = kernel.__name__.endswith("native")
    count = by_effort(4_000, 50_000, 1_000_000) if compiled else by_effort(200, 1_000, 100_000)
    cls = class_of(kernel, name)
    for what, numbers in patterns(count):
        built = assert_nothing_is_lost(cls, numbers, name not in ("rocksdb", "ribbon"))
        if name not in ("rocksdb", "ribbon"):  # which drop only a key that equals the last
            assert built.num_keys == len(set(numbers)), what


@every_family_of_64_bits
def test_digests_that_meet_in_one_place_lose_no_key(
    kernel: ModuleType, name: str, rng: random.Random
) -> None:
    """In one shard, bucket or line, once they are salted: the table around them stays empty."""
    count, bits = by_effort((250, 6), (500, 6), (3_000, 8))
    cls = class_of(kernel, name)
    for wanted in (
        lambda mixed: mixed >> 64 - bits == 0,
        lambda mixed: mixed >> 64 - bits == 2**bits - 1,
        lambda mixed: mixed & 2**bits - 1 == 0,
        lambda mixed: mixed >> 32 - bits & 2**bits - 1 == 0,
    ):
        assert_nothing_is_lost(cls, drawn(rng, count, wanted), name not in ("rocksdb", "ribbon"))


def test_a_shard_beyond_its_share_is_built(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All keys in the first of the shards they are cut into, which they were planned to share."""
    for module in ("xor", "binary_fuse"):
        family = getattr(__import__("filters", fromlist=[module]), module)
        monkeypatch.setattr(family, "KEYS_PER_SHARD", 100)
        cls = class_of(kernel, family.FAMILY)
        built = assert_nothing_is_lost(cls, drawn(rng, 800, lambda mixed: mixed < 2**61), True)
        assert (built.num_shards, built.num_keys) == (8, 800)
