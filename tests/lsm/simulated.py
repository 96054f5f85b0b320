"""A file system in memory that loses power, is killed and fails when a test says so.

It is as strict as POSIX allows: what was appended survives a loss of power only if the file was
synced after that, and a name that was created, changed or removed only if its directory was.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import errno
import os
import posixpath
import random
import threading
from collections.abc import Callable, Iterator
from typing import Literal

import attrs

from lsm.errors import SyncError
from lsm.locks import locked
from lsm.storage import (
    BUFFER_BYTES,
    Data,
    Lock,
    Mapped,
    Placed,
    Storage,
    WritableFile,
    trying,
)

_DIRECTORY_MUTATIONS = {"make_directory", "remove_directory", "sync_directory"}
_FILE_MUTATIONS = {"append", "create", "link", "remove", "rename", "sync", "truncate"}
MUTATIONS = _FILE_MUTATIONS | _DIRECTORY_MUTATIONS

When = Callable[[str, str, int], bool]
Tails = Literal["clean", "zero", "garbage"]


class PowerLost(SyncError):  # noqa: N818 - the name of an event
    """The machine is off: nothing that is tried happens any more."""


class SimulatedStorage(Storage):
    """Files in memory. Directories survive everything as soon as they are made.

    ``operations`` lists what was tried while there was power, in order, as (method's name, path);
    a rename and a link are listed under the new name, and ``replace`` as the operations that it is
    made of.
    """

    def __init__(self) -> None:
        self.operations: list[tuple[str, str]] = []
        self._mutex = threading.RLock()
        self._directories = {"/": _Directory(), ".": _Directory()}
        self._holders: dict[str, list[_Lock]] = {}
        self._faults: list[_Fault] = []
        self._mutations_left: int | None = None

    def count(self, operation: str) -> int:
        """How often this operation was tried."""
        with self._mutex:
            return sum(name == operation for name, _ in self.operations)

    @property
    def mutations(self) -> int:
        """How many operations were tried that change something: those in MUTATIONS."""
        with self._mutex:
            return sum(name in MUTATIONS for name, _ in self.operations)

    # What goes wrong

    def fail(self, when: When, error: int = errno.EIO, *, partial: bool = False) -> None:
        """Fail each operation from now on for which ``when(operation, path, index)`` is true.

        The index is the operation's place in ``operations``. With ``partial`` a failing append
        leaves the first half of its bytes. What a failing sync should have made durable never
        will be, though it can be read: later syncs succeed, and leave zeros in its place.
        """
        with self._mutex:
            self._faults.append(_Fault(when, error, partial))

    def mend(self) -> None:
        """Fail no more. What failing syncs forgot stays forgotten, and lost power lost."""
        with self._mutex:
            self._faults.clear()

    def stop_after(self, mutations: int) -> None:
        """Lose power after so many more mutating operations: the next one and all else fails."""
        with self._mutex:
            self._mutations_left = mutations

    @property
    def stopped(self) -> bool:
        """Whether power was lost."""
        with self._mutex:
            return self._mutations_left is not None and self._mutations_left < 0

    def crash(
        self, rng: random.Random | None = None, *, tails: Tails = "clean"
    ) -> SimulatedStorage:
        """What is there after a loss of power, in a new storage without faults and locks.

        Without ``rng`` that is only what was synced. With it, each unsynced change of a directory
        may have survived as well, and so may any part of what was appended to a file after its
        last sync; with other ``tails`` some bytes at the end of that part are zeros or garbage.
        """
        files: dict[_File, _File] = {}  # one file may be there under two names

        def survivor(file: _File) -> _File:
            if file not in files:
                files[file] = _File.durably(file.after_crash(rng, tails))
            return files[file]

        with self._mutex:
            after = SimulatedStorage()
            for path, directory in self._directories.items():
                names = directory.after_crash(rng)
                after._directories[path] = _Directory.durably(
                    {name: survivor(file) for name, file in names.items()}
                )
            return after

    def kill(self) -> SimulatedStorage:
        """What is there when the process was killed: all but what it had in its own buffers.

        It is as durable as it was, and no more. Faults and locks are gone.
        """
        with self._mutex:
            after = SimulatedStorage()
            after._directories = copy.deepcopy(self._directories)
            return after

    # What the engine asks for

    def make_directory(self, path: str) -> None:
        with self.operation("make_directory", path):
            if self._is_directory(path):
                return
            directory, name = self._place(path)
            if name in directory.names:
                raise _error(errno.EEXIST)
            self._directories[_normal(path)] = _Directory()

    def remove_directory(self, path: str) -> None:
        with self.operation("remove_directory", path):
            if self._directory(path).names or self._subdirectories(path):
                raise _error(errno.ENOTEMPTY)
            del self._directories[_normal(path)]

    def list(self, path: str) -> builtins.list[str]:
        with self.operation("list", path):
            return sorted([*self._directory(path).names, *self._subdirectories(path)])

    def exists(self, path: str) -> bool:
        with self.operation("exists", path):
            return self._is_directory(path) or self._find(path) is not None

    def size(self, path: str) -> int:
        with self.operation("size", path):
            return len(self._file(path).data)

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        with self.operation("create", path):
            file = self._created(path)
            return _WritableFile(self, path, file, 0 if small_appends else BUFFER_BYTES)

    def read(self, path: str) -> bytes:
        with self.operation("read", path):
            return bytes(self._file(path).data)

    def map(self, path: str) -> Mapped:
        with self.operation("map", path):
            return Mapped(bytes(self._file(path).data))

    def rename(self, old: str, new: str) -> None:
        with self.operation("rename", new):
            file = self._file(old)
            source, old_name = self._place(old)
            target, new_name = self._place(new)
            if self._is_directory(new):
                raise _error(errno.EISDIR)
            if source is target:
                source.change(_Change(removed=old_name, added=new_name, file=file))
            else:
                target.change(_Change(added=new_name, file=file))
                source.change(_Change(removed=old_name))

    def link(self, old: str, new: str) -> None:
        with self.operation("link", new):
            file = self._file(old)
            directory, name = self._place(new)
            if self._is_directory(new) or name in directory.names:
                raise _error(errno.EEXIST)
            directory.change(_Change(added=name, file=file))

    def remove(self, path: str) -> None:
        with self.operation("remove", path):
            self._file(path)
            directory, name = self._place(path)
            directory.change(_Change(removed=name))

    def sync_directory(self, path: str) -> None:
        with self.operation("sync_directory", path):
            self._directory(path).sync()

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        with self.operation("lock", path):
            holders = self._holders.setdefault(_normal(path), [])
            if holders and not (shared and holders[0].shared):
                raise locked(path, "this process", reading=holders[0].shared)
            if shared:
                self._file(path)
            elif self._find(path) is None:
                self._created(path)
            holders.append(_Lock(self._mutex, holders, shared))
            return holders[-1]

    # What all that is made of

    @contextlib.contextmanager
    def operation(self, operation: str, path: str) -> Iterator[_Fault | None]:
        """List an operation and fail it if need be; a failing append or sync fails by itself."""
        with self._mutex, trying(operation.replace("_", " "), path):
            if self._mutations_left is not None:
                if self._mutations_left == 0 and operation in MUTATIONS:
                    self._mutations_left = -1
                if self._mutations_left < 0:
                    raise PowerLost(errno.EIO, f"cannot {operation}: the power is lost", path)
                self._mutations_left -= operation in MUTATIONS
            index = len(self.operations)
            self.operations.append((operation, path))
            fault = next((each for each in self._faults if each.when(operation, path, index)), None)
            if fault and operation not in ("append", "sync"):
                raise fault.error()
            yield fault

    def _is_directory(self, path: str) -> bool:
        return _normal(path) in self._directories

    def _directory(self, path: str) -> _Directory:
        if not self._is_directory(path):
            raise _error(errno.ENOENT if self._find(path) is None else errno.ENOTDIR)
        return self._directories[_normal(path)]

    def _subdirectories(self, path: str) -> builtins.list[str]:
        splits = [posixpath.split(each) for each in self._directories if each not in ("/", ".")]
        return [name for above, name in splits if (above or ".") == _normal(path)]

    def _place(self, path: str) -> tuple[_Directory, str]:
        """The directory that holds this path's last part, and that part."""
        above, name = posixpath.split(_normal(path))
        return self._directory(above or "."), name

    def _find(self, path: str) -> _File | None:
        above, name = posixpath.split(_normal(path))
        directory = self._directories.get(above or ".")
        return directory.names.get(name) if directory else None

    def _file(self, path: str) -> _File:
        if self._is_directory(path):
            raise _error(errno.EISDIR)
        directory, name = self._place(path)
        if name not in directory.names:
            raise _error(errno.ENOENT)
        return directory.names[name]

    def _created(self, path: str) -> _File:
        """The file at this path, emptied, or a new one."""
        if self._is_directory(path):
            raise _error(errno.EISDIR)
        directory, name = self._place(path)
        if name in directory.names:
            directory.names[name].truncate(0)
        else:
            directory.change(_Change(added=name, file=_File()))
        return directory.names[name]


def fails_at(storage: SimulatedStorage, place: int, error: int = errno.EIO) -> builtins.list[str]:
    """Have the operation at one place fail; then its name is in the list."""
    failed: builtins.list[str] = []

    def when(what: str, _path: str, index: int) -> bool:
        if index == place:
            failed.append(what)
        return index == place

    storage.fail(when, error)
    return failed


def _normal(path: str) -> str:
    """The one spelling of a path."""
    return posixpath.normpath(path.replace("//", "/"))


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@attrs.frozen
class _Fault:
    when: When
    number: int
    partial: bool

    def error(self) -> OSError:
        return _error(self.number)


@attrs.define(eq=False)
class _File:
    """A file's bytes: those that are read, and those that are on the device."""

    data: bytearray = attrs.Factory(bytearray)
    durable: bytes = b""
    kept: int = 0  # so many bytes of the durable ones were not cut off since
    tried: int = 0  # syncs were tried up to here
    forgotten: list[tuple[int, int]] = attrs.Factory(list)  # by failed syncs, from where to where

    @classmethod
    def durably(cls, data: bytes) -> _File:
        return cls(bytearray(data), data, len(data), len(data))

    def truncate(self, length: int) -> None:
        del self.data[length:]
        self.kept = min(self.kept, length)
        self.tried = min(self.tried, length)
        self.forgotten = [(a, min(b, length)) for a, b in self.forgotten if a < length]

    def sync(self) -> None:
        written = self._written()
        if self.forgotten and self.forgotten[-1][1] == len(written):
            del written[self.forgotten[-1][0] :]  # nothing after them made the file longer
        self.durable = bytes(written)
        self.kept = len(self.durable)
        self.tried = len(self.data)

    def fail_sync(self) -> None:
        start = self.tried
        if self.forgotten and self.forgotten[-1][1] == start:
            start = self.forgotten.pop()[0]
        if start < len(self.data):
            self.forgotten.append((start, len(self.data)))
        self.tried = len(self.data)

    def after_crash(self, rng: random.Random | None, tails: Tails) -> bytes:
        cut_off = self.kept < len(self.durable)
        if rng is None or (cut_off and rng.random() < 0.5):
            return self.durable
        written = bytes(self._written())
        length = rng.randint(self.kept, len(written))
        right = length if tails == "clean" else rng.randint(self.kept, length)
        wrong = bytes(length - right) if tails == "zero" else rng.randbytes(length - right)
        return written[:right] + wrong

    def _written(self) -> bytearray:
        """What is on its way to the device: zeros where failed syncs forgot what is read."""
        written = bytearray(self.data)
        for start, end in self.forgotten:
            written[start:end] = bytes(end - start)
        return written


@attrs.frozen(kw_only=True)
class _Change:
    """A step that a directory takes wholly or not at all."""

    removed: str | None = None
    added: str | None = None
    file: _File | None = None

    def apply(self, names: dict[str, _File]) -> None:
        if self.removed is not None:
            names.pop(self.removed, None)
        if self.added is not None and self.file is not None:
            names[self.added] = self.file


@attrs.define(eq=False)
class _Directory:
    """A directory's files by name: as they are found, and as they are on the device."""

    names: dict[str, _File] = attrs.Factory(dict)
    durable: dict[str, _File] = attrs.Factory(dict)
    unsynced: list[_Change] = attrs.Factory(list)

    @classmethod
    def durably(cls, names: dict[str, _File]) -> _Directory:
        return cls(names, dict(names))

    def change(self, change: _Change) -> None:
        change.apply(self.names)
        self.unsynced.append(change)

    def sync(self) -> None:
        self.durable = dict(self.names)
        self.unsynced.clear()

    def after_crash(self, rng: random.Random | None) -> dict[str, _File]:
        names = dict(self.durable)
        for change in self.unsynced if rng else []:
            if rng and rng.random() < 0.5:
                change.apply(names)
        return names


@attrs.define(eq=False)
class _Lock:
    mutex: threading.RLock
    holders: list[_Lock]
    shared: bool

    def release(self) -> None:
        with self.mutex:
            if self in self.holders:
                self.holders.remove(self)


class _WritableFile:
    """A file being written, through a buffer of so many bytes, as the real one is."""

    def __init__(self, storage: SimulatedStorage, path: str, file: _File, buffer_bytes: int):
        self.path = path
        self.size = 0
        self._storage = storage
        self._file = file
        self._buffer = bytearray()
        self._buffer_bytes = buffer_bytes
        self._closed = False

    def append(self, data: Data) -> None:
        with self._operation("append") as fault:
            if isinstance(data, Placed):
                assert not self._buffer_bytes, "only a file with small appends takes placed bytes"
                assert data.offset <= len(self._file.data), "a hole in a log"
                del self._file.data[data.offset :]
            if fault:
                if fault.partial:
                    self.flush()
                    self._file.data += data[: len(data) // 2]
                raise fault.error()
            if len(self._buffer) + len(data) >= self._buffer_bytes:
                self.flush()
            self._buffer += data
            if len(self._buffer) >= self._buffer_bytes:
                self.flush()
            self.size += len(data)

    def flush(self) -> None:
        self._file.data += self._buffer
        self._buffer.clear()

    def sync(self) -> None:
        with self._operation("sync") as fault:
            self.flush()
            if fault:
                self._file.fail_sync()
                raise fault.error()
            self._file.sync()

    def truncate(self, length: int) -> None:
        with self._operation("truncate"):
            if not 0 <= length <= self.size:
                raise ValueError(f"{self.path} cannot be cut to {length} bytes")
            if length < len(self._file.data):
                self._file.truncate(length)
            del self._buffer[length - len(self._file.data) :]
            self.size = length

    def close(self) -> None:
        if not self._closed:
            with self._operation("close"):
                self.flush()

    @contextlib.contextmanager
    def _operation(self, operation: str) -> Iterator[_Fault | None]:
        if self._closed:
            raise ValueError(f"{self.path} is closed")
        self._closed = operation == "close"
        with self._storage.operation(operation, self.path) as fault:
            yield fault
