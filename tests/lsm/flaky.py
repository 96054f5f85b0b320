"""The system's own files, of which any operation may fail for the moment."""

from __future__ import annotations

import builtins
import errno
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import lsm
from lsm.storage import Data, FileSystem, Mapped, WritableFile

PASSING = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES, errno.EDQUOT)

SYNCS = ("sync", "sync_directory")
OTHERS = (
    *("create", "append", "truncate", "list", "exists", "size", "read", "map", "rename"),
    *("link", "remove", "make_directory"),
)

# A write to the system may take a part of the bytes, several times for one append.
_SHORT = 0.2


class FlakyFileSystem(FileSystem):
    """Fails some operations by chance, whoever asks for them.

    ``met`` counts what has failed. What an append meets comes from the system's own call, after
    any part of its bytes.
    """

    def __init__(self, rng: random.Random, errors: Sequence[int] = PASSING):
        self.met: Counter[str] = Counter()
        self._errors = errors
        self._chance = 0.0
        self._failing: frozenset[str] = frozenset()
        self._name = ""
        self._rng = rng
        self._lock = threading.Lock()

    def fail(self, chance: float, operations: Iterable[str] = OTHERS, name: str = "") -> None:
        """Fail these from now on, with files that have this in their path."""
        self._failing = frozenset(operations)
        self._name = name
        self._chance = chance

    def mend(self) -> None:
        """Fail no more."""
        self._chance = 0.0

    def meet(self, operation: str, path: str) -> OSError | None:
        """What this operation meets this time."""
        if not self._chance or operation not in self._failing or self._name not in path:
            return None
        with self._lock:
            if self._rng.random() >= self._chance:
                return None
            self.met[operation] += 1
            number = self._rng.choice(self._errors)
        return OSError(number, os.strerror(number))

    def attempt(self, operation: str, path: str) -> None:
        """Raise what this operation meets, as the system's files would word it."""
        error = self.meet(operation, path)
        if error is not None:
            raise lsm.IOError(error.errno, f"cannot {operation}: {error.strerror}", path)

    def take_part(self, data: Data) -> Data:
        """The bytes that the system takes at once."""
        if not self._chance or len(data) < 2:
            return data
        with self._lock:
            if self._rng.random() >= _SHORT:
                return data
            return data[: self._rng.randrange(1, len(data))]

    def make_directory(self, path: str) -> None:
        self.attempt("make_directory", path)
        super().make_directory(path)

    def list(self, path: str) -> builtins.list[str]:
        self.attempt("list", path)
        return super().list(path)

    def exists(self, path: str) -> bool:
        self.attempt("exists", path)
        return super().exists(path)

    def size(self, path: str) -> int:
        self.attempt("size", path)
        return super().size(path)

    def read(self, path: str) -> bytes:
        self.attempt("read", path)
        return super().read(path)

    def map(self, path: str) -> Mapped:
        self.attempt("map", path)
        return super().map(path)

    def rename(self, old: str, new: str) -> None:
        self.attempt("rename", old)
        super().rename(old, new)

    def link(self, old: str, new: str) -> None:
        self.attempt("link", new)
        super().link(old, new)

    def remove(self, path: str) -> None:
        self.attempt("remove", path)
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.attempt("sync_directory", path)
        super().sync_directory(path)

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        self.attempt("create", path)
        file: Any = super().create(path, small_appends=small_appends)
        file._write = self._flaky_write(file._write, path)
        if small_appends:
            file._write_at = self._flaky_write(file._write_at, path)
        for name in ("sync", "truncate"):
            setattr(file, name, self._attempted(name, getattr(file, name), path))
        return file  # type: ignore[no-any-return] # which is one, with four functions replaced

    def _flaky_write(self, write: Callable[..., int], path: str) -> Callable[..., int]:
        def write_some(descriptor: int, data: Data, *offset: int) -> int:
            error = self.meet("append", path)
            try:
                if error is not None:
                    raise error
            finally:
                del error  # whose frames have it
            return write(descriptor, self.take_part(data), *offset)

        return write_some

    def _attempted(self, name: str, call: Callable[..., Any], path: str) -> Callable[..., Any]:
        def attempted(*arguments: Any) -> Any:
            self.attempt(name, path)
            return call(*arguments)

        return attempted
