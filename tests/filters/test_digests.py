"""Digests in the place of keys: filters from 8 bytes a key, and a check of finished ones."""

from __future__ import annotations

import random
import struct
from array import array
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

import filters
from filters import PackedKeys
from filters.compat_hashing import cassandra_hash, leveldb_hash, rocksdb_hash, xxph3_64
from tests.effort import by_effort, examples, once
from tests.filters.cases import (
    DIGESTED_DEFAULTS,
    SALTED_DIGESTED_DEFAULTS,
    Case,
    every_case,
    every_digested_case,
    every_digested_family,
    every_family,
    every_growing_family,
    every_salted_digested_family,
    random_keys,
)
from tests.filters.test_rocksdb import TRAILERS, build_legacy

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
KINDS = {
    "leveldb": "leveldb-32",
    "rocksdb": "xxph3-64",
    "ribbon": "xxph3-64",
    "cassandra": "cassandra-128",
}
HASHES = {
    "leveldb": leveldb_hash,
    "rocksdb": xxph3_64,
    "ribbon": xxph3_64,
    "cassandra": cassandra_hash,
}


def kind_of(case: Case) -> str:
    return KINDS.get(case.family, "xxh3-64")


def digest_of(case: Case, key: bytes, seed: int = SEED) -> int:
    """The digest of a key, by who defined it."""
    if case.salted:
        return xxh3_64_intdigest(key, seed)
    return HASHES[case.family](key)


def collection(kernel: ModuleType, case: Case, keys: Any = (), seed: int = SEED) -> Any:
    digests = case.cls(kernel).digests(**({"seed": seed} if case.salted else {}))
    digests.add_many(keys)
    return digests


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def salt(case: Case) -> dict[str, int]:
    return {"salt": SALT} if case.salted else {}


@every_digested_family
def test_a_collection_tells_its_kind_seed_and_length_and_no_secret(
    kernel: ModuleType, case: Case
) -> None:
    digests = collection(kernel, case)
    assert type(digests) is kernel.Digests
    assert digests.kind == kind_of(case)
    assert digests.digest_seed == (SEED if case.salted else 0)
    assert (len(digests), repr(digests)) == (0, f"<Digests: 0 keys, {kind_of(case)}>")
    assert not digests
    digests.add(b"key")
    digests.add_many([b"key", b"another"])
    assert (len(digests), repr(digests)) == (3, f"<Digests: 3 keys, {kind_of(case)}>")
    assert digests
    for text in (repr(digests), str(digests)):
        assert str(SEED) not in text
        assert f"{SEED:x}" not in text.lower()


@every_salted_digested_family
def test_a_seed_that_nobody_gave_is_random(kernel: ModuleType, case: Case) -> None:
    one, two = case.cls(kernel).digests(), case.cls(kernel).digests(seed=None)
    assert one.digest_seed != two.digest_seed
    assert 0 <= one.digest_seed < 2**64
    one.add(b"key")
    built = case.build(kernel, one)
    assert built.digest_seed == one.digest_seed
    assert built.might_contain(b"key")
    with pytest.raises(ValueError, match=r"seed is out of range: allowed are 0 to 2\*\*64 - 1"):
        case.cls(kernel).digests(seed=2**64)
    with pytest.raises(TypeError, match="seed is an int, not str"):
        case.cls(kernel).digests(seed="1")


@every_digested_case
@examples(15)
@given(
    keys=st.lists(st.binary(max_size=40), max_size=80),
    more=st.lists(st.binary(max_size=300), max_size=5),
)
@example(keys=[], more=[])
@example(keys=[b"same"] * 70, more=[b"same"])
def test_digests_build_what_their_keys_build(
    kernel: ModuleType, case: Case, keys: list[bytes], more: list[bytes]
) -> None:
    digests = collection(kernel, case, keys)
    for key in more[:2]:
        digests.add(key)
    for key in more[2:]:
        digests.add_digest(digest_of(case, key))
    assert len(digests) == len(keys + more)
    direct = case.build(kernel, keys + more, **secrets(case))
    built = case.build(kernel, digests, **salt(case))
    assert built.to_bytes() == direct.to_bytes()
    assert built.num_keys == direct.num_keys
    assert case.build(kernel, digests, **secrets(case)) == direct
    assert built.might_contain_many(keys + more) == [True] * len(keys + more)


@every_case
def test_a_build_leaves_the_digests_as_they_were(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """Salted, sorted, cut and made distinct are copies."""
    keys = random_keys(rng, 700)
    keys = rng.sample(keys, 700) + keys[:50] + [keys[-1]] * 3
    digests = collection(kernel, case, keys)
    first = case.build(kernel, digests, **salt(case))
    other = {"salt": SALT + 1} if case.salted else {}
    case.build(kernel, digests, **other)
    assert first.count_missing(digests) == 0
    assert len(digests) == len(keys)
    again = case.build(kernel, digests, **salt(case))
    assert again == first == case.build(kernel, keys, **secrets(case))
    digests.add(b"one more")
    assert len(digests) == len(keys) + 1
    assert case.build(kernel, digests, **salt(case)) == case.build(
        kernel, [*keys, b"one more"], **secrets(case)
    )


@every_salted_digested_family
def test_keys_collected_once_build_two_families(kernel: ModuleType, case: Case) -> None:
    keys = [b"%d" % i for i in range(300)]
    digests = collection(kernel, case, keys)
    for other in SALTED_DIGESTED_DEFAULTS:
        built = other.build(kernel, digests, salt=SALT)
        assert built == other.build(kernel, keys, **secrets(other))
        assert built.digest_seed == SEED
        assert built.count_missing(digests) == 0


@every_digested_family
def test_digests_of_another_kind_or_seed_are_refused(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, [b"key"], **secrets(case))
    for other in DIGESTED_DEFAULTS:
        if kind_of(other) == kind_of(case):
            continue
        says = f"these are {kind_of(other)} digests, and this family takes {kind_of(case)}"
        for digests in (collection(kernel, other), collection(kernel, other, [b"key"])):
            with pytest.raises(ValueError, match=says):
                case.cls(kernel).build(digests)
            with pytest.raises(ValueError, match=says):
                built.count_missing(digests)
    if case.salted:
        says = "these digests were taken under another seed: collect them with"
        with pytest.raises(ValueError, match=says):
            case.cls(kernel).build(collection(kernel, case, [b"key"]), seed=SEED + 1)
        with pytest.raises(ValueError, match=says) as error:
            built.count_missing(collection(kernel, case, [b"key"], seed=SEED + 1))
        assert str(SEED) not in str(error.value)


@every_digested_family
def test_numbers_that_are_no_digests_are_refused(kernel: ModuleType, case: Case) -> None:
    digests = collection(kernel, case)
    bits = 128 if case.family == "cassandra" else 64
    for number in (-1, 2**bits, 2**200, -(2**63)):
        with pytest.raises(OverflowError, match=rf"a digest lies between 0 and 2\*\*{bits} - 1"):
            digests.add_digest(number)
    for wrong in ("1", None, b"1"):
        with pytest.raises(TypeError):
            digests.add_digest(wrong)
    assert len(digests) == 0
    digests.add_digest(0)
    digests.add_digest(2**32 - 1)
    if case.family != "leveldb":
        digests.add_digest(2**bits - 1)
    built = case.build(kernel, digests, **salt(case))
    assert built.count_missing(digests) == 0
    if case.salted:
        assert [built.might_contain_digest(each) for each in (0, 2**64 - 1)] == [True, True]


@every_family
@pytest.mark.parametrize("wrong", [1.5, 7, None, ["list"]])
def test_what_is_no_key_is_refused_and_not_counted(
    kernel: ModuleType, case: Case, wrong: Any
) -> None:
    digests = collection(kernel, case, [b"key"])
    with pytest.raises(TypeError, match="a key is bytes-like or str, not"):
        digests.add(wrong)
    assert len(digests) == 1
    assert case.build(kernel, digests, **salt(case)) == case.build(
        kernel, [b"key"], **secrets(case)
    )


@every_family
def test_keys_come_in_every_form(kernel: ModuleType, case: Case) -> None:
    keys = [b"%05d" % i for i in range(300)]
    digests = collection(kernel, case)
    digests.add_many(keys[:50])
    digests.add_many(tuple(keys[50:100]))
    digests.add_many(iter(keys[100:150]))
    digests.add_many(PackedKeys(b"".join(keys[150:200]), width=5))
    digests.add_many(PackedKeys(b"".join(keys[200:250]), offsets=array("q", range(0, 255, 5))))
    digests.add_many([bytearray(key) for key in keys[250:299]])
    digests.add(memoryview(keys[299]))
    assert len(digests) == 300
    assert case.build(kernel, digests, **salt(case)) == case.build(kernel, keys, **secrets(case))


@once
@every_digested_family
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 1000, by_effort(5000, 20_000, 50_000)])
def test_count_missing_counts_exactly_the_denied(
    kernel: ModuleType, case: Case, count: int, rng: random.Random
) -> None:
    keys = random_keys(rng, min(count, 3000))
    built = case.build(kernel, keys, **secrets(case))
    assert built.count_missing(collection(kernel, case, keys)) == 0
    absent = random_keys(rng, count, length=11)
    asked = rng.sample(keys + absent, len(keys + absent))
    denied = len(asked) - sum(built.might_contain_many(asked))
    assert built.count_missing(collection(kernel, case, asked)) == denied
    assert count < 63 or denied > 0.8 * count
    viewed = case.cls(kernel).from_bytes(built.to_bytes())
    assert viewed.count_missing(collection(kernel, case, asked)) == denied
    assert built.count_missing(collection(kernel, case)) == 0


def payload_of(case: Case, data: bytes) -> range:
    """Where the bits are that make the answers."""
    if case.family == "leveldb":
        return range(len(data) - 1)
    if case.family in ("rocksdb", "ribbon"):
        return range(len(data) - 5)
    before = {"binary-fuse": 16, "bumped-ribbon": 16, "xor": 12, "scalable": 40}
    directory = before.get(case.family, 0)
    if case.family == "cassandra":
        return range(8, len(data))
    return range(40 + directory, len(data) - 8)


@every_digested_family
def test_a_filter_that_lost_bits_is_found_out(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """Where damage is such that the checksum cannot tell: it was made over the damaged bits."""
    keys = random_keys(rng, 200)
    digests = collection(kernel, case, keys)
    data = case.build(kernel, digests, **salt(case)).to_bytes()
    places = [place for place in payload_of(case, data) if data[place]]
    found = 0
    for place in rng.sample(places, 30):
        wrong = bytearray(data)
        wrong[place] = 0
        if case.salted:
            wrong[-8:] = struct.pack("<Q", xxh3_64_intdigest(bytes(wrong[:-8])))
        tampered = case.cls(kernel).from_bytes(bytes(wrong))
        missing = tampered.count_missing(digests)
        assert missing == tampered.might_contain_many(keys).count(False)
        found += missing > 0
    # A slot of a ribbon, or of what is peeled, may be nobody's; elsewhere each bit is somebody's.
    assert found >= (20 if case.family in ("binary-fuse", "bumped-ribbon", "xor") else 30)
    whole = case.cls(kernel).from_bytes(data)
    assert whole.count_missing(digests) == 0


@every_growing_family
def test_a_filter_that_grew_is_asked_for_its_digests(kernel: ModuleType, case: Case) -> None:
    grown = case.cls(kernel).with_capacity(300, **secrets(case))
    digests = collection(kernel, case, [b"%d" % i for i in range(200)])
    assert grown.count_missing(digests) == 200
    grown.add_many([b"%d" % i for i in range(150)])
    assert 40 <= grown.count_missing(digests) <= 50
    grown.add_many([b"%d" % i for i in range(150, 200)])
    assert grown.count_missing(digests) == 0


@pytest.mark.parametrize(("payload", "trailer", "form"), TRAILERS)
def test_foreign_forms_are_asked_for_digests_too(
    kernel: ModuleType, payload: bytes, trailer: bytes, form: str
) -> None:
    read = kernel.RocksDBBloomFilter.from_bytes(payload + trailer)
    digests = kernel.RocksDBBloomFilter.digests()
    digests.add_many([b"%d" % i for i in range(100)])
    if form == "legacy":
        with pytest.raises(ValueError, match="xxph3-64 digests, and this family takes rocksdb-32"):
            read.count_missing(digests)
    else:
        assert read.count_missing(digests) == (0 if form.startswith("always-maybe") else 100)


def test_legacy_filters_are_asked_for_digests_of_their_own_hash(rng: random.Random) -> None:
    """Such a collection has no public maker; the readable kernel's constructor serves kernels."""
    kernel = filters.kernels.load("python")
    keys = random_keys(rng, 200)
    read = kernel.RocksDBBloomFilter.from_bytes(build_legacy(keys, 10))
    digests = kernel.Digests("rocksdb-32", 0)
    digests.add_many(keys)
    digests.add_digest(rocksdb_hash(keys[0]))
    assert read.count_missing(digests) == 0
    absent = random_keys(rng, 500, length=5)
    digests.add_many(absent)
    assert read.count_missing(digests) == 500 - sum(read.might_contain_many(absent))
    with pytest.raises(ValueError, match="rocksdb-32 digests, and this family takes xxph3-64"):
        kernel.RocksDBBloomFilter.build(digests)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 9, 100, 200])
@pytest.mark.parametrize("array_bytes", [8, 13, 100])
def test_leveldb_filters_of_others_are_asked_for_digests_too(
    kernel: ModuleType, length: int, array_bytes: int, rng: random.Random
) -> None:
    keys = [rng.randbytes(length) for _ in range(50)]
    digests = kernel.LevelDBBloomFilter.digests()
    digests.add_many(keys)
    for num_probes in (0, 1, 6, 30, 31, 255):
        for data in (bytes(array_bytes), b"\xff" * array_bytes, rng.randbytes(array_bytes)):
            read = kernel.LevelDBBloomFilter.from_bytes(data + bytes([num_probes]))
            assert read.count_missing(digests) == read.might_contain_many(keys).count(False)
    nothing = kernel.LevelDBBloomFilter.from_bytes(b"\x06")
    assert nothing.count_missing(digests) == 50


@every_family
def test_a_collection_is_no_list_of_keys(kernel: ModuleType, case: Case) -> None:
    """Where keys belong, and digests have no place, it is a TypeError like any other."""
    digests = collection(kernel, case, [b"key"])
    built = case.build(kernel, [b"key"], **secrets(case))
    uses = (built.might_contain, built.might_contain_many, digests.add_many, digests.add)
    for use in (*uses, case.cls(kernel).from_bytes):
        with pytest.raises(TypeError):
            use(digests)
    assert len(digests) == 1


def test_collections_of_one_kernel_are_not_those_of_another() -> None:
    for name in filters.kernels.available():
        for other in filters.kernels.available():
            if name != other:
                digests = filters.kernels.load(name).CuckooFilter.digests()
                digests.add(b"key")
                with pytest.raises(TypeError, match="Digests' object is not iterable"):
                    filters.kernels.load(other).CuckooFilter.build(digests)
