"""Our own families' bytes, short, damaged, forged or strange: an error, never "absent"."""

from __future__ import annotations

import random
import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from filters import CapacityError, CorruptFilterError, FilterError, UnsupportedVersionError
from filters.header import OVERHEAD
from tests.filters.cases import SALTED_DEFAULTS, Case, every_salted_family

KEYS = [b"key%d" % i for i in range(40)]


def signed(body: bytes | bytearray) -> bytes:
    """The body with a checksum that fits: what a forger would write."""
    return bytes(body) + struct.pack("<Q", xxh3_64_intdigest(bytes(body)))


def forged(data: bytes, offset: int, layout: str, value: int) -> bytes:
    """The filter with one field of its header replaced and the checksum made to fit."""
    body = bytearray(data[:-8])
    struct.pack_into(layout, body, offset, value)
    return signed(body)


@every_salted_family
def test_every_flipped_bit_is_noticed(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFilterError):
            case.cls(kernel).from_bytes(bytes(flipped))


@every_salted_family
def test_every_truncation_is_noticed(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    for length in range(len(data)):
        with pytest.raises(CorruptFilterError):
            case.cls(kernel).from_bytes(data[:length])
    with pytest.raises(CorruptFilterError):
        case.cls(kernel).from_bytes(data + b"\0")


@given(data=st.binary(max_size=300), case=st.sampled_from(SALTED_DEFAULTS), sign=st.booleans())
def test_random_bytes_are_refused(kernel: ModuleType, data: bytes, case: Case, sign: bool) -> None:
    with pytest.raises(CorruptFilterError):
        case.cls(kernel).from_bytes(signed(data) if sign else data)


@every_salted_family
def test_what_is_short_says_how_short(kernel: ModuleType, case: Case) -> None:
    with pytest.raises(CorruptFilterError, match=rf"{case.family}.*3 bytes.*{OVERHEAD}"):
        case.cls(kernel).from_bytes(b"abc")


@every_salted_family
def test_a_later_version_is_told_apart_from_damage(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    with pytest.raises(UnsupportedVersionError, match="version 2.*upgrade"):
        case.cls(kernel).from_bytes(forged(data, 5, "B", 2))


@every_salted_family
def test_another_family_is_named(kernel: ModuleType, case: Case) -> None:
    other = "classic" if case.family != "classic" else "cuckoo"
    name = {"classic": "ClassicBloomFilter", "cuckoo": "CuckooFilter"}[other]
    data = getattr(kernel, name).build(KEYS).to_bytes()
    with pytest.raises(CorruptFilterError, match=f"not a {case.family} filter.*{other}"):
        case.cls(kernel).from_bytes(data)
    with pytest.raises(CorruptFilterError, match="family 77"):
        case.cls(kernel).from_bytes(forged(data, 4, "B", 77))


@every_salted_family
def test_flags_that_contradict_the_count_are_refused(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    empty = case.build(kernel, []).to_bytes()
    assert (data[6], empty[6]) == (0, 1)
    for wrong in (forged(data, 6, "B", 1), forged(empty, 6, "B", 0), forged(data, 6, "B", 2)):
        with pytest.raises(CorruptFilterError, match="flags"):
            case.cls(kernel).from_bytes(wrong)


@every_salted_family
def test_a_count_that_is_none_is_refused(kernel: ModuleType, case: Case) -> None:
    """Else a key more would run a 64-bit counter over. What grows up to it can still be read."""
    data = case.build(kernel, KEYS).to_bytes()
    for count in (2**60 + 1, 2**64 - 1):
        with pytest.raises(CorruptFilterError, match=f"claims {count} keys"):
            case.cls(kernel).from_bytes(forged(data, 8, "<Q", count))
    if case.record.grows:
        grown = case.cls(kernel).from_bytes(forged(data, 8, "<Q", 2**60 - 1))
        grown.add_many([b"one more", b"two more"])
        assert grown.num_keys == 2**60 + 1
        again = case.cls(kernel).from_bytes(grown.to_bytes())
        assert again.num_keys == 2**60
        assert again == grown


FORGERIES: list[tuple[str, int, str, list[int]]] = [
    ("parameter", 7, "B", [0, 1, 7, 9, 33, 65, 255]),
    ("size", 16, "<Q", [0, 1, 2, 3, 1 << 20, 1 << 32, (1 << 40) + 1, 1 << 63, (1 << 64) - 1]),
]


@every_salted_family
def test_forged_geometry_is_refused_before_it_is_believed(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    for _, offset, layout, values in FORGERIES:
        for value in values:
            wrong = forged(data, offset, layout, value)
            if value == struct.unpack_from(layout, data, offset)[0]:
                continue
            try:
                built = case.cls(kernel).from_bytes(wrong)
            except FilterError:
                continue
            # A probe count within the range is a filter of another kind, not a damaged one.
            assert case.record.takes_probes
            assert offset == 7
            assert built.size_in_bytes == len(data)


def test_a_cuckoo_filter_cannot_hold_more_keys_than_slots(kernel: ModuleType) -> None:
    data = kernel.CuckooFilter.build(KEYS).to_bytes()
    with pytest.raises(CorruptFilterError, match="claims 45 keys in 44 slots"):
        kernel.CuckooFilter.from_bytes(forged(data, 8, "<Q", 45))


def test_a_cuckoo_filter_that_claims_to_be_full_takes_no_key(kernel: ModuleType) -> None:
    """With 44 keys in slots of which four are empty, it would grow to what nobody reads."""
    full = kernel.CuckooFilter.from_bytes(
        forged(kernel.CuckooFilter.build(KEYS).to_bytes(), 8, "<Q", 44)
    )
    before = full.to_bytes()
    for add in (full.add, lambda key: full.add_many([key]), lambda key: full.add_many(iter([key]))):
        with pytest.raises(CapacityError, match="44 of 44 slots in use"):
            add(b"one more")
    assert full.to_bytes() == before
    assert full.remove(KEYS[0])
    full.add(b"one more")
    assert full.to_bytes() != before


def fuse_with(data: bytes, **fields: int) -> bytes:
    """A fuse filter of one shard with fields of its directory entry replaced."""
    offsets = {"segment_length": (48, "<L"), "segment_count": (52, "<L")}
    for name, value in fields.items():
        data = forged(data, *offsets[name], value)
    return data


@pytest.mark.parametrize(
    "fields",
    [
        {"segment_length": 0},
        {"segment_length": 2},
        {"segment_length": 24},
        {"segment_length": 1 << 19},
        {"segment_length": 1 << 31},
        {"segment_length": (1 << 32) - 1},
        {"segment_count": 0},
        {"segment_count": 1},
        {"segment_count": 1000},
        {"segment_count": (1 << 32) - 1},
    ],
    ids=str,
)
def test_forged_fuse_shards_are_refused(kernel: ModuleType, fields: dict[str, int]) -> None:
    data = kernel.BinaryFuseFilter.build(KEYS).to_bytes()
    length, count = struct.unpack_from("<LL", data, 48)
    assert fuse_with(data, segment_length=length, segment_count=count) == data
    with pytest.raises(CorruptFilterError, match=r"shard 0|behind its last shard"):
        kernel.BinaryFuseFilter.from_bytes(fuse_with(data, **fields))


def test_a_forged_number_of_shards_is_refused(kernel: ModuleType) -> None:
    data = kernel.BinaryFuseFilter.build(KEYS).to_bytes()
    for value, reason in ((2, "shard 1|fit"), (3, "powers of two"), (1 << 20, "cut short")):
        with pytest.raises(CorruptFilterError, match=reason):
            kernel.BinaryFuseFilter.from_bytes(forged(data, 16, "<Q", value))


@every_salted_family
def test_random_forgeries_never_crash(kernel: ModuleType, case: Case, rng: random.Random) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    for _ in range(500):
        body = bytearray(data[:-8])
        for _ in range(rng.randrange(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        built: Any = None
        try:
            built = case.cls(kernel).from_bytes(signed(body))
        except FilterError:
            continue
        built.might_contain_many(KEYS)
        assert 0 <= built.expected_fpr <= 1
        assert built.fill >= 0
        assert repr(built)
