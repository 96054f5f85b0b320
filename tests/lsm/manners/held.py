"""The system's own files, of which one kind of operation waits until it is let go."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from lsm.storage import FileSystem, Mapped, WritableFile

# Whoever waits longer has been forgotten: the test fails, and does not hang.
_PATIENCE = 60


class HeldFileSystem(FileSystem):
    """Operations go on at once, but for those that are held."""

    def __init__(self) -> None:
        self._held: tuple[str, str] | None = None
        self._go = threading.Event()
        self._tell: Any = None

    def hold(self, operation: str, suffix: str) -> asyncio.Event:
        """Hold an operation with files of such names from now on; set when somebody is held."""
        entered, loop = asyncio.Event(), asyncio.get_running_loop()
        self._go.clear()
        self._tell = lambda: loop.call_soon_threadsafe(entered.set)
        self._held = operation, suffix
        return entered

    def let_go(self) -> None:
        """Let all go on."""
        self._held = None
        self._go.set()

    def meet(self, operation: str, path: str) -> None:
        """Wait, if that is held."""
        held = self._held
        if held is not None and operation == held[0] and path.endswith(held[1]):
            self._tell()
            assert self._go.wait(_PATIENCE), f"{operation} of {path} was never let go"

    def map(self, path: str) -> Mapped:
        self.meet("map", path)
        return super().map(path)

    def create(self, path: str, *, small_appends: bool = False) -> WritableFile:
        self.meet("create", path)
        file: Any = _HeldFile(super().create(path, small_appends=small_appends), self)
        return file  # type: ignore[no-any-return]


class _HeldFile:
    """A file whose sync can be held."""

    def __init__(self, file: WritableFile, storage: HeldFileSystem):
        self._file = file
        self._storage = storage

    def sync(self) -> None:
        self._storage.meet("sync", self._file.path)
        self._file.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
