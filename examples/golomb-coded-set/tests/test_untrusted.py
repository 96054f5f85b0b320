"""Bytes from anywhere: refused, or answered like any filter's, in memory and time of their size."""

from __future__ import annotations

import tracemalloc

import pytest
from golomb_coded_set import BIP158, GolombCodedSet, GolombPolicy, Parameters, SipKey, encode
from golomb_coded_set.policy import HEAD
from hypothesis import given
from hypothesis import strategies as st

from filters import CorruptFilterError, FilterError, UnsupportedVersionError

SIP_KEY = SipKey(bytes(range(16)))
KEYS = [b"key%d" % number for number in range(300)]
FILTER = GolombPolicy(m=100).with_seed(7).create_filter(KEYS)
SMALL = Parameters(100)


def opened(data: bytes) -> GolombCodedSet:
    return GolombCodedSet.from_bytes(data, SIP_KEY, SMALL)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_answered(data: bytes) -> None:
    try:
        found = opened(data)
    except CorruptFilterError:
        return
    answers = found.might_contain_many(KEYS)
    assert answers == [found.might_contain(key) for key in KEYS]
    assert 0 <= found.expected_fpr <= 1
    assert found.num_keys * (SMALL.p + 1) <= 8 * len(data)


@given(st.integers(0, len(FILTER) - 1), st.integers(1, 255))
def test_a_changed_byte_raises_nothing_else(at: int, change: int) -> None:
    changed = bytearray(FILTER)
    changed[at] ^= change
    try:
        found = GolombPolicy().open(bytes(changed))
    except FilterError:
        return
    assert found.might_contain_many(KEYS) == [found.might_contain(key) for key in KEYS]


@pytest.mark.parametrize("length", range(len(FILTER)))
def test_a_filter_cut_short_is_refused(length: int) -> None:
    with pytest.raises(CorruptFilterError):
        GolombPolicy().open(FILTER[:length])


@pytest.mark.parametrize("more", [b"\x00", b"\x01", bytes(100)])
def test_a_filter_that_goes_on_is_refused(more: bytes) -> None:
    with pytest.raises(CorruptFilterError, match="and more follows"):
        GolombPolicy().open(FILTER + more)


def test_bits_behind_the_last_code_are_zeros() -> None:
    written = bytearray(encode([b"a"], SIP_KEY, SMALL))
    assert opened(bytes(written)).num_keys == 1
    written[-1] |= 1
    with pytest.raises(CorruptFilterError, match="and more follows"):
        opened(bytes(written))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "has no byte"),
        (b"\xfd\x01", "cut short"),
        (b"\xfd\xfc\x00", "not in its shortest form: fdfc00"),
        (b"\xfe\xff\xff\x00\x00", "not in its shortest form"),
        (b"\xff" + bytes(8), r"2\*\*32 keys or more"),
        (b"\xfe\xff\xff\xff\xff" + bytes(9), "claims 4294967295 keys of 7 bits or more"),
        (b"\x01\xff\xff", "code 1 of 1 has no end"),
        (b"\x01\xf0\x00", "key 1 of 1 .* has the number 256, and all are below 100"),
    ],
)
def test_what_is_wrong_is_told(data: bytes, told: str) -> None:
    with pytest.raises(CorruptFilterError, match=told):
        opened(data)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (HEAD.pack(0, 19, 784_931, bytes(16)), "no Golomb filter has version 0"),
        (HEAD.pack(1, 0, 784_931, bytes(16)), "p is 0"),
        (HEAD.pack(1, 40, 784_931, bytes(16)), "p is 40"),
        (HEAD.pack(1, 19, 1, bytes(16)), "m is 1"),
        (HEAD.pack(1, 3, 2**32 - 1, bytes(16)), r"below 8 \* 2\*\*p"),
    ],
)
def test_a_head_that_nobody_writes_is_refused(head: bytes, told: str) -> None:
    with pytest.raises(CorruptFilterError, match=told):
        GolombPolicy().open(head + b"\x00")


def test_a_later_version_is_told_from_damage() -> None:
    with pytest.raises(UnsupportedVersionError, match="version 2, and up to 1"):
        GolombPolicy().open(HEAD.pack(2, 99, 0, bytes(16)))


def test_no_count_and_no_run_of_ones_makes_anybody_allocate() -> None:
    """What is taken for a moment is some bytes for each byte that is there."""
    size = 200_000
    forged = [
        b"\xfe\xff\xff\xff\xff" + bytes(size),
        b"\xfd\xff\xff" + b"\xff" * size,
        b"\x01" + b"\xff" * size,
    ]
    for data in forged:
        tracemalloc.start()
        with pytest.raises(CorruptFilterError):
            GolombCodedSet.from_bytes(data, SIP_KEY, BIP158)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40 * size
