"""What programs do with databases, as type checkers see it: ``test_types.py`` does both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, assert_type

import lsm
import lsm.aio


def reading(db: lsm.DB | lsm.PrefixedDB | lsm.Snapshot) -> None:
    """Lookups, with and without a default."""
    assert_type(db.get(b"key"), bytes | None)
    assert_type(db.get(b"key", None), bytes | None)
    assert_type(db.get(b"key", b""), bytes)
    assert_type(db.get(b"key", default=0), bytes | int)
    assert_type(db.get(bytearray(b"key"), fill_cache=False), bytes | None)
    assert_type(db.get_many([b"a", memoryview(b"b")]), list[bytes | None])
    assert_type(db.get_many([b"a"], b""), list[bytes])
    assert_type(b"key" in db, bool)
    if b"key" in db:
        assert_type(db[b"key"], bytes)


def iterating(db: lsm.DB | lsm.PrefixedDB | lsm.Snapshot, with_values: bool) -> int:
    """Iterators, whose items follow what they are asked for."""
    for entry in db:
        assert_type(entry, tuple[bytes, bytes])
    for key, value in db.iterator(prefix=b"user:", reverse=True):
        assert_type(key, bytes)
        assert_type(value, bytes)
    for key in db.iterator(start=b"a", stop=b"b", include_value=False):
        assert_type(key, bytes)
    for value in db.iterator(include_key=False, include_stop=True):
        assert_type(value, bytes)
    for nothing in db.iterator(include_key=False, include_value=False):
        assert_type(nothing, None)
    with db.iterator(include_value=False) as keys:
        assert_type(keys, lsm.Iterator[bytes])
        keys.seek(b"key")
        assert_type(next(keys, None), bytes | None)
    assert_type(db.iterator(include_value=with_values), lsm.Iterator[Any])
    raw = db.raw_iterator() if isinstance(db, lsm.DB) else None
    if raw is not None:
        raw.seek_to_first()
        if raw.valid():
            assert_type(raw.item(), tuple[bytes, bytes])
    return sum(1 for _ in db.iterator(include_value=False))


def writing(db: lsm.DB | lsm.PrefixedDB, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Writes, alone and in batches."""
    db[b"key"] = b"value"
    del db[b"key"]
    db.put(b"key", memoryview(b"value"), sync=True)
    db.delete(b"key")
    with db.write_batch(transaction=True) as batch:
        for key, value in pairs:
            batch.put(key, value)


def mapping(db: lsm.DB) -> None:
    """Mappings, whose keys and values follow the codec."""
    words = lsm.mapping(db.prefixed_db(b"words:"), codec="str")
    words["a"] = "1"
    assert_type(words["a"], str)
    assert_type(words.get("b"), str | None)
    assert_type(dict(words.items()), dict[str, str])
    assert_type(lsm.mapping(db.snapshot())[b"words:a"], bytes)
    numbers = lsm.mapping(db.prefixed_db(b"numbers:"), codec=(Number(), Number()))
    numbers.update({1: 2})
    assert_type(numbers.pop(1), int)
    assert_type(list(numbers), list[int])


class Number:
    """A codec of numbers."""

    def encode(self, value: int) -> bytes:
        """Eight bytes."""
        return value.to_bytes(8, "big")

    def decode(self, data: bytes) -> int:
        """The number that they are."""
        return int.from_bytes(data, "big")


async def waiting(path: Path) -> None:
    """The same in an event loop."""
    async with lsm.aio.open(path) as db:
        assert_type(await db.get(b"key"), bytes | None)
        assert_type(await db.get(b"key", 0), bytes | int)
        assert_type(await db.get_many([b"key"]), list[bytes | None])
        await db.put(b"key", b"value")
        async with db.write_batch() as batch:
            batch.delete(b"key")
        async for key, value in db.iterator(prefix=b"user:"):
            assert_type((key, value), tuple[bytes, bytes])
        async for key in db.iterator(include_value=False):
            assert_type(key, bytes)
        with db.snapshot() as snapshot:
            assert_type([value async for _, value in snapshot], list[bytes])


def use(path: Path) -> int:
    """All of it."""
    with lsm.DB(path, create_if_missing=True, bloom_filter_bits=10) as db:
        writing(db, [(b"user:1", b"Ada"), (b"user:2", b"Grace")])
        snapshot = db.snapshot()
        readers: list[lsm.DB | lsm.PrefixedDB | lsm.Snapshot] = [db, db.prefixed_db(b"user:")]
        for reader in (*readers, snapshot):
            reading(reader)
        mapping(db)
        return iterating(snapshot, with_values=True)
