"""lmdb: a B+ tree in a file that is mapped into memory, behind a binding in C.

It has no log, no levels, no filters and no compaction: the rows that are about these are not its.
"""
# ruff: noqa: D102 - what the methods of engines do is said in Engine

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks.engine.data import MANY_NAMES, SUSTAINED_NAMES, THREADED_NAME
from benchmarks.engine.engine import Engine, Opening, Pair, Pairs, peer_module
from lsm.options import GIB

# How large the file may grow: address space, of which only what is used takes anything.
_MAP_BYTES = 64 * GIB


class LMDB(Engine):
    """Read in one transaction for many lookups, the fastest way it has; values as bytes.

    It is opened with sync=False and metasync=False: a commit then waits for no disk, as a batch of
    the other engines does not. Where puts are with sync it is opened with sync=True.
    """

    name = "lmdb"
    has_levels = False
    seek_body = "subject.set_range(key) and subject.item()"

    def __init__(self) -> None:
        super().__init__()
        self._module = peer_module("lmdb")
        unsynced = "opened with sync=False, metasync=False"
        held = "in one read transaction, which is a snapshot"
        self.remarks = {
            "put in a batch of 1000": f"a batch is one transaction; {unsynced}",
            "put, one by one": f"a put is one transaction; {unsynced}",
            "put with sync=True": "with sync it is opened with sync=True",
            "get of an absent key": held,
            "get of a present key": held,
            "get of an absent key from a snapshot": held,
            "get of a present key from a snapshot": held,
            THREADED_NAME: "each in a read transaction of its own",
            **dict.fromkeys(SUSTAINED_NAMES, "until the env.sync() after the last commit returns"),
            **dict.fromkeys(MANY_NAMES, "Cursor.getmulti, of which the values"),
            "on disk": "its one file, which is not compressed",
        }

    def opened(self, path: Path, how: Opening) -> Any:
        return self._module.open(
            str(path),
            map_size=_MAP_BYTES,
            create=how.create,
            sync=how.durable,
            metasync=how.durable,
        )

    def put_batch(self, db: Any, pairs: Pairs) -> None:
        with db.begin(write=True) as transaction:
            self._put_all(pairs, transaction.put)

    def putter(self, db: Any, *, sync: bool) -> Callable[[bytes, bytes], object]:
        begin = db.begin

        def put(key: bytes, value: bytes) -> None:
            with begin(write=True) as transaction:
                transaction.put(key, value)

        return put

    def settle(self, db: Any) -> float:
        """Have the system write what was committed: tables of the other engines are synced, too."""
        db.sync(True)
        return 0.0

    def compact(self, db: Any) -> None:
        """Nothing is to be done."""

    def getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        get: Callable[[bytes], bytes | None] = db.begin().get
        return get

    def snapshot_getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        return self.getter(db)

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        """``getmulti`` leaves out what is not there: the others are given their places then."""
        find = db.begin().cursor().getmulti

        def values(keys: list[bytes]) -> list[bytes | None]:
            found = find(keys)
            if len(found) == len(keys):
                return [value for _, value in found]
            return list(map(dict(found).get, keys))

        return values

    def items(self, db: Any, *, reverse: bool = False) -> Iterator[Pair]:
        cursor = db.begin().cursor()
        found: Iterator[Pair] = cursor.iterprev() if reverse else cursor.iternext()
        return found

    def keys(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        cursor = db.begin().cursor()
        walk = cursor.iterprev if reverse else cursor.iternext
        found: Iterator[bytes] = walk(keys=True, values=False)
        return found

    def values(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        cursor = db.begin().cursor()
        walk = cursor.iterprev if reverse else cursor.iternext
        found: Iterator[bytes] = walk(keys=False, values=True)
        return found

    def seeker(self, db: Any) -> Any:
        return db.begin().cursor()

    def prefix_iterator(self, db: Any) -> Callable[[bytes], Iterator[Pair]]:
        cursor = db.begin().cursor()

        def entries(prefix: bytes) -> Iterator[Pair]:
            if not cursor.set_range(prefix):
                return iter(())
            return takewhile(lambda pair: pair[0].startswith(prefix), cursor.iternext())

        return entries

    def disk_bytes(self, path: Path) -> int:
        return (path / "data.mdb").stat().st_size

    @property
    def memory_allowed(self) -> str:
        return "nothing of its own; its file is mapped"
