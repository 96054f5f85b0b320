"""CRC-32C against its published values, and the mask."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.checksum import crc32c, mask
from tests.effort import examples


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        # RFC 3720, B.4, read as little-endian numbers.
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_the_published_values(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc
    assert crc32c(memoryview(data)) == crc


@examples(100)
@given(st.binary(), st.binary())
def test_a_checksum_goes_on_from_another(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)


def test_the_mask_is_leveldbs() -> None:
    # The header of a manifest of LevelDB's: its masked checksum, and type and payload behind.
    stored = bytes.fromhex("56f9b8f8")
    covered = bytes.fromhex("01" + "011a") + b"leveldb.BytewiseComparator"
    assert mask(crc32c(covered)) == int.from_bytes(stored, "little")


@examples(200)
@given(st.integers(0, 2**32 - 1))
def test_no_two_checksums_have_one_mask(crc: int) -> None:
    assert 0 <= mask(crc) < 2**32
    assert mask(crc) != crc
    rotated = (mask(crc) - 0xA282EAD8) % 2**32
    assert (rotated >> 17 | rotated << 15) % 2**32 == crc


def test_nothing_is_loaded_before_it_is_needed() -> None:
    modules = "coding, checksum, compression, filenames, log"
    script = f"import sys\nfrom lsm.disk import {modules}\nprint(*sys.modules)"
    fresh = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(fresh.stdout.split())
    assert "lsm.disk.fragments" in loaded
    assert not loaded & {"crc32c", "cramjam", "importlib.metadata", "numpy"}
