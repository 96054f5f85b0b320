"""Varints and the cursor: what is written is read back, and nothing is read beyond the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsm.disk.coding import SHORT_VARINTS, Fields, length_prefixed, varint
from lsm.errors import CorruptionError
from tests.effort import examples

numbers = st.integers(0, 63).flatmap(lambda bits: st.integers(0, (2 << bits) - 1))

READS: dict[str, Callable[[Fields], object]] = {
    "byte": lambda fields: fields.byte("x"),
    "varint32": lambda fields: fields.varint32("x"),
    "varint64": lambda fields: fields.varint64("x"),
    "take": lambda fields: fields.take(3, "x"),
    "slice": lambda fields: fields.slice("x"),
}


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**32 - 1, "ffffffff0f"),
        (2**63, "80808080808080808001"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_varints_are_the_formats_own(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded
    assert Fields(bytes.fromhex(encoded), "it").varint64("x") == value


def test_short_varints_are_all_there() -> None:
    assert [varint(value) for value in range(128)] == SHORT_VARINTS
    assert len(SHORT_VARINTS) == 128


@pytest.mark.parametrize("value", [-1, -(2**70), 2**64])
def test_a_number_that_no_varint_holds_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"out of range: {value}, allowed are 0 to 1844674407"):
        varint(value)


@examples(200)
@given(st.lists(numbers), st.binary(max_size=300), st.booleans())
def test_what_is_written_is_read_back(values: list[int], data: bytes, as_view: bool) -> None:
    whole = b"".join(map(varint, values)) + length_prefixed(data) + data[:1]
    fields = Fields(memoryview(whole) if as_view else whole, "it")
    assert [fields.varint64("x") for _ in values] == values
    read = fields.slice("x")
    assert (type(read), read) == (bytes, data)
    assert fields.at == len(whole) - len(data[:1])
    assert fields.remaining == len(data[:1])
    assert fields.take(fields.remaining, "x") == data[:1]
    fields.end()


def test_a_byte_is_a_number_from_0_to_255() -> None:
    fields = Fields(b"\x01\xff", "it")
    assert (fields.byte("x"), fields.byte("x")) == (0x01, 0xFF)
    fields.end()


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        ("byte", "", "it: the x would take bytes 1 to 2, and there are 1"),
        ("take", "0102", "it: the x would take bytes 1 to 4, and there are 3"),
        ("varint32", "", "it: the x would take bytes 1 to more than 1, and there are 1"),
        ("varint32", "ffff", "it: the x would take bytes 1 to more than 3, and there are 3"),
        ("varint64", "ff" * 9, "it: the x would take bytes 1 to more than 10, and there are 10"),
        ("varint32", "8080808080" + "00", "it: the x at byte 1 is a varint of more than 5 bytes"),
        ("varint32", "8080808080", "it: the x at byte 1 is a varint of more than 5 bytes"),
        ("varint64", "80" * 10 + "00", "it: the x at byte 1 is a varint of more than 10 bytes"),
        ("varint32", "8080808010", "it: the x at byte 1 is 4294967296, allowed are 0 to 429496729"),
        ("varint64", "80" * 9 + "02", "it: the x at byte 1 is 18446744073709551616, allowed are"),
        ("slice", "", "it: the length of the x would take bytes 1 to more than 1"),
        ("slice", "05aabb", "it: the x would take bytes 2 to 7, and there are 4"),
        ("slice", "ffffffff0f", "it: the x would take bytes 6 to 4294967301, and there are 6"),
    ],
)
def test_what_the_bytes_do_not_hold_is_damage(read: str, data: str, message: str) -> None:
    fields = Fields(b"\0" + bytes.fromhex(data), "it")
    fields.byte("first")
    with pytest.raises(CorruptionError, match=message):
        READS[read](fields)
    assert fields.at == 1


def test_a_negative_length_is_damage_too() -> None:
    fields = Fields(b"abc", "it")
    fields.take(2, "x")
    with pytest.raises(CorruptionError, match="would take bytes 2 to 1"):
        fields.take(-1, "x")


def test_bytes_behind_the_last_field_are_refused() -> None:
    fields = Fields(b"abc", "it")
    fields.byte("x")
    with pytest.raises(CorruptionError, match="it: 2 bytes follow its last field, from byte 1"):
        fields.end()


@examples(300)
@given(st.binary(max_size=24), st.lists(st.sampled_from(sorted(READS))))
@example(b"\xff\xff\xff\xff\x0f", ["slice"])
def test_any_bytes_are_read_or_damaged(data: bytes, reads: list[str]) -> None:
    fields = Fields(data, "it")
    for read in reads:
        before = fields.at
        try:
            READS[read](fields)
        except CorruptionError:
            assert fields.at == before
        else:
            assert before < fields.at <= len(data)
