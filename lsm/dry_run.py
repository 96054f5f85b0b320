"""The storage of a dry run: what is written to it is found in it again, and nowhere else."""

# ruff: noqa: D102 - what the methods do is said in the interface
from __future__ import annotations

import builtins
import contextlib
import errno
import mmap
import os
import tempfile
from typing import IO

from lsm.errors import IOError
from lsm.storage import Data, Lock, Mapped, Storage, WritableFile


class DryRunStorage(Storage):
    """An overlay of another storage, which is read and stays as it is.

    New files are temporary ones of the system's, without a name, and end with the dry run.
    """

    def __init__(self, storage: Storage):
        self._storage = storage
        # What is found under a path now: a file of the dry run, the path of one below, or nothing.
        self._changes: dict[str, _DryRunFile | str | None] = {}
        self._made: set[str] = set()

    def absolute(self, path: str) -> str:
        return self._storage.absolute(path)

    def make_directory(self, path: str) -> None:
        if self._storage.exists(path):
            self._storage.list(path)  # an error where it is none
        elif path not in self._made:
            above = os.path.dirname(path) or "."
            if not (self._storage.exists(above) or above in self._made):
                raise _missing("make the directory, the last part of this path", path)
            self._made.add(path)

    def remove_directory(self, path: str) -> None:
        if path not in self._made or self.list(path):
            raise IOError(errno.ENOTEMPTY, "cannot remove the directory: it is not empty", path)
        self._made.remove(path)

    def list(self, path: str) -> builtins.list[str]:
        names = set() if path in self._made else set(self._storage.list(path))
        names.update(os.path.basename(each) for each in self._made if os.path.dirname(each) == path)
        for each, found in self._changes.items():
            directory, name = os.path.split(each)
            if directory == path:
                names.discard(name)
                names.update([] if found is None else [name])
        return sorted(names)

    def exists(self, path: str) -> bool:
        if path in self._changes:
            return self._changes[path] is not None
        return path in self._made or self._storage.exists(path)

    def size(self, path: str) -> int:
        found = self._find(path, "find the size of the file")
        return found.size if isinstance(found, _DryRunFile) else self._storage.size(found)

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        file = self._changes[path] = _DryRunFile(path)
        return file

    def read(self, path: str) -> bytes:
        found = self._find(path, "read the file")
        return found.read() if isinstance(found, _DryRunFile) else self._storage.read(found)

    def map(self, path: str) -> Mapped:
        found = self._find(path, "map the file")
        return found.map() if isinstance(found, _DryRunFile) else self._storage.map(found)

    def rename(self, old: str, new: str) -> None:
        self._changes[new] = self._find(old, "rename the file")
        self._changes[old] = None

    def remove(self, path: str) -> None:
        self._find(path, "remove the file")
        self._changes[path] = None

    def sync_directory(self, path: str) -> None:
        pass

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        return self._storage.lock(path, shared=True)

    def _find(self, path: str, what: str) -> _DryRunFile | str:
        """The dry run's file, or the path under which the other storage has it."""
        found = self._changes.get(path, path)
        if found is None or not (path in self._changes or self._storage.exists(path)):
            raise _missing(what, path)
        return found


class _DryRunFile:
    """A temporary file without a name, which only its dry run sees."""

    def __init__(self, path: str):
        self.path = path
        self.size = 0
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it ends with this object
        self._is_closed = False

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # where making the file was interrupted
            self._file.close()

    def append(self, data: Data) -> None:
        if self._is_closed:
            raise ValueError(f"{self.path} is closed")
        try:
            self._file.write(data)
        except OSError as error:
            what = f"cannot write a dry run's file into {tempfile.gettempdir()}: {error.strerror}"
            raise IOError(error.errno, what, self.path) from error
        self.size += len(data)

    def flush(self) -> None:
        pass

    def sync(self) -> None:
        pass

    def truncate(self, length: int) -> None:
        self._file.truncate(length)
        self._file.seek(length)
        self.size = length

    def close(self) -> None:
        self._is_closed = True

    def read(self) -> bytes:
        """All bytes that were appended."""
        mapped = self.map()
        try:
            return bytes(mapped.data[:])
        finally:
            mapped.close()

    def map(self) -> Mapped:
        """All bytes that were appended, mapped."""
        self._file.flush()
        if not self.size:
            return Mapped(b"")
        return Mapped(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ))


def _missing(what: str, path: str) -> IOError:
    return IOError(errno.ENOENT, f"cannot {what}: {os.strerror(errno.ENOENT)}", path)
