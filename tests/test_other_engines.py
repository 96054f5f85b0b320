"""README's table of other engines' files: what it says is read, written and refused is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import pytest

import lsm
from filters import CassandraBloomFilter, RocksDBBloomFilter, RocksDBRibbonFilter, cassandra
from filters.errors import FilterError
from lsm.disk.filter_blocks import WINDOWS_KEY
from lsm.errors import CorruptionError, ForeignDatabaseError
from lsm.survey import block_compression
from lsm.survey.found import FileFound
from lsm.survey.look import look
from lsm.survey.split_block import SplitBlockFilter
from tests.lsm.survey.foreign_tables import (
    PEBBLE_MAGIC,
    ROCKSDB_MAGIC,
    footer,
    forge,
    keys_of,
    pebble_lines_of,
)
from tests.lsm.survey.parquet_files import bloom_header
from tests.worked_examples import sections, table_rows

ROOT = Path(__file__).parents[1]
SECTION = sections(ROOT / "README.md")["Files of other engines"]
GOLDEN = ROOT / "tests" / "golden" / "foreign"
FULL = b"fullfilter.rocksdb.BuiltinBloomFilter"
KEYS = keys_of(40)

READ, WRITTEN, VERSIONS, REFUSED = range(2, 6)


def row(whose: str, files: str) -> list[str]:
    """The one row of an engine whose second cell begins so."""
    [found] = [
        cells for cells in table_rows(SECTION) if cells[0] == whose and cells[1].startswith(files)
    ]
    return found


def last_of(cell: str) -> int:
    """The last version of a cell that says "0 to so many", or from 1."""
    found = re.search(r" [01] to (\d+)", cell)
    assert found, cell
    return int(found[1])


def unread(path: Path, data: bytes) -> str:
    """Why a file is not read."""
    path.write_bytes(data)
    with pytest.raises(CorruptionError) as caught:
        look(path)
    return str(caught.value)


def test_the_table_speaks_of_all_whose_files_are_known() -> None:
    assert {cells[0] for cells in table_rows(SECTION)} == {
        "LevelDB", "RocksDB", "Cassandra", "Pebble", "Parquet",
    }  # fmt: skip
    assert all(len(cells) == 6 for cells in table_rows(SECTION))


def test_leveldbs_filter_has_the_name_it_is_said_to_have() -> None:
    assert f"`{WINDOWS_KEY}`" in row("LevelDB", "the filter block")[VERSIONS]
    found = look(GOLDEN / "leveldb_db_200users.ldb")
    assert (found.store, found.problems) == ("LevelDB", ())
    assert {each.family for each in found.filters} == {"leveldb"}


def filters_in(file: FileFound) -> Iterator[str]:
    for each in file.filters:
        assert not each.problem
        yield each.form


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("rocksdb_fv4_crc32c_3keys.sst", "RocksDB's Bloom filter of format versions up to 4"),
        ("rocksdb_fv5_xxh3_3keys.sst", "RocksDB's cache-local Bloom filter"),
        ("rocksdb_fv5_xxh3_partitioned_2087le.sst", "RocksDB's cache-local Bloom filter"),
        ("rocksdb_fv6_crc32c_3keys.sst", "RocksDB's cache-local Bloom filter"),
    ],
)
def test_rocksdbs_tables_are_inspected(name: str, form: str) -> None:
    found = look(GOLDEN / name)
    assert (found.store, found.problems) == ("RocksDB", ())
    assert all(each.startswith(form) for each in filters_in(found))
    assert len(found.filters) > 0


def test_the_versions_of_tables_are_those_that_are_read(tmp_path: Path) -> None:
    rocksdbs, pebbles = (
        last_of(row(whose, "a table's filters")[VERSIONS]) for whose in ("RocksDB", "Pebble")
    )
    path = tmp_path / "t.sst"
    beyond = bytes(800) + footer(b"", ROCKSDB_MAGIC, rocksdbs + 1)
    assert f"reads those up to {rocksdbs}" in unread(path, beyond)
    named = [(FULL, pebble_lines_of(KEYS, 2))]
    for version in range(1, pebbles + 1):
        path.write_bytes(forge(KEYS, named, magic=PEBBLE_MAGIC, version=version))
        found = look(path)
        assert (found.store, found.problems) == ("Pebble", ())
        assert all("Pebble's Bloom filter" in form for form in filters_in(found))
    beyond = bytes(800) + footer(b"", PEBBLE_MAGIC, pebbles + 1)
    assert f"reads those up to {pebbles}" in unread(path, beyond)


def test_rocksdbs_bytes_are_written_as_they_are_read() -> None:
    for cls in (RocksDBBloomFilter, RocksDBRibbonFilter):
        assert f"`{cls.__name__}`" in row("RocksDB", "a filter's bytes")[READ]
        built = cls.build(b"%d" % number for number in range(1000))
        assert cls.from_bytes(built.to_bytes()).to_bytes() == built.to_bytes()


def test_cassandras_versions_are_those_of_the_table() -> None:
    def is_known(letter: str) -> bool:
        try:
            cassandra.layout_of(f"{letter}a")
        except ValueError:
            return False
        return True

    said = row("Cassandra", "`Filter.db`")[VERSIONS]
    read, _, built = said.partition("; new")
    known = set(filter(is_known, ascii_lowercase))
    assert set(re.findall(r"`([a-z])`", read)) == known
    [first] = re.findall(r"from `([a-z])` on", built)
    new = CassandraBloomFilter.build(KEYS)
    for letter in known:
        if letter in "jkl":
            with pytest.raises((ValueError, FilterError), match="order"):
                new.to_bytes(sstable_version=f"{letter}a")
        else:
            assert letter == "d" or letter >= first
            assert new.to_bytes(sstable_version=f"{letter}a")


@pytest.mark.parametrize(
    ("whose", "name", "data"),
    [
        ("RocksDB", "IDENTITY", b"01234567-89ab-cdef-0123-456789abcdef"),
        ("Pebble", "marker.format-version.000001.013", b""),
    ],
)
def test_directories_of_others_are_left_as_they_are(
    whose: str, name: str, data: bytes, tmp_path: Path
) -> None:
    said = [cells[REFUSED] for cells in table_rows(SECTION) if cells[0] == whose]
    assert any("the directory, as a whole" in cell for cell in said)
    (tmp_path / name).write_bytes(data)
    (tmp_path / "CURRENT").write_bytes(b"MANIFEST-000001\n")
    with pytest.raises(ForeignDatabaseError, match=f"this directory is {whose}'s"):
        lsm.DB(str(tmp_path), create_if_missing=True)
    assert {each.name for each in tmp_path.iterdir()} == {name, "CURRENT"}


def test_parquets_forms_are_those_of_the_table(tmp_path: Path) -> None:
    cells = row("Parquet", "the filters")
    assert "split-block Bloom filters, XXH64, not compressed" in cells[VERSIONS]
    SplitBlockFilter.from_bytes(bloom_header(32) + bytes(32))
    for union in ("algorithm", "hash", "compression"):
        with pytest.raises(CorruptionError, match="unknown here"):
            SplitBlockFilter.from_bytes(bloom_header(32, **{union: 2}) + bytes(32))
    assert cells[REFUSED].startswith("encrypted")
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PARE" + bytes(40) + b"PARE")
    assert "its footer is encrypted" in look(path).problems[0]


def test_blocks_are_opened_of_the_kinds_that_are_named() -> None:
    text = " ".join(SECTION.split())
    [said] = re.findall(r"blocks without compression or of (.*?), none with a dictionary", text)
    read = set()
    for kind, name in block_compression.NAMES.items():
        try:
            block_compression.decompress(kind, b"", 2)
        except CorruptionError as error:
            if "not read here" in str(error):
                continue
        read.add(name)
    named = {name.lower() for name in re.split(r", | and ", said)}
    assert named == {name.removesuffix("hc") for name in read - {"none"}}
