"""Write batches and log framing: LevelDB's bytes, and nothing else is believed."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsm.disk import fragments as log_fragments
from lsm.disk.checksum import crc32c, mask
from lsm.disk.fragments import (
    BLOCK_BYTES,
    FIRST,
    FULL,
    HEADER_BYTES,
    LAST,
    MIDDLE,
    frame,
)
from lsm.errors import CorruptionError
from lsm.kernels.python.batch import decode_batch, encode_batch
from tests.effort import examples

MAX_SEQUENCE = 2**56 - 1

short = st.binary(max_size=20)
# Lengths on both sides of where a varint grows by a byte.
long = st.sampled_from([126, 127, 128, 129, 300, 16383, 16384, 40000]).map(lambda n: b"\x80" * n)
keys = short | long
operations_lists = st.lists(st.tuples(keys, st.none() | short | long), max_size=8)


def batch(sequence: int, count: int, *operations: bytes) -> bytes:
    return struct.pack("<QI", sequence, count) + b"".join(operations)


def fragments(data: bytes) -> list[tuple[int, bytes]]:
    """Types and payloads, each with its checksum verified."""
    found, at = [], 0
    while at < len(data):
        masked, length, kind = struct.unpack_from("<IHB", data, at)
        payload = data[at + 7 : at + 7 + length]
        assert len(payload) == length
        assert mask(crc32c(bytes((kind,)) + payload)) == masked
        found.append((kind, payload))
        at += 7 + length
    return found


class TestFrame:
    def test_a_record_that_fits_is_one_fragment(self) -> None:
        assert fragments(frame(b"record", 0)) == [(FULL, b"record")]
        assert fragments(frame(b"", 100)) == [(FULL, b"")]
        exact = bytes(BLOCK_BYTES - 100 - HEADER_BYTES)
        assert fragments(frame(exact, 100)) == [(FULL, exact)]

    def test_one_byte_more_goes_to_the_next_block(self) -> None:
        record = bytes(BLOCK_BYTES - 100 - HEADER_BYTES) + b"x"
        assert fragments(frame(record, 100)) == [(FIRST, record[:-1]), (LAST, b"x")]

    def test_a_long_record_fills_blocks(self) -> None:
        record = bytes(range(256)) * 500
        room = BLOCK_BYTES - HEADER_BYTES
        assert fragments(frame(record, 1000)) == [
            (FIRST, record[: room - 1000]),
            (MIDDLE, record[room - 1000 : 2 * room - 1000]),
            (MIDDLE, record[2 * room - 1000 : 3 * room - 1000]),
            (LAST, record[3 * room - 1000 :]),
        ]

    def test_a_record_that_ends_with_its_block_has_no_empty_last_fragment(self) -> None:
        record = bytes(2 * (BLOCK_BYTES - HEADER_BYTES))
        assert [kind for kind, _ in fragments(frame(record, 0))] == [FIRST, LAST]

    @pytest.mark.parametrize("left", range(1, HEADER_BYTES))
    @pytest.mark.parametrize("record", [b"", b"record"])
    def test_a_tail_too_short_for_a_header_is_zeros(self, left: int, record: bytes) -> None:
        data = frame(record, BLOCK_BYTES - left)
        assert data[:left] == bytes(left)
        assert fragments(data[left:]) == [(FULL, record)]

    def test_a_tail_that_just_holds_a_header_gets_an_empty_first_fragment(self) -> None:
        data = frame(b"record", BLOCK_BYTES - HEADER_BYTES)
        assert fragments(data) == [(FIRST, b""), (LAST, b"record")]
        assert fragments(frame(b"", BLOCK_BYTES - HEADER_BYTES)) == [(FULL, b"")]
        long = bytes(BLOCK_BYTES)
        kinds = [kind for kind, _ in fragments(frame(long, BLOCK_BYTES - HEADER_BYTES))]
        assert kinds == [FIRST, MIDDLE, LAST]

    @examples(200)
    @given(st.integers(0, 3 * BLOCK_BYTES), st.integers(0, BLOCK_BYTES - 1))
    @example(BLOCK_BYTES - HEADER_BYTES, 0)
    def test_fragments_make_up_the_record_and_cross_no_block(self, size: int, offset: int) -> None:
        record = (b"0123456789" * (size // 10 + 1))[:size]
        data = frame(record, offset)
        at = 0 if BLOCK_BYTES - offset >= HEADER_BYTES else BLOCK_BYTES - offset
        found = fragments(data[at:])
        assert b"".join(payload for _, payload in found) == record
        kinds = [FULL] if len(found) == 1 else [FIRST, *[MIDDLE] * (len(found) - 2), LAST]
        assert [kind for kind, _ in found] == kinds
        for _, payload in found:
            last = at + HEADER_BYTES + len(payload) - 1
            assert (offset + at) // BLOCK_BYTES == (offset + last) // BLOCK_BYTES
            at = last + 1

    def test_the_checksums_of_the_types(self) -> None:
        computed = {kind: crc32c(bytes((kind,))) for kind in (FULL, FIRST, MIDDLE, LAST)}
        assert computed == log_fragments._TYPE_CHECKSUMS
        assert list(computed) == [1, 2, 3, 4]


class TestBatches:
    def test_the_bytes(self) -> None:
        encoded = encode_batch(0x0102030405, [(b"key", b"value"), (b"gone", None), (b"", b"")])
        assert encoded.hex(" ") == (
            "05 04 03 02 01 00 00 00 03 00 00 00 "  # sequence number and count
            "01 03 6b 65 79 05 76 61 6c 75 65 "  # put key value
            "00 04 67 6f 6e 65 "  # delete gone
            "01 00 00"  # put "" ""
        )

    def test_the_bytes_of_long_lengths(self) -> None:
        encoded = encode_batch(1, [(b"k" * 128, b"v" * 16384), (b"d" * 300, None)])
        assert encoded[12:15].hex() == "018001"
        assert encoded[143:146].hex() == "808001"
        assert encoded[146 + 16384 :].hex() == "00ac02" + b"d".hex() * 300

    @examples(200)
    @given(st.integers(0, MAX_SEQUENCE - 8), operations_lists)
    @example(MAX_SEQUENCE, [(b"k", None)])
    @example(MAX_SEQUENCE, [])
    @example(MAX_SEQUENCE - 1, [(b"k", None)] * 2)
    def test_what_is_encoded_is_decoded(
        self, sequence: int, operations: list[tuple[bytes, bytes | None]]
    ) -> None:
        assert decode_batch(encode_batch(sequence, operations)) == (sequence, operations)

    @pytest.mark.parametrize(
        ("sequence", "count"), [(-1, 0), (2**56, 0), (2**56 - 1, 2), (2**56 - 2, 3), (2**64, 1)]
    )
    def test_sequence_numbers_have_56_bits(self, sequence: int, count: int) -> None:
        with pytest.raises(ValueError, match=f"sequence number {sequence}: allowed are 0 to 7205"):
            encode_batch(sequence, [(b"k", b"v")] * count)
        if 0 <= sequence < 2**64:
            encoded = batch(sequence, count, b"\0\1k" * count)
            with pytest.raises(CorruptionError, match=f"starts at sequence number {sequence}: the"):
                decode_batch(encoded)

    def test_a_length_that_no_varint32_holds_is_refused(self) -> None:
        class Huge(bytes):
            def __len__(self) -> int:
                return 2**32

        for operation in ((Huge(), None), (Huge(), b"v"), (b"k", Huge())):
            with pytest.raises(ValueError, match="4294967296 bytes, allowed are 4294967295"):
                encode_batch(1, [operation])

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            (b"", "a write batch has 0 bytes, its header alone takes 12"),
            (bytes(11), "a write batch has 11 bytes"),
            (batch(1, 1), "of 1 operations has 12 bytes, and they would take more"),
            (batch(1, 1, b"\1"), "has 13 bytes, and they would take more"),
            (batch(1, 1, b"\1\1"), "they would take more"),
            (batch(1, 1, b"\1\1k"), "they would take more"),
            (batch(1, 1, b"\1\1k\2v"), "they would take more"),
            (batch(1, 1, b"\0\2k"), "they would take more"),
            (batch(1, 1, b"\1\x80"), "they would take more"),
            (batch(1, 1, b"\1\x80\x80"), "the length of a key or value would take bytes 13"),
            (batch(1, 1, b"\1\1k\x80"), "they would take more"),
            (batch(1, 2, b"\0\1k"), "of 2 operations has 15 bytes, and they would take more"),
            (batch(1, 2, b"\0\1k\0\2k"), "of 2 operations has 18 bytes, and they would take more"),
            (batch(1, 2, b"\0\5k\0\1k"), "they would take more"),
            (batch(1, 2**32 - 1, b"\0\1k"), "of 4294967295 operations has 15 bytes"),
            (batch(1, 0, b"\0\1k"), "of 0 operations has 15 bytes, and they would take 12"),
            (batch(1, 1, b"\0\1k\0"), "of 1 operations has 16 bytes, and they would take 15"),
            (batch(1, 1, b"\2\1k"), r"operation 1 of 1 .* the unknown type 2; known are 1 \(put\)"),
            (batch(1, 2, b"\0\1k\xff\0\0"), "operation 2 of 2 .* the unknown type 255"),
            (batch(1, 1, b"\0" + b"\x80" * 5 + b"\0"), "byte 13 is a varint of more than 5 bytes"),
            (batch(1, 1, b"\0" + b"\xff" * 4 + b"\x10"), "at byte 13 is 4563402751, allowed are 0"),
            (batch(1, 1, b"\0" + b"\xff" * 4 + b"\x0f"), "they would take more"),
        ],
    )
    def test_what_is_no_write_batch(self, record: bytes, message: str) -> None:
        with pytest.raises(CorruptionError, match=message):
            decode_batch(record)

    def test_long_spellings_of_a_length_are_read_as_leveldb_reads_them(self) -> None:
        assert decode_batch(batch(1, 1, b"\0\x81\0k")) == (1, [(b"k", None)])
        assert decode_batch(batch(1, 1, b"\0\x81\x80\x80\x80\0k")) == (1, [(b"k", None)])

    @examples(300)
    @given(st.binary(max_size=40), st.integers(0, 3))
    def test_any_bytes_are_decoded_or_damaged(self, data: bytes, count: int) -> None:
        for record in (data, batch(1, count, data)):
            try:
                sequence, operations = decode_batch(record)
            except CorruptionError:
                continue
            assert len(encode_batch(sequence, operations)) <= len(record)

    @examples(100)
    @given(st.lists(st.tuples(short, st.none() | short), max_size=5), st.data())
    def test_a_batch_cut_anywhere_is_damaged(
        self, operations: list[tuple[bytes, bytes | None]], data: st.DataObject
    ) -> None:
        record = encode_batch(1, operations)
        cut = data.draw(st.integers(0, len(record) - 1))
        with pytest.raises(CorruptionError):
            decode_batch(record[:cut])
        with pytest.raises(CorruptionError):
            decode_batch(record + data.draw(st.binary(min_size=1, max_size=5)))
