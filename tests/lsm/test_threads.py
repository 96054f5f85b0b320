"""Many threads on one database, processes beside it, and what stops in the middle of something."""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from lsm.errors import IOError, LockedError
from lsm.options import LEVELS
from lsm.store import Store
from policies import LevelPolicies
from policies.config import Choice
from tests.effort import by_effort
from tests.interpreter import fresh
from tests.lsm import odd_policies
from tests.lsm.configurations import TINY, Configuration
from tests.lsm.crew import PATIENCE, Crew, Gate, Hooked, done, is_in, until
from tests.lsm.ledger import Ledger
from tests.lsm.load import Load, compact, read, walk, write
from tests.lsm.patience import patient

SECONDS = by_effort(8, 60, 600)
"""How long writers, readers and compactions are at it together, in all configurations."""
ROUNDS = by_effort(3, 10, 10)
"""How many flushes, and compactions, there are at least while they are at it."""

WRITERS, READERS, WALKERS = 4, 4, 2


# -- All at once ---------------------------------------------------------------------------


def in_reverse(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def levels(*chosen: tuple[policies.FilterPolicy, str]) -> LevelPolicies:
    """These policies in turn, from level 0 down."""
    pool = itertools.cycle(chosen)
    return LevelPolicies(tuple(Choice(*next(pool)) for _ in range(LEVELS)))


@attrs.frozen(kw_only=True)
class Case:
    """A database under load."""

    filters: policies.FilterPolicy | LevelPolicies
    engine: dict[str, Any] = TINY
    in_reverse: bool = False
    switch_interval: float | None = None
    for_leveldb: bool = True
    busy: bool = True

    @property
    def configuration(self) -> Configuration:
        return Configuration.of(self.filters, **self.engine)

    @property
    def order(self) -> dict[str, Any]:
        if not self.in_reverse:
            return {}
        return {"comparator": in_reverse, "comparator_name": b"in reverse"}


CASES = {
    "tiny": Case(filters=policies.BlockedPolicy()),
    "no caches": Case(
        filters=policies.ClassicPolicy(),
        engine=TINY | {"lru_cache_size": 0, "table_cache_size": 0, "filter_cache_size": 0},
    ),
    "small caches": Case(
        filters=levels((policies.LevelDBPolicy(), "block"), (policies.CuckooPolicy(), "table")),
        engine=TINY
        | {"lru_cache_size": 3000, "table_cache_size": 5000, "filter_cache_size": 300}
        | {"max_open_files": 2},
    ),
    "failing policies": Case(
        filters=levels(
            (odd_policies.ProbingRaisesPolicy(), "table"),
            (odd_policies.SetPolicy(), "table"),
            (odd_policies.BuildingRaisesPolicy(), "table"),
            (odd_policies.OpeningRaisesPolicy(building=True), "table"),
        ),
        engine=TINY | {"max_open_files": 3},
    ),
    "in reverse": Case(
        filters=policies.RocksDBPolicy(),
        engine=TINY | {"filters_compare_bytes": True, "filter_cache_size": 300},
        in_reverse=True,
        for_leveldb=False,
    ),
    "races": Case(
        filters=policies.BinaryFusePolicy(),
        engine=TINY | {"max_open_files": 3},
        switch_interval=1e-5,
    ),
    "a table for every write": Case(
        filters=policies.NoFilterPolicy(),
        engine=TINY | {"write_buffer_size": 1, "level0_compact_files": 1, "compression": "zstd"},
        switch_interval=1e-4,
        for_leveldb=False,
    ),
    "many jobs": Case(
        filters=policies.BlockedPolicy(),
        engine=TINY | {"max_background_jobs": 8},
        switch_interval=1e-4,
    ),
    "one job": Case(filters=policies.BlockedPolicy(), engine=TINY | {"max_background_jobs": 1}),
    "in memory": Case(
        filters=policies.BlockedPolicy(), engine={}, switch_interval=1e-5, busy=False
    ),
}


@pytest.fixture
def switching(request: pytest.FixtureRequest) -> Iterator[Case]:
    """The case, with threads taking turns as often as it says."""
    case: Case = CASES[request.param]
    usual = sys.getswitchinterval()
    if case.switch_interval is not None:
        sys.setswitchinterval(case.switch_interval)
    yield case
    sys.setswitchinterval(usual)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Of policies that fail on purpose nobody wants to hear."""
    caplog.set_level(logging.CRITICAL, logger="lsm")


@pytest.mark.parametrize("switching", CASES, indirect=True)
@pytest.mark.usefixtures("quiet")
def test_nobody_sees_what_was_never_there(switching: Case, tmp_path: Path, test_seed: int) -> None:
    case, path = switching, tmp_path / "db"
    crew = Crew(SECONDS / len(CASES) + PATIENCE)
    with odd_policies.registered():
        opened = functools.partial(case.configuration.open, path, tmp_path, **case.order)
        with opened(create_if_missing=True) as db:
            deadline, work = time.monotonic() + SECONDS / len(CASES), db._store.work

            def goes_on() -> bool:
                enough = not case.busy or min(work.flushes, work.compactions) > ROUNDS
                over = enough and time.monotonic() >= deadline
                return not over and not crew.failed.is_set()

            ledgers = [Ledger(b"%c" % letter) for letter in b"abcd"[:WRITERS]]
            load = Load(db, ledgers, str(test_seed), goes_on, case.in_reverse)
            with crew:
                for number, ledger in enumerate(load.ledgers):
                    crew.start(write, load, ledger, name=f"writer {number}")
                for number in range(READERS):
                    crew.start(read, load, name=f"reader {number}")
                for number in range(WALKERS):
                    crew.start(walk, load, name=f"walker {number}")
                if case.busy:
                    crew.start(compact, load, name="compact")
            expected = load.contents()
            assert done(list, db) == expected
            done(db.wait_until_idle)
            assert done(list, db) == expected
            found = db.stats()
            assert found.background_error is None
            assert (min(found.flushes, found.compactions) > ROUNDS) == case.busy
            done(db.close)
        with opened() as db:
            assert done(list, db) == expected
            done(db.close)
    if case.for_leveldb:
        plyvel = pytest.importorskip("plyvel")
        with plyvel.DB(str(path)) as db:
            assert list(db) == expected


# -- Who reads while the view changes ------------------------------------------------------


class Changing(Store):
    """A store in which something happens between a reader's two looks at it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("view", "visible"):
            hook = object.__getattribute__(self, "__dict__").get("between")
            if hook is not None:
                hook(name)
        return super().__getattribute__(name)


def changing(db: lsm.DB, change: Callable[[], None]) -> None:
    """Have this happen between the next two looks at the database by the calling thread."""
    thread, looked = threading.current_thread(), set()

    def between(name: str) -> None:
        if threading.current_thread() is not thread:
            return
        looked.add(name)
        if len(looked) == 2:
            del db._store.between
            done(change)

    db._store.__class__ = Changing
    db._store.between = between


def everything(db: lsm.DB) -> dict[bytes, bytes]:
    raw = db.raw_iterator()
    raw.seek_to_first()
    entries = {}
    while raw.valid():
        entries |= [raw.item()]
        raw.next()
    return entries


READS: dict[str, Callable[[lsm.DB], bytes | None]] = {
    "get": lambda db: db.get(b"key"),
    "get_many": lambda db: db.get_many([b"key"])[0],
    "iterator": lambda db: dict(db).get(b"key"),
    "raw iterator": lambda db: everything(db).get(b"key"),
    "prefixed": lambda db: db.prefixed_db(b"k").get(b"ey"),
}


@pytest.mark.skipif(lsm.KERNEL == "native", reason="a compiled reader takes view and rank at once")
@pytest.mark.parametrize("read", READS)
@patient
def test_a_compaction_between_two_looks_hides_nothing(read: str, tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"key", b"old")
        db.compact_range()

        def change() -> None:
            db.put(b"key", b"new")
            db.compact_range()  # which leaves out what is hidden behind the new value

        changing(db, change)
        assert READS[read](db) in (b"old", b"new")
        assert db.stats().compactions > 0
        assert db.get(b"key") == b"new"


# -- Collected at a bad moment -------------------------------------------------------------


def released(storage: Hooked) -> threading.Event:
    """What is set when the database's lock is released."""
    event = threading.Event()
    storage.hooks.append(lambda operation, _: operation == "released" and event.set())
    return event


STEPS = [
    "create .ldb",
    "append .ldb",
    "sync .ldb",
    "append MANIFEST",
    "sync MANIFEST",
    "remove .log",
]


HELD = ["nothing", "iterator", "snapshot", "batch", "prefixed"]


@pytest.mark.parametrize(
    ("step", "held"),
    by_effort(
        list(zip(STEPS, itertools.cycle(HELD), strict=False)),
        *[list(itertools.product(STEPS, HELD))] * 2,
    ),
)
@pytest.mark.usefixtures("no_collector")
@patient
def test_a_database_is_collected_in_its_own_background_thread(
    step: str, held: str, tmp_path: Path
) -> None:
    operation, name = step.split()
    storage = Hooked()
    at_end, dropped = released(storage), threading.Event()

    def collect(tried: str, path: str) -> None:
        if tried == operation and name in path and "lsm-" in threading.current_thread().name:
            assert dropped.wait(PATIENCE)
            gc.collect()

    db = lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage)
    storage.hooks.append(collect)
    db.put(b"key", b"value")
    made = {
        "nothing": lambda: None,
        "iterator": db.iterator,
        "snapshot": db.snapshot,
        "batch": db.write_batch,
        "prefixed": lambda: db.prefixed_db(b"p"),
    }
    cycle: list[Any] = [db, made[held]()]
    cycle.append(cycle)
    db._store.writer.switch()
    del made, db, cycle
    dropped.set()
    assert at_end.wait(PATIENCE)
    with lsm.DB(tmp_path / "db") as db:
        assert list(db) == [(b"key", b"value")]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.usefixtures("no_collector")
@patient
def test_a_database_is_collected_while_its_thread_tells_of_its_work(
    times: int, tmp_path: Path
) -> None:
    storage = Hooked()
    at_end, dropped = released(storage), threading.Event()
    db = lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage)
    db.put(b"key", b"value")
    changed, calls = db._store.changed, itertools.count(1)
    usual = changed.notify_all

    def turn() -> None:
        usual()
        if threading.current_thread().name == "lsm-flush" and next(calls) == times:
            assert dropped.wait(PATIENCE)
            gc.collect()

    changed.notify_all = turn  # type: ignore[method-assign]
    db._store.writer.switch()
    cycle: list[Any] = [db]
    cycle.append(cycle)
    del db, cycle
    dropped.set()
    assert at_end.wait(10), "the database was not closed"


# -- Closing -------------------------------------------------------------------------------


@pytest.mark.parametrize("round", range(by_effort(4, 12, 100)))
@patient
def test_a_write_beside_close_is_there_or_was_refused(
    round: int, tmp_path: Path, rng: random.Random
) -> None:
    db = lsm.DB(tmp_path / "db", create_if_missing=True, write_buffer_size=2000)
    written: dict[bytes, bytes] = {}
    enough, most = threading.Event(), rng.randrange(4, 200)

    def write(name: int) -> None:
        mine = random.Random(f"{round} {name}")
        for number in itertools.count():
            key, value = b"%d %d" % (name, number), mine.randbytes(mine.randrange(100))
            try:
                if mine.random() < 0.5:
                    db.put(key, value, sync=mine.random() < 0.1)
                else:
                    batch = db.write_batch(sync=mine.random() < 0.1)
                    batch.put(key, value)
                    batch.write()
            except RuntimeError:
                return
            written[key] = value
            if len(written) >= most:
                enough.set()

    with Crew() as crew:
        for name in range(4):
            crew.start(write, name, name=f"writer {name}")
        assert enough.wait(PATIENCE)
        db.close()
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == written


@patient
def test_closing_beside_threads_that_make_iterators(tmp_path: Path) -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(by_effort(5, 15, 100)):
            db = lsm.DB(tmp_path / str(number), create_if_missing=True)
            db.put(b"key", b"value")
            made: list[Any] = []

            def make(db: lsm.DB = db, made: list[Any] = made) -> None:
                while True:
                    made.append(db.iterator())

            with Crew() as crew:
                for _ in range(3):
                    crew.start(refused_when_closed, make)
                until(lambda made=made: len(made) > 100)
                db.close()
            for iterator in made:
                with pytest.raises(RuntimeError, match="closed"):
                    next(iterator)
    finally:
        sys.setswitchinterval(usual)


WAITING: dict[str, Callable[[lsm.DB], Any]] = {
    "flush": lambda db: db.flush(),
    "compact_range": lambda db: db.compact_range(),
}


@pytest.mark.parametrize("waiting", [*WAITING, "wait_until_idle"])
@patient
def test_close_ends_those_who_wait_for_the_background(waiting: str, tmp_path: Path) -> None:
    gate = Gate("create", ".ldb")
    db = lsm.DB(tmp_path / "db", create_if_missing=True, storage=Hooked(gate))
    db.put(b"key", b"value")
    with Crew() as crew:
        if waiting == "wait_until_idle":
            db._store.writer.switch()
            thread = crew.start(db.wait_until_idle)
        else:
            thread = crew.start(refused_when_closed, lambda: WAITING[waiting](db))
        gate.wait()
        until(lambda: is_in(thread, waiting))
        crew.start(db.close)
        until(lambda: db.closed)
        gate.open()
    with lsm.DB(tmp_path / "db") as db:
        assert list(db) == [(b"key", b"value")]


def refused_when_closed(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="closed"):
        call()


@patient
def test_when_close_returns_the_database_is_closed_whoever_else_closes_it(tmp_path: Path) -> None:
    gate, opened = Gate("create", ".ldb"), threading.Event()
    db = lsm.DB(tmp_path / "db", create_if_missing=True, storage=Hooked(gate))
    db.put(b"key", b"value")

    def close_and_open() -> None:
        db.close()
        assert opened.is_set(), "close() returned while the thread was still busy"

    with Crew() as crew:
        crew.start(refused_when_closed, db.flush)
        gate.wait()
        crew.start(db.close)
        until(lambda: db.closed)
        second = crew.start(close_and_open)
        until(lambda: not second.is_alive() or is_waiting(second))
        opened.set()
        gate.open()
    lsm.DB(tmp_path / "db").close()


def is_waiting(thread: threading.Thread) -> bool:
    """Whether it stands within close(), for a lock, a thread or a condition."""
    frame = sys._current_frames().get(thread.ident or 0)
    names = set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return "close" in names


# -- What is still read stays --------------------------------------------------------------


def tables_of(path: Path) -> set[str]:
    return {file.name for file in path.glob("*.ldb")}


@pytest.mark.parametrize("reverse", [False, True])
@patient
def test_an_iterator_goes_on_when_its_tables_are_compacted_away(
    reverse: bool, tmp_path: Path
) -> None:
    path = tmp_path / "db"
    entries = [(b"%03d" % number, b"old" * 20) for number in range(300)]
    engine = {"block_size": 256, "lru_cache_size": 0, "max_file_size": 4096, "compression": None}
    with lsm.DB(path, create_if_missing=True, **engine) as db:
        for key, value in entries:
            db.put(key, value)
        db.flush()
        first = tables_of(path)
        iterator = db.iterator(reverse=reverse)
        begun = [next(iterator) for _ in range(10)]
        for key, _ in entries:
            db.put(key, b"new")
        db.compact_range()
        for key, _ in entries[:150]:
            db.delete(key)
        db.compact_range()
        db.wait_until_idle()
        assert first <= tables_of(path)
        assert begun + list(iterator) == (entries[::-1] if reverse else entries)
        iterator.close()
        db.put(b"more", b"")
        db.flush()
        db.wait_until_idle()
        assert not first & tables_of(path)
        assert len(tables_of(path)) == sum(level.tables for level in db.stats().levels)


@patient
def test_a_snapshot_holds_its_moment_through_compactions(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True, max_file_size=1024) as db:
        held = []
        for moment in range(4):
            for number in range(40):
                if (number + moment) % 3:
                    db.put(b"%02d" % number, b"%d" % moment * 30)
                else:
                    db.delete(b"%02d" % number)
            held.append((db.snapshot(), dict(db)))
            db.compact_range()
        for at in (1, 3, 0, 2):
            snapshot, entries = held[at]
            assert dict(snapshot) == entries
            keys = [b"%02d" % number for number in range(40)]
            assert snapshot.get_many(keys) == [entries.get(key) for key in keys]
            snapshot.close()
            db.compact_range()
        del held, snapshot
        for key in list(dict(db)):
            db.delete(key)
        db.compact_range()
        assert sum(level.tables for level in db.stats().levels) == 0


@patient
def test_a_table_that_is_being_written_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    written, listed = Gate("sync", ".ldb"), Gate("list", "db")

    def hold(operation: str, path: str) -> None:
        name = threading.current_thread().name
        if name == "lsm-compaction":
            listed(operation, path)
        elif name == "lsm-flush" and listed.reached.is_set():
            written(operation, path)

    def is_compacting() -> bool:
        return any(each.name == "lsm-compaction" for each in threading.enumerate())

    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=Hooked(hold)) as db:
        for turn in range(2):
            db.put(b"a", b"%d" % turn)
            db.put(b"z", b"%d" % turn)
            db.flush()
        with Crew() as crew:
            crew.start(db.compact_range)
            listed.wait()
            db.put(b"m", b"new")
            db._store.writer.switch()
            written.wait()
            listed.open()
            until(lambda: not is_compacting())
            written.open()
        db.wait_until_idle()
        assert dict(db) == {b"a": b"1", b"m": b"new", b"z": b"1"}
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == {b"a": b"1", b"m": b"new", b"z": b"1"}


# -- Waiting for the background ------------------------------------------------------------


@patient
def test_writers_slow_down_and_stop_at_level_0_and_go_on(tmp_path: Path) -> None:
    gate = Gate("map", ".ldb")

    def hold(operation: str, path: str) -> None:
        if threading.current_thread().name == "lsm-compaction":
            gate(operation, path)

    configuration = Configuration.of(
        policies.NoFilterPolicy(),
        write_buffer_size=1 << 15,
        compression="none",
        level0_compact_files=2,
        level0_slow_files=3,
        level0_stop_files=4,
    )
    with configuration.open(
        tmp_path / "db", tmp_path, create_if_missing=True, storage=Hooked(hold)
    ) as db:
        written: list[int] = []
        db._store.work.relieving.speed.measure(1, 1000.0)  # so that it is known to be slow

        def write() -> None:
            for number in range(80):
                db.put(b"%d" % (number % 2), b"%03d" % number * 1500)
                written.append(number)

        def is_stopped() -> bool:
            view = db._store.view
            assert view is not None
            return files(db) == 4 and not view.memtables[0].has_room()

        with Crew() as crew:
            writer = crew.start(write)
            gate.wait()
            until(lambda: is_stopped() and is_in(writer, "_make_room"))
            stopped_at = len(written)
            for _ in range(200):
                assert files(db) <= 4
            assert len(written) == stopped_at < 80
            assert db.get(b"0") in [b"%03d" % number * 1500 for number in written]
            gate.open()
        db.wait_until_idle()
        found = db.stats()
        assert found.slowed_seconds > 0
        assert found.stopped_seconds > 0
        assert 0 < found.longest_slowed_seconds <= found.slowed_seconds
        assert 0 < found.longest_stopped_seconds <= found.stopped_seconds
        assert min(found.slowed_writes, found.stopped_writes) > 0
        assert found.compaction_throughput is not None
        assert found.compaction_throughput.read > found.compaction_throughput.written > 0
        assert dict(db) == {b"0": b"%03d" % 78 * 1500, b"1": b"%03d" % 79 * 1500}


def files(db: lsm.DB) -> int:
    return int(db.get_property(b"leveldb.num-files-at-level0") or b"-1")


@pytest.mark.parametrize(("failing", "ending"), [("create", ".ldb"), ("append", ".ldb")])
@patient
def test_an_error_in_the_background_is_told_to_the_next_writer(
    failing: str, ending: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(operation: str, path: str) -> None:
        if (operation, path[-4:]) == (failing, ending):
            raise IOError(5, "cannot go on: the device is on fire", path)

    storage = Hooked()
    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage) as db:
        db.put(b"a", b"1")
        db.flush()
        db.put(b"b", b"2")
        storage.hooks.append(fail)
        for call in (db.flush, db.compact_range, db.resume, db.flush):
            with pytest.raises(IOError, match="IOError: .*on fire.*resume") as caught:
                call()
            assert caught.value.errno == 5
            assert caught.value.__cause__ is caught.value.__context__ is None
        assert "on fire" in str(db.stats().background_error)
        assert "on fire" in str(db.stats())
        assert dict(db) == {b"a": b"1", b"b": b"2"}
        db.wait_until_idle()
    assert "writing has stopped" in caplog.text
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == {b"a": b"1", b"b": b"2"}
        assert db.stats().background_error is None


@patient
def test_an_interrupted_close_keeps_the_lock_until_all_has_ended(tmp_path: Path) -> None:
    """Else somebody opens the database beside a thread that still writes its tables."""
    path, storage, gate = tmp_path / "db", Hooked(), Gate("sync", ".ldb")
    db = lsm.DB(path, create_if_missing=True, storage=storage)
    db.put(b"key", b"value")
    storage.hooks.append(gate)
    db._store.writer.switch()
    gate.wait()
    tickets, ticket = itertools.count(), db._store.changed.ticket

    def interrupted() -> Any:
        if next(tickets) == 0:
            raise KeyboardInterrupt
        return ticket()

    db._store.changed.ticket = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        db.close()
    assert db.closed
    with pytest.raises(LockedError):
        lsm.DB(path)
    gate.open()
    db.close()
    with lsm.DB(path) as again:
        assert dict(again) == {b"key": b"value"}


# -- Who writes for whom -------------------------------------------------------------------


@patient
def test_one_record_takes_along_who_waits_but_none_that_wants_a_sync(tmp_path: Path) -> None:
    storage, gate = Hooked(), Gate("append", ".log")
    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage) as db:
        storage.hooks.append(gate)
        queue = db._store.writer._queue
        with Crew() as crew:
            crew.start(db.put, b"first", b"")
            gate.wait()
            waiting: list[Any] = []
            for name in (b"a", b"b", b"c"):
                waiting.append(crew.start(db.put, name, name))
                until(lambda: len(queue) == 1 + len(waiting))
            waiting.append(
                crew.start(functools.partial(db.put, b"b", b"synced", sync=True), name="s")
            )
            until(lambda: len(queue) == 1 + len(waiting))
            waiting.append(crew.start(db.delete, b"a"))
            until(lambda: len(queue) == 1 + len(waiting))
            storage.operations.clear()
            gate.open()
        done = [each for each in storage.operations if each[2].endswith(".log")]
        # The first one's own record was begun; then a, b and c; then the synced one and the last.
        assert [operation for _, operation, _ in done] == ["append", "append", "sync"]
        assert dict(db) == {b"first": b"", b"b": b"synced", b"c": b"c"}


@patient
def test_a_failed_record_fails_all_that_it_took_along(tmp_path: Path) -> None:
    storage, gate = Hooked(), Gate("append", ".log")
    failing = threading.Event()

    def fail(operation: str, path: str) -> None:
        if failing.is_set() and operation == "append" and path.endswith(".log"):
            raise IOError(28, "no room", path)

    def write(key: bytes) -> None:
        with pytest.raises(lsm.Error, match="no room"):
            db.put(key, b"")

    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage) as db:
        storage.hooks += [gate, fail]
        queue = db._store.writer._queue
        with Crew() as crew:
            crew.start(write, b"first")
            gate.wait()
            waiting: list[Any] = []
            for name in (b"a", b"b", b"c"):
                waiting.append(crew.start(write, name))
                until(lambda: len(queue) == 1 + len(waiting))
            failing.set()
            gate.open()
        failing.clear()
        assert dict(db) == {}
        db.put(b"later", b"1")
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == {b"later": b"1"}


# -- Other processes -----------------------------------------------------------------------

HOLD = """
import lsm, sys
db = lsm.DB(sys.argv[1], create_if_missing=True)
db.put(b"key", b"value")
print("open", flush=True)
sys.stdin.read()
"""
TRY = """
import lsm, sys
for read_only in (False, True):
    try:
        lsm.DB(sys.argv[1], read_only=read_only).close()
        print("opened")
    except lsm.Error as error:
        print(type(error).__name__, error)
"""


def test_a_second_process_waits_for_the_end_of_the_first(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    with first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == b"open\n"
            for options in ({}, {"read_only": True}, {"create_if_missing": True}):
                with pytest.raises(LockedError, match=f"another process.*{first.pid}.*LOCK"):
                    lsm.DB(path, **options)
        finally:
            first.kill()
    with lsm.DB(path) as db:
        assert list(db) == [(b"key", b"value")]
        tried = fresh(TRY, path).stdout.splitlines()
        assert len(tried) == 2
        assert all(line.startswith("LockedError") and "LOCK" in line for line in tried)
    assert fresh(TRY, path).stdout.split() == ["opened", "opened"]


FORK = """
import os, subprocess, sys, traceback
import lsm
path, other, attempt = sys.argv[1:]
db = lsm.DB(path, create_if_missing=True, write_buffer_size=500)
for number in range(200):
    db.put(b"%03d" % number, b"." * 50)
iterator, raw, snapshot, batch = db.iterator(), db.raw_iterator(), db.snapshot(), db.write_batch()
part = db.prefixed_db(b"0")
next(iterator)
batch.put(b"a", b"b")
child = os.fork()
if child == 0:
    calls = {
        "get": lambda: db.get(b"000"),
        "get_many": lambda: db.get_many([b"000"]),
        "put": lambda: db.put(b"x", b""),
        "delete": lambda: db.delete(b"x"),
        "batch": batch.write,
        "new batch": db.write_batch,
        "iterator": db.iterator,
        "raw_iterator": db.raw_iterator,
        "iter": lambda: iter(db),
        "next": lambda: next(iterator) and list(iterator),
        "seek": lambda: iterator.seek(b"0"),
        "raw": raw.seek_to_first,
        "snapshot": db.snapshot,
        "snapshot.get": lambda: snapshot.get(b"000"),
        "part.get": lambda: part.get(b"00"),
        "part.put": lambda: part.put(b"00", b""),
        "flush": db.flush,
        "compact_range": db.compact_range,
        "wait_until_idle": db.wait_until_idle,
        "stats": db.stats,
        "explain": lambda: db.explain(b"000"),
        "might_contain": lambda: db.might_contain(b"000"),
        "filters": db.filters,
        "get_property": lambda: db.get_property(b"leveldb.stats"),
        "approximate_size": lambda: db.approximate_size(b"0", b"1"),
    }
    for name, call in calls.items():
        try:
            call()
            print("child:", name, "went on")
        except RuntimeError as error:
            said = str(error)
            if "fork" in said and "anew in the child" in said:
                continue
            if name in ("next", "seek", "raw", "snapshot.get") and "closed" in said:
                continue
            print("child:", name, "said", said)
    for each in (iterator, raw, snapshot, db):
        each.close()
    try:
        lsm.DB(path)
        print("child: opened its parent's database")
    except lsm.LockedError as error:
        if "another process" not in str(error):
            print("child:", error)
    with lsm.DB(other, create_if_missing=True, write_buffer_size=100) as mine:
        for number in range(50):
            mine.put(b"%d" % number, b"." * 50)
        mine.compact_range()
        if len(list(mine)) != 50:
            print("child: lost something")
    print("child: done")
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("status", status)
third = subprocess.run([sys.executable, "-c", attempt, path], capture_output=True, text=True)
print("third:", *(line.split()[0] for line in third.stdout.splitlines()))
for number in range(200, 400):
    db.put(b"%03d" % number, b"." * 50)
next(iterator)
batch.write()
db.compact_range()
print("parent:", len(list(db)), len(list(snapshot)))
db.close()
with lsm.DB(path) as db:
    print("parent:", len(list(db)))
"""


def test_a_forked_child_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    ran = fresh(FORK, str(tmp_path / "db"), str(tmp_path / "other"), TRY)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "child: done",
        "status 0",
        "third: LockedError LockedError",
        "parent: 401 200",
        "parent: 401",
    ]
