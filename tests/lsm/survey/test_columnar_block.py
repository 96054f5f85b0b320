"""Pebble's columnar blocks: those that it writes, others of their form, and damaged ones."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.footer import Handle
from lsm.errors import CorruptionError
from lsm.survey.columnar_block import Columns, read_handles, read_keys, read_names
from tests.effort import examples, spread
from tests.lsm.survey.foreign_tables import (
    columns_of,
    data_columns_of,
    index_columns_of,
    keys_of,
)

PAIRS = [(b"key%02d" % number, b"value%d" % number) for number in range(40)]
KEYS = keys_of(60)

# As Pebble writes them, of its version 5: two keys of data, an index of six blocks, and 14 keys in
# bundles of 4 with repeats among them.
DATA = bytes.fromhex(
    "01000000 01 0700 02000000 04 2e000000 03 36000000 02 37000000 01 3c000000 03 50000000"
    "01 55000000 01 56000000 04 01 00000102 6162 00 02 01010002 00 000000 0300000000000000"
    "0100000000000000 01 000101 61 01 01 00"
)
INDEX = bytes.fromhex(
    "01 0400 06000000 03 1b000000 02 4c000000 02 5a000000 03 68000000 01 00050c111b2129"
) + bytes.fromhex(
    "6170706c65 6170706c696564 61746f6e65 6261636974726163696e 62616e616e61 626f6e6966696465"
    "02 00 1800 8d00 c300 9c01 7802 c303 02 00 1800 7000 3100 d400 d700 4601"
    "01 00030609090c0f 627031 627032 627033 627035 627036 00"
)
BUNDLES = bytes.fromhex(
    "02 01 02 07 07 08 0a 0b 0f 13 13 13 16 18 1a 1f 1f 20 27 27 27"
    "6161 6162626263 63 6465 65 61626262 6465652a 656666 6162 6265 626565662a 63 6263636565662a"
)


def test_what_pebble_writes_is_read() -> None:
    assert list(read_keys(DATA)) == [b"a", b"b"]
    assert list(Columns(DATA, 4).numbers(2)) == [257, 512]
    assert list(read_handles(INDEX)) == [
        (b"apple", Handle(24, 24)),
        (b"applied", Handle(141, 112)),
        (b"atone", Handle(195, 49)),
        (b"bacitracin", Handle(412, 212)),
        (b"banana", Handle(632, 215)),
        (b"bonifide", Handle(963, 326)),
    ]
    bundles = Columns(struct.pack("<BHIBI", 1, 1, 14, 4, 12) + BUNDLES + b"\0")
    assert list(bundles.ascending(0)) == [
        *(b"aaabbbc", b"aaabbbcc", b"aaabbbcde", b"aaabbbce"),
        *(b"aaabbbdee*", b"aaabbbdee*", b"aaabbbdee*", b"aaabbbeff"),
        *(b"aaabbe", b"aaabbeef*", b"aaabbeef*", b"aaabc", b"aabcceef*", b"aabcceef*"),
    ]


@examples(60)
@given(st.lists(st.binary(max_size=12), min_size=1, max_size=80), st.integers(0, 6))
def test_any_keys_that_ascend_are_read(keys: list[bytes], bundle_bits: int) -> None:
    """With repeats, and beginnings of others, in bundles of any size."""
    keys = sorted(keys)
    assert list(read_keys(data_columns_of(keys, bundle_bits))) == keys


@pytest.mark.parametrize("width", [1, 2, 4])
def test_names_are_read_whatever_the_width_of_their_offsets(width: int) -> None:
    pairs = PAIRS[:15]
    assert read_names(columns_of(pairs, width)) == dict(pairs)
    assert read_names(columns_of([(b"", b"")], 0)) == {b"": b""}
    assert read_names(columns_of([], width)) == {}


def test_handles_are_read_with_what_is_added_to_them() -> None:
    entries = [(key, 70_000 + 505 * place, 500) for place, key in enumerate(KEYS)]
    assert list(read_handles(index_columns_of(entries))) == [
        (key, Handle(offset, size)) for key, offset, size in entries
    ]
    block = bytearray(index_columns_of(entries[:2]))
    at = block.index(struct.pack("<BHI", 1, 4, 2)) + 12
    start = int.from_bytes(block[at + 1 : at + 5], "little")
    block[start : start + 9] = b"\x80" + struct.pack("<Q", 1 << 40)
    assert Columns(bytes(block)).numbers(1) == [1 << 40] * 2


READERS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "names": (columns_of(PAIRS), read_names),
    "index": (INDEX, lambda data: list(read_handles(data))),
    "keys": (data_columns_of(KEYS), lambda data: list(read_keys(data))),
    "data": (DATA, lambda data: list(read_keys(data))),
}


@pytest.mark.parametrize("form", READERS)
def test_damage_is_an_error_of_ours(form: str, rng: random.Random) -> None:
    data, read = READERS[form]
    read(data)
    others = [data[:size] for size in spread(range(len(data)), quick=80)]
    for bit in spread(range(8 * len(data)), quick=500):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        others.append(bytes(flipped))
    for other in [*others, *(rng.randbytes(rng.randrange(60)) for _ in range(100))]:
        with contextlib.suppress(CorruptionError):
            read(other)


def test_other_columns_are_refused() -> None:
    block = columns_of(PAIRS)
    for change, message in (
        (b"\2" + block[1:], "of 655 bytes is of version 2, with 40 rows"),
        (block[:1] + b"\3" + block[2:], "has 3 columns and 40 rows, allowed are 2"),
        (block[:3] + b"\xff" * 4 + block[7:], "4294967295 rows: .* no more rows than bytes"),
        (block[:7] + b"\2" + block[8:], r"types \[2, 3\], column 0 should be a 3"),
        (block[:17] + b"\3" + block[18:], "numbers of form 0x3 at byte 17"),
        (block[:22] + b"\0\0" + block[24:], "a value from 5 to 0"),
    ):
        with pytest.raises(CorruptionError, match=message):
            read_names(change)
    keys = bytearray(data_columns_of(KEYS))
    start = int.from_bytes(keys[12:16], "little")
    keys[start] = 40
    with pytest.raises(CorruptionError, match=r"bundles of 2\^40 rows"):
        list(read_keys(bytes(keys)))
