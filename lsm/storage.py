"""The file system behind one small interface, so that tests can make it fail.

What the system refuses is an lsm.IOError that says what was tried with which file, and the
system's own words; ``errno`` and ``filename`` are set. Writing a closed file is a ValueError.
"""

# ruff: noqa: D102 - what the methods of FileSystem and _File do is said in the interface
from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import io
import mmap
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol, Self

import attrs

from lsm import locks
from lsm.errors import IOError, NotADatabaseError
from lsm.syncing import checked_sync

Data = bytes | bytearray | memoryview

BUFFER_BYTES = 1 << 16
# What goes to the page cache within a fraction of a millisecond: for more, who appends lets other
# threads run meanwhile.
_SMALL_BYTES = 1 << 20
# Of so many bytes at a time it pays to have the system begin to write them.
_HASTENED_BYTES = 1 << 17
_LINKING = "give the file a second name"


class Placed(bytes):
    """Bytes with their offset in a file, so that writing them again changes nothing."""

    offset: int

    def __new__(cls, offset: int, data: bytes) -> Self:
        """The bytes with their offset."""
        placed = super().__new__(cls, data)
        placed.offset = offset
        return placed

    @property
    def end(self) -> int:
        """The offset of the byte behind them."""
        return self.offset + len(self)


class WritableFile(Protocol):
    """A file that one thread writes from its beginning to its end."""

    @property
    def path(self) -> str:
        """The path at which the file was created."""

    @property
    def size(self) -> int:
        """How many bytes were appended without failure, those in a buffer included."""

    def append(self, data: Data) -> None:
        """Add bytes at the end. After a failure any part of them may be there: see truncate.

        A file with small appends is given ``Placed`` bytes, which belong at its end, or over the
        same ones: whoever was interrupted while appending does it again. A file that does not look
        at the place is as good for everything but that.
        """

    def flush(self) -> None:
        """Hand what is in a buffer to the system. That is a write, which may fail and pass."""

    def sync(self) -> None:
        """Return when all that was appended survives a loss of power.

        After a failure the system may have forgotten what it did not write: a later success says
        nothing about what was appended before.
        """

    def truncate(self, length: int) -> None:
        """Keep the first so many bytes of the appended ones, and go on behind them."""

    def close(self) -> None:
        """Hand all bytes to the system, without sync; once closed, do nothing."""


class DescribedFile(WritableFile, Protocol):
    """A file of the system's, which compiled code writes to by itself.

    To that of a log it does so at the place where a record belongs; to that of another file at its
    end, as long as nothing was appended, and then says so by ``advance()``.
    """

    @property
    def descriptor(self) -> int:
        """The system's number for the open file; negative if there is none to write to."""

    def advance(self, count: int) -> None:
        """Take into account that so many bytes were written at the end."""


def described(file: WritableFile) -> DescribedFile | None:
    """The file as one of the system's, if it is one."""
    found: Any = file
    return found if getattr(file, "descriptor", -1) >= 0 else None


@attrs.frozen
class Mapped:
    """A whole file to read in place: ``data[a:b]`` is bytes, ``len(data)`` its length.

    Slicing keeps the GIL. Where the device fails, the system ends the process (SIGBUS).
    """

    data: mmap.mmap | bytes

    def close(self) -> None:
        """Give the mapping back; its data cannot be read any more."""
        if not isinstance(self.data, bytes):
            self.data.close()


class Lock(Protocol):
    """A lock on a database, which keeps others out of it until it is released."""

    def release(self) -> None:
        """Let others in; once released, do nothing."""


class Storage(Protocol):
    """What the engine asks of a file system. Paths are str; failures are lsm.IOError."""

    def absolute(self, path: str) -> str:
        """The path that leads to the same place wherever the process goes afterwards.

        That is the path itself where there is no current directory that paths are relative to.
        """
        return path

    def real(self, path: str) -> str:
        """The one path of a place that symbolic links and ".." lead to by many."""
        return os.path.normpath(path)

    def make_directory(self, path: str) -> None:
        """Make sure that this directory is there; the one above it has to be."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""

    def list(self, path: str) -> builtins.list[str]:
        """The names in a directory, sorted."""

    def exists(self, path: str) -> bool:
        """Whether something has this name; an error where that cannot be known."""

    def size(self, path: str) -> int:
        """A file's length in bytes."""

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        """An empty file to write, in place of any that was there.

        With ``small_appends`` every append goes to the system at once, and does not make its
        caller wait for other Python threads: for a write-ahead log, which has to be a new file.
        Else appends are buffered, and readers see them after sync() or close().
        """

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def map(self, path: str) -> Mapped:
        """A whole file to read in place; it goes on being readable when the file is removed."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of any file that has it."""

    def link(self, old: str, new: str) -> None:
        """Give a file a second name, which nothing has yet; each can then be removed alone.

        ENOTSUP where files have one name only.
        """
        raise failed(OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP)), _LINKING, old, new)

    def remove(self, path: str) -> None:
        """Remove the name of a file, which who has it mapped can go on reading."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory survive a loss of power."""

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        """Keep others out by this file, created if need be, or LockedError if one is in.

        Shared locks keep out exclusive ones only, and need a file that is there and readable.
        """

    def replace(self, path: str, data: bytes, temporary: str) -> None:
        """Put a file with this content in place of any at ``path``, in one durable step."""
        try:
            file = self.create(temporary)
            try:
                file.append(data)
                file.flush()
                checked_sync(file.sync)
            except BaseException:
                with contextlib.suppress(IOError):
                    file.close()
                raise
            file.close()
            self.rename(temporary, path)
        except IOError:
            with contextlib.suppress(IOError):
                self.remove(temporary)
            raise
        checked_sync(lambda: self.sync_directory(os.path.dirname(path) or "."))


def failed(error: OSError, what: str, path: str, new: str | None = None) -> IOError:
    """The error to raise where trying this with a file (renaming it to ``new``) failed."""
    message = f"cannot {what}: {error.strerror or error}"
    if new is None:
        return IOError(error.errno, message, path)
    return IOError(error.errno, message, path, None, new)


class trying:  # noqa: N801 - it reads as a word, and a generator takes five times as long
    """Turn the system's errors into those of ``failed``, which say what was tried."""

    __slots__ = ("_new", "_path", "_what")

    def __init__(self, what: str, path: str, new: str | None = None):
        self._what = what
        self._path = path
        self._new = new

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, IOError):
            raise failed(error, self._what, self._path, self._new) from error


class FileSystem(Storage):
    """The system's own files. Its locks are LevelDB's, so that each keeps out the other."""

    def absolute(self, path: str) -> str:
        if not path:
            raise NotADatabaseError("'name' is empty: there is no such directory")
        if sys.platform == "win32":  # pragma: no cover - where a drive has a directory of its own
            return os.path.abspath(path)
        if os.path.isabs(path):
            return path
        try:
            return os.path.join(os.getcwd(), path)  # as it is: ".." leads elsewhere behind links
        except OSError as error:
            what = "tell where a relative path leads, for want of a current directory"
            raise failed(error, what, path) from error

    def real(self, path: str) -> str:
        with trying("find where the path leads", path):
            return os.path.realpath(path)

    def make_directory(self, path: str) -> None:
        with trying("make the directory, the last part of this path", path):
            try:
                os.mkdir(path)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise

    def remove_directory(self, path: str) -> None:
        with trying("remove the directory", path):
            os.rmdir(path)

    def list(self, path: str) -> builtins.list[str]:
        with trying("list the directory", path):
            return sorted(os.listdir(path))

    def exists(self, path: str) -> bool:
        with trying("look for the file", path):
            try:
                os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def size(self, path: str) -> int:
        with trying("find the size of the file", path):
            return os.stat(path).st_size

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        with trying("create the file", path):
            opener = _opened_as_it_is if small_appends else None
            raw = open(path, "wb", buffering=0, opener=opener)  # noqa: SIM115 - the file closes it
        return _LogFile(raw, path) if small_appends else _File(raw, path)

    def read(self, path: str) -> bytes:
        with trying("read the file", path), io.FileIO(path) as file:
            return file.read()

    def map(self, path: str) -> Mapped:
        with trying("map the file", path), io.FileIO(path) as file:
            if os.stat(file.fileno()).st_size == 0:  # which mmap refuses
                return Mapped(b"")
            return Mapped(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def rename(self, old: str, new: str) -> None:
        with trying("rename the file", old, new):
            os.replace(old, new)

    def link(self, old: str, new: str) -> None:
        with trying(_LINKING, old, new):
            os.link(old, new)

    def remove(self, path: str) -> None:
        with trying("remove the file", path):
            os.remove(path)

    def sync_directory(self, path: str) -> None:
        if sys.platform == "win32":  # pragma: no cover - no such thing there
            return
        with trying("sync the directory", path):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)  # names may be among the metadata that fdatasync leaves out
            finally:
                os.close(descriptor)

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        with trying("lock the file", path):
            return locks.acquire(path, shared=shared)


class _File:
    """A file being written, through a buffer."""

    def __init__(self, raw: io.FileIO, path: str):
        self.path = path
        self.size = 0
        self._raw = raw
        self._write: Callable[[int, Data], int] = os.write
        self._buffer = bytearray()
        self._buffer_bytes = BUFFER_BYTES
        self.descriptor = raw.fileno() if os.name == "posix" else -1
        self._written = 0  # the file's length; after a failed append it may exceed ``size``
        self._hastened = 0

    def append(self, data: Data) -> None:
        if len(self._buffer) + len(data) >= self._buffer_bytes:
            self.flush()
        if len(data) >= self._buffer_bytes:
            self._write_all(data)
        else:
            self._buffer += data
        self.size += len(data)

    def advance(self, count: int) -> None:
        assert not self._buffer, "what is in the buffer belongs before that"
        self._written += count
        self._hastened = self._written  # as whoever wrote them has seen to
        self.size += count

    def flush(self) -> None:
        start = self._written
        try:
            self._write_all(self._buffer)
        finally:
            del self._buffer[: self._written - start]
        self._hasten()

    def _hasten(self) -> None:
        """Have the system begin to write to the device, so that a sync later waits for less."""
        start, self._hastened = self._hastened, self._written
        if self._written - start >= _HASTENED_BYTES:
            _begin_writing(self._raw.fileno(), start, self._written - start)

    def sync(self) -> None:
        self.flush()
        with trying("sync the file", self.path):
            _sync(self._raw.fileno())

    def truncate(self, length: int) -> None:
        descriptor = self._raw.fileno()
        if not 0 <= length <= self.size:
            raise ValueError(f"{self.path} cannot be cut to {length} bytes: it has {self.size}")
        if self._written > length:
            with trying(f"cut the file to {length} bytes", self.path):
                os.ftruncate(descriptor, length)
                os.lseek(descriptor, length, os.SEEK_SET)
            self._written = length
        del self._buffer[length - self._written :]
        self.size = length

    def close(self) -> None:
        self._buffer_bytes = 0  # so that no later append stays in the buffer unnoticed
        if self._raw.closed:
            return
        try:
            self.flush()
        finally:
            with trying("close the file", self.path):
                self._raw.close()

    def _write_all(self, data: Data) -> None:
        start, rest, descriptor = self._written, data, self._raw.fileno()
        try:
            while rest:
                done = self._write(descriptor, rest)
                self._written += done
                rest = rest[done:]
        except OSError as error:
            raise self._unwritten(error, len(data), start, self._written - start) from error

    def _unwritten(self, error: OSError, length: int, start: int, done: int) -> IOError:
        what = f"write {length} bytes at byte {start} of the file (it took {done})"
        return failed(error, what, self.path)


class _LogFile(_File):
    """A file whose appends go to the system at once, each to its place."""

    def __init__(self, raw: io.FileIO, path: str):
        super().__init__(raw, path)
        self._write_at = _write_keeping_the_gil()

    def append(self, data: Data) -> None:
        offset = data.offset if isinstance(data, Placed) else self.size
        at, end, descriptor = offset, offset + len(data), self._raw.fileno()
        write_at = self._write_at if end - at <= _SMALL_BYTES else _write_at_length
        try:
            while at < end:
                at += write_at(descriptor, data[at - end :] if at > offset else data, at)
        except OSError as error:
            raise self._unwritten(error, end - offset, offset, at - offset) from error
        if end > self.size:
            self.size = end

    def truncate(self, length: int) -> None:
        size = os.fstat(self._raw.fileno()).st_size
        if not 0 <= length <= size:
            raise ValueError(f"{self.path} cannot be cut to {length} bytes: it has {size}")
        with trying(f"cut the file to {length} bytes", self.path):
            os.ftruncate(self._raw.fileno(), length)
        self.size = length

    def close(self) -> None:
        with trying("close the file", self.path):
            self._raw.close()


def _begin_writing(descriptor: int, start: int, length: int) -> None:
    """Tell the system that these bytes will not be changed: Linux then begins to write them.

    Of what is written already nothing may be among them: it would leave the cache.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, start, length, os.POSIX_FADV_DONTNEED)


def _opened_as_it_is(path: str, flags: int) -> int:
    """Open a file without emptying it: a child forked meanwhile would empty the log, too."""
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


def _sync(descriptor: int) -> None:
    """Return when the device has the file's bytes and its length."""
    if sys.platform == "darwin":  # pragma: no cover - there fsync stops at the drive's own cache
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
    # fdatasync writes the length as well; it spares what reading back does not need, the times.
    getattr(os, "fdatasync", os.fsync)(descriptor)


@functools.cache
def _write_keeping_the_gil() -> Callable[[int, Data, int], int]:
    """os.pwrite for short data: it keeps the GIL, and a thread that is busy cannot take it.

    A write to the page cache takes about 2 us. Beside one busy thread, getting the GIL back after
    os.pwrite takes that thread's switch interval, 5 ms.
    """
    try:
        import ctypes

        library = ctypes.PyDLL(None, use_errno=True)
        # Where a plain ``pwrite`` takes offsets of 32 bits, there is another one beside it.
        write = getattr(library, "pwrite64", None) or library.pwrite
    except (ImportError, OSError, AttributeError, TypeError):  # as on Windows
        return _write_at_length
    write.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64)
    write.restype = ctypes.c_ssize_t

    def write_some(descriptor: int, data: Data, offset: int) -> int:
        try:
            while (done := write(descriptor, bytes(data), len(data), offset)) < 0:
                number = ctypes.get_errno()
                if number != errno.EINTR:
                    raise OSError(number, os.strerror(number))
        except ctypes.ArgumentError as error:  # what went wrong with one, and only that in words
            kind = MemoryError if "MemoryError" in str(error) else RecursionError
            raise kind(str(error)) from None
        return int(done)

    return write_some


def _write_at_length(descriptor: int, data: Data, offset: int) -> int:
    """os.pwrite, beside which other threads run."""
    written: int = getattr(os, "pwrite", _seek_and_write)(descriptor, data, offset)
    return written


def _seek_and_write(descriptor: int, data: Data, offset: int) -> int:  # pragma: no cover
    """os.pwrite where there is none; one thread writes a file at a time."""
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.write(descriptor, data)
