"""An attempt at a directory: its lock, and what is undone unless the attempt succeeds."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.errors import Error, IOError, NotADatabaseError

if TYPE_CHECKING:
    from lsm.storage import Lock, Storage

OPTIONS_NAME = "lsm-options.toml"
SEED_NAME = "lsm-seed"

_BESIDE = frozenset(
    (OPTIONS_NAME, SEED_NAME, *(f"{name}.dbtmp" for name in (OPTIONS_NAME, SEED_NAME)))
)


class Attempt:
    """Has a directory's lock within ``with``; what leaves that by an error is undone.

    Of what was not there before nothing stays then: no file beside a database, and if there was
    nothing of one, no file of a database either. Whoever the lock is handed on to lets go of it,
    and cannot do so before the attempt is over.
    """

    def __init__(self, storage: Storage, directory: str):
        self._storage = storage
        self._directory = directory
        self._path = f"{directory}/{filenames.LOCK}"
        self._lock: Lock | None = None
        self._makes_lock = False
        self._before: frozenset[str] | None = None  # as it was found once nobody else was in it
        self._makes_directory = False
        self._undoing = contextlib.ExitStack()
        self._is_handed_on = False

    def make(self) -> None:
        """Make the directory, if need be, but not the one above it."""
        self._makes_directory = not self._storage.exists(self._directory)
        make_directory(self._storage, self._directory)

    def write(self) -> Lock:
        """Keep everybody out."""
        self._check_there()
        self._makes_lock = not self._storage.exists(self._path)
        self._lock = self._storage.lock(self._path)
        self._before = frozenset(self._storage.list(self._directory))
        return self

    def read(self) -> Lock | None:
        """Keep writers out; none is needed where nobody ever wrote, as on a medium."""
        self._check_there()
        if not self._storage.exists(self._path):
            return None
        self._lock = self._storage.lock(self._path, shared=True)
        return self

    def on_failure(self, undo: Callable[[], object]) -> None:
        """Call this before anything else is undone."""
        self._undoing.callback(undo)

    def hand_on(self) -> None:
        """Keep the lock when the attempt is over."""
        self._is_handed_on = True

    def release(self) -> None:
        """Let others in, unless there may be something to undo yet."""
        if self._is_handed_on and self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._is_handed_on:
            self._undoing.pop_all()
            return
        self._is_handed_on = False
        try:
            if kind is not None:
                with contextlib.suppress(Error):
                    self._undoing.close()
                with contextlib.suppress(Error):
                    self._undo()
        finally:
            if self._lock is not None:
                self._lock.release()

    def _undo(self) -> None:
        """Remove what was not there before, with the lock, and only what this attempt can make."""
        if self._makes_lock and self._lock is None and self._storage.exists(self._path):
            self._lock = self._storage.lock(self._path)  # or else others have it
        before = self._before
        if before is not None:
            is_new = not any(_has_data(name) for name in before)
            names = set(self._storage.list(self._directory)) - before
            for name in sorted(names, key=lambda each: (each != filenames.CURRENT, each)):
                if _is_made(name, is_new):
                    self._remove(name)
        if self._makes_lock and self._lock is not None:
            self._remove(filenames.LOCK)
        if self._makes_directory:
            self._storage.remove_directory(self._directory)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(IOError):
            self._storage.remove(f"{self._directory}/{name}")

    def _check_there(self) -> None:
        if not self._storage.exists(self._directory):
            raise NotADatabaseError(
                f"{self._directory}: does not exist (create_if_missing is false, or the directory "
                "above it is missing, which is not created)"
            )


def _is_made(name: str, is_new: bool) -> bool:
    """Whether opening makes such a file, in a new database or beside one that was there."""
    if name in _BESIDE:
        return True
    return is_new and filenames.parse(name) is not None


def _has_data(name: str) -> bool:
    parsed = filenames.parse(name)
    return parsed is not None and parsed[0] in (Kind.CURRENT, Kind.TABLE, Kind.LOG)


def make_directory(storage: Storage, directory: str) -> None:
    """Make a database's directory, if need be, but not the one above it."""
    try:
        storage.make_directory(directory)
    except IOError as error:
        if error.errno != errno.ENOENT:
            raise
        raise NotADatabaseError(
            f"{directory}: the directory above it does not exist, and only the last one is created"
        ) from error
