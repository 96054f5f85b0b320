"""Files that fail: what is reported, what goes on, and what is found again afterwards."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import random
import re
import shutil
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm.storage import FileSystem
from tests.effort import by_effort
from tests.lsm.history import (
    PATH,
    Contents,
    History,
    Steps,
    check_it_goes_on,
    contents,
    random_batch,
    random_steps,
    refilter,
    reopened,
)
from tests.lsm.patience import patient
from tests.lsm.simulated import SimulatedStorage, Tails, When

PATIENCE = 30.0
WRITES = 14

pytestmark = pytest.mark.usefixtures("kept_heat")

LOG, TABLE, MANIFEST = r"\.log", r"\.ldb", "MANIFEST"


@pytest.fixture
def storage() -> Hooked:
    return Hooked()


class Hooked(SimulatedStorage):
    """Calls hooks before and after each operation, which may wait or raise anything."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str, str], None] = lambda operation, path: None
        self.after: Callable[[str, str], None] = lambda operation, path: None

    @contextlib.contextmanager
    def operation(self, operation: str, path: str) -> Iterator[Any]:
        self.before(operation, path)
        with super().operation(operation, path) as fault:
            yield fault
        self.after(operation, path)


def of(wanted: str, name: str) -> When:
    """True for this operation on files whose path matches."""
    return lambda operation, path, _: operation == wanted and bool(re.search(name, path))


def first(wanted: str, name: str) -> When:
    """True for the first such operation only."""
    fits, seen = of(wanted, name), []

    def when(operation: str, path: str, index: int) -> bool:
        if fits(operation, path, index):
            seen.append(index)
        return seen == [index]

    return when


def at(index: int) -> When:
    """True for the operation of this index."""
    return lambda _operation, _path, now: now == index


def since(index: int) -> When:
    """True for every operation from this index on."""
    return lambda _operation, _path, now: now >= index


def empty_in(storage: SimulatedStorage, **options: Any) -> lsm.DB:
    """A new database with the sizes that are usual."""
    return lsm.DB(PATH, create_if_missing=True, storage=storage, **options)


def found(storage: SimulatedStorage, config: Path | None = None) -> Contents:
    """All that is found when the database is opened."""
    with reopened(storage, config) as db:
        return contents(db)


def check_stopped(db: lsm.DB, cause: str) -> None:
    """See that all writing is refused for this reason, and goes on being refused."""
    assert cause in (db.stats().background_error or "")
    calls: list[Callable[[], Any]] = [
        lambda: db.put(b"refused", b""),
        lambda: db.put(b"refused", b"", sync=True),
        lambda: db.delete(b"a"),
        db.flush,
        db.compact_range,
    ]
    for call in calls:
        with pytest.raises(lsm.ReadOnlyError, match=re.escape(cause)):
            call()
    db.wait_until_idle()
    assert db.get(b"refused") is None


def check_it_waits(db: lsm.DB, cause: str) -> None:
    """See that a failure which may pass is told, and that writes go on as long as there is room."""
    found = db.stats().background_error
    assert cause in (found or "")
    assert re.match("[A-Za-z]+Error: ", found or ""), "the type of the error is part of its cause"
    db.put(b"meanwhile", b"1")
    assert db.get(b"meanwhile") == b"1"
    db.delete(b"meanwhile")
    db.wait_until_idle()


# Each operation of a run fails once


def run(
    storage: SimulatedStorage, config: Path, steps: Steps, history: History, looked: list[range]
) -> list[str]:
    """Do all steps, whatever fails; what raises or stops writing is returned.

    Operations while filters were ``looked`` at may fail: what cannot be read is written anew.

    A database that has stopped writing is read, closed and opened again.
    """
    errors: list[str] = []

    def attempt(call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except lsm.Error as error:
            errors.append(repr(error))
            return None

    db: Any = None
    for step in [None, *steps]:
        before = len(errors)
        if step is not None:
            start = len(storage.operations)
            attempt(step, db, history)
            if step is refilter:
                looked.append(range(start, len(storage.operations)))
            if len(errors) == before or db.stats().background_error is None:
                continue
        if db is not None:
            db.wait_until_idle()
            attempt(contents, db)
            history.check(contents(db), history.written)
            errors += filter(None, [db.stats().background_error])
            attempt(db.close)
        db = attempt(reopened, storage, config) or reopened(storage, config)
    attempt(db.close)
    return errors


def is_harmless(operation: str, path: str) -> bool:
    """Whether a database does well without this."""
    if operation == "remove":
        return True
    if operation == "list":  # to find what can be removed
        return True
    if operation == "map" and not path.endswith(".ldb"):  # to find whose directory it is
        return True
    if "lsm-heat" in path:
        return True
    return operation in ("exists", "read") and path.endswith("lsm-seed")


def every_operation(config: Path, steps: Steps) -> list[tuple[str, str]]:
    """What a run does when nothing fails."""
    storage, history = SimulatedStorage(), History()
    assert run(storage, config, steps, history, []) == []
    assert history.written == WRITES
    kinds = {operation for operation, path in storage.operations}
    assert kinds >= {"create", "append", "sync", "rename", "remove", "list", "map", "read"}
    return storage.operations


@pytest.mark.parametrize(("error", "partial"), [(errno.EIO, False), (errno.ENOSPC, True)])
@patient
def test_whatever_fails_once_is_reported_or_harmless_and_nothing_is_lost(
    config: Path,
    rng: random.Random,
    error: int,
    partial: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    steps = random_steps(rng, WRITES)
    operations = every_operation(config, steps)
    every = by_effort(5, 1, 1)
    for failing, (operation, path) in list(enumerate(operations))[rng.randrange(every) :: every]:
        if partial and operation != "append":
            continue
        storage, history = SimulatedStorage(), History()
        storage.fail(at(failing), error, partial=partial)
        caplog.clear()
        looked: list[range] = []
        errors = run(storage, config, steps, history, looked)
        # What fails in the background and may pass is logged, and tried again.
        errors += [each.message for each in caplog.records if each.levelno >= logging.ERROR]
        # The threads in the background may have done something else at this place.
        if failing < len(storage.operations):
            operation, path = storage.operations[failing]
            is_look = operation in ("exists", "map") and any(failing in each for each in looked)
            is_of_heat = "lsm-heat" in "".join(storage.operations[failing - 1])  # its name's sync
            assert errors or is_look or is_of_heat or is_harmless(operation, path), (
                *storage.operations[failing - 1],
                operation,
                path,
            )
        history.check(found(storage.crash(), config), history.durable)
        survivors = found(storage.kill(), config)
        history.check(survivors, history.written)
        if failing % by_effort(9, 9, 1) == 0:
            storage.mend()  # where fewer operations were done than in the first run
            check_it_goes_on(storage, config, survivors)


@patient
def test_a_device_that_fails_for_good_ends_writing_and_nothing_is_lost(
    config: Path, rng: random.Random
) -> None:
    steps = random_steps(rng, WRITES)
    for failing in range(0, len(every_operation(config, steps)), by_effort(23, 7, 1)):
        storage, history = SimulatedStorage(), History()
        storage.fail(since(failing))
        with contextlib.suppress(lsm.Error):
            db = reopened(storage, config)
            with contextlib.closing(db):
                with contextlib.suppress(lsm.Error):
                    for step in filter(None, steps):
                        step(db, history)
                with contextlib.suppress(lsm.IOError):  # of tables that were not open yet
                    history.check(contents(db), history.written)
        storage.mend()
        history.check(found(storage.crash(), config), history.durable)
        survivors = found(storage, config)
        history.check(survivors, history.written)
        check_it_goes_on(storage, config, survivors)


@pytest.mark.parametrize("tails", ["clean", "zero", "garbage"])
@patient
def test_a_loss_of_power_within_a_sync_costs_nothing_that_was_synced_before(
    config: Path, rng: random.Random, tails: Tails
) -> None:
    """What a torn sync leaves of a manifest may be refused if it is garbage, and is never taken."""
    steps = random_steps(rng, WRITES)
    operations = every_operation(config, steps)
    syncs = [at for at, (name, _) in enumerate(operations) if name == "sync"]
    for failing in syncs[:: by_effort(4, 1, 1)]:
        storage, history = SimulatedStorage(), History()
        storage.fail(at(failing))
        with contextlib.suppress(lsm.Error), reopened(storage, config) as db:
            for step in filter(None, steps):
                step(db, history)
        after = storage.crash(rng, tails=tails)
        if tails == "garbage" and is_refused(after, config):
            continue
        history.check(found(after, config), history.durable)


def is_refused(storage: SimulatedStorage, config: Path) -> bool:
    """Whether opening finds that the manifest is damaged."""
    try:
        reopened(storage.crash(), config).close()
    except lsm.CorruptionError as error:
        return bool(re.search("MANIFEST.*repair_db", str(error)))
    return False


# The log


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("size", [10, 100_000])
@patient
def test_a_full_device_fails_the_write_and_no_other(
    storage: Hooked, partial: bool, size: int
) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        storage.fail(of("append", LOG), errno.ENOSPC, partial=partial)
        for sync in (False, True):
            with pytest.raises(lsm.IOError) as caught:
                db.put(b"b", bytes(size), sync=sync)
            assert caught.value.errno == errno.ENOSPC
        assert contents(db) == {b"a": b"1"}
        storage.mend()
        assert db.stats().background_error is None
        db.put(b"c", b"2")
        db.put(b"d", b"3", sync=True)
        expected = {b"a": b"1", b"c": b"2", b"d": b"3"}
        assert contents(db) == expected
        for after in (storage.kill(), storage.crash()):
            assert found(after) == expected
            assert after.count("remove") > 0
            with lsm.DB(PATH, storage=after, paranoid_checks=True) as again:
                assert not again.stats().log_losses


@pytest.mark.parametrize("partial", [False, True])
@patient
def test_what_a_failed_write_has_left_of_its_record_hides_no_later_one(
    storage: Hooked, partial: bool
) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        storage.fail(of("append", LOG), partial=partial)
        storage.fail(of("truncate", LOG))
        for _ in range(2):
            with pytest.raises(lsm.IOError, match="append"):
                db.put(b"b", bytes(100))
        storage.mend()
        assert db.stats().background_error is None
        db.put(b"c", b"3")
        db.put(b"d", b"4", sync=True)
        expected = {b"a": b"1", b"c": b"3", b"d": b"4"}
        assert contents(db) == expected
        for after in (storage.kill(), storage.crash()):
            with lsm.DB(PATH, storage=after, paranoid_checks=True) as again:
                assert contents(again) == expected


@patient
def test_the_sequence_numbers_of_a_failed_write_are_not_given_out_again(storage: Hooked) -> None:
    """Its record may be in the log all the same, as a whole, before that of a later write."""
    with empty_in(storage) as db:
        failing = [True]

        def after(operation: str, path: str) -> None:
            if operation == "append" and path.endswith(".log") and failing:
                failing.clear()
                raise lsm.IOError(errno.EIO, "cannot append, and has", path)

        storage.after = after
        storage.fail(of("truncate", LOG))
        with pytest.raises(lsm.IOError, match="cannot append, and has"):
            db.put(b"a", b"failed")
        db.put(b"a", b"written")
        assert db.get(b"a") == b"written"
        assert found(storage.kill()) == {b"a": b"written"}


@patient
def test_after_a_failed_sync_of_the_log_there_is_no_other(storage: Hooked) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1", sync=True)
        db.put(b"b", b"2")
        storage.fail(first("sync", LOG))
        with pytest.raises(lsm.IOError, match="sync"):
            db.put(b"c", b"3", sync=True)
        (log,) = {path for operation, path in storage.operations if path.endswith(".log")}
        syncs = storage.operations.count(("sync", log))
        check_stopped(db, "cannot sync")
        check_stopped(db, log)
        assert contents(db) == {b"a": b"1", b"b": b"2"}
        assert [key for key, _ in db.snapshot()] == [b"a", b"b"]
    assert storage.operations.count(("sync", log)) == syncs
    assert ("append", log) not in storage.operations[storage.operations.index(("truncate", log)) :]
    assert found(storage.crash()) == {b"a": b"1"}
    assert found(storage) == {b"a": b"1", b"b": b"2"}


@patient
def test_after_a_failed_sync_of_a_full_log_there_is_no_other(storage: Hooked) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        storage.fail(first("sync", LOG))
        with pytest.raises(lsm.IOError, match="sync"):
            db.flush()
        check_stopped(db, "cannot sync")
        assert contents(db) == {b"a": b"1"}
    assert sum(each == "sync" and path.endswith(".log") for each, path in storage.operations) == 1
    assert found(storage) == {b"a": b"1"}


@patient
def test_an_empty_batch_that_is_synced_reports_a_failed_sync_too(storage: Hooked) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        storage.fail(first("sync", LOG))
        with pytest.raises(lsm.IOError, match="sync"), db.write_batch(sync=True):
            pass
        check_stopped(db, "cannot sync")


# Tables and manifests


FLUSH = [
    ("create", LOG),
    ("create", TABLE),
    ("append", TABLE),
    ("sync", TABLE),
    ("close", TABLE),
    ("sync_directory", PATH),
    ("append", MANIFEST),
    ("sync", MANIFEST),
]


@pytest.mark.parametrize(("operation", "name"), FLUSH)
@patient
def test_a_failed_flush_loses_nothing_and_is_tried_again_unless_a_sync_failed(
    storage: Hooked, operation: str, name: str
) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        db.flush()
        db.put(b"a", b"2")
        db.put(b"b", b"2", sync=True)
        storage.fail(first(operation, name), partial=True)
        with pytest.raises(lsm.Error):
            db.flush()
        cause = f"cannot {operation.replace('_', ' ')}"
        if operation.startswith("sync"):
            check_stopped(db, cause)
        elif name is not LOG:
            check_it_waits(db, cause)
        assert contents(db) == {b"a": b"2", b"b": b"2"}
        for after in (storage.crash(), storage.kill()):
            assert found(after) == {b"a": b"2", b"b": b"2"}
        if not operation.startswith("sync"):
            db.resume()
            db.flush()
            assert db.stats().background_error is None
            assert contents(db) == found(storage.crash()) == {b"a": b"2", b"b": b"2"}
    storage.mend()
    check_it_goes_on(storage, None, found(storage))


@pytest.mark.parametrize(("operation", "name"), [*FLUSH[1:], ("map", TABLE), ("exists", TABLE)])
@patient
def test_a_failed_compaction_loses_nothing_and_is_tried_again_unless_a_sync_failed(
    storage: Hooked, operation: str, name: str
) -> None:
    with empty_in(storage) as db:
        for value in (b"1", b"2"):
            db.put(b"a", value)
            db.put(b"b", value)
            db.flush()
        storage.fail(first(operation, name), partial=True)
        with pytest.raises(lsm.Error):
            db.compact_range()
        cause = f"cannot {operation.replace('_', ' ')}"
        if operation.startswith("sync"):
            check_stopped(db, cause)
        else:
            check_it_waits(db, cause)
        db.wait_until_idle()
        assert contents(db) == {b"a": b"2", b"b": b"2"}
        for after in (storage.crash(), storage.kill()):
            assert found(after) == {b"a": b"2", b"b": b"2"}
        if not operation.startswith("sync"):
            db.resume()
            db.compact_range()
            assert db.stats().background_error is None
            assert contents(db) == found(storage.crash()) == {b"a": b"2", b"b": b"2"}
    storage.mend()
    check_it_goes_on(storage, None, found(storage))


@patient
def test_a_failure_in_the_background_is_what_the_next_write_reports(
    storage: Hooked, config: Path
) -> None:
    with reopened(storage, config) as db:
        storage.fail(of("sync", TABLE))
        written: Contents = {}

        def put_until_it_fails() -> None:
            for number in range(1000):
                db.put(b"%d" % number, b"value")
                written[b"%d" % number] = b"value"

        with pytest.raises(lsm.ReadOnlyError, match="cannot sync.*ldb.*open it again"):
            put_until_it_fails()
        assert contents(db) == written
    storage.mend()
    assert found(storage, config) == written


@patient
def test_after_a_failed_append_a_new_manifest_is_begun(storage: Hooked) -> None:
    """Behind a torn record of one thread, that of another would not be found."""
    table_is_written, compaction_waits = threading.Event(), threading.Event()

    def before(operation: str, path: str) -> None:
        if thread() == "lsm-compaction" and operation == "append" and MANIFEST in path:
            compaction_waits.set()
            assert table_is_written.wait(PATIENCE)

    def after(operation: str, path: str) -> None:
        if thread() == "lsm-flush" and operation == "close" and compaction_waits.is_set():
            table_is_written.set()

    def compact() -> None:
        with pytest.raises(lsm.IOError, match="cannot append"):
            db.compact_range()

    with empty_in(storage) as db:
        for value in (b"1", b"2"):
            db.put(b"a", value)
            db.put(b"b", value)
            db.flush()
        manifest = storage.read(f"{PATH}/CURRENT")
        storage.before, storage.after = before, after
        torn = of("append", MANIFEST)
        storage.fail(lambda *what: thread() == "lsm-compaction" and torn(*what), partial=True)
        compacting = threading.Thread(target=compact, daemon=True)
        compacting.start()
        assert compaction_waits.wait(PATIENCE)
        db.put(b"a", b"3", sync=True)
        with contextlib.suppress(lsm.IOError):  # as that of the other thread
            db.flush()
        compacting.join()
        storage.mend()
        db.resume()
        db.flush()
        assert storage.operations.count(("append", f"{PATH}/{manifest.decode().strip()}")) > 0
        assert storage.read(f"{PATH}/CURRENT") != manifest
    for after_all in (storage.crash(), storage.kill()):
        assert found(after_all) == {b"a": b"3", b"b": b"2"}


@patient
def test_what_a_failure_kept_from_being_removed_is_removed_after_a_retry(storage: Hooked) -> None:
    """The retry finds nothing else to do, and waits for no one."""

    def before(operation: str, path: str) -> None:
        if operation == "list" and thread() == "lsm-flush":
            raise MemoryError

    with empty_in(storage) as db:
        logs = {each for each in storage.list(PATH) if each.endswith(".log")}
        storage.before = before
        db.put(b"a", b"1")
        with contextlib.suppress(lsm.Error):  # if it sees it before it is installed
            db.flush()
        assert "MemoryError" in (db.stats().background_error or "")
        assert logs < set(storage.list(PATH))
        storage.before = lambda operation, path: None
        db.resume()
        assert not logs & set(storage.list(PATH))


@patient
def test_a_table_that_is_being_written_is_not_taken_for_an_obsolete_one(storage: Hooked) -> None:
    listing, is_created = threading.Event(), threading.Event()

    def before(operation: str, path: str) -> None:
        if thread() == "lsm-compaction" and operation == "list":
            listing.set()
            assert is_created.wait(PATIENCE)

    def after(operation: str, path: str) -> None:
        if listing.is_set() and operation == "create" and path.endswith(".ldb"):
            is_created.set()

    with empty_in(storage) as db:
        for value in (b"1", b"2"):
            db.put(b"a", value)
            db.flush()
        storage.before, storage.after = before, after
        compacting = threading.Thread(target=db.compact_range, daemon=True)
        compacting.start()
        assert listing.wait(PATIENCE)
        db.put(b"a", b"3")
        db.flush()
        compacting.join()
    assert found(storage) == {b"a": b"3"}


def thread() -> str:
    return threading.current_thread().name


@patient
def test_what_cannot_be_removed_stays_with_a_warning_and_goes_when_it_can(
    storage: Hooked, caplog: pytest.LogCaptureFixture
) -> None:
    with empty_in(storage) as db, caplog.at_level(logging.WARNING, "lsm"):
        storage.fail(of("remove", TABLE))
        for value in (b"1", b"2"):
            db.put(b"a", value)
            db.put(b"b", value)
            db.flush()
        db.compact_range()
        db.wait_until_idle()
        assert db.stats().background_error is None
        assert re.search("obsolete file stays.*ldb", caplog.text)
        storage.mend()
        db.put(b"c", b"3")
        db.flush()
        db.wait_until_idle()
        tables = sum(level.tables for level in db.stats().levels)
        assert sum(name.endswith(".ldb") for name in storage.list(PATH)) == tables


# Reading


@patient
def test_a_table_that_cannot_be_read_is_an_error_and_not_an_absent_key(storage: Hooked) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        db.flush()
    with lsm.DB(PATH, storage=storage) as db:
        db.put(b"b", b"2")
        for operation in ("map", "exists"):
            storage.fail(of(operation, TABLE))
            calls: list[Callable[[], Any]] = [
                lambda: db.get(b"a"),
                lambda: db.get_many([b"b", b"a"]),
                lambda: db.might_contain(b"a"),
                lambda: db.explain(b"a"),
                lambda: list(db),
                lambda: list(db.iterator(reverse=True)),
            ]
            for call in calls:
                with pytest.raises(lsm.IOError, match=r"\.ldb"):
                    call()
            assert db.get(b"b") == b"2"
            storage.mend()
        assert contents(db) == {b"a": b"1", b"b": b"2"}
        assert db.stats().background_error is None
        db.put(b"c", b"3")


@patient
def test_stats_say_why_writing_stopped_though_no_table_can_be_read(storage: Hooked) -> None:
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        db.flush()
    with lsm.DB(PATH, storage=storage) as db:
        storage.fail(lambda operation, path, index: operation != "append")
        with pytest.raises(lsm.SyncError):
            db.put(b"b", b"2", sync=True)
        stats = db.stats()
        storage.mend()
        assert "SyncError: " in str(stats.background_error)
        assert "writing has stopped: " in str(stats)
        assert sum(level.tables for level in stats.levels) == 1


@patient
def test_an_opening_that_failed_can_be_repeated(config: Path, rng: random.Random) -> None:
    """With a log to replay that is larger than the buffer; at each place, for reading as well."""
    before, history = SimulatedStorage(), History()
    with reopened(before) as db:
        for _ in range(20):
            history.write(db, random_batch(rng), sync=True)
    for arguments in ({"config": config}, {"read_only": True}):
        for failing in range(1000):
            storage = before.kill()
            storage.fail(at(failing))
            with contextlib.suppress(lsm.IOError):
                lsm.DB(PATH, storage=storage, **arguments).close()
            completed = len(storage.operations) <= failing
            storage.mend()
            with lsm.DB(PATH, storage=storage, **arguments) as db:
                history.check(contents(db), 20)
            if completed:
                break
        assert failing > 5


@patient
def test_a_failed_opening_leaves_no_file_open_and_no_lock(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"a", b"1")
    for failing in range(1000):
        path, storage = tmp_path / f"copy {failing}", Stumbling(failing)
        shutil.copytree(tmp_path / "db", path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.suppress(lsm.IOError):
                lsm.DB(path, storage=storage).close()
            gc.collect(1)
        assert [str(each.message) for each in caught] == []
        with lsm.DB(path) as db:
            assert contents(db) == {b"a": b"1"}
        if storage.left >= 0:
            break
    assert failing > 15


class Stumbling(FileSystem):
    """The system's own files, of which one operation on the directory fails."""

    def __init__(self, left: int):
        self.left = left

    def __getattribute__(self, name: str) -> Any:
        if name in ("left", "__class__") or name.startswith("_") or name == "replace":
            return super().__getattribute__(name)
        self.left -= 1
        if self.left == -1:
            raise lsm.IOError(errno.EIO, f"cannot {name}")
        return super().__getattribute__(name)


# Many writers


class Line(deque[Any]):
    """A queue of writers that tells how many have come."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Semaphore(0)

    def append(self, writing: Any) -> None:
        super().append(writing)
        self.came.release()

    def copy(self) -> Any:
        return deque(self)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.came.acquire(timeout=PATIENCE)


class Put(threading.Thread):
    """Puts one entry under its own name, and keeps what became of it."""

    def __init__(self, db: lsm.DB, name: str, *, sync: bool = True):
        super().__init__(name=name, daemon=True)
        self.db = db
        self.sync = sync
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.db.put(self.name.encode(), b"value", sync=self.sync)
        except BaseException as error:
            self.error = error


class Interruption(BaseException):
    """What a signal's handler raises, such as KeyboardInterrupt."""


MANY = 8


def queued(
    storage: Hooked,
    db: lsm.DB,
    operation: str,
    name: str,
    *,
    stumble: BaseException | None = None,
    wait: bool = True,
) -> tuple[Put, list[Put]]:
    """One writer that went as far as this operation, and many that came meanwhile.

    All of them are in the queue before it goes on, if it is to ``wait``: while it begins a new log
    it lets nobody in. If there is something to stumble over, the operation then raises it.
    """
    line = db._store.writer._queue = Line()
    arrived, go_on = threading.Event(), threading.Event()

    def before(at: str, path: str) -> None:
        if at == operation and re.search(name, path) and thread() == "leader":
            arrived.set()
            assert go_on.wait(PATIENCE)
            storage.before = lambda operation, path: None
            if stumble is not None:
                raise stumble

    storage.before = before
    leader = Put(db, "leader")
    followers = [Put(db, f"follower {number}") for number in range(MANY)]
    leader.start()
    assert arrived.wait(PATIENCE)
    for follower in followers:
        follower.start()
    if wait:
        line.wait_for(1 + MANY)
    go_on.set()
    for each in (leader, *followers):
        each.join()
    return leader, followers


@patient
def test_writers_that_wait_share_one_sync(storage: Hooked) -> None:
    with empty_in(storage) as db:
        leader, followers = queued(storage, db, "sync", LOG)
        assert [each.error for each in (leader, *followers)] == [None] * (1 + MANY)
        assert sum(of("sync", LOG)(*each, 0) for each in storage.operations) == 2
        assert sum(of("append", LOG)(*each, 0) for each in storage.operations) == 2
        names = sorted(each.name.encode() for each in (leader, *followers))
        assert list(db.iterator(include_value=False)) == names
        assert list(found(storage.crash())) == names


@patient
def test_a_writer_that_is_to_sync_does_not_go_along_with_one_that_does_not(
    storage: Hooked,
) -> None:
    with empty_in(storage) as db:
        line = db._store.writer._queue = Line()
        threads = [Put(db, "leader", sync=False), Put(db, "lazy", sync=False), Put(db, "eager")]

        def before(operation: str, path: str) -> None:
            if operation == "append" and thread() == "leader":
                for follower in threads[1:]:
                    follower.start()
                    line.wait_for(1)

        storage.before = before
        threads[0].start()
        line.wait_for(1)
        for each in threads:
            each.join()
        assert list(found(storage.crash())) == [b"eager", b"lazy", b"leader"]


@pytest.mark.parametrize("operation", ["append", "sync"])
@patient
def test_an_error_is_reported_to_every_writer_that_was_taken_along(
    storage: Hooked, operation: str
) -> None:
    with empty_in(storage) as db:
        storage.fail(lambda at, path, _: at == operation and thread().startswith("follower"))
        leader, followers = queued(storage, db, "sync", LOG)
        assert leader.error is None
        for each in followers:
            assert isinstance(each.error, lsm.IOError), each.error
            assert operation in str(each.error)
        assert list(db) == [(b"leader", b"value")]
        storage.mend()
        if operation == "append":
            db.put(b"later", b"value", sync=True)
            assert list(found(storage.kill())) == [b"later", b"leader"]
        else:
            check_stopped(db, "cannot sync")
            assert list(found(storage.kill())) == [b"leader"]


@patient
def test_writers_behind_a_failed_sync_are_refused(storage: Hooked) -> None:
    with empty_in(storage) as db:
        storage.fail(of("sync", LOG))
        leader, followers = queued(storage, db, "sync", LOG)
        assert type(leader.error) is lsm.SyncError
        assert {type(each.error) for each in followers} == {lsm.ReadOnlyError}
        assert list(db) == []


@pytest.mark.parametrize(
    ("operation", "full"),
    [
        ("append", False),
        ("sync", False),
        ("sync", True),
        ("close", True),
        ("create", True),
        ("sync_directory", True),
    ],
)
@patient
def test_an_interrupted_writer_does_not_hold_up_the_others(
    storage: Hooked, operation: str, full: bool
) -> None:
    with empty_in(storage, write_buffer_size=100 if full else None) as db:
        db.put(b"before", bytes(200))
        name = PATH if operation == "sync_directory" else LOG
        leader, followers = queued(
            storage, db, operation, name, stumble=Interruption(), wait=not full
        )
        assert isinstance(leader.error, Interruption)
        written = [each.name.encode() for each in followers if each.error is None]
        for each in followers:
            assert each.error is None or isinstance(each.error, lsm.Error), repr(each.error)
        with contextlib.suppress(lsm.ReadOnlyError):
            db.put(b"later", b"value")
            written.append(b"later")
        expected = sorted([b"before", *written])
        assert set(expected) <= set(db.iterator(include_value=False)) <= {*expected, b"leader"}
    for after in (storage, storage.kill()):
        assert set(expected) <= set(found(after)) <= {*expected, b"leader"}


@patient
def test_an_interruption_is_for_the_thread_it_hits_and_not_for_those_it_took_along(
    storage: Hooked,
) -> None:
    with empty_in(storage) as db:
        hit: list[str] = []

        def after(operation: str, path: str) -> None:
            if operation == "append" and thread().startswith("follower") and not hit:
                hit.append(thread())
                raise Interruption

        storage.after = after
        leader, followers = queued(storage, db, "sync", LOG)
        assert leader.error is None
        for each in followers:
            assert isinstance(each.error, Interruption) == ([each.name] == hit), each.error
        names = sorted(each.name.encode() for each in (leader, *followers))
        assert list(db.iterator(include_value=False)) == list(found(storage.crash())) == names


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 2, 3])
@patient
def test_what_interruptions_have_left_of_a_write_is_carried_out_by_the_next_one(
    storage: Hooked, times: int, when: str, sync: bool
) -> None:
    """The first one is dealt with by who was interrupted, unless another one comes in there."""
    with empty_in(storage) as db:
        db.put(b"a", b"1")
        left = [None] * times

        def interrupt(operation: str, path: str) -> None:
            if operation == "append" and path.endswith(".log") and left:
                left.pop()
                raise Interruption

        setattr(storage, when, interrupt)
        with pytest.raises(Interruption):
            db.put(b"a", b"2", sync=sync)
        assert db.get(b"a") == (b"2" if times == 1 else b"1")
        if left:
            with pytest.raises(Interruption):
                db.put(b"b", b"interrupted, too")
        db.put(b"c", b"3")
        assert db.stats().background_error is None
        expected = contents(db)
        assert (expected[b"a"], expected[b"c"]) == (b"2", b"3")
        assert found(storage.kill()) == expected
    assert found(storage) == expected
