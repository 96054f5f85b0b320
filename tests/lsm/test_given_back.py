"""What a database has is given back when it is closed or has failed, whoever still holds its parts.

The garbage collector is off, so that nothing waits for it.
"""

from __future__ import annotations

import errno
import functools
import gc
import os
import random
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm.store import Store
from tests.effort import by_effort
from tests.lsm.crew import until
from tests.lsm.flaky import FlakyFileSystem
from tests.lsm.patience import patient

pytestmark = [
    pytest.mark.usefixtures("no_collector"),
    pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no /proc to look at"),
]

MANY_TABLES: dict[str, Any] = {
    "write_buffer_size": 2000,
    "max_file_size": 1024,
    "compression": None,
}
KEYS = [b"%04d" % number for number in range(300)]


def held_of(path: Path) -> list[str]:
    """The files of a directory that this process has open or mapped, removed ones included."""
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except FileNotFoundError:  # the one that lists them
            continue
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [each for each in (*links, *lines) if f"{path}{os.sep}" in each]


def filled(path: Path, **options: Any) -> lsm.DB:
    """A database of many tables, and some entries that are in memory only."""
    db = lsm.DB(path, create_if_missing=True, **(MANY_TABLES | options))
    for key in KEYS:
        db.put(key, key * 5)
    db.compact_range()
    for key in KEYS[::50]:
        db.put(key, b"anew")
    return db


def readers_of(db: lsm.DB) -> list[Any]:
    """Everything that can be in the middle of reading."""
    snapshot = db.snapshot()
    walkers = [db.iterator(), db.iterator(reverse=True), snapshot.iterator(), iter(db)]
    walkers.append(db.prefixed_db(b"00").iterator())
    for walker in walkers:
        next(walker)
    raw = db.raw_iterator()
    raw.seek(KEYS[70])
    return [snapshot, raw, db.write_batch(), db.prefixed_db(b"0"), *walkers]


def is_collected(reference: weakref.ref[Any]) -> bool:
    """Whether nothing but cycles, or a thread that is about to end, has had it."""
    gc.collect()
    return reference() is None


# -- After close ---------------------------------------------------------------------------


@pytest.mark.parametrize("caches", [{}, {"table_cache_size": 0}, {"max_open_files": 2}], ids=str)
@patient
def test_closing_gives_all_back_though_everybody_is_still_there(
    caches: dict[str, int], tmp_path: Path
) -> None:
    path = tmp_path / "db"
    db = filled(path, **caches)
    readers = readers_of(db)
    assert db.get_many(KEYS[1:3]) == [KEYS[1] * 5, KEYS[2] * 5]
    assert any(".ldb" in each for each in held_of(path))
    db.close()
    assert held_of(path) == []
    lsm.destroy_db(path)
    assert list(tmp_path.iterdir()) == []
    assert readers


@patient
def test_opening_reading_and_closing_in_a_loop_piles_up_nothing(tmp_path: Path) -> None:
    path = tmp_path / "db"
    filled(path).close()
    gc.collect()  # of what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    kept = []
    for turn in range(by_effort(10, 20, 1000)):
        with lsm.DB(path, read_only=turn % 2 == 0) as db:
            assert db.get_many(KEYS[1:20]) == [key * 5 for key in KEYS[1:20]]
            kept = readers_of(db)
        assert held_of(path) == []
        assert len(os.listdir("/proc/self/fd")) == before
    assert kept


@pytest.mark.parametrize("closed", [False, True])
@patient
def test_a_database_that_nobody_has_any_more_is_gone(closed: bool, tmp_path: Path) -> None:
    path = tmp_path / "db"
    db = filled(path)
    db.wait_until_idle()
    store, itself, readers = weakref.ref(db._store), weakref.ref(db), readers_of(db)
    if closed:
        db.close()
    del db, readers
    assert itself() is None
    assert held_of(path) == []
    until(functools.partial(is_collected, store))
    with lsm.DB(path) as db:
        assert db.get(KEYS[1]) == KEYS[1] * 5


# -- After failures ------------------------------------------------------------------------


def synced_put(db: lsm.DB) -> None:
    db.put(b"new", b"1", sync=True)


def big_put(db: lsm.DB) -> None:
    db.put(b"new", bytes(5000))
    db.put(b"new", bytes(5000))


FAILURES: dict[str, tuple[str, str, Callable[[lsm.DB], object]]] = {
    "record": ("append", ".log", synced_put),
    "sync": ("sync", ".log", synced_put),
    "log": ("create", ".log", big_put),
    "flush": ("append", ".ldb", lambda db: db.flush()),
    "table's sync": ("sync", ".ldb", lambda db: db.flush()),
    "manifest": ("append", "MANIFEST", lambda db: db.compact_range()),
    "read": ("map", ".ldb", lambda db: list(db)),
}


@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.usefixtures("caplog")
@patient
def test_a_database_that_failed_is_given_back_like_any_other(what: str, tmp_path: Path) -> None:
    """What it raised holds on to its frames as long as somebody has it, and nobody has."""
    operation, name, call = FAILURES[what]
    path = tmp_path / "db"
    filled(path).close()
    storage = FlakyFileSystem(random.Random(what), errors=[errno.EIO])

    def life() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        with lsm.DB(path, storage=storage, **MANY_TABLES) as db:
            db.put(b"before", b"1")
            storage.fail(1.0, [operation], name)
            with pytest.raises(lsm.Error):
                call(db)
            storage.mend()
        assert held_of(path) == []
        return weakref.ref(db), weakref.ref(db._store)

    for _ in range(3):
        db, store = life()
        assert db() is None
        until(functools.partial(is_collected, store))
    with lsm.DB(path) as again:
        assert again.get(b"before") == b"1"
        assert set(KEYS) <= set(again.iterator(include_value=False))


@patient
def test_what_is_raised_holds_no_file(tmp_path: Path) -> None:
    """Somebody may keep an error, its frames and what they have."""
    path = tmp_path / "db"
    filled(path).close()
    storage = FlakyFileSystem(random.Random(0), errors=[errno.EIO])
    kept = []
    for operation, name, call in FAILURES.values():
        db = lsm.DB(path, storage=storage, **MANY_TABLES)
        db.put(b"before", b"1")
        storage.fail(1.0, [operation], name)
        try:
            call(db)
        except lsm.Error as error:
            kept.append(error)
        storage.mend()
        db.close()
        assert held_of(path) == [], name
    assert len(kept) == len(FAILURES)


@patient
def test_an_opening_that_failed_gives_all_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever operation it failed, before it raises, and while its error is kept."""
    monkeypatch.setattr(
        Store, "_close_in_another_thread", lambda _: pytest.fail("leaves it to a thread")
    )
    path = tmp_path / "db"
    filled(path, write_buffer_size=1 << 20).close()
    kept = []
    for turn in range(by_effort(40, 80, 4000)):
        storage = FlakyFileSystem(random.Random(turn), errors=[errno.EIO, errno.EMFILE])
        operations = ("create", "append", "sync", "sync_directory", "list", "exists", "read")
        storage.fail(0.15, [*operations, "rename", "size", "map"])
        try:
            db = lsm.DB(path, storage=storage, **MANY_TABLES)
        except lsm.Error as error:
            kept.append(error)
        else:
            storage.mend()
            db.close()
        assert held_of(path) == []
        with lsm.DB(path, read_only=True) as db:
            assert set(KEYS) == set(db.iterator(include_value=False))
    assert len(kept) > 10
