"""Files that a repaired database does without, and that no database removes.

A table of which not all could be read stays in the directory with ``.unreadable`` behind its name;
whatever else a repair leaves out moves into ``lost/``.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from lsm.errors import IOError

if TYPE_CHECKING:
    from lsm.storage import Storage

Log: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"

LOST = "lost"
"""The directory within a database's that keeps what repairing set aside."""

UNREADABLE = ".unreadable"
"""What the name of a table ends in that could not be read, or not all of it."""

_UNREADABLE_TABLE = re.compile(rf"0*([0-9]{{1,20}})\.(ldb|sst){re.escape(UNREADABLE)}(\.[0-9]+)?")


class Quarantine:
    """The files of one directory that repairs have left out."""

    def __init__(self, storage: Storage, directory: str, log: Log):
        self._storage = storage
        self._directory = directory
        self._log = log

    def unreadable(self) -> dict[str, int]:
        """The names of all tables that could not be read, with their numbers."""
        names = self._storage.list(self._directory)
        matches = ((name, _UNREADABLE_TABLE.fullmatch(name)) for name in names)
        return {name: int(match[1]) for name, match in matches if match}

    @contextlib.contextmanager
    def renamed(self, names: Iterable[str], is_undone: Callable[[], bool]) -> Iterator[None]:
        """Name tables as unreadable; rename them back after an error if the work ``is_undone``.

        It is not where it was committed before the error came.
        """
        renamed: list[tuple[str, str]] = []
        try:
            for name in names:
                path = self._path(name)
                new_path = free_path(self._storage, f"{path}{UNREADABLE}")
                renamed.append((path, new_path))
                self._storage.rename(path, new_path)
                self._log.warning("%s: kept, for not all of it can be read, as %s", path, new_path)
            if renamed:
                self._storage.sync_directory(self._directory)
            yield
        except BaseException:
            if is_undone():
                for path, new_path in renamed:
                    with contextlib.suppress(IOError):
                        if not self._storage.exists(path):
                            self._storage.rename(new_path, path)
            raise

    def make(self) -> None:
        """Create the directory ``lost/`` unless it is there."""
        self._storage.make_directory(self._path(LOST))

    def move(self, names: list[str]) -> None:
        """Move files into ``lost/``, beside those that earlier repairs moved there."""
        if not names:
            return
        lost = self._path(LOST)
        for name in names:
            self._storage.rename(self._path(name), free_path(self._storage, f"{lost}/{name}"))
        self._storage.sync_directory(lost)
        self._storage.sync_directory(self._directory)
        self._log.info("%s: %d files are set aside in %s/", self._directory, len(names), LOST)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def free_path(storage: Storage, path: str) -> str:
    """The path, or where that is taken the first with a number behind it that is not."""
    free, number = path, 0
    while storage.exists(free):
        number += 1
        free = f"{path}.{number}"
    return free
