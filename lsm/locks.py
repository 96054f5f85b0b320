"""Locks on files, that keep out other processes, LevelDB's among them, and this one as well.

The system keeps others out, and how well depends on the system:

- On Linux a lock belongs to the open file (OFD). It keeps out everyone, LevelDB within this process
  too, until it is released, and no copying of the directory ends it.
- On other systems of POSIX it belongs to the process, as LevelDB's own does everywhere: LevelDB in
  the same process is not kept out, and whoever in this process opens the file beside us, and closes
  it again, ends the lock.
- On Windows it belongs to the open file, and one reader keeps out the others.

A lock that nobody has any more, because its object was collected or its process has ended, is
released. A forked child has none of its parent's locks. One that is forked without Python, by a
library in C, keeps them until it ends or calls exec, or the parent releases them.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import sys
import threading
import weakref

from lsm.errors import LockedError

if sys.platform == "win32":  # pragma: no cover
    import msvcrt
else:
    import fcntl

Identity = tuple[int, int]  # device and inode: a file under whatever name

# Reentrant: a signal's handler and a collected object may come here while their thread is here.
_MUTEX = threading.RLock()
_OFD = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")
_FLOCK = "hhqqi0q"  # struct flock: type, whence, start, length, process


class _File(io.FileIO):
    """An open file that is closed without a ResourceWarning when it is collected."""

    def __del__(self) -> None:
        self.close()


class _Hold:
    """A file that this process has locked: exclusively, or shared by any number of users."""

    def __init__(self, file: _File, shared: bool):
        self.file = file
        self.identity = _identity(file.fileno())
        self.shared = shared
        self.is_locked = False
        self.is_over = False
        self.users: weakref.WeakSet[FileLock] = weakref.WeakSet()

    def enter(self) -> bool:
        """Register as this process's lock on the file; False if another one is registered."""
        return _HELD.setdefault(self.identity, weakref.ref(self))() is self

    def lock(self, path: str) -> None:
        """Keep other processes out, or raise LockedError."""
        descriptor = self.file.fileno()
        try:
            _set(descriptor, self.shared)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            holder, reading = _holder(descriptor)
            if holder == _ANOTHER_LIBRARY:
                _SPARED[self.identity, self.shared] = self.file
            raise locked(path, holder, reading=reading) from error
        self.is_locked = True

    def close(self) -> None:
        """Let others in, even if a child that has yet to call exec has a copy of the file."""
        if self.is_locked and not self.file.closed:
            with contextlib.suppress(OSError, ValueError):  # closed, in a child forked just here
                _set(self.file.fileno(), None)
        if self.file not in _SPARED.values():
            self.file.close()
        self.is_over = True
        _held(self.identity)


# What this process has locked. Where locks belong to the process, closing any descriptor of a
# locked file ends its lock: so a file that is in here is never opened a second time.
_HELD: dict[Identity | None, weakref.ref[_Hold]] = {}

# Open files that another library of this process has locked, LevelDB in its way: to close one would
# end that lock. They wait for the next time that they are to be locked, exclusively or shared.
_SPARED: dict[tuple[Identity | None, bool], _File] = {}
_ANOTHER_LIBRARY = "another library in this process"


class FileLock:
    """One lock on one file."""

    __slots__ = ("__weakref__", "_hold")

    def __init__(self) -> None:
        self._hold: _Hold | None = None

    def release(self) -> None:
        """Let others in; once released, and in a forked child, do nothing."""
        with _MUTEX:
            hold = self._hold
            if hold is not None:
                hold.users.discard(self)
                if not list(hold.users):  # its length may count one that was collected
                    hold.close()

    def take(self, path: str, shared: bool) -> None:
        """Lock a file, with others of this process or alone; with the mutex held."""
        while True:
            held = _held(_identity(path))
            if held is not None and not (shared and held.shared and held.is_locked):
                raise locked(path, "this process", reading=held.shared)
            hold = self._join(held or _Hold(_opened(path, shared), shared))
            if hold is not held and hold.enter():
                hold.lock(path)
                if hold.identity == _identity(path):
                    return  # else it was removed before: this lock would keep nobody out
            elif hold is held and not hold.is_over:
                return
            hold.close()

    def _join(self, hold: _Hold) -> _Hold:
        self._hold = hold
        hold.users.add(self)
        return hold


def acquire(path: str, *, shared: bool) -> FileLock:
    """Lock a file at once, creating it unless ``shared``.

    Raises LockedError where another lock is in the way, and OSError as the system does.
    """
    lock = FileLock()
    try:
        with _MUTEX:
            lock.take(path, shared)
        return lock
    except BaseException:
        lock.release()
        raise


def locked(path: str, holder: str, *, reading: bool) -> LockedError:
    """The error to raise where this holder, maybe only a reader, has the lock."""
    has = "is reading the database" if reading else "has the database open"
    remedy = ", or open it here with read_only=True" if reading else ""
    return LockedError(
        errno.EAGAIN, f"cannot lock it: {holder} {has}: close it there{remedy}", path
    )


def _forget() -> None:
    """In a forked child, which has none of its parent's locks."""
    for entry in list(_HELD.values()):
        if (hold := entry()) is not None:
            hold.file.close()  # and no more: to unlock this copy would unlock the parent's
    _HELD.clear()
    # Whoever was forked with the old one in hand gives it back, and others need not wait for that.
    global _MUTEX
    _MUTEX = threading.RLock()


_NEW = {type(new()): new for new in (threading.Lock, threading.RLock)}


def renew_locks(holder: object) -> None:
    """In a forked child: replace an object's locks, which threads may hold that are not there.

    The child's own thread releases those it held when it was forked, and acquires the new ones.
    """
    for name, value in list(vars(holder).items()):
        if new := _NEW.get(type(value)):
            setattr(holder, name, new())


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=lambda: _MUTEX.acquire(),
        after_in_parent=lambda: _MUTEX.release(),
        after_in_child=_forget,
    )


def _held(identity: Identity | None) -> _Hold | None:
    """The registered lock of this file; one that was released or collected is forgotten."""
    entry = _HELD.get(identity)
    hold = None if entry is None else entry()
    if hold is not None and not hold.is_over:
        return hold
    if entry is not None and _HELD.get(identity) is entry:
        del _HELD[identity]
    return None


def _identity(file: str | int) -> Identity | None:
    """The file that a path or descriptor leads to, or None where none is."""
    try:
        status = os.stat(file)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _opened(path: str, shared: bool) -> _File:
    spared = _SPARED.pop((_identity(path), shared), None) if _SPARED else None
    return _File(path, "rb" if shared else "ab+") if spared is None else spared


def _set(descriptor: int, shared: bool | None) -> None:
    """Lock an open file, shared or not, or with None unlock it; OSError where that fails."""
    if sys.platform == "win32":  # pragma: no cover
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK if shared is None else msvcrt.LK_NBLCK, 1)
        return
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    operation = fcntl.LOCK_UN if shared is None else kind | fcntl.LOCK_NB
    if not (_OFD and _set_ofd(descriptor, shared)):
        fcntl.lockf(descriptor, operation)
        return
    # Nobody can ask whose an OFD lock is. So the second byte has one that belongs to the process,
    # for others to be told its number; whatever ends that one, the first byte stays locked.
    with contextlib.suppress(OSError):
        fcntl.lockf(descriptor, operation, 1, 1)


def _set_ofd(descriptor: int, shared: bool | None) -> bool:
    """Lock the file's first byte, of which all others lock it whole; False on an old kernel."""
    if sys.platform != "linux":  # pragma: no cover
        return False
    kind = {None: fcntl.F_UNLCK, False: fcntl.F_WRLCK, True: fcntl.F_RDLCK}[shared]
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, 0, 0, 1, 0))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def _holder(descriptor: int) -> tuple[str, bool]:
    """The holder of a conflicting lock, and whether that is shared, as far as the system tells."""
    reading = False
    for start, length in ((0, 0), (1, 1)):
        kind, process = _conflict(descriptor, start, length)
        reading = reading or kind == "read"
        if kind and process == os.getpid():
            return _ANOTHER_LIBRARY, reading
        if kind and process > 0:
            return f"another process ({process})", reading
    return "another process", reading


def _conflict(descriptor: int, start: int, length: int) -> tuple[str, int]:
    """The kind of lock on these bytes, and its process; 0 or less where that is not known."""
    if sys.platform == "linux":
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, start, length, 0)
        with contextlib.suppress(OSError):
            command = fcntl.F_OFD_GETLK if _OFD else fcntl.F_GETLK
            found = fcntl.fcntl(descriptor, command, wanted)
            kind, _, _, _, process = struct.unpack(_FLOCK, found)
            return {fcntl.F_RDLCK: "read", fcntl.F_WRLCK: "write"}.get(kind, ""), process
    return "", 0
