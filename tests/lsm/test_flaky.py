"""Passing failures of the system's own files: right answers or errors, and then everything goes on.

A disk that is full is one of them; the last tests fill a real one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from lsm.options import LEVELS
from lsm.storage import FileSystem, WritableFile
from policies import LevelPolicies
from policies.config import Choice
from tests.effort import by_effort
from tests.lsm.configurations import BUILT_IN, TINY, Configuration
from tests.lsm.flaky import OTHERS, SYNCS, FlakyFileSystem
from tests.lsm.history import Contents, History, contents, random_batch, refilter
from tests.lsm.patience import patient

LIVES = 4
DOUBTS = 6
"""How many writes of a life may fail, each of which may be there or not."""


# -- Lives under failures ------------------------------------------------------------------


@attrs.define(eq=False)
class Place:
    """A directory on failing files, and what is in it for sure between two lives."""

    path: Path
    rng: random.Random
    storage: FlakyFileSystem
    configuration: Configuration
    known: Contents = attrs.field(factory=dict)

    @classmethod
    def made(cls, path: Path, rng: random.Random) -> Place:
        chosen = tuple(Choice(*rng.choice(BUILT_IN)) for _ in range(LEVELS))
        caches = rng.choice(
            ({}, {"lru_cache_size": 0, "table_cache_size": 0, "filter_cache_size": 0})
        )
        configuration = Configuration.of(LevelPolicies(chosen), **TINY, **caches)
        return cls(path, rng, FlakyFileSystem(random.Random(rng.random())), configuration)

    def open(self) -> lsm.DB:
        return self.configuration.open(
            self.path, self.path.parent, create_if_missing=True, storage=self.storage
        )

    def open_in_the_end(self) -> lsm.DB:
        """The database, which may be refused as long as anything fails."""
        try:
            return self.open()
        except lsm.Error:
            self.storage.mend()
            return self.open()

    def fail(self) -> None:
        """Have some operations fail from now on, seldom or often; syncs in one life of three."""
        operations = self.rng.sample(OTHERS, self.rng.choice((1, 3, len(OTHERS))))
        if self.rng.random() < 0.3:
            operations += SYNCS
        self.storage.fail(self.rng.choice((0.002, 0.01, 0.05)), operations)


def live(place: Place) -> None:
    """Open, write and read while anything may fail; then nothing does, and all goes on."""
    if place.known:
        place.fail()
    with contextlib.closing(place.open_in_the_end()) as db:
        history = begin(place, db)
        place.fail()
        for _ in range(place.rng.choice((20, 60, 120))):
            with contextlib.suppress(lsm.Error):
                do_something(place, db, history)
            if len(history.fates) - history.fates.count(history.fates[0]) >= DOUBTS:
                break
        place.storage.mend()
        check_it_goes_on(db, history)
        place.fail()
        with contextlib.suppress(lsm.Error):
            db.close()
    place.storage.mend()
    assert open_files_below(place.path) == []
    with place.open() as db:
        place.known = contents(db)
        history.check(place.known, history.written)
        db.put(b"healed", b"1", sync=True)
        db.delete(b"healed")
        db.compact_range()
        assert contents(db) == place.known
        tables = sum(level.tables for level in db.stats().levels)
        assert len(list(place.path.glob("*.ldb"))) == tables, "what is left over is removed"


def begin(place: Place, db: lsm.DB) -> History:
    """A history whose first batch is what is there."""
    place.storage.mend()
    history = History()
    assert contents(db) == place.known
    history.write(db, list(place.known.items()))
    return history


def do_something(place: Place, db: lsm.DB, history: History) -> None:
    """One operation; whatever can be read is right."""
    rng = place.rng
    match rng.randrange(10):
        case 0 if rng.random() < 0.3:
            refilter(db, history)
        case 0 if rng.random() < 0.3:
            db.compact_range(force=True)
        case 0:
            rng.choice((db.flush, db.compact_range, db.wait_until_idle, db.resume))()
        case 1:
            rng.choice((db.stats, db.filters, lambda: db.explain(b"key 01")))()
        case 2 | 3:
            history.check(contents(db), history.written)
        case 4:
            with db.snapshot() as snapshot:
                history.check(dict(snapshot), history.written)
        case _:
            history.write(db, random_batch(rng), sync=rng.random() < 0.3)


def check_it_goes_on(db: lsm.DB, history: History) -> None:
    """See that nothing is in the way of writing any more, unless a sync has failed."""
    db._store.background.wait_until_ended()  # of a thread that has yet to meet its failure
    history.check(contents(db), history.written)
    failure = db._store.failure
    if failure is not None and failure.is_final:
        calls: list[Callable[[], Any]] = [
            lambda: db.put(b"refused", b""),
            lambda: db.write_batch(sync=True).write(),
            db.flush,
            db.compact_range,
            db.resume,
        ]
        for call in calls:
            with pytest.raises(lsm.ReadOnlyError, match="SyncError.*open it again"):
                call()
        history.check(contents(db), history.written)
        return
    history.write(db, [(b"key 00", b"goes on")], sync=True)
    db.flush()
    db.compact_range()
    db.wait_until_idle()
    assert db.stats().background_error is None
    assert contents(db)[b"key 00"] == b"goes on"
    history.check(contents(db), history.written)


def open_files_below(path: Path) -> list[str]:
    """The files in a directory that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(descriptor))
    return [each for each in found if each.startswith(f"{path}{os.sep}")]


@pytest.mark.parametrize("number", range(by_effort(3, 8, 6000)))
@patient
def test_a_database_lives_through_passing_failures(
    number: int, tmp_path: Path, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", logger="lsm")
    place = Place.made(tmp_path / "db", rng)
    for _ in range(LIVES):
        live(place)
        print(number, dict(place.storage.met))  # shown if what follows fails


# -- A full disk ---------------------------------------------------------------------------

FULL = {
    "record": ("append", ".log"),
    "log": ("create", ".log"),
    "table": ("create", ".ldb"),
    "table's blocks": ("append", ".ldb"),
    "manifest": ("append", "MANIFEST"),
    "new name": ("rename", ".dbtmp"),
}
DIRECT = ("record", "log")
"""What fails in the writer's own thread; all else does in the background."""


def behind(error: BaseException) -> list[BaseException]:
    """The exceptions that are chained to one, and what is chained to those."""
    chained = {id(each): each for each in (error.__cause__, error.__context__) if each is not None}
    return [each for one in chained.values() for each in (one, *behind(one))]


def check_it_is_full(error: lsm.IOError, *, direct: bool) -> None:
    """See that it is the one error for a full disk, with the system's own behind it at most."""
    assert type(error) is lsm.IOError
    assert error.errno == errno.ENOSPC
    assert [type(each) for each in behind(error)] in ([[], [OSError]] if direct else [[]])


@attrs.define(eq=False)
class Filling:
    """A database that is written to until that fails, and what is in it."""

    db: lsm.DB
    written: Contents = attrs.field(factory=dict)

    def put(self, most: int) -> lsm.IOError | None:
        """Put so many entries, or as many as can be; what stood against more."""
        for _ in range(most):
            key, value = b"%d" % len(self.written), bytes(50)
            try:
                self.db.put(key, value)
            except lsm.IOError as error:
                return error
            self.written[key] = value
        return None


@pytest.mark.parametrize("going_on", ["resume", "put"])
@pytest.mark.parametrize("where", FULL)
@patient
def test_a_full_disk_is_one_error_that_passes(where: str, going_on: str, tmp_path: Path) -> None:
    operation, name = FULL[where]
    storage = FlakyFileSystem(random.Random(where), errors=[errno.ENOSPC])
    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage, **TINY) as db:
        filling = Filling(db)
        assert filling.put(50) is None
        db.wait_until_idle()
        if where == "new name":  # of CURRENT, for a manifest that is begun after a failure
            storage.fail(1.0, ["append"], "MANIFEST")
            with pytest.raises(lsm.IOError):
                db.flush()
        storage.fail(1.0, [operation], name)
        for _ in range(3):
            error = filling.put(1000)
            assert error is not None, "the disk is not full"
            check_it_is_full(error, direct=where in DIRECT)
            assert dict(db) == filling.written
        if where not in DIRECT:
            assert "IOError: [Errno 28]" in str(db.stats().background_error)
            for call in (db.flush, db.compact_range, db.resume):
                with pytest.raises(lsm.IOError) as caught:
                    call()
                check_it_is_full(caught.value, direct=False)
        storage.mend()
        if going_on == "resume":
            db.resume()
        assert filling.put(50) is None
        db.flush()
        assert db.stats().background_error is None
        assert dict(db) == filling.written
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == filling.written
        assert db.stats().log_losses == ()


class OnceFull(FileSystem):
    """Has no room for the first table, and says so only when it is let go on."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.go_on = threading.Event()

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        if path.endswith(".ldb") and not self.has_begun.is_set():
            self.has_begun.set()
            assert self.go_on.wait(60)
            raise lsm.IOError(errno.ENOSPC, "no room for a table", path)
        return super().create(path, small_appends=small_appends)


@pytest.mark.parametrize("operation", ["resume", "flush", "compact_range", "put"])
def test_what_fails_is_tried_anew_if_it_began_before_the_cause_was_mended(
    operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = OnceFull()
    options = TINY | {"write_buffer_size": 1000}
    with lsm.DB(tmp_path / "db", create_if_missing=True, storage=storage, **options) as db:
        store = db._store
        filling = Filling(db)
        while len(store.view.memtables) == 1:  # type: ignore[union-attr] # it is open
            filling.put(1)
        assert storage.has_begun.wait(60)
        retry_once = store.background.retry_once

        def retry_and_let_it_fail(tried: bool) -> bool:
            try:
                return retry_once(tried)
            finally:
                storage.go_on.set()

        monkeypatch.setattr(store.background, "retry_once", retry_and_let_it_fail)
        if operation == "put":
            assert filling.put(100) is None
        else:
            getattr(db, operation)()
        assert storage.go_on.is_set(), "somebody has waited for the table"
        db.flush()
        assert store.failure is None
        assert dict(db) == filling.written


# -- A disk that is really full ------------------------------------------------------------

MOUNTED = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1" "$4"'
UNSHARED = ("unshare", "--mount", "sh", "-c", MOUNTED, "sh")

FILL = """
import errno, random, sys
from pathlib import Path
import lsm

directory, rng = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
ballast = directory / "ballast"
options = dict(write_buffer_size=20_000, max_file_size=8000, level_size_base=40_000)
written, doubtful = {}, {}

def fill():
    errors = 0
    while errors < 3:
        key, value = b"%03d" % rng.randrange(600), rng.randbytes(rng.randrange(2000))
        try:
            db.put(key, value, sync=rng.random() < 0.1)
        except lsm.IOError as error:
            assert type(error) is lsm.IOError, repr(error)
            assert error.errno == errno.ENOSPC, repr(error)
            doubtful.setdefault(key, []).append(value)
            errors += 1
            continue
        written[key] = value
        doubtful.pop(key, None)
    assert dict(db) == written

db = lsm.DB(directory / "db", create_if_missing=True, compression=None, **options)
for turn in range(3):
    ballast.write_bytes(bytes(500_000))
    fill()
    ballast.unlink()
    if turn == 0:
        db.resume()
    elif turn == 1:
        db.close()
        db = lsm.DB(directory / "db")
        found = dict(db)
        for key in {*written, *found}:
            assert found.get(key) in [written.get(key), *doubtful.get(key, ())], key
        written, doubtful = found, {}
    for number in range(20):
        db.put(b"turn %d" % turn, b"%d" % number)
        written[b"turn %d" % turn] = b"%d" % number
    db.flush()
    assert db.stats().background_error is None
    assert dict(db) == written
    for key in sorted(written)[::2]:
        db.delete(key)
        del written[key]
    db.compact_range()
    assert dict(db) == written
db.close()
with lsm.DB(directory / "db") as db:
    assert dict(db) == written
print("went on", len(written) > 100)
"""


@pytest.mark.parametrize("number", range(by_effort(1, 2, 200)))
def test_a_disk_that_is_really_full_loses_nothing(
    number: int, tmp_path: Path, test_seed: int
) -> None:
    directory = tmp_path / "small disk"
    directory.mkdir()
    try:
        ran = subprocess.run(
            [*UNSHARED, str(directory), sys.executable, FILL, str(test_seed)],
            env=os.environ | {"PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare(1) to mount a small disk with")
    if "unshare: " in ran.stderr or "mount: " in ran.stderr:
        pytest.skip(f"a small disk cannot be mounted here: {ran.stderr.strip()}")
    assert "Traceback" not in ran.stderr, ran.stderr
    assert ran.stdout == "went on True\n", ran.stderr
