"""Whoever overwrites a few keys for ever needs no more than for one time round.

What is there is counted after each round, under iterators and snapshots that are held for a while.
"""

from __future__ import annotations

import gc
import os
import random
import threading
from collections import deque
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from tests.effort import by_effort
from tests.lsm.configurations import TINY
from tests.lsm.crew import Crew, until
from tests.lsm.patience import patient

KEYS = [b"key %03d" % number for number in range(150)]
HELD = 3
CACHES = {"lru_cache_size": 6000, "filter_cache_size": 1000, "table_cache_size": 8000}
OPTIONS: dict[str, Any] = TINY | CACHES | {"max_open_files": 8, "compression": None}


@attrs.frozen
class Size:
    """What a database takes, counted in things and in bytes; nothing in it depends on time."""

    logs: int
    manifests: int
    others: int
    stray_tables: int
    live_tables: int
    bytes: int
    descriptors: int
    threads: int
    versions: int
    memtables: int
    pending: int
    in_doubt: int
    snapshots: int
    iterators: int
    open_tables: int
    queued: int
    manual: int
    tickets: int

    @classmethod
    def of(cls, db: lsm.DB, path: Path) -> Size:
        db.flush()
        db.wait_until_idle()
        store = db._store
        store.installer.remove_obsolete_files()  # of what was let go of since the last compaction
        names = [each.name for each in path.iterdir()]
        tables = {int(name.removesuffix(".ldb")) for name in names if name.endswith(".ldb")}
        live = store.manifest.live_files()
        logs = sum(name.endswith(".log") for name in names)
        manifests = sum(name.startswith("MANIFEST") for name in names)
        return cls(
            logs=logs,
            manifests=manifests,
            others=len(names) - logs - manifests - len(tables),
            stray_tables=len(tables ^ live),
            live_tables=len(live),
            bytes=sum((path / f"{number:06d}.ldb").stat().st_size for number in tables),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            versions=len(store.manifest._live),
            memtables=len(store.opened_view().memtables),
            pending=len(store.installer._pending),
            in_doubt=len(store.installer._in_doubt),
            snapshots=len(store._snapshots),
            iterators=len(store.walkers),
            open_tables=len(store.tables._alive),
            queued=len(store.writer._queue),
            manual=len(store.background._manual),
            tickets=len(store.changed._tickets),
        )


class Holder:
    """Holds some iterators and snapshots, and lets go of the oldest in one of three ways."""

    def __init__(self, db: lsm.DB, rng: random.Random):
        self._db = db
        self._rng = rng
        self._held: deque[Any] = deque()

    def take(self) -> None:
        db, rng = self._db, self._rng
        iterator = db.iterator(reverse=rng.random() < 0.5)
        next(iterator, None)
        snapshot = db.snapshot()
        raw = db.raw_iterator()
        raw.seek(rng.choice(KEYS))
        self._held.append(rng.choice((iterator, snapshot, raw, snapshot.iterator())))
        while len(self._held) > HELD:
            oldest = self._held.popleft()
            match rng.randrange(3):
                case 0:
                    oldest.close()
                case 1:
                    cycle = [oldest]
                    cycle.append(cycle)  # type: ignore[arg-type] # a list that has itself

    def let_go(self) -> None:
        self._held.clear()
        gc.collect()


def overwrite(db: lsm.DB, rng: random.Random, count: int) -> None:
    """Write keys anew, or delete them, and read some."""
    for _ in range(count):
        key = rng.choice(KEYS)
        if rng.random() < 0.8:
            db.put(key, rng.randbytes(rng.randrange(80)), sync=rng.random() < 0.01)
        else:
            db.delete(key)
        if rng.random() < 0.3:
            db.get(rng.choice(KEYS))
            db.might_contain(key)


def check_caches(db: lsm.DB) -> None:
    """See that each cache is within its limit, and has counted right."""
    tables = db._store.tables
    for cache in tables.caches():
        assert cache.bytes <= cache.limit
        assert cache.bytes == sum(each.charge for each in cache._ring)
        assert not cache._evicting
        assert len(cache._forgotten) <= len(cache)
    assert len(tables.open_tables) <= OPTIONS["max_open_files"]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no /proc to look at")
@pytest.mark.parametrize("number", range(by_effort(1, 2, 200)))
@patient
def test_overwriting_the_same_keys_takes_no_more_and_more(
    number: int, tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    with lsm.DB(path, create_if_missing=True, **OPTIONS) as db:
        holder = Holder(db, rng)
        overwrite(db, rng, 400)
        first = Size.of(db, path)
        for _ in range(by_effort(2, 4, 50)):
            for _ in range(4):
                overwrite(db, rng, 60)
                holder.take()
            check_caches(db)
            gc.collect()
            size = Size.of(db, path)
            print(number, size)  # shown if what follows fails
            assert (size.logs, size.manifests, size.others) == (1, 1, first.others)
            assert (size.stray_tables, size.pending, size.in_doubt) == (0, 0, 0)
            assert (size.memtables, size.queued, size.manual) == (1, 0, 0)
            assert size.versions <= 1 + HELD
            assert size.snapshots <= HELD
            assert size.iterators <= HELD
            assert size.threads <= first.threads + 2
            assert size.tickets <= size.threads * 4
            assert size.open_tables <= OPTIONS["max_open_files"] + HELD * 10
            assert size.descriptors <= first.descriptors + OPTIONS["max_open_files"] + HELD * 10
            # What HELD moments see of all keys, and what is to be merged with them.
            assert size.bytes <= (1 + HELD) * 8 * len(KEYS) * 100
        holder.let_go()
        overwrite(db, rng, 10)
        db.compact_range()
        last = Size.of(db, path)
        assert (last.versions, last.snapshots, last.iterators) == (1, 0, 0)
        assert last.bytes < 3 * len(KEYS) * 100
        assert last.descriptors <= first.descriptors + OPTIONS["max_open_files"]


@patient
def test_readers_and_writers_that_come_and_go_leave_nothing(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    with lsm.DB(path, create_if_missing=True, **OPTIONS) as db:
        overwrite(db, rng, 400)
        before = threading.active_count()
        seeds = [rng.random() for _ in range(4)]

        def come_and_go(seed: float) -> None:
            mine = random.Random(seed)
            holder = Holder(db, mine)
            for _ in range(by_effort(6, 10, 500)):
                overwrite(db, mine, 10)
                holder.take()

        with Crew() as crew:
            for seed in seeds:
                crew.start(come_and_go, seed)
        until(lambda: threading.active_count() <= before + 2)
        gc.collect()
        size = Size.of(db, path)
        assert (size.snapshots, size.iterators, size.queued, size.pending) == (0, 0, 0, 0)
        assert (size.stray_tables, size.versions, size.memtables) == (0, 1, 1)
        check_caches(db)
