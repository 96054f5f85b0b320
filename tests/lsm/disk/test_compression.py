"""Compression of blocks: read back to the byte, and never believed."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk import compression
from lsm.disk.coding import varint
from lsm.disk.compression import DEFLATE, KINDS, RAW, SNAPPY, ZSTD, compress, decompress
from lsm.errors import CorruptionError
from tests.effort import examples
from tests.lsm.independent_table import deflated
from tests.lsm.peak_memory import at_most

TEXT = b"the quick brown fox jumps over the lazy dog, " * 300

SQUEEZERS = [SNAPPY, ZSTD]

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW_OF_128_KIB = b"\x38"


def zstd_block(*, last: bool, kind: int, size: int) -> bytes:
    return (int(last) | kind << 1 | size << 3).to_bytes(3, "little")


def zstd_frame_of_unknown_size(data: bytes) -> bytes:
    """As a streaming writer leaves it, which does not know how much will come."""
    writer = cramjam.zstd.Compressor(1)
    writer.compress(data)
    frame = bytes(writer.finish())
    assert not frame[4] & 0b1110_0000, "this frame says its size"
    return frame


def zstd_bomb(megabytes: int) -> bytes:
    """Zeros, 128 KiB to each four bytes, in a frame that does not say how many."""
    block = zstd_block(last=False, kind=1, size=1 << 17) + b"\0"
    end = zstd_block(last=True, kind=0, size=0)
    return ZSTD_MAGIC + b"\0" + WINDOW_OF_128_KIB + block * (8 * megabytes) + end


@pytest.mark.parametrize("kind", SQUEEZERS)
@examples(100)
@given(st.lists(st.binary(min_size=1, max_size=40)), st.integers(1, 400))
def test_what_is_compressed_is_read_back(kind: int, words: list[bytes], times: int) -> None:
    data = b"".join(words) * times
    stored_kind, stored = compress(kind, data)
    assert stored_kind in (kind, RAW)
    assert type(stored) is bytes
    for form in (stored, memoryview(b"xx" + stored)[2:]):
        opened = decompress(stored_kind, form)
        assert (type(opened), opened) == (bytes, data)


@pytest.mark.parametrize("kind", SQUEEZERS)
def test_text_shrinks(kind: int) -> None:
    stored_kind, stored = compress(kind, TEXT)
    assert stored_kind == kind
    assert len(stored) < len(TEXT) // 8


@pytest.mark.parametrize("kind", SQUEEZERS)
def test_noise_is_stored_as_it_is(kind: int, rng: random.Random) -> None:
    noise = rng.randbytes(5000)
    assert compress(kind, noise) == (RAW, noise)
    assert compress(kind, b"") == (RAW, b"")


@pytest.mark.parametrize("kind", SQUEEZERS)
def test_a_block_is_compressed_where_that_saves_more_than_an_eighth(
    kind: int, rng: random.Random
) -> None:
    library = cramjam.snappy.compress_raw if kind == SNAPPY else cramjam.zstd.compress
    level = () if kind == SNAPPY else (1,)
    kinds = set()
    for zeros in range(400, 700):
        data = bytes(zeros) + rng.randbytes(4000)
        compressed = bytes(library(data, *level))
        saves = len(compressed) < len(data) - len(data) // 8
        assert compress(kind, data) == ((kind, compressed) if saves else (RAW, data))
        kinds.add(saves)
    assert kinds == {True, False}


def test_nothing_is_compressed_where_that_is_not_wanted() -> None:
    assert compress(RAW, TEXT) == (RAW, TEXT)
    assert decompress(RAW, memoryview(TEXT)) == TEXT


def test_the_kinds_have_names() -> None:
    assert KINDS == {"none": 0, "snappy": 1, "zstd": 2}


def test_zstd_frames_say_their_size() -> None:
    """LevelDB opens no others."""
    for size in (100, 255, 256, 300, 65791, 65792, 70000, 1 << 20):
        kind, stored = compress(ZSTD, b"a" * size)
        assert kind == ZSTD
        assert compression._zstd_content_size(stored) == size


def test_snappy_by_hand() -> None:
    # A literal of 3 bytes, then a copy of 9 from 3 bytes before.
    stored = bytes((12, (3 - 1) << 2)) + b"abc" + bytes(((9 - 4) << 2 | 1, 3))
    assert decompress(SNAPPY, stored) == b"abc" * 4


@pytest.mark.parametrize(
    "header",
    [
        "20 0e",  # one segment, a size of one byte
        "60 0e00",  # ... of two bytes, less 256: replaced below
        "a0 0e000000",
        "e0 0e00000000000000",
        "80 38 0e000000",  # with a window
        "c0 38 0e00000000000000",
        "21 00 0e",  # with a dictionary id of one byte, which is none
        "22 0000 0e",
        "23 00000000 0e",
        "00 38",  # without a size
        "03 38 00000000",
    ],
)
def test_zstd_headers_by_hand(header: str) -> None:
    data = b"a raw block ..."[:14]
    if header.startswith("60"):
        data *= 20
        header = "60 " + (len(data) - 256).to_bytes(2, "little").hex()
    body = zstd_block(last=True, kind=0, size=len(data)) + data
    assert decompress(ZSTD, ZSTD_MAGIC + bytes.fromhex(header) + body) == data


@pytest.mark.parametrize("size", [1, 65536, 65537, 1_000_000])
def test_zstd_frames_of_unknown_size_are_read(size: int) -> None:
    data = (TEXT * (size // len(TEXT) + 1))[:size]
    assert decompress(ZSTD, zstd_frame_of_unknown_size(data)) == data


def test_a_zstd_bomb_of_unknown_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decompress(ZSTD, zstd_bomb(2)) == bytes(2 << 20)
    monkeypatch.setattr(compression, "ROOM", 1 << 20)
    assert decompress(ZSTD, zstd_bomb(1)) == bytes(1 << 20)
    with at_most(5 << 19), pytest.raises(CorruptionError, match="or holds more than 1048576"):
        decompress(ZSTD, zstd_bomb(64))


@pytest.mark.parametrize("zeros", [1 << 20, (1 << 20) + 1])
def test_what_would_not_be_read_again_is_written_as_it_is(
    zeros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value of many zeros is legal, and shrinks to nearly nothing."""
    monkeypatch.setattr(compression, "ROOM", 1 << 20)
    kind, stored = compress(ZSTD, bytes(zeros))
    assert kind == (ZSTD if zeros == 1 << 20 else RAW)
    assert decompress(kind, stored) == bytes(zeros)


def test_what_shrinks_as_text_does_is_read_at_any_size(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "ROOM", 1000)
    data = b"".join(b'{"id": %d, "name": "user", "active": true}' % n for n in range(20000))
    kind, stored = compress(ZSTD, data)
    assert kind == ZSTD
    assert len(data) > 20 * len(stored)
    assert decompress(kind, stored) == data
    noise = rng.randbytes(1000) + bytes(200_000)
    kind, stored = compress(ZSTD, noise)
    assert (kind, len(noise) > 100 * len(stored)) == (ZSTD, True)
    assert decompress(kind, stored) == noise


@pytest.mark.parametrize("kind", SQUEEZERS)
def test_very_large_blocks_are_not_compressed_and_those_of_others_are_read(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stored = compress(kind, bytes(1001))
    monkeypatch.setattr(compression, "LIMIT", 1000)
    assert compress(kind, bytes(1000))[0] == kind
    assert compress(kind, bytes(1001)) == (RAW, bytes(1001))
    assert decompress(kind, stored) == bytes(1001)


def test_the_limits_are_what_the_documents_say() -> None:
    assert (compression.LIMIT, compression.ROOM) == (1 << 30, 64 << 20)


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (SNAPPY, varint((1 << 30) + 1)),
        (SNAPPY, varint(2**32 - 1) + bytes(100)),
        (SNAPPY, varint(1 << 30) + bytes(1000)),
        (ZSTD, ZSTD_MAGIC + b"\xe0" + ((1 << 30) + 1).to_bytes(8, "little") + bytes(40000)),
        (ZSTD, ZSTD_MAGIC + b"\xe0" + (2**64 - 1).to_bytes(8, "little")),
        (ZSTD, ZSTD_MAGIC + b"\xa0" + ((1 << 26) + 1).to_bytes(4, "little") + bytes(200_000)),
    ],
)
def test_a_claim_is_checked_before_memory_is_taken(kind: int, stored: bytes) -> None:
    with at_most(1 << 17), pytest.raises(CorruptionError, match=r"claims to hold \d+, allowed are"):
        decompress(kind, stored)


@pytest.mark.parametrize("claim", [-1, 1])
@pytest.mark.parametrize("kind", SQUEEZERS)
def test_a_claim_must_come_true(kind: int, claim: int) -> None:
    data = bytes(200)
    _, stored = compress(kind, data)
    if kind == SNAPPY:
        stored = varint(200 + claim) + stored[2:]
    else:
        assert stored[4:6] == b"\x20\xc8"
        stored = stored[:5] + bytes((200 + claim,)) + stored[6:]
    with pytest.raises(CorruptionError, match=r"is damaged|claims to hold"):
        decompress(kind, stored)


@pytest.mark.parametrize("kind", SQUEEZERS)
def test_a_library_that_fills_less_than_the_claim_is_not_believed(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, stored = compress(kind, TEXT)
    monkeypatch.setattr(cramjam.snappy, "decompress_raw_into", lambda data, opened: 7)
    monkeypatch.setattr(cramjam.zstd, "decompress_into", lambda data, opened: 7)
    with pytest.raises(CorruptionError, match=f"claims to hold {len(TEXT)} bytes, and holds 7"):
        decompress(kind, stored)


def test_a_second_frame_is_within_the_claim_of_the_first() -> None:
    _, stored = compress(ZSTD, TEXT)
    for more in (stored, b"more", zstd_frame_of_unknown_size(b"x")):
        with pytest.raises(CorruptionError, match="zstd data of .* is damaged"):
            decompress(ZSTD, stored + more)


@pytest.mark.parametrize(
    ("kind", "stored", "message"),
    [
        (3, b"x", r"kind 3: known are 0 \(none\), 1 \(snappy\), 2 \(zstd\) or zlib, 4 \(deflate\)"),
        (5, b"x", "kind 5"),
        (255, b"", "kind 255"),
        (SNAPPY, b"", "snappy data: the uncompressed length would take bytes 0"),
        (SNAPPY, b"\xff" * 9, "uncompressed length at byte 0 is a varint of more than 5 bytes"),
        (SNAPPY, b"\x05", "snappy data of 1 bytes is damaged"),
        (SNAPPY, b"\0\0", "snappy data of 2 bytes is damaged"),
        (ZSTD, b"", "zstd data: the magic number would take bytes 0 to 4"),
        (ZSTD, b"\x50\x2a\x4d\x18" + bytes(20), r"zstd data begins with b'P\*M\\x18'"),
        (ZSTD, ZSTD_MAGIC, "the frame descriptor would take"),
        (ZSTD, ZSTD_MAGIC + b"\0", "the window descriptor would take"),
        (ZSTD, ZSTD_MAGIC + b"\x23\0", "the dictionary id would take"),
        (ZSTD, ZSTD_MAGIC + b"\xe0\0", "the content size would take"),
        (ZSTD, ZSTD_MAGIC + b"\x20\x01", "zstd data of 6 bytes is damaged"),
        (ZSTD, ZSTD_MAGIC + b"\0\x38", "zstd data of 6 bytes is damaged"),
        (ZSTD, ZSTD_MAGIC + b"\0\xff\x01\0\0", "zstd data of 9 bytes is damaged"),
    ],
)
def test_damage_is_named(kind: int, stored: bytes, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        decompress(kind, stored)


@pytest.mark.parametrize("kind", [3, DEFLATE, 7])
def test_a_kind_that_is_not_ours_is_not_written(kind: int) -> None:
    with pytest.raises(ValueError, match=f"no compression {kind}: known are 0"):
        compress(kind, TEXT)


@pytest.mark.parametrize("kind", [SNAPPY, ZSTD, DEFLATE])
@examples(200)
@given(st.binary(max_size=200))
def test_any_bytes_are_opened_or_damaged(kind: int, data: bytes) -> None:
    for stored in (data, ZSTD_MAGIC + data):
        try:
            opened = decompress(kind, stored)
        except CorruptionError:
            continue
        assert len(opened) <= compression.most(kind, len(stored))


@pytest.mark.parametrize("source", ["snappy", "zstd", "zstd of unknown size"])
def test_changed_bytes_are_opened_or_damaged(source: str, rng: random.Random) -> None:
    kind = SNAPPY if source == "snappy" else ZSTD
    stored = compress(kind, TEXT)[1]
    if source == "zstd of unknown size":
        stored = zstd_frame_of_unknown_size(TEXT)
    for _ in range(2000):
        changed = bytearray(stored)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(stored))] = rng.randrange(256)
        if rng.random() < 0.2:
            del changed[rng.randrange(len(changed)) :]
        try:
            decompress(kind, bytes(changed))
        except CorruptionError:
            continue


# -- What Minecraft writes ---------------------------------------------------------------------

STREAMS = pytest.mark.parametrize(
    ("kind", "squeeze", "name"), [(ZSTD, zlib.compress, "zlib"), (DEFLATE, deflated, "deflate")]
)
Squeeze = Callable[[bytes], bytes]


@STREAMS
@examples(100)
@given(words=st.lists(st.binary(min_size=1, max_size=40)), times=st.integers(1, 400))
def test_what_zlib_has_written_is_read(
    kind: int, squeeze: Squeeze, name: str, words: list[bytes], times: int
) -> None:
    data = b"".join(words) * times
    stored = squeeze(data)
    for form in (stored, memoryview(b"xx" + stored)[2:]):
        opened = decompress(kind, form)
        assert (type(opened), opened) == (bytes, data)


@STREAMS
@pytest.mark.parametrize("size", [0, 1, 258, 1000, 32768, 65537, 1_000_000])
def test_nothing_that_deflate_can_do_is_too_much(
    kind: int, squeeze: Squeeze, name: str, size: int
) -> None:
    assert decompress(kind, squeeze(bytes(size))) == bytes(size)


@pytest.mark.parametrize("level", range(10))
def test_any_level_of_zlib_is_told_from_zstd(level: int) -> None:
    stored = zlib.compress(TEXT, level)
    assert decompress(ZSTD, stored) == TEXT
    assert decompress(ZSTD, compress(ZSTD, TEXT)[1]) == TEXT
    for flags in range(256):
        other = bytes((0x78, flags)) + stored[2:]
        if flags in (0x01, 0x5E, 0x9C, 0xDA):  # of each level
            assert decompress(ZSTD, other) == TEXT
            continue
        with pytest.raises(CorruptionError, match=r"zlib data .* damaged|expected .*zlib's header"):
            decompress(ZSTD, other)


def test_a_stream_of_zlib_without_its_header_is_no_zlib() -> None:
    for stored in (deflated(TEXT), b"\x78", b"\x78\x9d" + deflated(TEXT), b""):
        with pytest.raises(CorruptionError, match="zstd data"):
            decompress(ZSTD, stored)
    with pytest.raises(CorruptionError, match="deflate data of"):
        decompress(DEFLATE, zlib.compress(TEXT))


@STREAMS
def test_a_stream_that_is_cut_anywhere_is_damaged(
    kind: int, squeeze: Squeeze, name: str, rng: random.Random
) -> None:
    stored = squeeze(TEXT + rng.randbytes(100))
    for end in range(2 if name == "zlib" else 0, len(stored)):
        with pytest.raises(
            CorruptionError, match=f"{name} data of {end} bytes is damaged: it ends before"
        ):
            decompress(kind, stored[:end])


@STREAMS
def test_what_stands_behind_a_stream_is_damage(kind: int, squeeze: Squeeze, name: str) -> None:
    stored = squeeze(TEXT)
    for more in (b"\0", stored):
        with pytest.raises(CorruptionError, match=f"its stream ends {len(more)} bytes before it"):
            decompress(kind, stored + more)


def test_the_checksum_of_zlib_counts() -> None:
    stored = zlib.compress(TEXT)
    with pytest.raises(CorruptionError, match="zlib data of .* is damaged: .*data check"):
        decompress(ZSTD, stored[:-1] + bytes((stored[-1] ^ 1,)))


@STREAMS
@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 1, 64 << 20])
def test_a_bomb_of_deflate_is_bounded(
    kind: int, squeeze: Squeeze, name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "ROOM", 1 << 20)
    monkeypatch.setattr(compression, "_GROWTH_BEYOND_ROOM", 1)
    stored = squeeze(bytes(size))
    if size == 1 << 20:
        assert decompress(kind, stored) == bytes(size)
        return
    with (
        at_most(5 << 19),
        pytest.raises(CorruptionError, match=f"{name} data of .* holds more than 1048576"),
    ):
        decompress(kind, stored)


@STREAMS
def test_changed_bytes_of_a_stream_are_opened_or_damaged(
    kind: int, squeeze: Squeeze, name: str, rng: random.Random
) -> None:
    stored = squeeze(TEXT)
    for _ in range(2000):
        changed = bytearray(stored)
        changed[rng.randrange(len(stored))] = rng.randrange(256)
        try:
            decompress(kind, bytes(changed))
        except CorruptionError:
            continue
