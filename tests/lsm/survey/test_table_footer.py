"""Footers of every store and version, and checksums of every kind."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import xxhash

from lsm.disk.footer import Handle
from lsm.errors import CorruptionError
from lsm.survey import block_checksums
from lsm.survey.source import Source
from lsm.survey.table_footer import TableFooter, read_footer
from tests.effort import spread
from tests.lsm import independent_table as independent
from tests.lsm.independent_table import masked_crc, varint
from tests.lsm.survey.foreign_tables import (
    CHECKSUMS,
    PEBBLE_MAGIC,
    ROCKSDB_MAGIC,
    VERSIONS,
    footer,
    keys_of,
    write_rocksdbs,
)

HANDLES = varint(700) + varint(30) + varint(400) + varint(200)


def footer_in(path: Path, data: bytes) -> TableFooter:
    """The footer of a file of these bytes."""
    path.write_bytes(data)
    with Source(path) as source:
        return read_footer(source)


@pytest.mark.parametrize("version", [1, 2, 5])
def test_rocksdbs_early_footers_have_both_handles(version: int, tmp_path: Path) -> None:
    found = footer_in(tmp_path / "t", bytes(800) + footer(HANDLES, ROCKSDB_MAGIC, version, 3))
    assert (found.version, found.checksum, found.base) == (version, 3, 0)
    assert (found.metaindex, found.index) == (Handle(700, 30), Handle(400, 200))
    assert not found.is_of_pebble


@pytest.mark.parametrize("version", range(1, 9))
def test_pebbles_footers_have_them_too(version: int, tmp_path: Path) -> None:
    data = footer(HANDLES, PEBBLE_MAGIC, version)
    assert len(data) == (53 if version < 6 else 57 if version == 6 else 61)
    found = footer_in(tmp_path / "t", bytes(800) + data)
    assert found.is_of_pebble
    assert (found.metaindex, found.index) == (Handle(700, 30), Handle(400, 200))
    if version >= 6:
        wrong = bytearray(data)
        wrong[20] ^= 1
        with pytest.raises(CorruptionError, match="the footer does not match its checksum"):
            footer_in(tmp_path / "t", bytes(800) + wrong)


def test_leveldbs_footer_has_no_version(tmp_path: Path) -> None:
    data = bytes(800) + independent.footer(HANDLES, b"")
    found = footer_in(tmp_path / "t", data)
    assert (found.version, found.checksum) == (0, block_checksums.CRC32C)
    assert (found.metaindex, found.index) == (Handle(700, 30), Handle(400, 200))


@pytest.mark.parametrize("checksum", CHECKSUMS)
@pytest.mark.parametrize("version", [each for each in VERSIONS if each >= 6])
def test_every_bit_of_a_later_footer_of_rocksdbs_is_guarded(
    version: int, checksum: str, tmp_path: Path
) -> None:
    """But for the magic number, which says whose it is, and the kind of the checksum itself."""
    data = write_rocksdbs(tmp_path / "t", keys_of(9), version=version, checksum=checksum)
    original = data.read_bytes()
    found = footer_in(tmp_path / "c", original)
    assert (found.version, found.index) == (version, None)
    assert block_checksums.name(found.checksum) == {
        "no_checksum": "none", "xxhash": "xxhash32"
    }.get(checksum, checksum)  # fmt: skip
    assert found.base != 0
    start = len(original) - 53
    for bit in spread(range(8 * 1, 8 * (9 if checksum == "no_checksum" else 41)), quick=40):
        flipped = bytearray(original)
        flipped[start + bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptionError, match=f"at byte {start}: "):
            footer_in(tmp_path / "c", bytes(flipped))


def test_what_is_no_footer_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t"
    whole = bytes(800) + footer(HANDLES, ROCKSDB_MAGIC, 2)
    for data, message in (
        (b"", r"at byte 0: not a block-based table: the file ends in nothing"),
        (b"abc", r"at byte 0: not a block-based table: the file ends in 616263"),
        (bytes(100), r"at byte 92: not a block-based table: the file ends in 0{16}"),
        (whole[-8:], r"at byte 0: its footer of 53 bytes is cut short: the file has 8"),
        (whole[-50:], r"at byte 0: its footer of 53 bytes is cut short: the file has 50"),
        (bytes(800) + footer(HANDLES, ROCKSDB_MAGIC, 8), "format version 8, .* up to 7"),
        (bytes(800) + footer(HANDLES, PEBBLE_MAGIC, 9), "format version 9, .* up to 8"),
        (bytes(800) + footer(HANDLES, ROCKSDB_MAGIC, 6), "has bc051e90 where"),
        (bytes(800) + footer(b"\xff" * 40, ROCKSDB_MAGIC, 5), "at byte 800: .* the offset"),
    ):
        with pytest.raises(CorruptionError, match=rf"^{path}: .*{message}"):
            footer_in(path, data)


def test_checksums_are_those_of_the_libraries() -> None:
    data = b"some bytes"
    whole = data + b"\7"
    assert block_checksums.computed(block_checksums.NONE, data, 7) == 0
    assert block_checksums.computed(block_checksums.CRC32C, data, 7) == masked_crc(whole)
    assert block_checksums.computed(block_checksums.XXHASH32, data, 7) == (
        xxhash.xxh32_intdigest(whole)
    )
    assert block_checksums.computed(block_checksums.XXHASH64, data, 7) == (
        xxhash.xxh64_intdigest(whole) % 2**32
    )
    assert block_checksums.computed(9, data, 7) is None
    guard = block_checksums.guard(9, data, 7, 0, 0)
    assert (guard.kind, guard.checked) == ("unknown kind 9", "unknown")
    assert not block_checksums.guard(0, data, 7, 0, 5).is_there


def test_a_place_adds_to_checksums_where_the_file_has_a_number() -> None:
    assert block_checksums.of_place(0, 12345) == 0
    assert block_checksums.of_place(0xFFFF, 3 << 32 | 5) == 0xFFFF ^ 8
    [wrapped] = struct.unpack("<I", struct.pack("<I", 0xFFFF_FFFF))
    assert block_checksums.of_place(1, wrapped + (2 << 32)) == 1 ^ 1
