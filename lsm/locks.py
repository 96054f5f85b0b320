"""Locks on files, that keep out other processes, LevelDB's among them, and this one as well."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import sys
import threading

import attrs

from lsm.errors import LockedError

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl

Identity = tuple[int, int]  # device and inode: a file under whatever name


@attrs.define(eq=False)
class _Hold:
    """A file that this process has locked: once, or for reading some times over."""

    identity: Identity
    descriptor: int
    shared: bool
    count: int = 1


@attrs.define(eq=False)
class FileLock:
    """One lock on one file."""

    _table: _Table
    _hold: _Hold
    _released: bool = False

    def release(self) -> None:
        """Let others in; once released, and in a forked child, do nothing."""
        with self._table.mutex:
            if not self._released:
                self._released = True
                self._table.leave(self._hold)


class _Table:
    """What this process has locked.

    The system's locks keep out other processes only, and closing any descriptor of a locked file
    ends its lock: so a file that is in here is never opened a second time.
    """

    def __init__(self) -> None:
        self.mutex = threading.RLock()  # a collected object may release its lock at any moment
        self._held: dict[Identity, _Hold] = {}

    def enter(self, path: str, shared: bool) -> _Hold:
        identity = _identity(path)
        hold = self._held.get(identity) if identity else None
        if hold is None:
            hold = _open_locked(path, shared)
            self._held[hold.identity] = hold
        elif shared and hold.shared:
            hold.count += 1
        else:
            raise locked(path, "this process", reading=hold.shared)
        return hold

    def leave(self, hold: _Hold) -> None:
        hold.count -= 1
        if hold.count == 0 and self._held.get(hold.identity) is hold:
            del self._held[hold.identity]
            os.close(hold.descriptor)

    def forget(self) -> None:
        """In a forked child, which has none of its parent's locks."""
        for hold in self._held.values():
            os.close(hold.descriptor)
        self._held.clear()
        self.mutex.release()


_TABLE = _Table()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_TABLE.mutex.acquire,
        after_in_parent=_TABLE.mutex.release,
        after_in_child=_TABLE.forget,
    )


def acquire(path: str, *, shared: bool) -> FileLock:
    """Lock a file at once, creating it unless ``shared``.

    Raises LockedError where another lock is in the way, and OSError as the system does.
    """
    with _TABLE.mutex:
        return FileLock(_TABLE, _TABLE.enter(path, shared))


def locked(path: str, holder: str, *, reading: bool) -> LockedError:
    """The error to raise where this holder, maybe only a reader, has the lock."""
    has = "is reading the database" if reading else "has the database open"
    remedy = ", or open it here with read_only=True" if reading else ""
    return LockedError(
        errno.EAGAIN, f"cannot lock it: {holder} {has}: close it there{remedy}", path
    )


def _open_locked(path: str, shared: bool) -> _Hold:
    while True:
        descriptor = os.open(path, os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor, path, shared)
            identity = _identity(descriptor)
            if identity is not None and identity == _identity(path):
                return _Hold(identity, descriptor, shared)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # removed before it was locked: this lock would keep nobody out


def _identity(file: str | int) -> Identity | None:
    """The file that a path or descriptor leads to, or None where none is."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _lock(descriptor: int, path: str, shared: bool) -> None:
    try:
        if sys.platform == "win32":  # pragma: no cover - there one reader keeps out the others
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        holder, reading = _holder(descriptor, shared)
        raise locked(path, holder, reading=reading) from error


def _holder(descriptor: int, shared: bool) -> tuple[str, bool]:
    """Which process is in the way, and whether it is only reading, as far as the system says."""
    if sys.platform == "linux":
        flock = "hhqqi0q"  # struct flock: type, whence, start, length, process
        wanted = struct.pack(flock, fcntl.F_RDLCK if shared else fcntl.F_WRLCK, 0, 0, 0, 0)
        with contextlib.suppress(OSError):
            found = fcntl.fcntl(descriptor, fcntl.F_GETLK, wanted)
            kind, _, _, _, process = struct.unpack(flock, found)
            if kind != fcntl.F_UNLCK and process > 0:
                return f"another process ({process})", kind == fcntl.F_RDLCK
    return "another process", False
