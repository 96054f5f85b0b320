"""Directories of other stores: whoever tries what, not a byte of them changes."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm import foreign
from lsm.disk.edit import Edit, NewFile
from lsm.disk.footer import Footer, Handle
from lsm.disk.log import LogWriter
from lsm.disk.rocksdb_manifest import rocksdb_tag
from lsm.errors import ForeignDatabaseError, NotADatabaseError
from lsm.repair import repair
from lsm.storage import FileSystem
from tests.effort import by_effort, examples
from tests.lsm.simulated import SimulatedStorage

State = dict[str, tuple[Any, ...]]


def state(path: Path) -> State:
    """All that a directory has, with what changes when somebody writes."""
    found: State = {}
    for file in [path, *sorted(path.rglob("*"))]:
        status = file.stat()
        data = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        found[str(file)] = data, status.st_mtime_ns, status.st_ctime_ns, status.st_mode
    return found


def keep(path: Path, *patterns: str) -> None:
    """Remove all files but those of these names."""
    for file in path.iterdir():
        if not any(file.match(pattern) for pattern in patterns):
            file.unlink()


# ---- Other stores ------------------------------------------------------------------------------


def rocksdb(path: Path, configure: Callable[[Any, Any], None] = lambda *_: None) -> None:
    """A database of RocksDB's, with tables and a log."""
    rocksdict = pytest.importorskip("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    configure(rocksdict, options)
    db = rocksdict.Rdict(str(path), options)
    for number in range(300):
        db[b"key%04d" % number] = b"value" * 20
    db.flush()
    db[b"last"] = b"one"
    db.close()
    del db
    gc.collect()


def rocksdb_reads(path: Path) -> None:
    """RocksDB finds what it has written."""
    rocksdict = pytest.importorskip("rocksdict")
    db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
    assert (db[b"key0123"], db[b"last"]) == (b"value" * 20, b"one")
    db.close()
    del db
    gc.collect()


def plain_tables(rocksdict: Any, options: Any) -> None:
    options.set_plain_table_factory(rocksdict.PlainTableFactoryOptions())
    options.set_prefix_extractor(rocksdict.SliceTransform.create_fixed_prefix(3))
    options.set_allow_mmap_reads(True)


def cuckoo_tables(rocksdict: Any, options: Any) -> None:
    options.set_cuckoo_table_factory(rocksdict.CuckooTableOptions())
    options.set_allow_mmap_reads(True)


def blob_files(_rocksdict: Any, options: Any) -> None:
    options.set_enable_blob_files(True)
    options.set_min_blob_size(1)


def only(*patterns: str) -> Callable[[Path], None]:
    """What RocksDB's database is when only these files are left of it."""

    def make(path: Path) -> None:
        rocksdb(path)
        keep(path, *patterns)

    return make


def tables_of(configure: Callable[[Any, Any], None], pattern: str) -> Callable[[Path], None]:
    """Files of this kind, written by RocksDB under these options, and nothing else of it."""

    def make(path: Path) -> None:
        rocksdb(path, configure)
        keep(path, pattern)
        assert list(path.iterdir())

    return make


def ours_that_rocksdb_took(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True, compression=None) as db:
        db.put(b"ours", b"value")
        db.flush()
    rocksdb(path)


def tables_of_old(path: Path) -> None:
    """Tables that end as LevelDB's do, with what only RocksDB's first releases put into them."""
    path.mkdir()
    metaindex = b"\0\x12\4rocksdb.properties" + bytes(4) + bytes(4) + b"\1\0\0\0"
    footer = Footer(Handle(0, len(metaindex)), Handle(0, 0)).encode()
    (path / "000007.sst").write_bytes(metaindex + bytes(5) + footer)


def pebble(path: Path) -> None:
    """As Pebble names its files."""
    path.mkdir()
    (path / "000002.log").write_bytes(b"")
    (path / "LOCK").write_bytes(b"")
    (path / "MANIFEST-000001").write_bytes(b"")
    (path / "OPTIONS-000003").write_bytes(b"[Version]\n  pebble_version=0.1\n\n[Options]\n")
    (path / "marker.format-version.000006.019").write_bytes(b"")
    (path / "marker.manifest.000001.MANIFEST-000001").write_bytes(b"")
    (path / "000005.sst").write_bytes(bytes(100) + bytes.fromhex("f09faab3f09faab3"))


def of_pebble(*patterns: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        pebble(path)
        keep(path, *patterns)

    return make


def badger(path: Path) -> None:
    path.mkdir()
    (path / "MANIFEST").write_bytes(b"Bdgr\0\0\0\x08")
    for name in ("000001.vlog", "00001.mem", "000001.sst", "DISCARD", "LOCK"):
        (path / name).write_bytes(b"its own")


def named(*names: str) -> Callable[[Path], None]:
    """Files of these names, whatever is in them."""

    def make(path: Path) -> None:
        path.mkdir()
        for name in names:
            (path / name).write_bytes(b"its own")

    return make


CASSANDRA = ("nb-1-big-Data.db", "nb-1-big-Filter.db", "nb-1-big-TOC.txt", "nb-1-big-Index.db")


def lmdb(path: Path) -> None:
    engine = pytest.importorskip("lmdb")
    with engine.open(str(path)) as env, env.begin(write=True) as transaction:
        transaction.put(b"key", b"value")


def sqlite(path: Path) -> None:
    path.mkdir()
    with contextlib.closing(sqlite3.connect(path / "app.db")) as db, db:
        db.execute("create table t (a)")
        db.execute("insert into t values (1)")


def bbolt(path: Path) -> None:
    path.mkdir()
    (path / "my.db").write_bytes(bytes(16) + (0xED0CDAED).to_bytes(4, "little") + bytes(4000))


OTHERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "RocksDB": ("RocksDB", rocksdb),
    "RocksDB, options": ("RocksDB", only("OPTIONS-*")),
    "RocksDB, identity": ("RocksDB", only("IDENTITY")),
    "RocksDB, manifest": ("RocksDB", only("MANIFEST-*", "CURRENT", "LOCK")),
    "RocksDB, manifest and no CURRENT": ("RocksDB", only("MANIFEST-*")),
    "RocksDB, tables": ("RocksDB", only("*.sst")),
    "RocksDB, plain tables": ("RocksDB", tables_of(plain_tables, "*.sst")),
    "RocksDB, cuckoo tables": ("RocksDB", tables_of(cuckoo_tables, "*.sst")),
    "RocksDB, blobs": ("RocksDB", tables_of(blob_files, "*.blob")),
    "RocksDB, once ours": ("RocksDB", ours_that_rocksdb_took),
    "RocksDB of old": ("RocksDB", tables_of_old),
    "Pebble": ("Pebble", pebble),
    "Pebble, options": ("Pebble", of_pebble("OPTIONS-*", "MANIFEST-*", "*.log")),
    "Pebble, marker": ("Pebble", of_pebble("marker.*")),
    "Pebble, tables": ("Pebble", of_pebble("*.sst")),
    "Badger": ("Badger", badger),
    "Badger, key registry": ("Badger", named("KEYREGISTRY", "000001.sst")),
    "Cassandra": ("Cassandra", named(*CASSANDRA)),
    "Cassandra of old": ("Cassandra", named("foo-atable-ka-1-Data.db", "foo-atable-ka-1-TOC.txt")),
    "Cassandra, trie": ("Cassandra", named("da-3gdf_0y7w_4x5i82-bti-Partitions.db")),
    "LMDB": ("LMDB", lmdb),
    "SQLite": ("SQLite", sqlite),
    "bbolt": ("bbolt", bbolt),
    "MongoDB": ("MongoDB", named("WiredTiger", "WiredTiger.wt", "WiredTiger.lock")),
    "PostgreSQL": ("PostgreSQL", named("PG_VERSION")),
    "MySQL": ("MySQL", named("ibdata1", "1.log")),
    "Berkeley DB": ("Berkeley DB", named("__db.001", "log.0000000001")),
}

ATTEMPTS: dict[str, Callable[[Path], Any]] = {
    "open": lsm.DB,
    "create": lambda path: lsm.DB(path, create_if_missing=True),
    "create anew": lambda path: lsm.DB(path, create_if_missing=True, error_if_exists=True),
    "read only": lambda path: lsm.DB(path, read_only=True),
    "repair": lsm.repair_db,
    "repair, told": repair,
    "dry run": lambda path: lsm.repair_db(path, dry_run=True),
    "destroy": lsm.destroy_db,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_no_byte_of_another_store_changes_and_the_error_says_whose_it_is(
    tmp_path: Path, kind: str
) -> None:
    store, make = OTHERS[kind]
    path = tmp_path / "db"
    make(path)
    before = state(path)
    for attempt in ATTEMPTS.values():
        with pytest.raises(ForeignDatabaseError) as info:
            attempt(path)
        assert str(info.value).startswith(f"{path}: this directory is {store}'s: it has ")
        named = re.search(r"it has (\S+), ", str(info.value))
        assert named
        assert (path / named[1]).exists()
        assert "repair_db" not in str(info.value)
        assert state(path) == before
    if kind == "RocksDB":
        rocksdb_reads(path)
        assert "rocksdict" in str(info.value)


def test_the_error_is_one_of_a_directory_without_a_database() -> None:
    assert issubclass(lsm.ForeignDatabaseError, NotADatabaseError)


def test_where_the_file_is_moved_away_the_rest_is_ours(tmp_path: Path) -> None:
    """As the error advises where a file of another store has strayed into a database."""
    path = tmp_path / "db"
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
    (path / "OPTIONS-000009").write_bytes(b"astray")
    with pytest.raises(ForeignDatabaseError, match="OPTIONS-000009.*move it away"):
        lsm.DB(path)
    (path / "OPTIONS-000009").unlink()
    with lsm.DB(path) as db:
        assert db.get(b"key") == b"value"


def test_in_another_storage_another_store_is_known_too() -> None:
    storage = SimulatedStorage()
    storage.make_directory("db")
    file = storage.create("db/marker.manifest.000001.MANIFEST-000001")
    file.close()
    before = len(storage.operations)
    with pytest.raises(ForeignDatabaseError, match="Pebble"):
        lsm.DB("db", storage=storage, create_if_missing=True)
    assert {what for what, _ in storage.operations[before:]} <= {"list", "map", "exists", "read"}


# ---- What is ours, LevelDB's or nobody's -------------------------------------------------------


def ours(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True) as db:
        for number in range(200):
            db.put(b"key%04d" % number, b"value")
        db.flush()
        db.put(b"last", b"one")


def leveldbs(path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    for _ in range(2):  # so that there is a LOG.old
        with plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=10) as db:
            for number in range(200):
                db.put(b"key%04d" % number, b"value")
            db.put(b"last", b"one")
    assert (path / "LOG.old").exists()


def leveldbs_of_old(path: Path) -> None:
    leveldbs(path)
    lsm.repair_db(path, bloom_filter_bits=10)
    for table in path.glob("*.ldb"):
        table.rename(table.with_suffix(".sst"))
    assert list(path.glob("*.sst"))


def put(data: bytes) -> Callable[[Path], object]:
    """Makes a file of these bytes."""
    return lambda file: file.write_bytes(data)


EXTRAS: dict[str, Callable[[Path], object]] = {
    "notes.txt": put(b"mine"),
    ".gitkeep": put(b""),
    "lost+found": Path.mkdir,
    "IDENTITY": put(b"I am who I am"),
    "data.mdb": put(b"mine"),
    "my.sqlite": put(b"SQLite format 3\0"),
    CASSANDRA[0]: put(b"mine"),
    "000001.blob": put(b"mine"),
    "000900.sst": Path.mkdir,
}


@pytest.mark.parametrize("make", [ours, leveldbs, leveldbs_of_old])
@pytest.mark.parametrize("extra", EXTRAS)
def test_what_else_lies_in_a_database_does_not_make_it_anothers(
    tmp_path: Path, make: Callable[[Path], None], extra: str
) -> None:
    path = tmp_path / "db"
    make(path)
    EXTRAS[extra](path / extra)
    for _ in range(2):
        with lsm.DB(path) as db:
            assert (db.get(b"key0123"), db.get(b"last")) == (b"value", b"one")
        lsm.repair_db(path)
    lsm.destroy_db(path)
    assert set(os.listdir(path)) == {extra, "lost"}


@pytest.mark.parametrize("make", [ours, leveldbs, leveldbs_of_old])
@pytest.mark.parametrize(
    "gone",
    [("CURRENT",), ("MANIFEST-*",), ("CURRENT", "MANIFEST-*"), ("CURRENT", "MANIFEST-*", "lsm-*")],
)
def test_a_damaged_database_stays_ours(
    tmp_path: Path, make: Callable[[Path], None], gone: tuple[str, ...]
) -> None:
    path = tmp_path / "db"
    make(path)
    for pattern in gone:
        for file in path.glob(pattern):
            file.unlink()
    lsm.repair_db(path)
    with lsm.DB(path) as db:
        assert (db.get(b"key0123"), db.get(b"last")) == (b"value", b"one")


def test_what_rocksdb_has_only_read_stays_ours(tmp_path: Path) -> None:
    rocksdict = pytest.importorskip("rocksdict")
    path = tmp_path / "db"
    with lsm.DB(path, create_if_missing=True, compression=None) as db:
        db.put(b"key", b"value")
        db.flush()
    reading = rocksdict.AccessType.read_only(False)
    theirs = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True), access_type=reading)
    assert theirs[b"key"] == b"value"
    theirs.close()
    del theirs
    gc.collect()
    with lsm.DB(path) as db:
        assert db.get(b"key") == b"value"


def test_a_directory_of_nobodys_may_become_a_database(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_bytes(b"mine")
    (tmp_path / "data").mkdir()
    with lsm.DB(tmp_path, create_if_missing=True) as db:
        db.put(b"key", b"value")
    assert (tmp_path / "notes.db").read_bytes() == b"mine"


def test_what_cannot_be_looked_into_is_left_to_who_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "db"
    ours(path)
    (path / "CURRENT").unlink()
    (path / "CURRENT").mkdir()
    assert foreign.check(FileSystem(), str(path)).edits
    assert not foreign.check(FileSystem(), str(path / "not there")).names


# ---- Manifests that somebody has tampered with -------------------------------------------------

EDITS = [
    Edit(
        comparator="leveldb.BytewiseComparator", log_number=0, next_file_number=2, last_sequence=0
    ),
    Edit(
        log_number=12,
        previous_log_number=0,
        next_file_number=300,
        last_sequence=10**6,
        compact_pointers=[(1, b"middle\1\0\0\0\0\0\0\0")],
        deleted=[(0, 7), (1, 200)],
        added=[NewFile(2, 201, 5000, b"first\1\0\0\0\0\0\0\0", b"last\1\0\0\0\0\0\0\0")],
    ),
]


def test_no_flipped_bits_make_our_manifest_rocksdbs() -> None:
    """Even where the checksum was mended afterwards."""
    flips = by_effort(1, 2, 2)
    for edit in EDITS:
        record = edit.encode()
        assert rocksdb_tag(record) is None
        for bits in combinations(range(8 * len(record)), flips):
            bad = bytearray(record)
            for bit in bits:
                bad[bit // 8] ^= 1 << bit % 8
            assert rocksdb_tag(bytes(bad)) is None, bits


@given(record=st.binary(max_size=200))
@examples(200)
def test_any_record_can_be_asked_about(record: bytes) -> None:
    rocksdb_tag(record)
    assert rocksdb_tag(b"\xc9\x01\x03abc" + record) in (None, 201)


@pytest.mark.parametrize("tag", [8, 10, 50, 104, 400, 1 << 20])
def test_a_tag_of_nobodys_is_corruption_and_not_rocksdbs(tmp_path: Path, tag: int) -> None:
    path = tmp_path / "db"
    ours(path)
    (manifest,) = path.glob("MANIFEST-*")
    file = FileSystem().create(str(path / manifest.name))
    writer = LogWriter(file)
    writer.add(attrs.evolve(EDITS[0], comparator="leveldb.BytewiseComparator").encode())
    writer.add(lsm.disk.coding.varint(tag) + b"\5")
    file.close()
    with pytest.raises(lsm.CorruptionError, match="unknown tag"):
        lsm.DB(path)


def test_a_table_astray_is_found_among_many(tmp_path: Path) -> None:
    path = tmp_path / "db"
    rocksdb(tmp_path / "theirs")
    leveldbs_of_old(path)
    (theirs, *_) = (tmp_path / "theirs").glob("*.sst")
    shutil.copy(theirs, path / "000900.sst")
    before = state(path)
    for attempt in ATTEMPTS.values():
        with pytest.raises(ForeignDatabaseError, match=r"000900\.sst"):
            attempt(path)
        assert state(path) == before
