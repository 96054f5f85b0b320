"""Threads that write, read, walk and compact at once, each held to what may have been seen."""

from __future__ import annotations

import functools
import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

import attrs

import lsm
import policies
from tests.lsm.ledger import Ledger
from tests.lsm.refilterable import reconfigure


@attrs.define(eq=False)
class Load:
    """What the threads share: the database, what its writers did, and when it is enough."""

    db: lsm.DB
    ledgers: list[Ledger]
    seed: str
    goes_on: Callable[[], bool]
    in_reverse: bool = False

    def rng(self) -> random.Random:
        """A generator for the thread that asks."""
        return random.Random(f"{self.seed} {threading.current_thread().name}")

    def sorted(self, entries: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The entries in the database's order."""
        return sorted(entries.items(), reverse=self.in_reverse)

    def contents(self) -> list[tuple[bytes, bytes]]:
        """What is there when all writers have finished."""
        entries: dict[bytes, bytes] = {}
        for ledger in self.ledgers:
            entries |= ledger.state(ledger.done)
        return self.sorted(entries)


def write(load: Load, ledger: Ledger) -> None:
    """Put, delete and write batches, within the one ledger's keys."""
    rng = load.rng()
    part = load.db.prefixed_db(ledger.prefix)
    kinds = [write_one, delete_one, write_many, write_many, functools.partial(write_in, part)]
    while load.goes_on():
        rng.choice(kinds)(load.db, ledger, rng)
        ledger.finish()


def write_one(db: lsm.DB, ledger: Ledger, rng: random.Random) -> None:
    key = rng.choice(ledger.singles)
    db.put(key, ledger.value(key, ledger.begin([key])), sync=rng.random() < 0.02)


def delete_one(db: lsm.DB, ledger: Ledger, rng: random.Random) -> None:
    key = rng.choice(ledger.singles)
    ledger.begin([], [key])
    db.delete(key, sync=rng.random() < 0.02)


def write_in(part: Any, _db: lsm.DB, ledger: Ledger, rng: random.Random) -> None:
    key = rng.choice(ledger.singles)
    value = ledger.value(key, ledger.begin([key]))
    part.put(key.removeprefix(ledger.prefix), value)


def write_many(db: lsm.DB, ledger: Ledger, rng: random.Random) -> None:
    """A batch: some pairs, some single keys, and the last key always."""
    changed = [key for pair in rng.sample(ledger.pairs, rng.choice((1, 1, 3))) for key in pair]
    changed += rng.sample(ledger.singles, rng.randrange(4))
    deleted: list[bytes] = []
    if rng.random() < 0.3:
        deleted, changed = changed, []
    number = ledger.begin([*changed, ledger.last], deleted)
    with db.write_batch(transaction=rng.random() < 0.5, sync=rng.random() < 0.02) as batch:
        batch.put(ledger.last, b"this is overwritten before anybody sees it")
        for key in deleted:
            batch.put(key, b"this is deleted before anybody sees it")
            batch.delete(key)
        for key in [*changed, ledger.last]:
            batch.put(key, ledger.value(key, number))


class Witness:
    """Reads, and holds every ledger to it: what it has seen once is not undone for it."""

    def __init__(self, load: Load):
        self._load = load
        self._seen = {ledger.prefix: 0 for ledger in load.ledgers}

    def low(self, ledger: Ledger) -> int:
        return max(ledger.done, self._seen[ledger.prefix])

    def see(self, ledger: Ledger, found: dict[bytes, bytes | None], low: int) -> None:
        """What was found is of a state from ``low`` on, and all is of the same one."""
        self._seen[ledger.prefix] = max(
            self._seen[ledger.prefix], ledger.seen(found, low, ledger.begun)
        )

    def lows(self) -> list[int]:
        return [self.low(ledger) for ledger in self._load.ledgers]

    def check(self, entries: list[tuple[bytes, bytes]], lows: list[int]) -> None:
        """All entries as somebody walked over them: in order, and of one state of each writer."""
        found = dict(entries)
        assert entries == self._load.sorted(found), "out of order, or a key is there twice"
        for ledger, low in zip(self._load.ledgers, lows, strict=True):
            self.see(ledger, {key: found.pop(key, None) for key in ledger.keys}, low)
        assert not found, "keys that nobody wrote"


def read(load: Load) -> None:
    """Get keys one by one, several at once, and from a snapshot that is soon let go."""
    rng, witness = load.rng(), Witness(load)
    db = load.db
    while load.goes_on():
        ledger = rng.choice(load.ledgers)
        keys = [*rng.choice(ledger.pairs), ledger.last, *rng.sample(ledger.singles, 3)]
        low = witness.low(ledger)
        choice = rng.randrange(8)
        if choice == 0:
            left, right, *_ = found = db.get_many(keys)
            assert left == right
            witness.see(ledger, dict(zip(keys, found, strict=True)), low)
        elif choice == 1:
            with db.snapshot() as snapshot:
                found = [snapshot.get(key, fill_cache=rng.random() < 0.5) for key in keys]
                assert snapshot.get_many(keys) == found
            assert found[0] == found[1]
            witness.see(ledger, dict(zip(keys, found, strict=True)), low)
        elif choice == 2:
            part = db.prefixed_db(ledger.prefix).snapshot()
            found = [part.get(key.removeprefix(ledger.prefix)) for key in keys]
            witness.see(ledger, dict(zip(keys, found, strict=True)), low)
        elif choice == 3:
            key = keys[-1]
            if not db.might_contain(key):
                witness.see(ledger, {key: None}, low)
        elif choice == 4:
            look_around(db, keys[-1], rng)
        else:
            key = rng.choice(keys)
            witness.see(ledger, {key: db.get(key, fill_cache=rng.random() < 0.8)}, low)


def look_around(db: lsm.DB, key: bytes, rng: random.Random) -> None:
    """Ask for everything that has no one right answer."""
    looks: list[Callable[[], Any]] = [
        lambda: str(db.explain(key)),
        lambda: [level.drifted for level in db.filters()],
        lambda: str(db.stats()),
        lambda: db.get_property(b"leveldb.sstables"),
        lambda: db.get_property(b"leveldb.stats"),
        lambda: db.approximate_sizes((b"a", key), (key, b"z")),
    ]
    rng.choice(looks)()


def walk(load: Load) -> None:
    """Walk over everything, in all ways, and hold snapshots to walk over them again."""
    rng, witness = load.rng(), Witness(load)
    db = load.db
    held: list[tuple[Any, list[tuple[bytes, bytes]]]] = []
    while load.goes_on():
        choice = rng.randrange(6)
        lows = witness.lows()
        if choice == 0:
            witness.check(list(db), lows)
        elif choice == 1:
            witness.check(list(db.iterator(reverse=True))[::-1], lows)
        elif choice == 2:
            witness.check(walk_to_and_fro(db, rng), lows)
        elif choice == 3:
            witness.check(walk_raw(db.raw_iterator(fill_cache=rng.random() < 0.5)), lows)
        elif choice == 4:
            snapshot = db.snapshot()
            held.append((snapshot, list(snapshot)))
            witness.check(held[-1][1], lows)
        if held and (len(held) > 3 or choice == 5):
            snapshot, entries = held.pop(rng.randrange(len(held)))
            keys = [key for key, _ in entries]
            assert snapshot.get_many(keys) == [value for _, value in entries]
            assert list(snapshot) == entries
            if rng.random() < 0.5:
                snapshot.close()


def walk_to_and_fro(db: lsm.DB, rng: random.Random) -> list[tuple[bytes, bytes]]:
    """Walk on, back and on again, while others write and compact."""
    iterator = db.iterator()
    entries: list[tuple[bytes, bytes]] = []
    while (entry := next(iterator, None)) is not None:
        entries.append(entry)
        if rng.random() < 0.05:
            back = [iterator.prev() for _ in range(rng.randrange(len(entries)))]
            assert back == entries[::-1][: len(back)]
            assert list(itertools.islice(iterator, len(back))) == back[::-1]
        if rng.random() < 0.02:
            iterator.seek(entry[0])
            assert next(iterator) == entry
            db.get(entry[0])
    return entries


def walk_raw(raw: Any) -> list[tuple[bytes, bytes]]:
    entries = []
    raw.seek_to_last()
    while raw.valid():
        entries.append(raw.item())
        raw.prev()
    return entries[::-1]


def compact(load: Load) -> None:
    """Flush, compact ranges, by force now and then, and refilter."""
    rng = load.rng()
    while load.goes_on():
        choice = rng.random()
        if choice < 0.4:
            load.db.flush()
        elif choice < 0.6:
            reconfigure(load.db, policies.create(rng.choice(policies.available())))
            load.db.refilter(max_bytes=rng.choice((None, 5000)))
        else:
            bounds = [rng.choice(load.ledgers).last if rng.random() < 0.5 else None for _ in "ab"]
            load.db.compact_range(start=bounds[0], stop=bounds[1], force=rng.random() < 0.3)
        pause = threading.Event()
        pause.wait(rng.random() * 0.02)  # else nothing would ever be left to other compactions
