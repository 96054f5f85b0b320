"""Snapshots: the database as it was, whatever is written after."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import compact, keys, raw_items

Open = Callable[..., Any]
CLOSED = "(?i)closed"


def test_a_snapshot_does_not_see_later_writes(digits: Any) -> None:
    entries = list(digits)
    snapshot = digits.snapshot()
    digits.put(b"1", b"new")
    digits.put(b"6", b"new")
    digits.delete(b"2")
    with digits.write_batch() as batch:
        batch.delete(b"3")
        batch.put(b"0", b"")
    assert snapshot.get(b"1") == b"value 1"
    assert snapshot.get(b"2") == b"value 2"
    assert snapshot.get(b"6") is None
    assert snapshot.get(b"6", b"default") == b"default"
    assert snapshot.get(b"6", default=3) == 3
    assert list(snapshot) == list(snapshot.iterator()) == entries
    assert list(snapshot.iterator(reverse=True)) == entries[::-1]
    assert raw_items(snapshot.raw_iterator()) == entries
    assert keys(digits) == [b"0", b"1", b"4", b"5", b"6"]


@pytest.mark.parametrize("prefix", [None, b"", b"p"])
def test_a_snapshot_survives_flushes_and_compactions(
    open_db: Open, rng: random.Random, prefix: bytes | None
) -> None:
    db = open_db(write_buffer_size=64 << 10, compression=None)
    view = db if prefix is None else db.prefixed_db(prefix)
    model: dict[bytes, bytes] = {}
    taken = []
    for _ in range(4):
        for _ in range(600):
            key = b"key %d" % rng.randrange(400)
            model[key] = rng.randbytes(150)
            view.put(key, model[key])
        for _ in range(100):
            key = b"key %d" % rng.randrange(400)
            model.pop(key, None)
            view.delete(key)
        taken.append((view.snapshot(), sorted(model.items())))
        compact(db)
    for key in model:
        view.delete(key)
    compact(db)
    assert list(db) == []
    for snapshot, entries in taken:
        assert list(snapshot) == entries
        assert list(snapshot.iterator(reverse=True)) == entries[::-1]
        assert all(snapshot.get(key) == value for key, value in entries)
        missing = {b"key %d" % number for number in range(400)} - {key for key, _ in entries}
        assert all(snapshot.get(key) is None for key in missing)


def test_a_snapshot_of_an_empty_database_stays_empty(db: Any) -> None:
    snapshot = db.snapshot()
    db.put(b"key", b"value")
    compact(db)
    assert list(snapshot) == []
    assert snapshot.get(b"key") is None
    assert raw_items(snapshot.raw_iterator()) == []


def test_snapshots_of_different_times_live_side_by_side(db: Any) -> None:
    snapshots = []
    for number in range(10):
        db.put(b"number", b"%d" % number)
        snapshots.append(db.snapshot())
    db.delete(b"number")
    assert [snapshot.get(b"number") for snapshot in snapshots] == [b"%d" % n for n in range(10)]
    for closed in snapshots[::2]:
        closed.close()
    compact(db)
    assert [snapshot.get(b"number") for snapshot in snapshots[1::2]] == [
        b"%d" % number for number in (1, 3, 5, 7, 9)
    ]


def test_an_iterator_of_a_snapshot_takes_all_that_an_iterator_takes(digits: Any) -> None:
    snapshot = digits.snapshot()
    digits.put(b"35", b"")
    assert keys(snapshot.iterator(start=b"2", stop=b"4")) == [b"2", b"3"]
    assert list(snapshot.iterator(prefix=b"3", include_value=False)) == [b"3"]
    assert list(snapshot.iterator(stop=b"2", include_key=False)) == [b"value 1"]
    assert list(
        snapshot.iterator(
            start=b"2",
            stop=b"4",
            include_start=False,
            include_stop=True,
            reverse=True,
            include_value=False,
            verify_checksums=True,
            fill_cache=False,
        )
    ) == [b"4", b"3"]
    with pytest.raises(TypeError, match="prefix"):
        snapshot.iterator(prefix=b"3", start=b"3")
    with pytest.raises(TypeError):
        snapshot.iterator(start="3")
    with pytest.raises(TypeError):
        snapshot.iterator(True)


@pytest.mark.parametrize("name", ["close", "release"])
def test_closing_and_releasing_are_one(digits: Any, name: str) -> None:
    snapshot = digits.snapshot()
    for _ in range(2):
        assert getattr(snapshot, name)() is None
        assert snapshot.close() is None
        assert snapshot.release() is None
    for use in (snapshot.iterator, snapshot.raw_iterator, snapshot.__iter__):
        with pytest.raises(RuntimeError, match=CLOSED):
            use()
    with pytest.raises(RuntimeError, match=CLOSED):
        snapshot.get(b"1")
    assert digits.get(b"1") == b"value 1"


def test_a_block_closes_the_snapshot(digits: Any) -> None:
    snapshot = digits.snapshot()
    with snapshot as same:
        assert same is snapshot
        assert same.get(b"1") == b"value 1"
    with pytest.raises(RuntimeError, match=CLOSED):
        snapshot.get(b"1")
    with snapshot:
        pass
    with pytest.raises(KeyError), digits.snapshot() as another:
        raise KeyError("goes on")
    with pytest.raises(RuntimeError, match=CLOSED):
        another.get(b"1")


def test_iterators_outlive_the_snapshot_they_came_from(digits: Any) -> None:
    entries = list(digits)
    snapshot = digits.snapshot()
    iterator, raw, running = snapshot.iterator(), snapshot.raw_iterator(), snapshot.iterator()
    next(running)
    digits.delete(b"3")
    snapshot.close()
    compact(digits)
    assert list(iterator) == raw_items(raw) == entries
    assert list(running) == entries[1:]


def test_a_snapshot_knows_no_writing(db: Any) -> None:
    assert not {"put", "delete", "write_batch", "snapshot"} & set(dir(db.snapshot()))


def test_a_snapshot_of_a_prefixed_database_sees_only_that(db: Any) -> None:
    prefixed = db.prefixed_db(b"p-")
    prefixed.put(b"a", b"1")
    prefixed.put(b"b", b"2")
    db.put(b"other", b"")
    snapshot = prefixed.snapshot()
    prefixed.put(b"a", b"new")
    prefixed.put(b"c", b"new")
    prefixed.delete(b"b")
    assert list(snapshot) == [(b"a", b"1"), (b"b", b"2")]
    assert snapshot.get(b"a") == b"1"
    assert snapshot.get(b"b") == b"2"
    assert snapshot.get(b"c") is None
    assert snapshot.get(b"p-a") is None
    assert keys(snapshot.iterator(start=b"b")) == [b"b"]
    assert keys(snapshot.iterator(prefix=b"a")) == [b"a"]
    assert keys(snapshot.iterator(reverse=True)) == [b"b", b"a"]


def test_a_raw_iterator_of_a_prefixed_snapshot_sees_the_whole_database(db: Any) -> None:
    prefixed = db.prefixed_db(b"p")
    db.put(b"a", b"1")
    prefixed.put(b"key", b"2")
    snapshot = prefixed.snapshot()
    prefixed.put(b"later", b"3")
    raw = snapshot.raw_iterator()
    assert raw_items(raw) == [(b"a", b"1"), (b"pkey", b"2")]
    raw.seek(b"p")
    assert raw.key() == b"pkey"


def test_a_snapshot_ends_with_its_database(api: ModuleType, digits: Any, path: str) -> None:
    snapshot = digits.snapshot()
    digits.delete(b"1")
    digits.close()
    with pytest.raises(RuntimeError, match=CLOSED):
        snapshot.get(b"1")
    with api.DB(path) as again:
        assert again.get(b"1") is None
        with pytest.raises(RuntimeError, match=CLOSED):
            snapshot.get(b"1")
    snapshot.close()
