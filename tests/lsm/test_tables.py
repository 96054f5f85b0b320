"""Open tables: how many there are, when they are given back, and who may interrupt whom.

Nothing here waits for the garbage collector, which is off: what nobody holds is gone at once.
"""

from __future__ import annotations

import random
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm import iterators
from lsm.kernels.python.table import Table
from lsm.loaded_filter import LoadedFilter
from lsm.storage import Mapped
from lsm.tables import TableCache
from lsm.version import PlacedTable
from tests.effort import by_effort
from tests.lsm.crew import Crew
from tests.lsm.interrupting import INSTRUCTIONS, SIGNALS, Kind, chosen, interrupted_at, points
from tests.lsm.simulated import SimulatedStorage

POINTS = by_effort(2, 8, None)
CLOSED = "^Database is closed$"
WALKER_CLOSED = "^Database or iterator is closed$"


class File:
    """A mapping that behaves as the system's: once closed, reading it is a ValueError."""

    def __init__(self, data: bytes):
        self._data: bytes | None = data

    def _open(self) -> bytes:
        if self._data is None:
            raise ValueError("mmap closed or invalid")
        return self._data

    def __len__(self) -> int:
        return len(self._open())

    def __getitem__(self, part: slice) -> bytes:
        return self._open()[part]

    def close(self) -> None:
        self._data = None

    @property
    def is_open(self) -> bool:
        return self._data is not None


class CountingStorage(SimulatedStorage):
    """Storage that knows which mappings were not given back."""

    def __init__(self) -> None:
        super().__init__()
        self._mapped: list[weakref.ref[File]] = []

    def map(self, path: str) -> Mapped:
        file = File(bytes(super().map(path).data))
        self._mapped.append(weakref.ref(file))
        return Mapped(file)  # type: ignore[arg-type]

    def mapped(self) -> int:
        """How many mappings there are."""
        files = [reference() for reference in self._mapped]
        return sum(file is not None and file.is_open for file in files)


pytestmark = pytest.mark.usefixtures("no_collector")

KEYS = [b"%03d" % number for number in range(0, 240, 2)]
CONTENTS = {key: key * 20 for key in KEYS}


def filled(storage: Any = None, name: str = "db", **options: Any) -> lsm.DB:
    """A database with its keys in twelve tables or so, of some blocks each, and none in memory."""
    given = {"table_cache_size": "1 MiB", "lru_cache_size": "1 MiB", **options}
    db = lsm.DB(
        name,
        create_if_missing=True,
        storage=CountingStorage() if storage is None else storage,
        block_size=100,
        max_file_size=1024,
        compression="none",
        **given,
    )
    for part in (slice(None, None, 2), slice(None)):  # a compaction cuts them, a flush does not
        for key in KEYS[part]:
            db.put(key, CONTENTS[key])
        db.compact_range()
    db.wait_until_idle()
    assert len(placed_in(db)) > 5
    return db


def placed_in(db: lsm.DB) -> list[PlacedTable]:
    """The tables that it has now."""
    view = db._store.view
    assert view is not None
    return list(view.version.tables())


def tables_of(db: lsm.DB) -> TableCache:
    return db._store.tables


def partitions_of(loaded: LoadedFilter | None) -> list[LoadedFilter]:
    """The partitions of a filter that readers find in its place."""
    if loaded is None or loaded.partitions is None:
        return []
    found = map(loaded.partitions.cached, range(len(loaded.partitions)))
    return [partition for partition in found if partition is not None]


def check_accounts(db: lsm.DB, storage: CountingStorage) -> None:
    """What is in a place is in a cache, and in the caches is what they count and admit."""
    tables = tables_of(db)
    for cache in (tables.open_tables, tables.blocks, tables.filters.cache):
        assert cache.bytes == sum(item.charge for item in cache._ring) <= cache.limit
        assert not cache._evicting
    for placed in placed_in(db):
        opened = placed.file.opened
        if opened is not None:
            assert opened in tables.open_tables._ring
            assert opened.filter is None or not opened.filter.charge or opened.filter.held
            for partition in partitions_of(opened.filter):
                assert partition in tables.filters.cache._ring
            for cached in map(opened.cached, range(len(opened.handles))):
                assert cached is None or cached in tables.blocks._ring
    for opened in tables.open_tables._ring:
        assert opened.file.opened is opened  # type: ignore[attr-defined]
    assert storage.mapped() == len(tables.open_tables)


# -- Given back ---------------------------------------------------------------------------------


def test_a_table_that_left_the_cache_before_its_filter_failed_is_given_back_at_once() -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        tables, placed = tables_of(db), placed_in(db)[0]
        opened = tables.opened(placed.file)
        loaded = tables.filters.load(opened)
        tables.drop(placed.number)
        before = storage.mapped()
        assert tables.filters.probe_failed(opened, loaded, ValueError("odd")).state == "failed"
        assert opened.filter is not loaded
        del opened, loaded
        assert storage.mapped() == before - 1


def test_a_table_that_left_the_cache_is_given_back_at_once() -> None:
    storage = CountingStorage()
    with filled(storage, table_cache_size=9000) as db:
        for key in KEYS * 2:
            assert db.get(key) == CONTENTS[key]
            check_accounts(db, storage)
        assert tables_of(db).open_tables.evictions > 5
        assert list(db) == list(CONTENTS.items())
        check_accounts(db, storage)


def test_a_table_without_room_in_the_cache_is_given_back_after_each_read() -> None:
    storage = CountingStorage()
    with filled(storage, table_cache_size=0) as db:
        assert {key: db.get(key) for key in KEYS} == CONTENTS
        assert db.get(b"001") is None
        assert storage.mapped() == 0
        assert list(db.iterator(reverse=True)) == list(CONTENTS.items())[::-1]
        assert storage.mapped() == 0


def test_a_table_whose_file_was_removed_is_given_back_at_once() -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        assert dict(db) == CONTENTS
        old = storage.mapped()
        for key in KEYS:
            db.put(key, b"new")
        db.compact_range()
        db.wait_until_idle()
        check_accounts(db, storage)
        assert storage.mapped() < old
        assert set(dict(db).values()) == {b"new"}
        check_accounts(db, storage)


def test_whoever_reads_a_table_can_read_it_to_its_end() -> None:
    """Though it left the cache and its file was removed; then it is given back."""
    storage = CountingStorage()
    with filled(storage) as db:
        iterator = db.iterator()
        seen = [next(iterator) for _ in range(3)]
        for key in KEYS:
            db.put(key, b"new")
        db.compact_range()
        db.wait_until_idle()
        tables = tables_of(db)
        for opened in tables.all_open():
            tables.drop(opened.file.number)
        assert len(tables.open_tables) == 0
        assert 1 <= storage.mapped() <= 2
        assert seen + list(iterator) == list(CONTENTS.items())
        iterator.close()
        assert tables.open_tables.bytes > 0, "its other tables were opened again"


def test_a_damaged_table_is_given_back_while_somebody_keeps_the_error() -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        placed = placed_in(db)[0]
        placed.file.size += 1
        with pytest.raises(lsm.CorruptionError, match="the manifest says"):
            db.get(placed.low)
        assert storage.mapped() == 0
        placed.file.size -= 1
        name = f"db/{placed.number:06d}.ldb"
        intact = storage.read(name)
        storage.replace(name, intact[:-8] + bytes(8), "db/other")
        with pytest.raises(lsm.CorruptionError) as caught:
            db.get(placed.low)
        assert storage.mapped() == 0
        assert caught.value.__traceback__ is not None


def test_closing_gives_all_back_whoever_still_reads() -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        tables = tables_of(db)
        iterators = [db.iterator(), db.iterator(reverse=True), db.snapshot().iterator()]
        raw = db.raw_iterator()
        raw.seek_to_first()
        for iterator in iterators:
            next(iterator)
        assert {key: db.get(key) for key in KEYS} == CONTENTS
        assert storage.mapped() > 5
        for _ in range(2):
            tables.close()
            assert storage.mapped() == 0
            for cache in (tables.open_tables, tables.blocks, tables.filters.cache):
                assert (len(cache), cache.bytes) == (0, 0)
        uses: list[Callable[[], object]] = [
            *(lambda iterator=iterator: list(iterator) for iterator in iterators),
            lambda: [raw.next() for _ in KEYS],
            lambda: db.get(KEYS[7]),
            lambda: db.get_many(KEYS),
            lambda: db.might_contain(KEYS[7]),
        ]
        for use in uses:
            with pytest.raises(RuntimeError, match=CLOSED):
                use()
        assert storage.mapped() == 0


def test_opening_reading_and_closing_again_and_again_leaves_nothing() -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        tables_of(db).close()
    for _ in range(5):
        with lsm.DB("db", storage=storage) as db:
            assert dict(db) == CONTENTS
            assert {key: db.get(key) for key in KEYS} == CONTENTS
            tables_of(db).close()
        assert storage.mapped() == 0


def test_closing_gives_back_the_systems_own_mappings(tmp_path: Path) -> None:
    with filled(lsm.storage.FileSystem(), str(tmp_path / "db")) as db:
        iterator = db.iterator()
        next(iterator)
        assert db.get(KEYS[3]) == CONTENTS[KEYS[3]]
        opened = tables_of(db).all_open()
        tables_of(db).close()
        assert opened
        assert all(each.reader.mapped.data.closed for each in opened)  # type: ignore[union-attr]
        with pytest.raises(RuntimeError, match=CLOSED):
            list(iterator)


# -- Interrupted --------------------------------------------------------------------------------


def get(db: lsm.DB) -> object:
    return db.get(KEYS[50])


def get_absent(db: lsm.DB) -> object:
    return db.get(KEYS[50] + b"x")


def walk(db: lsm.DB) -> object:
    return list(some(db, reverse=False))


def walk_back(db: lsm.DB) -> object:
    return list(some(db, reverse=True))


def some(db: lsm.DB, reverse: bool) -> iterators.Iterator:
    """An iterator over some tables that the database does not know of."""
    store = db._store
    assert store.view is not None
    bounds = (KEYS[40], True), (KEYS[60], False)
    view = store.view
    cursor = store.kernel.cursor_over(store, view, None, None, *bounds, True, True, True)
    return iterators.Iterator(cursor, store.comparator, b"", None, reverse)


ALL_READS = [get, get_absent, walk, walk_back]
READS = pytest.mark.parametrize("read", by_effort([get, walk_back], ALL_READS, ALL_READS))
ROOM = {
    "much": {},
    "little": {"table_cache_size": 9000, "lru_cache_size": 3000, "filter_cache_size": 100},
    "none": {"table_cache_size": 0},
}
CACHES = pytest.mark.parametrize("room", ROOM)


def emptied(db: lsm.DB) -> None:
    """Have nothing open, so that the next read is a cold one, and have something go for it."""
    tables = tables_of(db)
    for opened in tables.all_open():
        tables.drop(opened.file.number)
    for key in KEYS[::-30]:
        db.get(key)


@CACHES
@READS
def test_after_an_interruption_at_any_point_all_accounts_are_right(
    room: str, read: Callable[[lsm.DB], object], rng: random.Random
) -> None:
    storage = CountingStorage()
    with filled(storage, **ROOM[room]) as db:
        expected = read(db)
        emptied(db)
        for number in chosen(points(lambda: read(db)), POINTS, rng):
            emptied(db)
            outcome = interrupted_at(number, lambda: read(db))
            if outcome.where is not None:
                assert isinstance(outcome.raised, KeyboardInterrupt), outcome
            assert read(db) == expected, outcome
            for key in KEYS:  # the next admissions
                assert db.get(key) == CONTENTS[key]
            check_accounts(db, storage)
        tables_of(db).close()
        assert storage.mapped() == 0


@CACHES
@READS
@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_whoever_interrupts_a_read_may_read(
    room: str, read: Callable[[lsm.DB], object], kind: Kind, rng: random.Random
) -> None:
    storage = CountingStorage()
    with filled(storage, **ROOM[room]) as db:
        expected = [each(db) for each in (get, get_absent, walk)]
        wanted = read(db)
        emptied(db)
        for number in chosen(points(lambda: read(db), kind), POINTS, rng):
            emptied(db)
            answers: list[object] = []

            def nested(answers: list[object] = answers) -> None:
                answers += [each(db) for each in (get, get_absent, walk)]

            outcome = interrupted_at(number, lambda: read(db), call=nested, kind=kind)
            assert outcome.raised is None, outcome
            assert outcome.result == wanted, outcome
            assert answers == (expected if outcome.where else [])
            for key in KEYS:
                assert db.get(key) == CONTENTS[key]
            check_accounts(db, storage)


@CACHES
@READS
def test_tables_may_be_dropped_at_any_point_of_a_read(
    room: str, read: Callable[[lsm.DB], object], rng: random.Random
) -> None:
    """As the background does when their files are obsolete, while a lookup evicts the same ones."""
    storage = CountingStorage()
    with filled(storage, **ROOM[room]) as db:
        wanted = read(db)
        tables = tables_of(db)

        def drop() -> None:
            for opened in tables.all_open():
                tables.drop(opened.file.number)

        emptied(db)
        for number in chosen(points(lambda: read(db)), POINTS, rng):
            emptied(db)
            outcome = interrupted_at(number, lambda: read(db), call=drop)
            assert outcome.raised is None, outcome
            assert outcome.result == wanted, outcome
            for key in KEYS:
                assert db.get(key) == CONTENTS[key]
            check_accounts(db, storage)


@READS
@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_all_may_be_closed_at_any_point_of_a_read(
    read: Callable[[lsm.DB], object], kind: Kind, rng: random.Random
) -> None:
    """The read has its answer, or says that the database is closed: nothing else, and no file."""
    storage = CountingStorage()
    with filled(storage) as db:
        store, wanted = db._store, read(db)

        def anew() -> TableCache:
            for opened in store.tables.all_open():
                store.tables.drop(opened.file.number)
            store.tables = TableCache(storage, "db", store.options, store.comparator)
            return store.tables

        anew()
        for number in chosen(points(lambda: read(db), kind), POINTS, rng):
            tables = anew()
            outcome = interrupted_at(number, lambda: read(db), call=tables.close, kind=kind)
            if outcome.raised is None:
                assert outcome.result == wanted, outcome
            else:
                assert isinstance(outcome.raised, RuntimeError), outcome
                assert str(outcome.raised) == "Database is closed", outcome
            tables.close()
            assert storage.mapped() == 0, outcome
            assert len(tables.open_tables) == len(tables.blocks) == len(tables.filters.cache) == 0


@pytest.mark.parametrize("reads", [1, 2, 3, 4, 5, 6])
def test_a_mapping_that_is_closed_under_a_read_is_that_of_a_closed_database(
    reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another thread, just before so many slices of it are taken: index, filter, block."""
    with filled() as db:
        tables, taken = tables_of(db), []
        take = File.__getitem__

        def close_and_take(file: File, part: slice) -> bytes:
            taken.append(part)
            if len(taken) == reads:
                tables.close()
            return take(file, part)

        emptied(db)
        tables.drop(placed_in(db)[0].number)
        monkeypatch.setattr(File, "__getitem__", close_and_take)
        with pytest.raises(RuntimeError, match=CLOSED):
            db.get(placed_in(db)[0].low)
        assert len(taken) >= reads


def test_closing_that_was_interrupted_is_done_when_it_is_tried_again(rng: random.Random) -> None:
    storage = CountingStorage()
    with filled(storage) as db:
        store = db._store
        for number in range(10**6):
            assert dict(db) == CONTENTS
            tables = store.tables
            outcome = interrupted_at(number * by_effort(7, 1, 1), tables.close)
            tables.close()
            assert storage.mapped() == 0, outcome
            assert len(tables.open_tables) == len(tables.blocks) == 0
            store.tables = TableCache(storage, "db", store.options, store.comparator)
            if outcome.where is None:
                break


def test_a_table_is_opened_twice_and_kept_once(rng: random.Random) -> None:
    """Nobody waits for who is opening a table; who comes second uses the first one's."""
    storage = CountingStorage()
    with filled(storage) as db:
        tables = tables_of(db)
        placed = placed_in(db)[0]
        opened: list[Table] = []
        shared = 0
        total = points(lambda: tables.open(placed.file))
        for number in chosen(total, by_effort(50, 150, None), rng):
            tables.drop(placed.number)
            outcome = interrupted_at(
                number,
                lambda: tables.open(placed.file),
                call=lambda: opened.append(tables.open(placed.file)),
            )
            assert outcome.result is placed.file.opened, outcome
            # Within a change of the cache who interrupts has a table of its own.
            assert opened[0] is outcome.result or opened[0].held is False, outcome
            shared += opened[0] is outcome.result
            outcome.result = None
            opened.clear()
            assert len(tables.open_tables) == storage.mapped() == 1, outcome
        assert shared > 20


# -- Among threads ------------------------------------------------------------------------------


def test_who_reads_while_it_is_closed_sees_that_it_is_closed(
    tmp_path: Path, rng: random.Random
) -> None:
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for trial in range(by_effort(4, 8, 2000)):
            db = filled(lsm.storage.FileSystem(), str(tmp_path / f"db{trial}"), **ROOM["little"])
            iterator, raw, snapshot = db.iterator(), db.raw_iterator(), db.snapshot()
            seen: list[str] = []

            def until_closed(use: Callable[[], object], seen: list[str] = seen) -> None:
                try:
                    while True:
                        use()
                except RuntimeError as error:
                    seen.append(str(error))

            def step(iterator: Any = iterator) -> None:
                if next(iterator, None) is None:
                    iterator.seek_to_start()

            def raw_step(raw: Any = raw) -> None:
                try:
                    raw.next()
                    raw.item()
                except lsm.IteratorInvalidError:
                    raw.seek_to_first()

            uses = [
                step,
                step,
                raw_step,
                lambda db=db: list(db),
                lambda db=db: list(db.iterator(reverse=True)),
                lambda db=db: db.get(rng.choice(KEYS)),
                lambda db=db: db.get_many(KEYS),
                lambda snapshot=snapshot: snapshot.get(KEYS[9]),
            ]
            with Crew() as crew:
                for number, use in enumerate(uses):
                    crew.start(until_closed, use, name=f"reader {number}")
                for _ in range(rng.randrange(300)):
                    db.get(rng.choice(KEYS))
                tables = tables_of(db)
                db.close()
                tables.close()
            words = {f"Database{which} is closed" for which in ("", " or iterator", " or snapshot")}
            assert set(seen) <= words
            assert len(seen) == len(uses)
    finally:
        sys.setswitchinterval(switching)


def test_threads_that_let_go_of_the_same_tables_do_not_meet(rng: random.Random) -> None:
    """Lookups evict what others drop and open, all at the same time."""
    storage = CountingStorage()
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with filled(storage, **ROOM["little"]) as db:
            tables = tables_of(db)

            def read(seed: int) -> None:
                keys = random.Random(seed).choices(KEYS, k=by_effort(1500, 5000, 500_000))
                for key in keys:
                    assert db.get(key) == CONTENTS[key]

            def drop() -> None:
                for _ in range(by_effort(300, 1000, 100_000)):
                    for opened in tables.all_open():
                        tables.drop(opened.file.number)

            with Crew() as crew:
                for seed in range(3):
                    crew.start(read, seed)
                crew.start(drop)
            for key in KEYS:
                assert db.get(key) == CONTENTS[key]
            check_accounts(db, storage)
    finally:
        sys.setswitchinterval(switching)


def test_what_somebody_held_while_others_looked_is_removed_once_nobody_works() -> None:
    storage = SimulatedStorage()
    with lsm.DB("db", storage=storage, create_if_missing=True) as db:
        db.put(b"a", b"1")
        db.flush()
        view = db._store.opened_view()
        db.put(b"a", b"2")
        db.compact_range(force=True)
        db.wait_until_idle()
        live = sum(level.tables for level in db.stats().levels)
        assert sum(name.endswith(".ldb") for name in storage.list("db")) > live
        del view
        db.wait_until_idle()
        assert sum(name.endswith(".ldb") for name in storage.list("db")) == live
