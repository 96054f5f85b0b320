"""Bulk loads: the right answers, all of it or nothing, and nobody else writing meanwhile."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import lsm
import policies
from lsm import bulk
from lsm.bulk import BulkProgress, BulkReport, load
from lsm.options import LEVELS
from tests.effort import by_effort
from tests.lsm.crew import Crew, Gate, Hooked, is_in, until
from tests.lsm.history import PATH, check_it_goes_on
from tests.lsm.odd_policies import SetPolicy, unregister
from tests.lsm.patience import patient
from tests.lsm.peak_memory import at_most
from tests.lsm.simulated import MUTATIONS, SimulatedStorage
from tests.lsm.test_model import BYTEWISE, REVERSED, Order

Contents = dict[bytes, bytes]
Pair = tuple[bytes, bytes]

TINY: dict[str, Any] = {
    "write_buffer_size": 3000,
    "max_file_size": 1024,
    "block_size": 256,
    "level0_compact_files": 2,
    "level_size_base": 4096,
    "level_size_ratio": 2,
}
STILL = {
    **TINY,
    "level_size_base": 1 << 40,
    "level0_compact_files": 100,
    "level0_slow_files": 100,
    "level0_stop_files": 100,
}
"""Of which no level is ever full."""

# The second one runs on the readable kernel, as all comparators but LevelDB's do.
ORDERS = pytest.mark.parametrize("order", [BYTEWISE, REVERSED], ids=["bytewise", "reversed"])


def opened(path: Any = PATH, order: Order = BYTEWISE, **options: Any) -> lsm.DB:
    return lsm.DB(path, create_if_missing=True, **{**TINY, **order.arguments, **options})


def numbered(count: int, start: int = 0, step: int = 1, value: bytes = b"value") -> list[Pair]:
    return [(b"%05d" % number, value) for number in range(start, start + count * step, step)]


def drawn(rng: random.Random, order: Order, most: int = 200) -> list[Pair]:
    """Some pairs in the order of the database."""
    low = rng.randrange(300)
    keys = {b"%03d" % rng.randrange(low, 400) for _ in range(rng.randint(1, most))}
    return [(key, rng.randbytes(rng.randrange(80))) for key in sorted(keys, key=order.place)]


def check(db: Any, expected: Contents, order: Order = BYTEWISE) -> None:
    """See that every way of reading finds just this."""
    items = sorted(expected.items(), key=lambda item: order.place(item[0]))
    assert list(db) == items
    assert list(db.iterator(reverse=True)) == items[::-1]
    keys = [b"%03d" % number for number in range(0, 420, 7)]
    assert db.get_many(keys) == [expected.get(key) for key in keys]
    assert all(db.get(key) == value for key, value in items[::9])


def tables(db: lsm.DB) -> list[int]:
    return [level.tables for level in db.stats().levels]


def files(storage: Any, path: str = PATH) -> list[str]:
    return [name for name in storage.list(path) if name.endswith(".ldb")]


def deepest(db: lsm.DB, key: bytes) -> int:
    """The deepest level to which keys from this one on may go, found by looking at all tables."""
    wrap = db._store.comparator.wrap or bytes
    levels = db._store.opened_view().version.levels
    taken = [
        level
        for level, placed in enumerate(levels)
        if any(not table.high < wrap(key) for table in placed)
    ]
    return max(0, taken[0] - 1) if taken else LEVELS - 1


# -- What is there then ----------------------------------------------------------------------------


@ORDERS
@patient
def test_whatever_was_there_before_a_load_is_newer_than_that(
    order: Order, rng: random.Random
) -> None:
    """Beside a dict: writes, deletions, compactions and loads, at levels of all kinds."""
    for _ in range(by_effort(6, 40, 1000)):
        storage, held = SimulatedStorage(), {}
        db = opened(storage=storage, order=order, max_background_jobs=rng.choice((0, 1, 4)))
        kept: list[tuple[Any, Contents]] = []
        for _ in range(rng.randint(2, 12)):
            what = rng.randrange(8)
            if what < 4:
                pairs, level = drawn(rng, order), rng.choice([None, None, *range(LEVELS)])
                kept.append((db.snapshot(), dict(held)))
                try:
                    load(db, iter(pairs), level=level)
                except ValueError:  # not so deep
                    assert level is not None
                else:
                    held.update(pairs)
            elif what < 6:
                for _ in range(rng.randrange(60)):
                    key, value = b"%03d" % rng.randrange(400), rng.randbytes(9)
                    if rng.random() < 0.3:
                        db.delete(key)
                        held.pop(key, None)
                    else:
                        db.put(key, value)
                        held[key] = value
            elif what == 6:
                rng.choice((db.flush, db.compact_range, db.wait_until_idle))()
            else:
                kept.clear()
                db.close()
                db = opened(storage=storage, order=order)
            check(db, held, order)
        for snapshot, before in kept:
            check(snapshot, before, order)
        db.compact_range()
        check(db, held, order)
        db.close()
        with opened(storage=storage, order=order) as db:
            check(db, held, order)


@ORDERS
@patient
def test_the_level_is_the_deepest_that_hides_nothing(order: Order, rng: random.Random) -> None:
    levels = set()
    for _ in range(by_effort(10, 60, 1000)):
        with opened(storage=SimulatedStorage(), order=order, **STILL) as db:
            for _ in range(rng.randint(1, 6)):
                pairs = drawn(rng, order, 5)
                db.flush()
                allowed = deepest(db, pairs[0][0])
                if rng.random() < 0.3:
                    db.put(pairs[0][0], b"before")
                    db.flush()
                    allowed = deepest(db, pairs[0][0])
                wanted = rng.randint(0, LEVELS - 1) if rng.random() < 0.4 else None
                before = tables(db)
                if wanted is not None and wanted > allowed:
                    told = f"level {wanted} cannot take .* allowed are 0 to {allowed}$"
                    with pytest.raises(ValueError, match=told):
                        load(db, pairs, level=wanted)
                    assert tables(db) == before
                    continue
                report = load(db, pairs, level=wanted)
                assert report.level == (allowed if wanted is None else wanted)
                before[report.level] += report.tables
                assert tables(db) == before
                levels.add(report.level)
    assert len(levels) > 3


@ORDERS
def test_a_load_says_what_it_has_written(order: Order, rng: random.Random) -> None:
    pairs = [(key, rng.randbytes(100)) for key, _ in numbered(500)]
    pairs.sort(key=lambda pair: order.place(pair[0]))
    told: list[tuple[int, BulkProgress]] = []
    with opened(storage=SimulatedStorage(), order=order, max_file_size=5000) as db:
        report = load(db, pairs, progress=lambda it: told.append((threading.get_ident(), it)))
        (bottom,) = [level for level in db.filters() if level.tables]
        assert (report.entries, report.level, report.tables) == (500, 6, len(bottom.tables))
        assert len(list(db)) == 500
        placed = db._store.opened_view().version.levels[6]
        assert report.bytes == sum(table.size for table in placed)
        assert 10 < report.tables < 20
        assert all(5000 <= table.size < 6500 for table in placed[:-1])
        assert report.seconds > 0
        stats = db.stats()
        assert stats.user_bytes_written == sum(len(key) + len(value) for key, value in pairs)
        assert (stats.log_bytes_written, stats.table_bytes_written) == (0, report.bytes)
    assert {thread for thread, _ in told} == {threading.get_ident()}
    assert told[-1][1].entries == 500


def test_progress_grows_to_what_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_CHUNK_PAIRS", 30)
    monkeypatch.setattr(bulk, "_PIECE_PAIRS", 10)
    told: list[BulkProgress] = []
    with opened(storage=SimulatedStorage(), compression=None) as db:
        report = load(db, numbered(200), progress=told.append)
    assert [each.entries for each in told] == [30, 60, 90, 120, 150, 180, 200]
    for which in ("tables", "bytes"):
        values = [getattr(each, which) for each in told]
        assert values == sorted(values)
        assert getattr(report, which) - values[-1] >= 0
    assert told[-1].tables > 1


def test_nothing_is_loaded_from_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.put(b"a", b"1")
        report = load(db, [], level=3)
        assert attrs.astuple(report)[:4] == (0, 0, 0, None)
        assert tables(db) == [0] * LEVELS  # it was no reason to flush


def test_keys_and_values_are_of_any_bytes_like_type() -> None:
    with opened(storage=SimulatedStorage()) as db:
        load(db, [[b"a", bytearray(b"1")], (memoryview(b"b"), b""), (bytearray(b"c"), b"3")])  # type: ignore[list-item]
        assert list(db) == [(b"a", b"1"), (b"b", b""), (b"c", b"3")]


@ORDERS
def test_a_part_is_loaded_under_its_prefix(order: Order) -> None:
    pairs = sorted(numbered(50), key=lambda pair: order.place(pair[0]))
    with opened(storage=SimulatedStorage(), order=order) as db:
        part = db.prefixed_db(b"a").prefixed_db(b"b")
        assert load(part, pairs).entries == 50
        assert list(db) == [(b"ab" + key, value) for key, value in pairs]
        with pytest.raises(ValueError, match="that of pair 1 is b'k', and the one before it b'k'"):
            load(part, [(b"k", b""), (b"k", b"")])


def test_policies_are_told_that_it_is_a_bulk_load() -> None:
    asked: list[Any] = []

    class Curious(SetPolicy):
        name: ClassVar[str] = "test.curious"

        def new_builder(self, context: policies.BuildContext) -> Any:
            asked.append((context.reason, context.level))
            return super().new_builder(context)

    policies.register(Curious)
    try:
        with opened(storage=SimulatedStorage(), filter_policy=Curious()) as db:
            load(db, numbered(20), level=3)
            load(db, numbered(20), level=1)
            assert db.filters()[3].tables[0].num_keys == 20
    finally:
        unregister(Curious)
    assert set(asked) == {("bulk", 3), ("bulk", 1)}


def test_memory_is_bounded_whatever_comes(rng: random.Random) -> None:
    value = rng.randbytes(1000)
    with lsm.DB(
        PATH,
        create_if_missing=True,
        storage=_Forgetful(),
        max_file_size=1 << 20,
        compression=None,
    ) as db:
        store_pairs = ((b"%08d" % number, value) for number in range(20_000))
        with at_most(9 << 20):
            assert load(db, store_pairs).bytes > 19 << 20


class _Forgetful(SimulatedStorage):
    """Keeps no tables."""

    def create(self, path: str, *, small_appends: bool = False) -> Any:
        file = super().create(path, small_appends=small_appends)
        return _Counted(file) if path.endswith(".ldb") else file


class _Counted:
    """A file of which only the size is there."""

    def __init__(self, file: Any):
        self.path = file.path
        self.size = 0

    def append(self, data: Any) -> None:
        self.size += len(data)

    def flush(self) -> None:
        pass

    sync = close = flush


def test_leveldb_reads_what_was_loaded(tmp_path: Path, rng: random.Random) -> None:
    plyvel = pytest.importorskip("plyvel")
    expected: Contents = {}
    with opened(tmp_path, bloom_filter_bits=10) as db:
        for _ in range(5):
            pairs = drawn(rng, BYTEWISE)
            load(db, pairs)
            expected.update(pairs)
            for number in range(0, 400, 50):
                db.put(b"%03d" % number, b"put")
                expected[b"%03d" % number] = b"put"
    theirs = plyvel.DB(str(tmp_path), bloom_filter_bits=10)
    assert dict(theirs) == expected
    assert all(theirs.get(key) == value for key, value in expected.items())
    theirs.put(b"later", b"theirs")
    theirs.compact_range()
    theirs.close()
    with opened(tmp_path, bloom_filter_bits=10) as db:
        check(db, {**expected, b"later": b"theirs"})


# -- Who is beside it ------------------------------------------------------------------------------


def during(pairs: Iterable[Pair], call: Callable[[], object], at: int = 1) -> Iterator[Pair]:
    """The pairs, with a call before one of them."""
    for number, pair in enumerate(pairs):
        if number == at:
            call()
        yield pair


@pytest.fixture
def chunks_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pairs written ten at a time, so that much happens between them."""
    monkeypatch.setattr(bulk, "_CHUNK_PAIRS", 10)
    monkeypatch.setattr(bulk, "_PIECE_PAIRS", 5)


@patient
def test_readers_see_all_of_it_or_nothing(chunks_of_ten: None) -> None:
    with opened(storage=SimulatedStorage()) as db:
        db.put(b"00050", b"before")
        before, iterator, snapshot = dict(db), db.iterator(), db.snapshot()
        seen: list[Contents] = []
        load(db, during(numbered(100), lambda: seen.append(dict(db)), 95))
        assert seen == [before]
        assert dict(iterator) == dict(snapshot) == before
        assert dict(db) == dict(numbered(100))


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_other_writers_wait_and_are_newer(tmp_path: Path) -> None:
    with opened(tmp_path) as db, Crew() as crew:
        done: list[bytes] = []

        def write(key: bytes) -> None:
            with db.write_batch(sync=True) as batch:
                batch.put(key, b"newer")
            done.append(key)

        def meanwhile() -> None:
            threads = [crew.start(write, key, name=key.decode()) for key in (b"00003", b"00099")]
            until(lambda: all(is_in(each, "_make_room") for each in threads))
            assert done == []
            assert db.get(b"00003") is None

        load(db, during(numbered(100), meanwhile, 55))
        crew.join()
        expected = {**dict(numbered(100)), b"00003": b"newer", b"00099": b"newer"}
        assert dict(db) == expected
        assert db.stats().stopped_seconds > 0
    with opened(tmp_path) as db:
        assert dict(db) == expected


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_writers_go_on_after_a_load_that_failed() -> None:
    with opened(storage=SimulatedStorage()) as db, Crew() as crew:

        def meanwhile() -> None:
            thread = crew.start(db.put, b"a", b"1")
            until(lambda: is_in(thread, "_make_room"))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load(db, during(numbered(100), meanwhile, 55))
        crew.join()
        assert dict(db) == {b"a": b"1"}


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_one_load_waits_for_another() -> None:
    with opened(storage=SimulatedStorage()) as db, Crew() as crew:

        def meanwhile() -> None:
            thread = crew.start(load, db, numbered(50, 80, value=b"second"))
            until(lambda: is_in(thread, "begin_load"))

        load(db, during(numbered(100), meanwhile, 55))
        crew.join()
        assert dict(db) == dict(numbered(80) + numbered(50, 80, value=b"second"))


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_no_compaction_runs_beside_it(tmp_path: Path) -> None:
    gate = Gate("create", ".ldb")
    storage = Hooked()
    with opened(tmp_path, storage=storage, **STILL) as db, Crew() as crew:
        for value in (b"1", b"2"):
            db.put(b"00010", value)
            db.put(b"00090", value)
            db.flush()

        def hold(operation: str, path: str) -> None:
            if threading.current_thread().name == "lsm-compaction":
                gate(operation, path)

        storage.hooks.append(hold)
        crew.start(db.compact_range)
        gate.wait()

        came = threading.Event()

        def meanwhile() -> None:
            came.set()
            before = len(storage.operations)
            asked = crew.start(db.compact_range, name="asked")
            until(lambda: is_in(asked, "compact_level"))
            assert "lsm-compaction" not in {name for name, *_ in storage.operations[before:]}

        loading = crew.start(load, db, during(numbered(100), meanwhile, 55))
        until(lambda: is_in(loading, "wait_until_alone"))
        assert not came.is_set()
        gate.open()
        until(came.is_set)
        crew.join()
        assert dict(db) == dict(numbered(100))


def many(db: lsm.DB) -> list[Callable[[], object]]:
    return [
        lambda: db.put(b"a", b"1"),
        lambda: db.delete(b"a", sync=True),
        lambda: db.write_batch().write(),
        lambda: load(db, [(b"a", b"1")]),
        lambda: load(db.prefixed_db(b"x"), []),
        db.flush,
        db.compact_range,
        db.wait_until_idle,
    ]


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize("number", range(8))
@patient
def test_who_cannot_wait_for_it_is_told(number: int) -> None:
    """In the thread that loads, as a signal handler, or as its input."""
    with opened(storage=SimulatedStorage()) as db:

        def tries() -> None:
            with pytest.raises(lsm.Error, match=r"bulk load keeps|in the middle of another"):
                many(db)[number]()
            assert db.get(b"00020") is None

        load(db, during(numbered(100), tries, 55), progress=lambda _: tries())
        assert dict(db) == dict(numbered(100))
        with pytest.raises(lsm.Error, match=r"bulk load keeps|in the middle of another"):
            load(db, during(numbered(100, value=b"no"), many(db)[number], 55))
        assert dict(db) == dict(numbered(100))
        db.put(b"later", b"1")


# -- What ends it ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize(
    ("pairs", "error", "told"),
    [
        (
            [(b"b", b""), (b"a", b"")],
            ValueError,
            "that of pair 1 is b'a', and the one before it b'b'",
        ),
        ([*numbered(10), (b"00009", b"")], ValueError, "that of pair 10 is b'00009', and the one"),
        ([*numbered(40), *numbered(2)], ValueError, "keys must ascend: that of pair 40 is"),
        ([*numbered(40), ("z", b"")], TypeError, "the key of pair 40 is bytes, not str"),
        ([*numbered(40), (b"z", None)], TypeError, "the value of pair 40 is bytes or another"),
        (
            [(b"a", 1)],
            TypeError,
            "the value of pair 0 is bytes or another bytes-like object, not int",
        ),
        ([*numbered(40), b"abc"], TypeError, "pair 40 is no pair of a key and a value: b'abc'"),
        ([*numbered(40), 7], TypeError, "pair 40 is no pair of a key and a value: 7"),
        (7, TypeError, "'int' object is not iterable"),
    ],
)
def test_input_that_is_wrong_loads_nothing(pairs: Any, error: type[Exception], told: str) -> None:
    storage = SimulatedStorage()
    with opened(storage=storage) as db:
        db.put(b"a", b"1")
        db.flush()
        before = files(storage)
        with pytest.raises(error, match=told):
            load(db, pairs)
        assert dict(db) == {b"a": b"1"}
        assert files(storage) == before
        load(db, numbered(20))
        assert len(list(db)) == 21


@pytest.mark.parametrize(
    ("level", "error"),
    [(-1, ValueError), (7, ValueError), (True, TypeError), (1.0, TypeError), ("1", TypeError)],
)
def test_levels_that_are_none_are_refused(level: Any, error: type[Exception]) -> None:
    with opened(storage=SimulatedStorage()) as db, pytest.raises(error, match="level"):
        load(db, [], level=level)


def test_only_databases_are_loaded_into() -> None:
    with opened(storage=SimulatedStorage()) as db:
        for other in (None, "db", db.snapshot(), db._store):
            with pytest.raises(TypeError, match="db is an lsm.DB or a PrefixedDB, not"):
                load(other, [])  # type: ignore[arg-type]


def test_what_cannot_be_written_is_not_loaded_into() -> None:
    storage = SimulatedStorage()
    with opened(storage=storage) as db:
        part = db.prefixed_db(b"a")
    for each in (db, part):
        with pytest.raises(RuntimeError, match="Database is closed"):
            load(each, numbered(3))
    with (
        lsm.DB(PATH, storage=storage, read_only=True) as db,
        pytest.raises(lsm.ReadOnlyError, match="read_only=True"),
    ):
        load(db, numbered(3))


def test_what_progress_raises_ends_the_load(chunks_of_ten: None) -> None:
    storage = SimulatedStorage()

    def stop(progress: BulkProgress) -> None:
        if progress.tables == 2:
            raise StopAsyncIteration("enough")

    with opened(storage=storage) as db:
        with pytest.raises(StopAsyncIteration, match="enough"):
            load(db, numbered(300), progress=stop)
        assert (dict(db), files(storage)) == ({}, [])


def test_what_the_input_raises_says_nothing_of_this_database(chunks_of_ten: None) -> None:
    def stumble() -> None:
        raise lsm.SyncError("of another database")

    storage = SimulatedStorage()
    with opened(storage=storage) as db:
        with pytest.raises(lsm.SyncError, match="of another database"):
            load(db, during(numbered(300), stumble, 255))
        assert (dict(db), files(storage)) == ({}, [])
        db.put(b"a", b"1")
        assert db.stats().background_error is None


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize("here", [True, False])
@patient
def test_closing_ends_it_and_removes_what_it_wrote(here: bool, tmp_path: Path) -> None:
    """By its own input, as a signal handler may close, and by another thread."""
    with opened(tmp_path) as db:
        db.put(b"a", b"1")

    def close() -> None:
        if here:
            db.close()
        else:
            with Crew() as crew:
                crew.start(db.close)

    db = opened(tmp_path)
    before = {path.name for path in tmp_path.glob("*.ldb")}
    with pytest.raises(RuntimeError, match="Database is closed"):
        load(db, during(numbered(300), close, 255))
    db.close()
    assert {path.name for path in tmp_path.glob("*.ldb")} == before
    with opened(tmp_path) as db:
        assert dict(db) == {b"a": b"1"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.usefixtures("chunks_of_ten")
def test_a_child_that_is_forked_meanwhile_harms_nothing(tmp_path: Path) -> None:
    from tests.lsm.forking import Child

    children: list[Child] = []
    with opened(tmp_path, max_file_size=1 << 20) as db:
        try:
            load(db, during(numbered(300), lambda: children.append(Child.fork()), 255))
        except RuntimeError as error:
            told = str(error)
            children[0].end(lambda: check_refused(told))
        children[0].check()
        assert dict(db) == dict(numbered(300))
    with opened(tmp_path) as db:
        assert dict(db) == dict(numbered(300))


def check_refused(told: str) -> None:
    assert "opened before a fork" in told


# -- What fails ------------------------------------------------------------------------------------

BEFORE = dict(numbered(30, 0, 3, b"before"))
LOADED = numbered(60, 20, 1, b"loaded")
AFTER = {**BEFORE, **dict(LOADED)}
LATER = numbered(5, 500, value=b"later")


def begun(storage: SimulatedStorage) -> lsm.DB:
    """A database with something on several levels, and in memory, and nothing else to do."""
    db = opened(storage=storage, **STILL)
    for key, value in BEFORE.items():
        db.put(key, value, sync=True)
        if key == b"00045":
            db.compact_range()
    return db


@pytest.mark.usefixtures("chunks_of_ten")
@pytest.mark.parametrize("partial", [False, True])
@patient
def test_a_failure_at_any_point_leaves_nothing_or_all_of_it(
    partial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What pytest keeps of a warning holds on to the tables that were in use.
    monkeypatch.setattr(logging.getLogger("lsm"), "disabled", True)
    failing, failed = 0, 0
    while True:
        storage = SimulatedStorage()
        db = begun(storage)
        db.wait_until_idle()
        first = len(storage.operations)
        storage.fail(lambda _o, _p, index, at=first + failing: index == at, partial=partial)  # type: ignore[misc]
        error: type[Exception] | None = None
        try:
            load(db, LOADED)
        except lsm.Error as raised:
            error = type(raised)  # and not its frames, which hold on to tables
        was_reached = len(storage.operations) > first + failing
        storage.mend()
        expected = BEFORE if error is not None else AFTER
        assert dict(db) == expected, (failing, error)
        failed += error is not None
        lost, killed = storage.crash(), storage.kill()
        possible = [BEFORE, AFTER] if error is not None else [AFTER]
        for after in (lost, killed):
            with opened(storage=after) as again:
                assert dict(again) in possible, (failing, error)
        if "SyncError" not in (db.stats().background_error or ""):
            load(db, LATER)
            db.put(b"00001", b"later")
            db.compact_range()
            db.wait_until_idle()
            assert len(files(storage)) == sum(tables(db))
            possible = [{**expected, **dict(LATER), b"00001": b"later"}]
            assert dict(db) in possible
        db.close()
        with opened(storage=storage) as again:
            assert dict(again) in possible
        if not was_reached:
            break
        failing += by_effort(3, 1, 1)
    assert failed > by_effort(5, 15, 15)


@pytest.mark.usefixtures("chunks_of_ten", "no_collector")
def test_a_load_that_could_not_be_installed_holds_on_to_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("lsm"), "disabled", True)
    storage = SimulatedStorage()
    with begun(storage) as db:
        db.flush()
        storage.fail(lambda operation, path, _i: operation == "append" and "MANIFEST" in path)
        with pytest.raises(lsm.IOError):
            load(db, LOADED)
        storage.mend()
        db.compact_range(force=True)
        db.wait_until_idle()
        assert len(files(storage)) == sum(tables(db))


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_a_loss_of_power_at_any_point_leaves_nothing_or_all_of_it(
    rng: random.Random, tmp_path: Path
) -> None:
    storage = SimulatedStorage()
    db = begun(storage)
    db.flush()
    lost: list[SimulatedStorage] = []

    def note(operation: str, _path: str, _index: int) -> bool:
        if operation in MUTATIONS:
            lost.extend((storage.crash(), storage.crash(rng), storage.kill()))
        return False

    storage.fail(note)
    load(db, LOADED)
    storage.mend()
    found = []
    for after in lost[:: by_effort(2, 1, 1)]:
        with opened(storage=after) as again:
            found.append(dict(again))
        assert found[-1] in (BEFORE, AFTER)
        check_it_goes_on(after, None, found[-1])
    assert BEFORE in found
    for after in (storage.crash(), storage.crash(rng), storage.kill()):
        with opened(storage=after) as again:
            assert dict(again) == AFTER
    db.close()


@pytest.mark.usefixtures("chunks_of_ten")
@patient
def test_a_load_that_the_power_cuts_ends_with_an_error() -> None:
    for mutations in range(0, 1000, by_effort(5, 1, 1)):
        storage = SimulatedStorage()
        db = begun(storage)
        storage.stop_after(mutations)
        with contextlib.suppress(lsm.Error):
            load(db, LOADED)
        with contextlib.suppress(lsm.Error):
            db.close()
        with opened(storage=storage.kill()) as again:
            assert dict(again) in (BEFORE, AFTER)
        if not storage.stopped:
            break
    assert mutations > 20


def test_a_sequence_number_that_may_be_in_use_is_not_given_again() -> None:
    """The manifest may have a load that failed: what is put after that is newer all the same."""
    storage = SimulatedStorage()
    with opened(storage=storage) as db:
        storage.fail(lambda operation, path, _: operation == "sync" and "MANIFEST" in path)
        with pytest.raises(lsm.SyncError):
            load(db, LOADED)
        assert dict(db) == {}
        assert db._store.last_visible == len(LOADED)
    with opened(storage=storage.kill()) as db:
        assert dict(db) in ({}, dict(LOADED))


def test_reports_are_frozen() -> None:
    for each in (BulkReport(1, 1, 1, 1, 1.0), BulkProgress(1, 1, 1)):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            each.entries = 2  # type: ignore[misc]
