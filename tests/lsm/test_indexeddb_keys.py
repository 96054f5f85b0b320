"""The order of Chrome's IndexedDB: against a slow model, by hand, and of any bytes."""

from __future__ import annotations

import struct
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.comparators import idb_cmp1
from tests.effort import examples
from tests.lsm.indexeddb_model import Key, UserKey, varint

# -- Keys --------------------------------------------------------------------------------------

DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), 5e-324, -5e-324]),
    st.floats(allow_nan=False),
)
UNITS = st.lists(st.sampled_from([0, 1, 0x41, 0xFF, 0x100, 0xD800, 0xFF00, 0xFFFF]), max_size=3)
BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0xFE, 0xFF]), max_size=3).map(bytes)
SCALARS = st.one_of(
    st.sampled_from([UserKey("below"), UserKey("above")]),
    st.builds(UserKey, st.sampled_from(["number", "date"]), DOUBLES),
    st.builds(UserKey, st.just("string"), UNITS.map(tuple)),
    st.builds(UserKey, st.just("binary"), BYTES),
)
USER_KEYS = st.recursive(
    SCALARS,
    lambda inner: st.builds(UserKey, st.just("array"), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)
NUMBERS = st.sampled_from([0, 1, 2, 127, 128, 255, 256, 1 << 31, (1 << 63) - 1])
IDS = st.sampled_from([1, 2, 255, 256, 65536, (1 << 63) - 1])
INDEXES = st.sampled_from([30, 31, 255, 256, (1 << 31) - 1, (1 << 32) - 1])
LAST = st.sampled_from([b"\0", b"\1", b"\7", b"\xff"])
TEXTS = UNITS.map(tuple)


def keys_of(
    prefix: st.SearchStrategy[tuple[int, int, int]],
    kind: int | None,
    *fields: st.SearchStrategy[Any],
) -> st.SearchStrategy[Key]:
    return st.builds(Key, prefix, st.just(kind), st.tuples(*fields))


ALL: st.SearchStrategy[tuple[int, int, int]] = st.just((0, 0, 0))
DATABASE = st.tuples(IDS, st.just(0), st.just(0))
ENTRIES = st.tuples(IDS, IDS, INDEXES)
SHAPES = [
    *(keys_of(ALL, kind) for kind in range(7)),
    keys_of(ALL, 50, BYTES),
    keys_of(ALL, 100, NUMBERS),
    keys_of(ALL, 201, TEXTS, TEXTS),
    *(keys_of(DATABASE, kind) for kind in range(6)),
    keys_of(DATABASE, 50, NUMBERS, LAST),
    keys_of(DATABASE, 100, NUMBERS, NUMBERS, LAST),
    keys_of(DATABASE, 150, NUMBERS),
    keys_of(DATABASE, 151, NUMBERS, NUMBERS),
    keys_of(DATABASE, 200, TEXTS),
    keys_of(DATABASE, 201, NUMBERS, TEXTS),
    keys_of(st.tuples(IDS, IDS, st.sampled_from([1, 2, 3])), None, USER_KEYS),
    keys_of(ENTRIES, None, USER_KEYS),
    keys_of(ENTRIES, None, USER_KEYS, NUMBERS),
    keys_of(ENTRIES, None, USER_KEYS, NUMBERS, USER_KEYS),
]
KEYS = st.one_of(SHAPES)
ONE_INDEX = st.just((1, 1, 30))
LIKE_KEYS = st.one_of(  # which differ in their last parts only
    keys_of(ONE_INDEX, None, USER_KEYS),
    keys_of(ONE_INDEX, None, SCALARS, NUMBERS),
    keys_of(ONE_INDEX, None, SCALARS, NUMBERS, USER_KEYS),
)
MANY_KEYS = st.one_of(
    [st.lists(each, min_size=2, max_size=8) for each in (KEYS, LIKE_KEYS, *SHAPES[-8:])]
)
RAW_KEYS = st.one_of(KEYS, LIKE_KEYS).map(Key.encoded)


@st.composite
def spoilt_keys(draw: st.DrawFn) -> bytes:
    """Keys that are cut, go on, or have a wrong byte, and some that are nothing at all."""
    data = bytearray(draw(RAW_KEYS))
    what = draw(st.integers(0, 3))
    if what == 0:
        del data[draw(st.integers(0, len(data))) :]
    elif what == 1:
        data += draw(BYTES)
    elif what == 2:
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    else:
        data = bytearray(draw(st.binary(max_size=12)))
    return bytes(data)


# -- The order ---------------------------------------------------------------------------------


@examples(400)
@given(
    keys=MANY_KEYS,
    paddings=st.lists(st.integers(0, 2), min_size=8, max_size=8),
)
def test_the_order_is_that_of_the_model(keys: list[Key], paddings: list[int]) -> None:
    written = [key.encoded(padding) for key, padding in zip(keys, paddings, strict=False)]
    for key, data in zip(keys, written, strict=True):
        for other, other_data in zip(keys, written, strict=True):
            assert idb_cmp1(data, other_data) == key.against(other)


@examples(400)
@given(st.lists(st.one_of(RAW_KEYS, spoilt_keys()), min_size=3, max_size=8))
def test_any_bytes_have_a_place_in_one_order(keys: list[bytes]) -> None:
    ordered = sorted(keys, key=cmp_to_key(idb_cmp1))
    for at, one in enumerate(ordered):
        assert idb_cmp1(one, one) == 0
        for other in ordered[at:]:
            order = idb_cmp1(one, other)
            assert order <= 0
            assert order == -idb_cmp1(other, one)
            if not order:  # equal keys are to others what each of them is
                assert all(idb_cmp1(one, each) == idb_cmp1(other, each) for each in ordered)


def prefix(*numbers: int) -> bytes:
    return Key((numbers[0], numbers[1], numbers[2]), None, ()).encoded()


# In ascending order, in the words of the coding scheme, to the byte.
BY_HAND = [
    b"",
    "00 00 00 00",  # a prefix alone
    "00 00 00 00 00",  # the schema's version
    "00 00 00 00 01",
    "00 00 00 00 32",  # scopes
    "00 00 00 00 32 00",
    "00 00 00 00 64 05",  # a free database
    "00 00 00 00 64 80 01",
    "00 00 00 00 c9 00 00",  # names of an origin and a database: both empty
    "00 00 00 00 c9 00 01 0061",
    "00 00 00 00 c9 01 0061 00",
    "00 00 00 00 c9 01 0061 01 0061",
    "00 00 00 00 c9 02 0061 0000 00",
    "00 01 00 00 00",  # a database's origin
    "00 01 00 00 05",
    "00 01 00 00 32 01 00",  # an object store's name
    "00 01 00 00 32 01 07",
    "00 01 00 00 32 02 00",
    "00 01 00 00 64 01 1e 00",  # an index's name
    "00 01 00 00 64 01 1e 03",
    "00 01 00 00 64 01 1f 00",
    "00 01 00 00 96 01",
    "00 01 00 00 97 01 1e",
    "00 01 00 00 97 01 1f",
    "00 01 00 00 97 02 1e",
    "00 01 00 00 c8 01 0061",
    "00 01 00 00 c9 01 00",
    "00 01 00 00 c9 01 01 0061",
    "00 01 00 00 c9 02 00",
    "00 01 01 01 05",  # data, by keys: the least, which bounds ranges
    "00 01 01 01 03 000000000000f0ff",  # -Infinity
    "00 01 01 01 03 00000000000000c0",  # -2.0
    "00 01 01 01 03 000000000000f0bf",  # -1.0
    "00 01 01 01 03 0000000000000000",
    "00 01 01 01 03 0100000000000000",
    "00 01 01 01 03 000000000000f03f",  # 1.0
    "00 01 01 01 03 000000000000f07f",  # Infinity
    "00 01 01 01 02 000000000000f0bf",  # dates
    "00 01 01 01 02 000000000000f03f",
    "00 01 01 01 01 00",  # strings
    "00 01 01 01 01 01 0000",
    "00 01 01 01 01 02 0000 0000",
    "00 01 01 01 01 01 0001",
    "00 01 01 01 01 02 0061 0062",
    "00 01 01 01 01 01 0062",
    "00 01 01 01 01 01 d800",
    "00 01 01 01 01 01 ffff",
    "00 01 01 01 06 00",  # binary data
    "00 01 01 01 06 01 00",
    "00 01 01 01 06 02 00 00",
    "00 01 01 01 06 01 01",
    "00 01 01 01 06 01 ff",
    "00 01 01 01 04 00",  # arrays
    "00 01 01 01 04 01 03 000000000000f03f",
    "00 01 01 01 04 02 03 000000000000f03f 03 000000000000f03f",
    "00 01 01 01 04 01 01 00",
    "00 01 01 01 04 01 04 00",
    "00 01 01 01 04 01 04 01 04 00",
    "00 01 01 01 04 02 04 01 04 00 01 00",
    "00 01 01 01 00",  # the greatest
    "00 01 01 02 03 0000000000000000",  # which keys exist
    "00 01 01 03 03 0000000000000000",  # which have blobs
    "00 01 01 1e 01 00",  # an index: a key alone, as it was once written
    "00 01 01 1e 01 00 00 05",  # and with the other key
    "00 01 01 1e 01 00 00 03 000000000000f03f",
    "00 01 01 1e 01 00 01 03 000000000000f03f",
    "00 01 01 1e 01 00 00 01 00",
    "00 01 01 1e 01 01 0000",
    "00 01 01 1f 01 00",
    "01 01 01 00 01 01 00",  # index 256 in two bytes
    "00 01 02 01 01 00",
    "04 01 00 01 01 01 00",  # object store 256
    "00 02 00 00 00",
    "20 00 01 00 00 00",  # database 256
]


def test_the_order_by_hand() -> None:
    keys = [each if isinstance(each, bytes) else bytes.fromhex(each) for each in BY_HAND]
    for one, other in pairwise(keys):
        assert idb_cmp1(one, other) == -1, (one, other)


STORE = prefix(1, 1, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (STORE + b"\3" + struct.pack("<d", 0.0), STORE + b"\3" + struct.pack("<d", -0.0)),
        (STORE + b"\1\0", STORE + b"\1\x80\0"),
        (STORE + b"\1\0", STORE + b"\1\0more"),
        (STORE + b"\1\0", Key((1, 1, 1), None, ()).encoded(padding=2) + b"\1\0"),
        (prefix(0, 0, 0) + b"\6", prefix(0, 0, 0) + b"\6more"),
        (prefix(1, 0, 0) + b"\5", prefix(1, 0, 0) + b"\5more"),
        (prefix(1, 1, 30) + b"\5", prefix(1, 1, 30) + b"\5\7"),
    ],
)
def test_keys_that_chrome_holds_equal_are_equal(one: bytes, other: bytes) -> None:
    assert one != other
    assert idb_cmp1(one, other) == idb_cmp1(other, one) == 0


NAN = struct.pack("<d", float("nan"))


@pytest.mark.parametrize(
    ("start", "unreadable"),
    [
        (b"", [b"\x00", b"\xff", b"\x00\1\1", b"\xe0" + b"\xff" * 8 + b"\0\0"]),
        (prefix(1, 1, 4), [b"\0", b"\1", b"\1\0"]),
        (STORE, [b"\1", b"\1\1", b"\1\1a", b"\2" + NAN, b"\3" + NAN, b"\3\0\0", b"\7", b"\xff"]),
        (STORE, [b"\1" + b"\xff" * 9, b"\4" + b"\x80" * 12, b"\6" + varint(1 << 63) + b"x"]),
        (STORE + b"\4\3\1\0", [b"\1", b"\7", b"\4\xff", b"\xff"]),
        (prefix(0, 0, 0) + b"\xc9", [b"\1", b"\2\0\0", b"\xff" * 11]),
        (prefix(1, 0, 0) + b"\x64\1", [b"\xff", b"\xff" * 11]),
        (prefix(1, 1, 30) + b"\1\0", [b"\xff", b"\0\1", b"\0\7"]),
    ],
)
def test_what_cannot_be_read_is_behind_what_can_by_its_bytes(
    start: bytes, unreadable: list[bytes]
) -> None:
    begun = [
        key
        for each in BY_HAND
        for key in [each if isinstance(each, bytes) else bytes.fromhex(each)]
        if key.startswith(start)
    ]
    keys = [start + each for each in sorted(unreadable)]
    for one, other in pairwise([*begun[-1:], *keys]):
        assert idb_cmp1(one, other) == -1, (one, other)
    for key in begun:
        assert idb_cmp1(key, keys[0]) == -1


def test_what_ends_early_is_before_what_goes_on() -> None:
    whole = bytes.fromhex("00 01 01 1e 04 02 01 00 01 00 00 03 000000000000f03f")
    ends = [4, 6, 8, 10, 20]
    for one, other in pairwise(whole[:end] for end in ends):
        assert idb_cmp1(one, other) == -1


@pytest.mark.parametrize("depth", [1, 3000, 100_000])
def test_arrays_may_be_as_deep_as_a_key_is_long(depth: int) -> None:
    deep = STORE + b"\4\1" * depth
    keys = [deep, deep + b"\3" + bytes(8), deep + b"\4\0", deep + b"\0", deep + b"\7"]
    for one, other in pairwise(keys):
        assert idb_cmp1(one, other) == -1


def test_a_claim_of_many_elements_costs_nothing() -> None:
    claim = STORE + b"\4" + varint((1 << 63) - 1)
    assert len(idb_cmp1.rank(claim + b"\5")) < 40
