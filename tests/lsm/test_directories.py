"""Where a database is, and what stays there of an attempt that came to nothing."""

from __future__ import annotations

import errno
import gc
import os
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import plyvel
import pytest

import lsm
from lsm.errors import (
    ComparatorError,
    CorruptionError,
    Error,
    IOError,
    LockedError,
    NotADatabaseError,
)
from lsm.repair import repair
from tests.effort import by_effort
from tests.lsm.interrupting import chosen, interrupted_at, points
from tests.lsm.simulated import SimulatedStorage, fails_at

Contents = dict[str, bytes | None]


def contents(path: Path) -> Contents:
    """All that there is under a path: files with their bytes, directories."""
    found = path.rglob("*")
    return {str(each): each.read_bytes() if each.is_file() else None for each in found}


def backwards(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


# ---- Where it is -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.db", b"data.db", Path("data.db"), "./data.db", "data.db/"])
def test_a_relative_name_goes_on_meaning_what_it_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any
) -> None:
    for tenant in "ab":
        (tmp_path / tenant).mkdir()
        monkeypatch.chdir(tmp_path / tenant)
        with lsm.DB("data.db", create_if_missing=True) as db:
            for number in range(100):
                db.put(b"%04d" % number, tenant.encode(), sync=True)
            db.flush()
    monkeypatch.chdir(tmp_path / "a")
    other = contents(tmp_path / "b")
    with lsm.DB(name, config=None, max_open_files=1) as db:
        snapshot = db.snapshot()
        for where in (tmp_path / "b", tmp_path):
            db.put(b"key", b"of a")
            monkeypatch.chdir(where)
            db.flush()
            db.compact_range()
            assert len(list(db)) == 101
            assert len(list(snapshot)) == 100
        assert db.name == name
    assert contents(tmp_path / "b") == other
    assert set(os.listdir(tmp_path)) == {"a", "b"}
    with lsm.DB(tmp_path / "a" / "data.db") as db:
        assert db.get(b"key") == b"of a"


def test_a_relative_name_leads_where_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a symbolic link ".." is not the directory before it; "~" is a name like others."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    (tmp_path / "~").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("link/../db", "~/db"):
        lsm.DB(name, create_if_missing=True).close()
        lsm.repair_db(name)
    assert (tmp_path / "far" / "db" / "CURRENT").exists()
    assert (tmp_path / "~" / "db" / "CURRENT").exists()
    for name in ("link/../db", "~/db"):
        lsm.destroy_db(name)
    assert os.listdir(tmp_path / "far" / "db") == ["lost"]


def test_names_of_any_bytes_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(directory)
    monkeypatch.chdir(os.fsdecode(directory))
    with lsm.DB(b"\xfd", create_if_missing=True) as db:
        monkeypatch.chdir(tmp_path)
        db.put(b"key", b"value")
        db.flush()
    with lsm.DB(directory + b"/\xfd") as db:
        assert db.get(b"key") == b"value"


@pytest.mark.parametrize(
    "use",
    [lambda name: lsm.DB(name, create_if_missing=True), lsm.DB, lsm.repair_db, lsm.destroy_db],
)
def test_where_the_current_directory_is_gone_relative_names_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Any], Any]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(IOError, match="current directory") as info:
        use("db")
    assert info.value.errno == errno.ENOENT
    assert info.value.filename == "db"
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"key", b"value")


def test_another_storage_may_have_a_current_directory_of_its_own() -> None:
    class Homely(SimulatedStorage):
        home = "here"

        def absolute(self, path: str) -> str:
            return f"{self.home}/{path}"

    storage = Homely()
    storage.make_directory("here")
    storage.make_directory("there")
    with lsm.DB("db", create_if_missing=True, storage=storage) as db:
        storage.home = "there"
        db.put(b"key", b"value")
        db.compact_range()
        assert db.get(b"key") == b"value"
    storage.home = "here"
    assert repair("db", storage=storage).tables_kept == 1
    with lsm.DB("db", storage=storage) as db:
        assert db.get(b"key") == b"value"
    lsm.destroy_db("db", storage=storage)
    assert storage.list("here/db") == ["lost"]
    assert storage.list("there") == []


@pytest.mark.parametrize("use", [lsm.DB, lsm.repair_db, lsm.destroy_db])
def test_an_empty_name_names_nothing(use: Callable[[Any], Any]) -> None:
    for name in ("", b""):
        with pytest.raises(NotADatabaseError, match="'name' is empty"):
            use(name)


# ---- What a failure leaves ---------------------------------------------------------------------


def filled(path: Path) -> None:
    with lsm.DB(path, create_if_missing=True, block_size=1024) as db:
        for number in range(100):
            db.put(b"%04d" % number, b"value" * 10)
        db.flush()
        db.put(b"last", b"one")


def of_leveldb(path: Path) -> None:
    with plyvel.DB(str(path), create_if_missing=True) as db:
        db.put(b"key", b"value")


def of_notes(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_bytes(b"mine")


def without(pattern: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        filled(path)
        for file in path.glob(pattern):
            file.unlink()

    return make


def spoilt(path: Path) -> None:
    filled(path)
    (manifest,) = path.glob("MANIFEST-*")
    manifest.write_bytes(manifest.read_bytes()[:9] + b"\0\0" + manifest.read_bytes()[11:])


def copied_without_the_lock(path: Path) -> None:
    spoilt(path)
    (path / "LOCK").unlink()


OTHER_ORDER = {"comparator": backwards, "comparator_name": b"backwards"}
FAILURES: dict[str, tuple[Callable[[Path], None], dict[str, Any], type[Error]]] = {
    "nothing": (lambda path: None, {}, NotADatabaseError),
    "an empty directory": (Path.mkdir, {}, NotADatabaseError),
    "notes": (of_notes, {}, NotADatabaseError),
    "notes, read": (of_notes, {"read_only": True}, NotADatabaseError),
    "no CURRENT": (without("CURRENT"), {}, NotADatabaseError),
    "no CURRENT, created": (without("CURRENT"), {"create_if_missing": True}, NotADatabaseError),
    "there is one": (filled, {"error_if_exists": True}, NotADatabaseError),
    "another order": (filled, OTHER_ORDER | {"block_size": 2048}, ComparatorError),
    "another order of LevelDB's": (of_leveldb, OTHER_ORDER, ComparatorError),
    "no table": (without("*.ldb"), {"block_size": 2048}, CorruptionError),
    "no manifest": (without("MANIFEST-*"), {"compression": None}, CorruptionError),
    "a damaged manifest": (spoilt, {"filter_policy": None}, CorruptionError),
    "no lock": (copied_without_the_lock, {}, CorruptionError),
    "no lock, read": (copied_without_the_lock, {"read_only": True}, CorruptionError),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_opening_that_fails_leaves_what_was_there(tmp_path: Path, failure: str) -> None:
    make, options, error = FAILURES[failure]
    make(tmp_path / "db")
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(error):
            lsm.DB(tmp_path / "db", **options)
        assert contents(tmp_path) == before


def test_who_is_kept_out_leaves_the_lock(tmp_path: Path) -> None:
    filled(tmp_path / "db")
    with lsm.DB(tmp_path / "db") as db:
        before = contents(tmp_path)
        for use in (lsm.DB, lsm.repair_db, lsm.destroy_db):
            with pytest.raises(LockedError):
                use(tmp_path / "db")
        assert contents(tmp_path) == before
        db.put(b"key", b"value")


def names(storage: SimulatedStorage) -> list[str]:
    """All that is in the storage, and in the database's directory."""
    there = [path for path in (".", "db") if storage.exists(path)]
    return [f"{path}/{name}" for path in there for name in storage.list(path)]


@pytest.mark.parametrize("there", ["nothing", "a directory", "notes"])
def test_creating_that_fails_anywhere_leaves_nothing(there: str) -> None:
    for step in count():
        storage = SimulatedStorage()
        if there != "nothing":
            storage.make_directory("db")
        if there == "notes":
            storage.create("db/notes.txt").close()
        before = names(storage)
        failed = fails_at(storage, len(storage.operations) + step)
        db = None
        try:
            db = lsm.DB("db", create_if_missing=True, storage=storage)
        except IOError:
            assert names(storage) == before, failed
        storage.mend()
        if db is not None:
            db.close()
        with lsm.DB("db", create_if_missing=True, storage=storage) as db:
            assert list(db) == []
        if not failed:
            break
    assert step > 20


@pytest.mark.parametrize("use", ["open", "repair"])
def test_a_refusal_anywhere_loses_nothing_and_gives_the_lock_back(use: str) -> None:
    stride = by_effort(3, 1, 1)
    for step in count(0, stride):
        storage = SimulatedStorage()
        with lsm.DB("db", create_if_missing=True, storage=storage) as db:
            db.put(b"a", b"1")
            db.flush()
            db.put(b"b", b"2")
        storage.remove("db/LOCK")
        storage.remove("db/lsm-seed")
        failed = fails_at(storage, len(storage.operations) + step, errno.ENOSPC)
        db = None
        try:
            if use == "open":
                db = lsm.DB("db", block_size=2048, storage=storage)
            else:
                repair("db", storage=storage)
        except IOError:
            assert not {"db/LOCK", "db/lsm-seed"} & set(names(storage)), failed
        storage.mend()
        if db is not None:
            db.close()
        with lsm.DB("db", storage=storage) as db:
            assert dict(db) == {b"a": b"1", b"b": b"2"}
        if not failed:
            break
    assert step > 30


# ---- What an interruption leaves ---------------------------------------------------------------


def create(path: Path) -> lsm.DB:
    return lsm.DB(path, create_if_missing=True)


USES: dict[str, tuple[Callable[[Path], None], Callable[[Path], lsm.DB | None]]] = {
    "create": (lambda path: None, create),
    "create among notes": (of_notes, create),
    "open": (filled, lambda path: lsm.DB(path, block_size=2048)),
    "read": (filled, lambda path: lsm.DB(path, read_only=True)),
    "repair": (filled, lsm.repair_db),
    "repair nothing": (lambda path: None, lsm.repair_db),
    "destroy": (filled, lsm.destroy_db),
}


@pytest.mark.no_cover
@pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning",
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning",
)
@pytest.mark.parametrize("use", USES)
def test_an_interruption_anywhere_leaves_a_database_or_what_was_there(
    tmp_path: Path, rng: random.Random, use: str
) -> None:
    make, do = USES[use]

    def attempt(path: Path) -> None:
        db = do(path)
        if db is not None:
            db.close()

    make(tmp_path / "db")
    total = points(lambda: attempt(tmp_path / "db"))
    assert total > 30
    for number in chosen(total, by_effort(6, 25, None), rng):
        path = tmp_path / f"db{number}"
        make(path)
        before = contents(path)
        print(number, interrupted_at(number, lambda path=path: attempt(path)).where)
        gc.collect()  # of a database that nobody has got
        check(path, use, before)


def check(path: Path, use: str, before: Contents) -> None:
    """What was acknowledged is there, and nobody is kept out."""
    if use in ("create", "create among notes", "repair nothing"):
        assert contents(path) == before or (path / "CURRENT").exists(), path
    if use == "destroy":
        lsm.repair_db(path)
    with lsm.DB(path, create_if_missing=True) as db:
        if use in ("open", "read", "repair"):
            assert db.get(b"last") == b"one"
            assert len(list(db)) == 101
        db.put(b"and", b"on")
        db.flush()
