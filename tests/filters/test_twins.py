"""The readable kernel and the compiled one are one: the same bytes, answers, errors and names."""

from __future__ import annotations

import copy
import gc
import inspect
import mmap
import pickle
import random
import re
import struct
from array import array
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

import filters
from filters import CapacityError, CorruptFilterError, PackedKeys, binary_fuse, cuckoo, xor
from filters.compat_hashing import leveldb_hash
from filters.families import FAMILIES
from filters.hashing import mix
from tests.effort import examples
from tests.filters.cases import (
    CASES,
    DEFAULTS,
    GROWING,
    OF_A_RATE_ONLY,
    OF_ANY_CAPACITY,
    SALTED_DEFAULTS,
    Case,
    every_case,
    every_family,
    every_growing_family,
    every_salted_digested_family,
    every_salted_family,
    needs_native,
    outcome,
    over_filling,
    random_keys,
    twins,
)
from tests.filters.test_rocksdb import TRAILERS, build_legacy
from tests.interpreter import fresh

pytestmark = needs_native

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
ABSENT = [b"absent%d" % i for i in range(40)]
NUMBERS64 = st.one_of(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))


def spread(key: bytes) -> memoryview:
    """The key as a view of every other byte."""
    return memoryview(bytes(each for byte in key for each in (byte, 0xEE)))[::2]


class Bytes(bytes):
    """Bytes by another name."""


FORMS: list[Callable[[bytes], Any]] = [bytes, bytearray, memoryview, spread, Bytes]
KEY = st.one_of(st.binary(max_size=20), st.binary(max_size=300), st.sampled_from([b"a", b"b", b""]))


@st.composite
def key_sets(draw: st.DrawFn) -> list[Any]:
    """Up to 64 keys, some of them repeats, in any form that bytes have."""
    pool = draw(st.lists(KEY, max_size=64))
    repeats = draw(st.lists(st.sampled_from(pool), max_size=64 - len(pool))) if pool else []
    keys = draw(st.permutations(pool + repeats))
    return [draw(st.sampled_from(FORMS))(key) for key in keys]


def secrets(case: Case, seed: int = SEED, salt: int = SALT) -> dict[str, int]:
    return {"seed": seed, "salt": salt} if case.salted else {}


# Where the rate may be measured on the filter itself, in seconds of Python.
MEASURED = {"expected_fpr", "_measured_fpr"}


def told(built: Any, *, skip: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """Everything that a filter tells about itself."""
    names = [name for name in dir(built) if not name.startswith("_") and name not in skip]
    values = {name: getattr(built, name) for name in names}
    facts = {name: value for name, value in values.items() if not callable(value)}
    return {**facts, "bytes": built.to_bytes(), "repr": repr(built)}


def answers(built: Any, keys: list[Any]) -> list[bool]:
    """The answers to many keys, which are those to each of them and to its digest."""
    many = built.might_contain_many(keys)
    assert many == [built.might_contain(key) for key in keys]
    if hasattr(built, "digest_seed"):
        digests = [filters.digest(key, built.digest_seed) for key in keys]
        assert many == [built.might_contain_digest(digest) for digest in digests]
    assert {type(answer) for answer in many} <= {bool}
    return list(many)


def assert_alike(one: Any, two: Any, keys: list[Any], *, measure: bool = True) -> None:
    """Equal in all that can be seen, also when each reads what the other has written."""
    skip: set[str] = set() if measure else MEASURED
    assert told(one, skip=skip) == told(two, skip=skip)
    assert one == two
    assert two == one
    assert answers(one, keys) == answers(two, keys)
    one_of_two = type(one).from_bytes(two.to_bytes())
    two_of_one = type(two).from_bytes(one.to_bytes())
    assert told(one_of_two, skip=skip) == told(two_of_one, skip=skip)
    assert answers(one_of_two, keys) == answers(two_of_one, keys) == answers(one, keys)


# ---- built from the same keys ----


@every_case
@examples(12)
@given(keys=key_sets(), seed=NUMBERS64, salt=NUMBERS64)
@example(keys=[], seed=0, salt=0)
@example(keys=[b""] * 64, seed=2**64 - 1, salt=2**64 - 1)
@example(keys=[b"%d" % i for i in range(64)], seed=SEED, salt=SALT)
def test_twins_build_the_same_filter(case: Case, keys: list[Any], seed: int, salt: int) -> None:
    python, native = twins()
    given_numbers = secrets(case, seed, salt)
    one, two = (case.build(kernel, keys, **given_numbers) for kernel in (python, native))
    assert all(answers(two, keys))
    assert_alike(one, two, ABSENT + keys, measure=case.family not in ("leveldb", "cassandra"))


@every_case
def test_an_empty_filter_denies_everything(case: Case, rng: random.Random) -> None:
    """Also a fuse filter, whose empty slots would pass one absent key in 256."""
    absent = random_keys(rng, 3000)
    for kernel in twins():
        built = case.build(kernel, [], **secrets(case))
        for empty in (built, case.cls(kernel).from_bytes(built.to_bytes())):
            assert not any(empty.might_contain_many(absent))
            assert not any(empty.might_contain(key) for key in absent)
            if hasattr(empty, "might_contain_digest"):
                assert not any(empty.might_contain_digest(rng.getrandbits(64)) for _ in range(3000))


@every_family
def test_twins_build_the_same_filter_of_many_keys(case: Case, rng: random.Random) -> None:
    """More than a batch of 65536, and repeats few enough to be looked up one by one."""
    keys = random_keys(rng, 65_535)
    keys += rng.choices(keys, k=400)
    rng.shuffle(keys)
    one, two = (case.build(kernel, keys, **secrets(case)) for kernel in twins())
    assert two.to_bytes() == one.to_bytes()
    assert (two.num_keys, two.fill) == (one.num_keys, one.fill)
    if case.family in (
        "rocksdb",
        "ribbon",
        "cassandra",
    ):  # Which drop a repeat only behind its key.
        assert 65_535 <= two.num_keys <= 65_935
    else:
        assert two.num_keys == (65_935 if case.family == "leveldb" else 65_535)
    assert all(two.might_contain_many(keys))
    absent = random_keys(rng, 1000, length=9)
    assert two.might_contain_many(absent) == one.might_contain_many(absent)


@pytest.mark.parametrize("count", [1, 2, 300, 3000])
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.2, 3])
@pytest.mark.parametrize("name", ["ClassicBloomFilter", "BlockedBloomFilter"])
def test_twins_count_repeats_alike(name: str, count: int, share: float, rng: random.Random) -> None:
    """Few suspects are looked up, many are sorted out; some are new, and set nothing either."""
    keys = random_keys(rng, count)
    keys += rng.choices(keys, k=int(count * share)) + keys[:2] * 3
    rng.shuffle(keys)
    one, two = (
        getattr(kernel, name).build(keys, bits_per_key=5, seed=SEED, salt=SALT)
        for kernel in twins()
    )
    assert (two.num_keys, one.num_keys) == (count, count)
    assert two.to_bytes() == one.to_bytes()


def test_a_key_that_sets_nothing_is_counted_once(rng: random.Random) -> None:
    """In tens of thousands at few bits there are some hundred of those, and repeats of them."""
    _, native = twins()
    for repeats in (0, 1, 700, 1400):
        keys = random_keys(rng, 30_000)
        keys += rng.choices(keys, k=repeats)
        rng.shuffle(keys)
        for name in ("ClassicBloomFilter", "BlockedBloomFilter"):
            built = getattr(native, name).build(keys, bits_per_key=6, seed=SEED, salt=SALT)
            assert built.num_keys == 30_000


@pytest.mark.parametrize("count", [20, 23, 25, 27, 100, 2000])
def test_digests_that_share_bits_once_salted_are_told_apart(count: int, rng: random.Random) -> None:
    """What is sorted has its upper bits in common, or its lower ones, and repeats."""
    numbers = [rng.getrandbits(64) for _ in range(16 * count)]
    for bits in (0xFF << 56, 0x0F << 60, 0x0F, 0x0F << 30):
        wanted = mix(numbers[0], SALT) & bits
        alike = [number for number in numbers if mix(number, SALT) & bits == wanted]
        given_numbers = alike + alike[::2] + alike[:1] * 30
        results = []
        for kernel in twins():
            digests = kernel.CountingBloomFilter.digests(seed=SEED)
            for number in given_numbers:
                digests.add_digest(number)
            for name in ("CountingBloomFilter", "BinaryFuseFilter", "XorFilter"):
                built = getattr(kernel, name).build(digests, salt=SALT)
                assert built.num_keys == len(set(alike))
                results.append(built.to_bytes())
        assert results[3:] == results[:3]


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("name", ["BinaryFuseFilter", "XorFilter"])
def test_twins_cut_shards_alike(
    name: str, width: int, copies: int, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    for family in (binary_fuse, xor):
        monkeypatch.setattr(family, "KEYS_PER_SHARD", 500)
    keys = random_keys(rng, 3000) * copies
    rng.shuffle(keys)
    one, two = (
        getattr(kernel, name).build(keys, fingerprint_bits=width, seed=SEED, salt=SALT)
        for kernel in twins()
    )
    # The compiled one cuts before it has found out about repeats, and then once more.
    assert two.num_shards == one.num_shards == 8
    assert_alike(one, two, ABSENT + keys[:300])


@pytest.mark.parametrize("fingerprint_bits", [6, 12, 16, 17, 32])
@pytest.mark.parametrize("count", [8, 40, 2000])
def test_twins_grow_a_cuckoo_table_that_is_too_full_alike(
    fingerprint_bits: int, count: int, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuckoo, "TARGET_LOAD", 1)
    keys = random_keys(rng, count)
    one, two = (
        kernel.CuckooFilter.build(keys, fingerprint_bits=fingerprint_bits, seed=SEED, salt=SALT)
        for kernel in twins()
    )
    if count == 2000:  # All slots of a small table can be filled by luck.
        assert two.num_buckets > count // cuckoo.SLOTS
    assert_alike(one, two, ABSENT + keys)


@pytest.mark.parametrize("fingerprint_bits", range(6, 33))
def test_twins_keep_fingerprints_of_every_width_alike(
    fingerprint_bits: int, rng: random.Random
) -> None:
    keys = random_keys(rng, 150)
    one, two = (
        kernel.CuckooFilter.build(keys, fingerprint_bits=fingerprint_bits, seed=SEED, salt=SALT)
        for kernel in twins()
    )
    assert_alike(one, two, random_keys(rng, 100, length=5) + keys[:20])
    for key in rng.sample(keys, 50):
        assert two.remove(key) == one.remove(key)
        assert two.to_bytes() == one.to_bytes()


@examples(6)
@given(keys=key_sets(), bits_per_key=st.integers(1, 30))
@example(keys=[], bits_per_key=10)
def test_twins_measure_the_rate_of_leveldb_filters_alike(
    keys: list[Any], bits_per_key: int
) -> None:
    one, two = (
        kernel.LevelDBBloomFilter.build(keys, bits_per_key=bits_per_key) for kernel in twins()
    )
    assert two.expected_fpr == one.expected_fpr
    assert two.expected_fpr == two.expected_fpr


@pytest.mark.parametrize("bits_per_key", [3, 10, 20])
def test_twins_measure_the_rate_of_legacy_filters_alike(
    bits_per_key: int, rng: random.Random
) -> None:
    data = build_legacy(random_keys(rng, 100), bits_per_key)
    one, two = (kernel.RocksDBBloomFilter.from_bytes(data) for kernel in twins())
    assert told(two) == told(one)


# ---- any bytes of others ----


def assert_read_alike(name: str, data: bytes, keys: list[bytes]) -> None:
    one, two = (getattr(kernel, name).from_bytes(data) for kernel in twins())
    assert_alike(one, two, keys, measure=False)
    if len(data) < 2:
        assert one.expected_fpr == two.expected_fpr


@examples(150)
@given(
    data=st.binary(max_size=120),
    fill=st.sampled_from([b"", b"\xff", b"\xf7", b"\x00"]),
    num_probes=st.sampled_from([0, 1, 2, 6, 29, 30, 31, 255]),
    keys=st.lists(KEY, max_size=20),
)
@example(data=b"", fill=b"", num_probes=30, keys=[b""])
def test_any_bytes_are_the_same_leveldb_filter(
    data: bytes, fill: bytes, num_probes: int, keys: list[bytes]
) -> None:
    for body in (data, fill * len(data)):
        assert_read_alike("LevelDBBloomFilter", body, keys)
        assert_read_alike("LevelDBBloomFilter", body + bytes([num_probes]), keys + ABSENT)


@pytest.mark.parametrize("extra", [-1, 0, 8, (1 << 29) - 1])
def test_a_leveldb_filter_beyond_32_bits_is_the_same(extra: int) -> None:
    """Where the array has more bits than hashes have values, the modulo does nothing."""
    keys = [b"%d" % i for i in range(200)]
    size = (1 << 29) + extra
    with mmap.mmap(-1, size + 1) as memory:  # A gigabyte of zeros or half of it, which take none.
        for key in keys[:100]:
            memory[leveldb_hash(key) % (8 * size) >> 3] = 0xFF
        memory[size] = 1
        with memoryview(memory) as writable, writable.toreadonly() as view:
            one, two = (kernel.LevelDBBloomFilter.from_bytes(view) for kernel in twins())
            assert (two.num_bits, two.num_probes) == (8 * size, 1)
            assert answers(two, keys) == answers(one, keys)
            assert answers(two, keys)[:100] == [True] * 100
            assert not all(answers(two, keys)[100:])
            del one, two
            gc.collect()


TAILS = st.one_of(
    st.binary(min_size=5, max_size=5),
    st.sampled_from([trailer for _, trailer, _ in TRAILERS]),
    st.builds(lambda probes: bytes((0xFF, 0, probes, 0, 0)), st.integers(0, 40)),
    st.builds(struct.Struct("<BI").pack, st.integers(0, 130), st.integers(0, 5)),
)


@examples(150)
@given(
    body=st.one_of(
        st.binary(max_size=140),
        st.builds(
            lambda data, lines: (data * 64)[:64] * lines,
            st.binary(min_size=1, max_size=64),
            st.integers(1, 6),
        ),
    ),
    fill=st.sampled_from([None, b"\xff", b"\xf7"]),
    tail=TAILS,
    keys=st.lists(KEY, max_size=20),
)
def test_any_bytes_are_the_same_rocksdb_filter(
    body: bytes, fill: bytes | None, tail: bytes, keys: list[bytes]
) -> None:
    body = body if fill is None else fill * len(body)
    assert_read_alike("RocksDBBloomFilter", body + tail, keys + ABSENT)
    assert_read_alike("RocksDBBloomFilter", body, keys)


@pytest.mark.parametrize(("payload", "trailer", "form"), TRAILERS)
def test_twins_take_every_trailer_alike(payload: bytes, trailer: bytes, form: str) -> None:
    for body in (payload, b"\xff" * len(payload)):
        one, two = (kernel.RocksDBBloomFilter.from_bytes(body + trailer) for kernel in twins())
        assert_alike(one, two, ABSENT)
        assert two.form.startswith(form)


@pytest.mark.parametrize("line_bytes", [1, 2, 32, 64, 128, 4096])
def test_legacy_lines_of_any_width_are_read_alike(line_bytes: int, rng: random.Random) -> None:
    keys = random_keys(rng, 100, length=11)
    for bits_per_key in (2, 10, 44):
        data = build_legacy(keys, bits_per_key, line_bytes)
        one, two = (kernel.RocksDBBloomFilter.from_bytes(data) for kernel in twins())
        assert two.form == "legacy"
        assert all(answers(two, keys))
        assert_alike(one, two, keys + ABSENT, measure=False)


# ---- grown by the same steps ----

POOL = [b"", *(b"key%d" % i for i in range(24))]
MEMBER = st.sampled_from(POOL)
MEMBERS = st.one_of(
    st.lists(MEMBER, max_size=70),
    st.builds(lambda key, times: [key] * times, MEMBER, st.integers(1, 40)),
)
STEP = st.one_of(
    st.tuples(st.just("add"), MEMBER),
    st.tuples(st.sampled_from(["add list", "add tuple", "add iterator", "add packed"]), MEMBERS),
    st.tuples(st.just("remove"), MEMBER),
    st.tuples(st.just("union"), MEMBERS),
    st.tuples(st.just("collapse"), st.none()),
    st.tuples(st.just("reopen"), st.sampled_from([bytes, bytearray, memoryview, pickle.dumps])),
)


def packed(keys: list[bytes]) -> PackedKeys:
    ends = array("i", [0])
    for key in keys:
        ends.append(ends[-1] + len(key))
    return PackedKeys(b"".join(keys), offsets=ends)


def step(grown: Any, name: str, value: Any) -> tuple[Any, Any]:
    """Take a step; the filter to go on with, and what came of it."""
    if name == "union":
        other = type(grown).with_capacity(like=grown)
        other.add_many(value)
        both = grown.union(other)
        return both, (other.to_bytes(), told(both))
    if name == "collapse":
        return grown, told(grown.collapse())
    if name == "reopen":
        if value is pickle.dumps:
            return pickle.loads(pickle.dumps(grown)), None
        return type(grown).from_bytes(value(grown.to_bytes())), None
    if name == "remove":
        return grown, grown.remove(value)
    if name == "add":
        return grown, grown.add(value)
    form: Any = {"list": list, "tuple": tuple, "iterator": iter, "packed": packed}
    return grown, grown.add_many(form[name.removeprefix("add ")](value))


GROWTHS: list[tuple[str, dict[str, Any]]] = [
    ("ClassicBloomFilter", {"num_keys": 20}),
    ("ClassicBloomFilter", {"num_keys": 3, "num_probes": 64}),
    ("BlockedBloomFilter", {"num_keys": 20}),
    ("BlockedBloomFilter", {"num_keys": 200, "num_probes": 32}),
    ("CountingBloomFilter", {"num_keys": 20}),
    ("CountingBloomFilter", {"num_keys": 3, "num_probes": 64}),
    ("CuckooFilter", {"num_keys": 20}),
    ("CuckooFilter", {"num_keys": 3, "fingerprint_bits": 7}),
    ("CuckooFilter", {"num_keys": 30, "fingerprint_bits": 23}),
    ("ScalableBloomFilter", {"num_keys": 1}),
    ("ScalableBloomFilter", {"num_keys": 0, "growth": 4, "tightening": 0.5, "fpr": 1e-9}),
    ("ScalableBloomFilter", {"num_keys": 3, "fpr": 0.5, "tightening": 0.95}),
]


@pytest.mark.parametrize(("name", "size"), GROWTHS, ids=str)
@examples(25)
@given(steps=st.lists(STEP, max_size=25), salt=NUMBERS64)
@example(
    steps=[
        ("add list", [POOL[1]] * 40),
        ("add", POOL[2]),
        ("reopen", bytes),
        ("remove", POOL[1]),
        ("reopen", bytes),
        ("add packed", POOL * 2),
        ("union", POOL[5:]),
        ("remove", POOL[1]),
        ("collapse", None),
    ],
    salt=1,
)
def test_twins_grow_alike(
    name: str, size: dict[str, Any], steps: list[tuple[str, Any]], salt: int
) -> None:
    one, two = (
        getattr(kernel, name).with_capacity(**size, seed=SEED, salt=salt) for kernel in twins()
    )
    for what, value in steps:
        if not hasattr(type(one), what.partition(" ")[0]) and what != "reopen":
            continue
        kernel_of_two = type(two).__module__
        after_one, after_two = outcome(step, one, what, value), outcome(step, two, what, value)
        if isinstance(after_one[0], type):  # an error, which leaves what is there
            assert after_two == after_one, what
        else:
            (one, result_of_one), (two, result_of_two) = after_one, after_two
            assert result_of_two == result_of_one, what
        assert told(two) == told(one), what
        assert answers(two, POOL) == answers(one, POOL), what
        if value is pickle.dumps:  # Which is read by the kernel that was chosen.
            one, two = (getattr(kernel, name).from_bytes(two.to_bytes()) for kernel in twins())
        assert type(two).__module__ == kernel_of_two


@pytest.mark.parametrize("fingerprint_bits", [6, 8, 12, 13, 16, 17, 32])
@pytest.mark.parametrize("num_keys", [4, 30, 100])
def test_a_full_cuckoo_filter_refuses_a_key_and_stays_as_it_is(
    fingerprint_bits: int, num_keys: int, rng: random.Random
) -> None:
    one, two = (
        kernel.CuckooFilter.with_capacity(
            num_keys, fingerprint_bits=fingerprint_bits, seed=SEED, salt=SALT
        )
        for kernel in twins()
    )
    refused = 0
    while refused < 4:
        key = rng.randbytes(8)
        before = one.to_bytes()
        result = outcome(one.add, key)
        assert outcome(two.add, key) == result
        assert two.to_bytes() == one.to_bytes()
        if result is not None:
            assert result[0] is CapacityError
            assert two.to_bytes() == before
            refused += 1
    assert (two.num_keys, two.fill) == (one.num_keys, one.fill)


@pytest.mark.parametrize(("salt", "number"), [(431, 303), (675, 316)])
def test_a_key_may_cause_five_hundred_evictions_and_no_more(
    salt: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These two were searched for: they find their slot with the last of them."""
    one, two, strict = (
        kernel.CuckooFilter.with_capacity(300, seed=SEED, salt=salt)
        for kernel in (*twins(), twins()[0])
    )
    for grown in (one, two, strict):
        for i in range(number):
            outcome(grown.add, b"key%d" % i)
    before = one.to_bytes()
    assert two.to_bytes() == before
    last = b"key%d" % number
    assert (one.add(last), two.add(last)) == (None, None)
    assert two.to_bytes() == one.to_bytes()
    monkeypatch.setattr(f"{twins()[0].__name__}.cuckoo.MAX_KICKS", cuckoo.MAX_KICKS - 1)
    with pytest.raises(CapacityError):
        strict.add(last)
    assert strict.to_bytes() == before


def test_a_key_that_fills_both_its_buckets_is_refused_at_once() -> None:
    one, two = (kernel.CuckooFilter.with_capacity(1000, seed=SEED, salt=SALT) for kernel in twins())
    for kept in range(20):
        result = outcome(one.add, b"key")
        assert outcome(two.add, b"key") == result
        assert (result is None) == (kept < 8)
        assert two.to_bytes() == one.to_bytes()
    assert [two.remove(b"key") for _ in range(10)] == [one.remove(b"key") for _ in range(10)]
    assert two.to_bytes() == one.to_bytes()


def test_add_many_keeps_what_came_before_the_key_that_finds_no_slot(rng: random.Random) -> None:
    keys = random_keys(rng, 300)
    for form in (list, tuple, packed):
        one, two = (
            kernel.CuckooFilter.with_capacity(100, seed=SEED, salt=SALT) for kernel in twins()
        )
        result = outcome(one.add_many, form(keys))
        assert outcome(two.add_many, form(keys)) == result
        assert result[0] is CapacityError
        assert two.num_keys == one.num_keys >= 95
        assert two.to_bytes() == one.to_bytes()
        assert all(two.might_contain_many(keys[: two.num_keys]))


@over_filling
def test_a_counter_that_is_full_stays_full_in_both() -> None:
    for copies in (13, 14, 15, 16, 17):
        one, two = (
            kernel.CountingBloomFilter.with_capacity(10, seed=SEED, salt=SALT) for kernel in twins()
        )
        for grown in (one, two):
            grown.add_many([b"key"] * copies)
        assert two.to_bytes() == one.to_bytes()
        assert two.union(two).to_bytes() == one.union(one).to_bytes()
        taken = [(one.remove(b"key"), two.remove(b"key")) for _ in range(copies + 2)]
        assert two.to_bytes() == one.to_bytes()
        assert [last for last, _ in taken] == [last for _, last in taken]
        assert taken[-1][1] is (copies >= 15)


@over_filling
@pytest.mark.parametrize(
    "name", ["ClassicBloomFilter", "BlockedBloomFilter", "CountingBloomFilter"]
)
@examples(15)
@given(
    one_keys=st.lists(MEMBER, max_size=60),
    two_keys=st.lists(MEMBER, max_size=60),
    size=st.integers(1, 40),
    view=st.booleans(),
)
def test_twins_unite_alike(
    name: str, one_keys: list[bytes], two_keys: list[bytes], size: int, view: bool
) -> None:
    results = []
    for kernel in twins():
        cls = getattr(kernel, name)
        one = cls.with_capacity(size, seed=SEED, salt=SALT)
        two = cls.with_capacity(like=one)
        one.add_many(one_keys)
        two.add_many(two_keys)
        if view:
            one, two = cls.from_bytes(one.to_bytes()), cls.from_bytes(two.to_bytes())
        before = one.to_bytes(), two.to_bytes()
        both = one.union(two)
        assert (one.to_bytes(), two.to_bytes()) == before
        results.append((told(both), answers(both, POOL)))
    assert results[1] == results[0]


def test_kernels_do_not_mix_in_a_union() -> None:
    python, native = twins()
    for name in ("ClassicBloomFilter", "CountingBloomFilter", "BlockedBloomFilter"):
        one = getattr(python, name).with_capacity(10, seed=1, salt=2)
        two = getattr(native, name).with_capacity(10, seed=1, salt=2)
        assert one == two
        for mine, other in ((one, two), (two, one)):
            with pytest.raises(TypeError, match="union takes a .* filter, not"):
                mine.union(other)
            with pytest.raises(TypeError, match="like= takes"):
                type(mine).with_capacity(like=other)


# ---- refused in the same words ----


class Odd:
    """No bytes at all."""


Misuse = Callable[[ModuleType], Any]


def misuses(case: Case) -> dict[str, Misuse]:
    """What can be done wrong with a family."""

    def cls(kernel: ModuleType) -> Any:
        return case.cls(kernel)

    def made(kernel: ModuleType) -> Any:
        return case.build(kernel, [b"key"], **secrets(case))

    def building(keys: Any, **sizes: Any) -> Misuse:
        return lambda kernel: cls(kernel).build(keys, **sizes)

    def asking(name: str, *values: Any) -> Misuse:
        return lambda kernel: getattr(made(kernel), name)(*values)

    def sizing(*values: Any, **more: Any) -> Misuse:
        return lambda kernel: cls(kernel).with_capacity(*values, **more)

    def collecting(name: str, value: Any, **seed: Any) -> Misuse:
        return lambda kernel: getattr(cls(kernel).digests(**seed), name)(value)

    def reading(data: Any) -> Misuse:
        return lambda kernel: cls(kernel).from_bytes(data)

    table: dict[str, Misuse] = {}
    for wrong in ("\ud800", 7, None, 1.5, [7], Odd(), 2**80, range(3)):
        label = f"{wrong!r:.10}"
        table[f"build {label}"] = building([b"fine", wrong])
        table[f"build of {label}"] = building(wrong)
        table[f"ask {label}"] = asking("might_contain", wrong)
        table[f"ask many {label}"] = asking("might_contain_many", [b"fine", wrong])
        table[f"ask many of {label}"] = asking("might_contain_many", wrong)
        table[f"digest {label}"] = collecting("add", wrong)
        table[f"digests of {label}"] = collecting("add_many", wrong)
        table[f"read {label}"] = reading(wrong)
        table[f"missing {label}"] = asking("count_missing", wrong)
    for buffer in (b"key", bytearray(b"key"), memoryview(b"key"), array("B", [1])):
        label = type(buffer).__name__
        table[f"build of {label}"] = building(buffer)
        table[f"ask many of {label}"] = asking("might_contain_many", buffer)
        table[f"digests of {label}"] = collecting("add_many", buffer)
    sizes: dict[str, tuple[Any, ...]] = {
        "bits_per_key": (0, -1, 1000, "10", True, float("nan"), float("inf")),
        "counters_per_key": (0, 65, "10", True),
        "fingerprint_bits": (0, 5, 33, 8.0, True),
        "fpr": (0, 1, -1, "0.1", float("nan")),
        "num_probes": (0, 65, -1, 1.0, True),
        "seed": (-1, 2**64, "1", 1.0, True),
        "salt": (-1, 2**64, "1", 1.0, True),
        "optimize_filters_for_memory": ("no", 1, 0),
        "tightening": (0.4, 0.96, 1, "0.8", True, float("nan")),
        "growth": (1, 3, 5, 2.0, "2", True),
        "fp_chance": (0, 6.71e-05, 1.1, -1, "0.1", True, float("nan")),
        "expected_keys": (-1, 2**60, 1 << 40, 1.0, "1", True),
        "range_length": (0, -1, 2**33, 1.5, "1", True),
    }
    for name in sizes.keys() & inspect.signature(cls(twins()[0]).build).parameters.keys():
        for value in sizes[name]:
            table[f"build {name}={value!r}"] = building([b"key"], **{name: value})
    if case.family == "leveldb":
        table["half a bit per key"] = building([b"key"], bits_per_key=2.5)
    if case.family in ("binary-fuse", "xor"):
        table["nine bits"] = building([b"key"], fingerprint_bits=9)
    if case.family == "cassandra":
        for version in ("", "n", "nan", "NA", "zz", "n1", 7, None, b"na"):
            table[f"write version {version!r}"] = lambda kernel, version=version: made(
                kernel
            ).to_bytes(sstable_version=version)
            table[f"read version {version!r}"] = lambda kernel, version=version: cls(
                kernel
            ).from_bytes(made(kernel).to_bytes(), sstable_version=version)
        table["the other order"] = lambda kernel: made(kernel).to_bytes(sstable_version="la")
    elif case.family not in OF_A_RATE_ONLY:
        size = "counters_per_key" if case.family == "counting" else "bits_per_key"
        table["two sizes"] = building([b"key"], fpr=0.01, **{size: 10})
    table["out too long"] = asking("might_contain_many", [b"a"], bytearray(2))
    table["out of text"] = asking("might_contain_many", [b"a"], "text")
    table["out of bytes"] = asking("might_contain_many", [b"a"], b"1")
    table["out of words"] = asking("might_contain_many", [b"a"], array("Q", [0]))
    table["out and key"] = asking("might_contain_many", ["text"], bytearray(2))
    table["hash"] = lambda kernel: hash(made(kernel))
    table["digests of another kind"] = lambda kernel: made(kernel).count_missing(
        (kernel.LevelDBBloomFilter if case.salted else kernel.CuckooFilter).digests()
    )
    if case.record.answers_ranges:
        for bounds in (("\ud800", None), (None, "\ud800"), (7, b"b"), (b"b", ["a"])):
            table[f"range {bounds}"] = asking("may_contain_range", *bounds)
        for length in (0, -1, 2**64 + 1, 1.0, "1", True):
            table[f"rate of ranges of {length!r}"] = asking("expected_range_fpr", length)
        table["a size and a length"] = building([b"key"], bits_per_key=9, range_length=32)
    wide = case.family == "cassandra"
    for number in (-1, 2**64, 2**128, 2**200, -(2**100), "1", None, 1.5, 0.0, float("nan")):
        if case.record.answers_ranges:
            continue
        if not (wide and number == 2**64):
            table[f"take digest {number}"] = collecting("add_digest", number)
        if case.salted:
            table[f"digest {number}"] = asking("might_contain_digest", number)
    if case.family == "leveldb":
        table["take a digest of 33 bits"] = collecting("add_digest", 2**32)
    if case.salted:
        for seed in (-1, 2**64, "1", 1.0, True):
            table[f"digests of seed {seed!r}"] = collecting("add", b"key", seed=seed)
        table["digests of another seed"] = lambda kernel: cls(kernel).build(
            cls(kernel).digests(seed=3), seed=4
        )
    return table | (growing_misuses(case) if case in GROWING else {})


def growing_misuses(case: Case) -> dict[str, Misuse]:
    """What can be done wrong with a family that grows."""

    def cls(kernel: ModuleType) -> Any:
        return case.cls(kernel)

    def made(kernel: ModuleType, **more: Any) -> Any:
        return cls(kernel).with_capacity(9, **{**secrets(case), **more})

    def asking(name: str, *values: Any) -> Misuse:
        return lambda kernel: getattr(made(kernel), name)(*values)

    def sizing(*values: Any, **more: Any) -> Misuse:
        return lambda kernel: cls(kernel).with_capacity(*values, **more)

    def uniting(**change: Any) -> Misuse:
        return lambda kernel: made(kernel).union(made(kernel, **change))

    table: dict[str, Misuse] = {}
    for wrong in (1.5, 7, None):
        table[f"add {wrong}"] = asking("add", wrong)
        table[f"add many {wrong}"] = asking("add_many", [wrong])
        table[f"add many of {wrong}"] = asking("add_many", wrong)
        if hasattr(cls(twins()[0]), "remove"):
            table[f"remove {wrong}"] = asking("remove", wrong)
    table["add many of bytes"] = asking("add_many", b"key")
    for size in (-1, 2**60, 1 << 39, 1.5, "1", True):
        table[f"capacity {size!r}"] = sizing(size)
    if case.family not in OF_ANY_CAPACITY:
        table["capacity None"] = sizing(None)
        table["no capacity"] = sizing()
    table["like and more"] = lambda kernel: cls(kernel).with_capacity(
        5, like=made(kernel), fpr=0.1, seed=2, salt=3
    )
    table["like bytes"] = sizing(like=b"key")
    table["like another"] = lambda kernel: cls(kernel).with_capacity(
        like=kernel.BinaryFuseFilter.build([b"key"])
    )
    table["capacity of a bad seed"] = sizing(1, seed=-1)
    table["capacity of a bad salt"] = sizing(1, salt="1")
    if hasattr(cls(twins()[0]), "union"):
        table["union with keys"] = asking("union", [b"key"])
        table["union with another family"] = lambda kernel: made(kernel).union(
            getattr(
                kernel,
                "CountingBloomFilter" if case.family == "classic" else "ClassicBloomFilter",
            ).with_capacity(9)
        )
        table["union of another number of probes"] = uniting(num_probes=3)
        table["union under another seed"] = uniting(seed=3)
        table["union under another salt"] = uniting(salt=3)
        table["union of another size"] = lambda kernel: made(kernel).union(
            cls(kernel).with_capacity(900, num_probes=made(kernel).num_probes, **secrets(case))
        )
    return table


def in_words(result: Any) -> Any:
    """An error without the module that CPython says before a compiled class's name."""
    if isinstance(result, tuple) and isinstance(result[0], type):
        return result[0], re.sub(r"filters\.kernels\.native\.\w+\.", "", result[1])
    return result


@every_family
def test_misuse_is_refused_in_the_same_words(case: Case) -> None:
    python, native = twins()
    for what, misuse in misuses(case).items():
        one, two = outcome(misuse, python), outcome(misuse, native)
        assert isinstance(one, tuple), f"{what} is no misuse: {one!r}"
        assert isinstance(one[0], type), what
        assert issubclass(one[0], TypeError | ValueError | OverflowError), what
        assert in_words(two) == in_words(one), what


def signed(body: bytes | bytearray) -> bytes:
    return bytes(body) + struct.pack("<Q", xxh3_64_intdigest(bytes(body)))


@every_salted_family
@examples(60)
@given(
    keys=st.integers(0, 12),
    changes=st.lists(
        st.tuples(st.one_of(st.integers(0, 47), st.integers(0, 400)), st.integers(0, 255)),
        max_size=3,
    ),
    cut=st.one_of(st.none(), st.integers(0, 200)),
    more=st.binary(max_size=3),
    sign=st.booleans(),
)
@example(keys=5, changes=[(5, 2)], cut=None, more=b"", sign=True)
@example(keys=5, changes=[(7, 0)], cut=None, more=b"", sign=True)
@example(keys=5, changes=[(8, 255)], cut=None, more=b"", sign=True)
@example(keys=5, changes=[(16, 255)], cut=None, more=b"", sign=True)
def test_damaged_bytes_are_refused_or_read_alike(
    case: Case,
    keys: int,
    changes: list[tuple[int, int]],
    cut: int | None,
    more: bytes,
    sign: bool,
) -> None:
    data = case.build(twins()[0], POOL[:keys], **secrets(case)).to_bytes()
    body = bytearray(data[:-8] if sign else data)
    for place, value in changes:
        body[place % len(body)] = value
    body = body[:cut] + more
    wrong = signed(body) if sign else bytes(body)
    one, two = (outcome(case.cls(kernel).from_bytes, wrong) for kernel in twins())
    if isinstance(one, tuple):
        assert two == one
    else:
        assert_alike(one, two, POOL)


# ---- the same names, and no way around build() ----

EVERY_CLASS = [*[each.class_name for each in FAMILIES.values()], "Digests"]


@pytest.mark.parametrize("name", EVERY_CLASS)
def test_both_kernels_have_the_same_names(name: str) -> None:
    one, two = (
        {each for each in dir(getattr(kernel, name)) if not each.startswith("_")}
        for kernel in twins()
    )
    assert two == one


@pytest.mark.parametrize("name", [each.class_name for each in FAMILIES.values()])
def test_what_both_kernels_say_about_themselves_is_the_same(name: str) -> None:
    """Also help() is."""
    python, native = twins()
    one, two = getattr(python, name), getattr(native, name)
    assert two.__name__ == one.__name__ == name
    assert inspect.getdoc(two) == inspect.getdoc(one)
    for each in dir(one):
        if not each.startswith("_"):
            assert inspect.getdoc(getattr(two, each)) == inspect.getdoc(getattr(one, each)), each


def keywords(cls: Any, method: str) -> dict[str, Any]:
    """The keyword arguments of a method of the readable kernel, with their defaults."""
    parameters = inspect.signature(getattr(cls, method)).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


@every_family
@pytest.mark.parametrize("method", ["build", "with_capacity", "digests"])
def test_both_kernels_take_the_same_keywords(case: Case, method: str) -> None:
    python, native = twins()
    if not hasattr(case.cls(python), method):
        assert not hasattr(case.cls(native), method)
        return
    arguments: dict[str, list[Any]] = {"build": [[b"key"]], "with_capacity": [5], "digests": []}
    first = arguments[method]
    given_words = keywords(case.cls(python), method)
    for word, default in given_words.items():
        getattr(case.cls(native), method)(*first, **{word: default})
    every = {"bits_per_key", "counters_per_key", "fingerprint_bits", "fpr", "num_probes", "seed"}
    every |= {
        "salt",
        "like",
        "optimize_filters_for_memory",
        "tightening",
        "growth",
        "fp_chance",
        "expected_keys",
    }
    every |= {"misspelt"}
    for word in every - set(given_words):
        for kernel in (python, native):
            with pytest.raises(
                TypeError, match=rf"unexpected keyword argument '{word}'|no keyword"
            ):
                getattr(case.cls(kernel), method)(*first, **{word: None})
    if method == "build":
        assert getattr(case.cls(native), method)(keys=[b"key"]).might_contain(b"key")
        for kernel in (python, native):
            with pytest.raises(TypeError, match="positional argument"):
                case.cls(kernel).build()
            with pytest.raises(TypeError, match="positional argument"):
                case.cls(kernel).build([b"key"], 10)


@pytest.mark.parametrize("name", EVERY_CLASS)
def test_compiled_classes_are_not_made_by_calling_them(name: str) -> None:
    cls = getattr(twins()[1], name)
    how = "come from its class" if name == "Digests" else r"made by build\(\).*from_bytes\(\)"
    for arguments in ((), (b"key",), ([b"key"],), (1, 2, 3)):
        with pytest.raises(TypeError, match=how):
            cls(*arguments)
    with pytest.raises(TypeError, match=how):
        cls(num_keys=1)


@every_family
def test_what_was_never_built_says_maybe(case: Case) -> None:
    cls = case.cls(twins()[1])
    hollow = cls.__new__(cls)
    keys = [b"", b"key", b"x" * 300, *ABSENT * 5]
    assert hollow.might_contain(b"key") is True
    assert hollow.might_contain_many(keys) == [True] * len(keys)
    assert hollow.might_contain_many(packed(keys)) == [True] * len(keys)
    assert set(hollow.might_contain_many(keys, bytearray(len(keys)))) == {1}
    if case.record.answers_ranges:
        assert hollow.may_contain_range(b"a", b"a") is True
    elif case.salted:
        assert hollow.might_contain_digest(2**64 - 1) is True
    assert hollow.size_in_bytes in (0, 48)


HOLLOW = """
import operator, pickle, sys
from filters import PackedKeys, kernels

native = kernels.load("native")
cls = getattr(native, sys.argv[1])
keys = [b"key%d" % i for i in range(100)]
whole = cls.build(keys)
uses = [
    lambda hollow: hollow.add(b"key"),
    lambda hollow: hollow.add_many(keys),
    lambda hollow: hollow.add_many(PackedKeys(b"keys", width=1)),
    lambda hollow: hollow.remove(b"key"),
    lambda hollow: hollow.collapse(),
    lambda hollow: hollow.union(hollow),
    lambda hollow: hollow.union(whole),
    lambda hollow: whole.union(hollow),
    lambda hollow: hollow | whole,
    lambda hollow: operator.ior(hollow, whole),
    lambda hollow: operator.ior(whole.copy(), hollow),
    lambda hollow: b"key" in hollow,
    lambda hollow: hollow.copy().might_contain(b"key"),
    lambda hollow: hollow.clear(),
    lambda hollow: hollow.update(keys, iter(keys)),
    lambda hollow: bytes(hollow),
    lambda hollow: cls.with_capacity(like=hollow),
    lambda hollow: hollow.count_missing(cls.digests()),
    lambda hollow: cls.from_bytes(hollow.to_bytes()),
    lambda hollow: pickle.loads(pickle.dumps(hollow)),
    lambda hollow: hollow == whole,
    lambda hollow: repr(hollow),
    lambda hollow: hollow.__lsm_probe__(),
    *(lambda hollow, name=name: getattr(hollow, name) for name in dir(cls)),
]
for number, use in enumerate(uses):
    print(number, flush=True)
    try:
        use(cls.__new__(cls))
    except Exception as error:
        print(type(error).__name__, error)
print("alive")
"""


@every_family
def test_what_was_never_built_does_not_crash(case: Case) -> None:
    child = fresh(HOLLOW, case.class_name)
    assert child.stdout.endswith("alive\n"), child.stdout[-200:] + child.stderr[-500:]


# ---- what is left behind by an error ----


def wrong_batches() -> dict[str, Any]:
    """Many keys of which one is wrong: at first, amid a chunk of 256, at its end, and later."""
    table: dict[str, Any] = {}
    for count, index in ((1, 0), (3, 2), (300, 0), (300, 100), (300, 255), (300, 256), (600, 599)):
        keys: list[Any] = [b"%d" % i for i in range(count)]
        keys[index] = "\ud800"
        table[f"list {index}"] = keys
        table[f"tuple {index}"] = tuple(keys)
        ends = array("i", range(0, 4 * count + 4, 4))
        ends[index + 1] = 4 * count + 1
        data = b"".join(b"%04d" % i for i in range(count))
        table[f"packed {index}"] = PackedKeys(data, offsets=ends)
    table["list of others"] = [bytearray(b"key"), spread(b"key"), None, b"key"]
    return table


@every_growing_family
@pytest.mark.parametrize("which", wrong_batches())
def test_add_many_leaves_the_same_behind_at_a_wrong_key(case: Case, which: str) -> None:
    left = []
    for kernel in twins():
        grown = case.cls(kernel).with_capacity(700, seed=SEED, salt=SALT)
        result = outcome(grown.add_many, wrong_batches()[which])
        assert issubclass(result[0], TypeError | ValueError)
        left.append((result, grown.num_keys, grown.to_bytes()))
    assert left[1] == left[0]
    before = 2 if which == "list of others" else int(which.split()[1])
    assert left[1][1] == before or case.family != "cuckoo"


@every_family
@pytest.mark.parametrize("which", wrong_batches())
def test_digests_leave_the_same_behind_at_a_wrong_key(case: Case, which: str) -> None:
    left = []
    for kernel in twins():
        digests = case.cls(kernel).digests(**({"seed": SEED} if case.salted else {}))
        result = outcome(digests.add_many, wrong_batches()[which])
        assert issubclass(result[0], TypeError | ValueError)
        salt = {"salt": SALT} if case.salted else {}
        left.append((result, len(digests), case.build(kernel, digests, **salt).to_bytes()))
    assert left[1] == left[0]


@every_family
def test_room_for_answers_is_looked_at_before_keys(case: Case) -> None:
    results = []
    for kernel in twins():
        built = case.build(kernel, [b"key"], **secrets(case))
        results.append(outcome(built.might_contain_many, [b"key", "text"], bytearray(3)))
        results.append(outcome(built.might_contain_many, [b"key"] * 199 + [7], bytearray(200)))
    assert results[2:] == results[:2]
    assert [error for error, _ in results] == [ValueError, TypeError] * 2


def endless(keys: list[bytes]) -> Any:
    yield from keys
    raise KeyError("no more")


@every_growing_family
def test_an_iterator_that_fails_leaves_the_same_behind(case: Case) -> None:
    left = []
    for kernel in twins():
        grown = case.cls(kernel).with_capacity(20, seed=SEED, salt=SALT)
        result = outcome(grown.add_many, endless([b"one", b"two"]))
        assert result[0] is KeyError
        left.append((grown.num_keys, grown.to_bytes()))
    assert left[1] == left[0]


class Listed(list[bytes]):
    """A list that shows other keys than it has."""

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"shown"])


class Tupled(tuple[bytes, ...]):
    """A tuple that does."""

    __slots__ = ()

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"shown"])


@pytest.mark.parametrize("form", [Listed, Tupled])
def test_keys_are_what_an_iterator_gives(form: Any) -> None:
    for kernel in twins():
        built = kernel.CuckooFilter.build(form([b"had"]), fingerprint_bits=32)
        assert built.might_contain_many([b"shown", b"had"]) == [True, False]
        assert built.might_contain_many(form([b"had", b"had"])) == [True]
        assert built.might_contain_many(form([b"had", b"had"]), bytearray(1)) == b"\x01"
        digests = built.digests()
        digests.add_many(form([b"had", b"had"]))
        assert len(digests) == 1


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_digests_are_copied_alike_or_not_at_all(copied: Callable[[Any], Any]) -> None:
    lengths = []
    for kernel in twins():
        digests = kernel.CuckooFilter.digests(seed=SEED)
        digests.add(b"key")

        def lengthened(digests: Any = digests) -> tuple[int, int]:
            other = copied(digests)
            other.add(b"another")
            return len(digests), len(other)

        lengths.append(outcome(lengthened))
    if isinstance(lengths[0][0], type):
        assert lengths[1] == lengths[0]
    else:
        assert lengths == [(1, 2), (1, 2)]


@every_salted_family
@pytest.mark.parametrize("count", [2**60 + 1, 2**63, 2**64 - 1])
def test_a_forged_count_is_refused_alike(case: Case, count: int) -> None:
    results = []
    for kernel in twins():
        data = bytearray(case.build(kernel, [b"key"], seed=1, salt=2).to_bytes()[:-8])
        data[8:16] = struct.pack("<Q", count)
        results.append(outcome(case.cls(kernel).from_bytes, signed(data)))
    assert results[1] == results[0]
    assert results[1][0] is CorruptFilterError


@every_growing_family
def test_the_largest_count_goes_on_growing_alike(case: Case) -> None:
    if case.family == "cuckoo":  # Which cannot have more keys than slots.
        return
    results = []
    for kernel in twins():
        data = bytearray(case.build(kernel, [b"key"], seed=1, salt=2).to_bytes()[:-8])
        data[8:16] = struct.pack("<Q", 2**60)
        grown = case.cls(kernel).from_bytes(signed(data))
        grown.add(b"one more")
        results.append(told(grown))
        if hasattr(grown, "union"):
            both = grown.union(grown)
            results[-1] |= {"both": told(both), "twice": outcome(both.union, both)}
    assert results[1] == results[0]


@every_salted_digested_family
def test_a_digest_is_what_python_takes_for_a_whole_number(case: Case) -> None:
    for kernel in twins():
        built = case.build(kernel, [b"key"], seed=SEED, salt=SALT)
        digests = case.cls(kernel).digests(seed=SEED)
        number = filters.digest(b"key", SEED)
        assert built.might_contain_digest(numpy.uint64(number))
        digests.add_digest(numpy.uint64(number))
        digests.add_digest(True)
        digests.add_digest(1)
        digests.add_digest(2**64 - 1)
        assert len(digests) == 4
        assert built.might_contain_digest(True) == built.might_contain_digest(1)
        assert built.count_missing(digests) == sum(
            not built.might_contain_digest(each) for each in (number, 1, 1, 2**64 - 1)
        )


def test_there_is_a_case_of_every_family() -> None:
    assert {case.family for case in CASES} == {case.family for case in DEFAULTS} == set(FAMILIES)
    assert {case.family for case in SALTED_DEFAULTS} >= {case.family for case in GROWING}
