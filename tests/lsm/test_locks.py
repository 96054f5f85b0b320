"""Locks beside other libraries, descriptors, forks, interruptions and handlers in one process."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from itertools import count
from pathlib import Path

import plyvel
import pytest

from lsm import locks
from lsm.errors import LockedError
from lsm.locks import FileLock
from tests.effort import by_effort
from tests.interpreter import fresh
from tests.lsm.interrupting import INSTRUCTIONS, interrupted_at, points

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="there locks belong to files")

SYSTEMS = ["files'", "processes'"] if locks._OFD else ["processes'"]

TRY = """
import sys
from lsm import locks
try:
    locks.acquire(sys.argv[1], shared=sys.argv[2] == "shared")
    print("free")
except locks.LockedError as error:
    print(error)
"""
PLYVEL = "import plyvel, sys; plyvel.DB(sys.argv[1]).close(); print('free')"


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whose the system's locks are: the open files', or the processes'."""
    monkeypatch.setattr(locks, "_OFD", request.param == "files'")
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "LOCK")


def elsewhere(path: str, kind: str = "exclusive") -> str:
    """What another process is told that wants this lock."""
    told = fresh(TRY, path, kind)
    assert not told.stderr
    return told.stdout.strip()


def open_files(path: str) -> int:
    """How many descriptors of a file this process has."""
    there = os.stat(path)
    found = 0
    for name in os.listdir("/dev/fd"):
        try:
            found += os.path.samestat(os.fstat(int(name)), there)
        except OSError:
            continue  # the listing's own
    return found


# ---- Beside others in this process ------------------------------------------------------------


@only_linux
def test_leveldb_in_this_process_is_kept_out_and_ends_no_lock(tmp_path: Path) -> None:
    plyvel.DB(str(tmp_path), create_if_missing=True).close()
    path = str(tmp_path / "LOCK")
    lock = locks.acquire(path, shared=False)
    for _ in range(2):
        with pytest.raises(plyvel.IOError, match="LOCK"):
            plyvel.DB(str(tmp_path))
        assert "has the database open" in elsewhere(path)
        assert "free" not in fresh(PLYVEL, str(tmp_path)).stdout
    lock.release()
    plyvel.DB(str(tmp_path)).close()


@only_linux
def test_leveldb_in_this_process_keeps_this_out_and_keeps_its_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "LOCK")
    db = plyvel.DB(str(tmp_path), create_if_missing=True)
    before = open_files(path)
    for _ in range(3):
        for shared in (False, True):
            with pytest.raises(LockedError, match="another library in this process has the"):
                locks.acquire(path, shared=shared)
            gc.collect()
            assert "free" not in fresh(PLYVEL, str(tmp_path)).stdout
    assert open_files(path) <= before + 2
    db.close()
    lock = locks.acquire(path, shared=False)
    assert "has the database open" in elsewhere(path)
    lock.release()
    locks.acquire(path, shared=True).release()
    assert elsewhere(path) == "free"


@only_linux
@pytest.mark.parametrize("shared", [False, True])
def test_no_copy_of_its_directory_ends_a_lock(tmp_path: Path, shared: bool) -> None:
    (tmp_path / "db").mkdir()
    path = str(tmp_path / "db" / "LOCK")
    Path(path).touch()
    lock = locks.acquire(path, shared=shared)
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    assert Path(path).read_bytes() == b""
    assert "lock it" in elsewhere(path)
    lock.release()
    assert elsewhere(path) == "free"


@only_linux
def test_a_copy_of_the_descriptor_keeps_nobody_out(path: str) -> None:
    """As one that a child has which has yet to call exec."""
    lock = locks.acquire(path, shared=False)
    assert lock._hold is not None
    copy = os.dup(lock._hold.file.fileno())
    lock.release()
    assert elsewhere(path) == "free"
    os.close(copy)


@only_linux
def test_an_old_kernel_has_locks_of_processes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_set_ofd", lambda *_: False)
    lock = locks.acquire(path, shared=False)
    assert f"another process ({os.getpid()}) has the database open" in elsewhere(path)
    lock.release()
    assert elsewhere(path) == "free"


# ---- Collected, interrupted, reentered ---------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_that_nobody_has_any_more_is_released(path: str, system: str, shared: bool) -> None:
    Path(path).touch()
    lock = locks.acquire(path, shared=shared)
    assert "lock it" in elsewhere(path)
    del lock
    gc.collect()
    assert elsewhere(path) == "free"
    locks.acquire(path, shared=False).release()


def test_readers_are_counted_by_those_who_have_them(path: str, system: str) -> None:
    Path(path).touch()
    first, second, third = (locks.acquire(path, shared=True) for _ in range(3))
    del first
    second.release()
    second.release()
    assert "reading" in elsewhere(path) or "another process" in elsewhere(path)
    with pytest.raises(LockedError, match="this process is reading"):
        locks.acquire(path, shared=False)
    third.release()
    locks.acquire(path, shared=False).release()


def lock_and_release(path: str, shared: bool) -> None:
    locks.acquire(path, shared=shared).release()


@pytest.mark.no_cover
@pytest.mark.parametrize("shared", [False, True])
def test_no_interruption_leaves_a_file_locked(path: str, system: str, shared: bool) -> None:
    Path(path).touch()
    total = points(lambda: lock_and_release(path, shared))
    assert total > 15
    for number in range(total):
        interrupted_at(number, lambda: lock_and_release(path, shared))
        assert open_files(path) == 0, number
        assert locks._held(locks._identity(path)) is None, number
        locks.acquire(path, shared=False).release()


STRIDE = by_effort(13, 5, 1)


@only_linux
@pytest.mark.no_cover
@pytest.mark.parametrize("shared", [False, True])
def test_who_locks_in_a_handler_is_kept_out_or_keeps_out(path: str, shared: bool) -> None:
    """Whatever the handler interrupts: one of the two has the lock, and nobody waits."""
    Path(path).touch()
    outcomes = set()
    total = points(lambda: lock_and_release(path, shared), INSTRUCTIONS)
    for number in range(0, total, 5 * STRIDE):  # each asks another process
        inner: list[FileLock] = []
        said: list[str] = []

        def handler(inner: list[FileLock] = inner, said: list[str] = said) -> None:
            try:
                inner.append(locks.acquire(path, shared=False))
            except LockedError as error:
                said.append(str(error))

        def acquire(said: list[str] = said) -> FileLock | None:
            try:
                return locks.acquire(path, shared=shared)
            except LockedError as error:
                said.append(str(error))
                return None

        outcome = interrupted_at(number, acquire, call=handler, kind=INSTRUCTIONS)
        if outcome.where is None:
            outcome.result.release()
            break
        outer = outcome.result
        assert all("lock it: this process " in each for each in said), outcome.where
        assert (outer is None) == bool(inner), outcome.where
        outcomes.add(outer is None)
        assert "lock it" in elsewhere(path)
        for lock in [outer, *inner]:
            if lock is not None:
                lock.release()
        assert open_files(path) == 0
    assert outcomes == {True, False}


@pytest.mark.no_cover
def test_a_reader_that_is_released_in_a_handler_takes_no_other_with_it(
    path: str, system: str
) -> None:
    Path(path).touch()
    for number in count(0, STRIDE):
        first = locks.acquire(path, shared=True)
        outcome = interrupted_at(
            number,
            lambda: locks.acquire(path, shared=True),
            call=first.release,
            kind=INSTRUCTIONS,
        )
        with pytest.raises(LockedError):
            locks.acquire(path, shared=False)
        outcome.result.release()
        first.release()
        assert open_files(path) == 0
        if outcome.where is None:
            break
