"""Which files of a directory are looked at, and whose they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lsm
from filters import CassandraBloomFilter
from lsm.survey.look import files_of, look, store_of
from tests.lsm.survey.hostile import is_placed


def names_of(path: Path) -> list[str]:
    return [str(Path(each).relative_to(path)) for each in files_of(path)]


def touch(path: Path, *names: str) -> None:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"")


def test_a_file_is_looked_at_whatever_it_is(tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt")
    assert names_of(tmp_path / "notes.txt") == ["."]
    (found,) = (look(each) for each in files_of(tmp_path / "notes.txt"))
    assert (found.store, found.kind, found.size) == ("unknown", "unknown", 0)


def test_what_nobody_knows_is_named_unknown(tmp_path: Path) -> None:
    path = tmp_path / "some.sst"
    for data in (b"", b"abc", bytes(range(200))):
        path.write_bytes(data)
        found = look(path)
        assert (found.store, found.filters) == ("unknown", ())
        (problem,) = found.problems
        assert is_placed(problem, path)
        assert data[:8].hex() in problem
        assert data[-8:].hex() in problem


def test_what_cannot_be_read_is_an_error_of_the_file_system(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(lsm.IOError, match=str(path)):
            look(path)


def test_numbers_are_in_their_order(tmp_path: Path) -> None:
    touch(tmp_path, "000010.ldb", "9.sst", "000100.sst", "MANIFEST-000001", "a.parquet")
    assert names_of(tmp_path) == ["9.sst", "000010.ldb", "000100.sst", "a.parquet"]
    touch(tmp_path / "c", "nb-10-big-Filter.db", "nb-9-big-Filter.db", "nb-9-big-Data.db")
    assert names_of(tmp_path / "c") == ["nb-9-big-Filter.db", "nb-10-big-Filter.db"]


def test_directories_within_come_behind_but_for_those_in_a_database(tmp_path: Path) -> None:
    touch(tmp_path, "b/nb-1-big-Filter.db", "a/x=1/part-0.parquet", "z.parquet", "a/y.parquet")
    assert names_of(tmp_path) == [
        "z.parquet",
        "a/y.parquet",
        "a/x=1/part-0.parquet",
        "b/nb-1-big-Filter.db",
    ]
    touch(tmp_path, "db/CURRENT", "db/000005.ldb", "db/lost/000004.ldb")
    assert [name for name in names_of(tmp_path) if name.startswith("db")] == ["db/000005.ldb"]


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.sst")
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    assert names_of(tmp_path / "a") == ["1.sst"]


def test_a_directory_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(lsm.IOError, match="cannot list the directory: Permission denied"):
        names_of(tmp_path)


def test_databases_are_told_by_their_files(tmp_path: Path) -> None:
    with lsm.DB(str(tmp_path / "ours"), create_if_missing=True) as db:
        db.put(b"a", b"b")
    touch(tmp_path, "leveldb/CURRENT", "leveldb/MANIFEST-000001", "empty/notes.txt")
    touch(tmp_path, "cassandra/nb-1-big-Filter.db", "rocksdb/CURRENT", "rocksdb/OPTIONS-000007")
    stores = {
        "ours": "lsm",
        "leveldb": "LevelDB",
        "cassandra": "Cassandra",
        "rocksdb": "RocksDB",
        "empty": "",
        "gone": "",
    }
    assert {name: store_of(tmp_path / name) for name in stores} == stores


def test_a_file_is_known_by_its_name_before_its_bytes(tmp_path: Path) -> None:
    """Nothing in a Filter.db says what it is, and its bits could begin like anything."""
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(CassandraBloomFilter.build([b"a"], fp_chance=0.5).to_bytes())
    assert look(path).store == "Cassandra"
