"""Threads that are waited for with patience and not for ever, and places at which to hold them."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import attrs
import pytest

from lsm.storage import Data, FileSystem, Lock, Mapped, WritableFile
from tests.lsm.patience import stacks

PATIENCE = 90.0
"""Seconds after which a thread is stuck: far more than anything takes on the slowest machine."""


def until(holds: Callable[[], Any]) -> None:
    """Return when this holds, which another thread brings about."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited for in vain:\n{stacks()}")
        pause.wait(0.0005)


def is_in(thread: threading.Thread, *functions: str) -> bool:
    """Whether a thread waits for a condition or an event somewhere below these functions."""
    frame = sys._current_frames().get(thread.ident or 0)
    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names[:1] == ["wait"] and set(functions) <= set(names)


class Crew:
    """Threads at work. At the end of the ``with`` block all have ended, and none with an error."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.failed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._errors: list[str] = []

    def start(self, function: Callable[..., Any], *args: Any, name: str = "") -> threading.Thread:
        """Have a thread do this."""
        thread = threading.Thread(
            target=self._run, args=(function, args), name=name or function.__name__, daemon=True
        )
        self._threads.append(thread)
        thread.start()
        return thread

    def join(self) -> None:
        """Return when all have ended; fail with their stacks if they do not, or with an error."""
        deadline = time.monotonic() + self.patience
        for thread in self._threads:
            thread.join(max(0.1, deadline - time.monotonic()))
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        if stuck:
            self._errors.append(f"stuck: {', '.join(stuck)}\n{stacks()}")
        self._threads.clear()
        if self._errors:
            errors, self._errors = self._errors, []
            pytest.fail("\n".join(errors))

    def _run(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            function(*args)
        except BaseException:
            name = threading.current_thread().name
            self._errors.append(f"{name}: {traceback.format_exc()}\nall threads:\n{stacks()}")
            self.failed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.join()


def done(function: Callable[..., Any], *args: Any) -> Any:
    """What a call returns that might hang."""
    results: list[Any] = []
    with Crew() as crew:
        crew.start(lambda: results.append(function(*args)), name=getattr(function, "__name__", ""))
    return results[0]


class Gate:
    """Holds the threads that come to an operation on a file until it is opened."""

    def __init__(self, operation: str, ending: str):
        self._operation = operation
        self._ending = ending
        self._opened = threading.Event()
        self.reached = threading.Event()

    def __call__(self, operation: str, path: str) -> None:
        """Wait, if it is that operation."""
        if operation == self._operation and path.endswith(self._ending):
            self.reached.set()
            if not self._opened.wait(PATIENCE):
                raise TimeoutError(f"nobody opened the gate of {operation} {path}")

    def wait(self) -> None:
        """Return when a thread stands before it."""
        if not self.reached.wait(PATIENCE):
            pytest.fail(f"nobody came to {self._operation} a {self._ending}:\n{stacks()}")

    def open(self) -> None:
        """Let go who is held, and who comes."""
        self._opened.set()


class Hooked(FileSystem):
    """The system's own files. What is in ``hooks`` is called before each operation.

    ``operations`` lists them, with the thread's name.
    """

    def __init__(self, *hooks: Callable[[str, str], Any]):
        self.hooks = list(hooks)
        self.operations: list[tuple[str, str, str]] = []

    def before(self, operation: str, path: str) -> None:
        """Call the hooks."""
        self.operations.append((threading.current_thread().name, operation, path))
        for hook in list(self.hooks):
            hook(operation, path)

    def list(self, path: str) -> Any:
        self.before("list", path)
        return super().list(path)

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        self.before("create", path)
        return _HookedFile(self, super().create(path, small_appends=small_appends))

    def map(self, path: str) -> Mapped:
        self.before("map", path)
        return super().map(path)

    def rename(self, old: str, new: str) -> None:
        self.before("rename", new)
        super().rename(old, new)

    def link(self, old: str, new: str) -> None:
        self.before("link", new)
        super().link(old, new)

    def remove(self, path: str) -> None:
        self.before("remove", path)
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.before("sync_directory", path)
        super().sync_directory(path)

    def lock(self, path: str, *, shared: bool = False) -> Lock:
        self.before("lock", path)
        return _HookedLock(self, path, super().lock(path, shared=shared))


@attrs.frozen
class _HookedFile:
    _storage: Hooked
    _file: WritableFile

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, data: Data) -> None:
        self._storage.before("append", self.path)
        self._file.append(data)

    def flush(self) -> None:
        self._file.flush()

    def sync(self) -> None:
        self._storage.before("sync", self.path)
        self._file.sync()

    def truncate(self, length: int) -> None:
        self._storage.before("truncate", self.path)
        self._file.truncate(length)

    def close(self) -> None:
        self._storage.before("close", self.path)
        self._file.close()


@attrs.frozen
class _HookedLock:
    _storage: Hooked
    _path: str
    _lock: Lock

    def release(self) -> None:
        self._lock.release()
        self._storage.before("released", self._path)
