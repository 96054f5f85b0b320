"""Blocks as RocksDB compresses them, read back, and never believed."""

from __future__ import annotations

import bz2
import random
import struct
import zlib

import cramjam
import pytest

from lsm.errors import CorruptionError
from lsm.survey import block_compression
from lsm.survey.block_compression import (
    BZIP2,
    LZ4,
    LZ4HC,
    MINLZ,
    RAW,
    SNAPPY,
    XPRESS,
    ZLIB,
    ZSTD,
    ZSTD_OF_BEFORE,
    decompress,
)
from tests.effort import spread
from tests.lsm.independent_table import varint
from tests.lsm.peak_memory import at_most

TEXT = b"the quick brown fox jumps over the lazy dog, " * 30


def deflated(data: bytes) -> bytes:
    """zlib's raw form, as RocksDB asks for it."""
    deflater = zlib.compressobj(wbits=-14)
    return deflater.compress(data) + deflater.flush()


SQUEEZED = {
    ZLIB: deflated(TEXT),
    BZIP2: bz2.compress(TEXT),
    LZ4: bytes(cramjam.lz4.compress_block(TEXT, store_size=False)),
    LZ4HC: bytes(cramjam.lz4.compress_block(TEXT, store_size=False)),
    ZSTD: bytes(cramjam.zstd.compress(TEXT)),
    ZSTD_OF_BEFORE: bytes(cramjam.zstd.compress(TEXT)),
}
EARLY_SIZES = {
    ZLIB: b"",
    BZIP2: b"",
    LZ4: struct.pack("<Q", len(TEXT)),
    LZ4HC: struct.pack("<Q", len(TEXT)),
    ZSTD: varint(len(TEXT)),
    ZSTD_OF_BEFORE: varint(len(TEXT)),
}


@pytest.mark.parametrize("kind", SQUEEZED)
def test_sizes_stand_before_the_data_from_version_two_on(kind: int) -> None:
    assert decompress(kind, varint(len(TEXT)) + SQUEEZED[kind], 2) == TEXT
    assert decompress(kind, EARLY_SIZES[kind] + SQUEEZED[kind], 1) == TEXT
    assert decompress(RAW, TEXT, 2) == TEXT
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), 2) == TEXT


@pytest.mark.parametrize("kind", [XPRESS, MINLZ, 9, 255])
def test_what_nobody_here_opens_is_named(kind: int) -> None:
    name = block_compression.NAMES.get(kind, "unknown")
    with pytest.raises(CorruptionError, match=rf"kind {kind} \({name}\), not read here"):
        decompress(kind, TEXT, 2)


@pytest.mark.parametrize("kind", SQUEEZED)
def test_damage_is_an_error_of_ours(kind: int, rng: random.Random) -> None:
    """Any other bytes: cut short, other sizes, flipped bits. What opens has the claimed size."""
    whole = varint(len(TEXT)) + SQUEEZED[kind]
    others = [whole[:size] for size in spread(range(len(whole)), quick=50)]
    for size in (0, 1, len(TEXT) - 1, len(TEXT) + 1, 1 << 31):
        others.append(varint(size) + SQUEEZED[kind])
    for bit in spread(range(8 * len(whole)), quick=100):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        others.append(bytes(flipped))
    others += [rng.randbytes(rng.randrange(40)) for _ in range(100)]
    for data in others:
        for version in (1, 2):
            try:
                opened = decompress(kind, data, version)
            except CorruptionError:
                continue
            if version == 2:
                assert data.startswith(varint(len(opened))[:1])


@pytest.mark.parametrize("kind", [ZLIB, BZIP2])
def test_no_more_memory_is_taken_than_blocks_may_have(kind: int) -> None:
    bomb = (deflated if kind == ZLIB else bz2.compress)(bytes(100 << 20))
    with at_most(1 << 20), pytest.raises(CorruptionError, match="or holds more than 1000"):
        decompress(kind, varint(1000) + bomb, 2)
    with pytest.raises(CorruptionError, match="claims to hold 4294967295"):
        decompress(kind, varint((1 << 32) - 1) + bomb, 2)
