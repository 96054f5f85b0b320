"""An attempt to open, repair or destroy a directory: its lock, and its rollback on failure."""

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
HEAT_NAME = "lsm-heat"

BESIDE = frozenset(
    f"{name}{suffix}" for name in (OPTIONS_NAME, SEED_NAME, HEAT_NAME) for suffix in ("", ".dbtmp")
)
"""The names of our own files in a database's directory, and of those they are renamed from."""


class Attempt:
    """Holds a directory's lock within ``with``, and rolls back if that ends with an error.

    Nothing stays then of what was not there before: no file beside a database, and if there was
    nothing of one, no file of a database either. A lock that the attempt keeps is released by whom
    it was given to, and not before the attempt is over.

    ``names`` are those in the directory once it was locked.
    """

    def __init__(self, storage: Storage, directory: str):
        self._storage = storage
        self._directory = directory
        self._path = f"{directory}/{filenames.LOCK}"
        self._lock: Lock | None = None
        self._makes_lock = False
        self.names: frozenset[str] = frozenset()
        self._makes_files = False
        self._makes_directory = False
        self._rollbacks = contextlib.ExitStack()
        self._keeps_lock = False

    def create_directory(self) -> None:
        """Create the directory, if need be, but not the one above it."""
        self._makes_directory = not self._storage.exists(self._directory)
        make_directory(self._storage, self._directory)

    def lock_exclusively(self) -> Lock:
        """Lock the directory, creating its lock file if need be; LockedError if it is locked."""
        self._makes_lock = not self._storage.exists(self._path)
        if self._makes_lock:
            self._check_there()
        self._lock = self._storage.lock(self._path)
        self.names = frozenset(self._storage.list(self._directory))
        self._makes_files = True
        return self

    def lock_shared(self) -> Lock | None:
        """Lock it for reading; None where there is no lock file, as on a read-only medium."""
        self._check_there()
        has_lock = self._storage.exists(self._path)
        if has_lock:
            self._lock = self._storage.lock(self._path, shared=True)
        self.names = frozenset(self._storage.list(self._directory))
        return self if has_lock else None

    def on_failure(self, undo: Callable[[], object]) -> None:
        """Register a function to call first when the attempt is rolled back."""
        self._rollbacks.callback(undo)

    def keep_lock(self) -> None:
        """Leave the lock held when the attempt has succeeded: its new holder releases it."""
        self._keeps_lock = True

    def release(self) -> None:
        """Release the lock that was kept; do nothing as long as it may have to be rolled back."""
        if self._keeps_lock and self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._keeps_lock:
            self._rollbacks.pop_all()
            return
        self._keeps_lock = False
        try:
            if kind is not None:
                with contextlib.suppress(Error):
                    self._rollbacks.close()
                with contextlib.suppress(Error):
                    self._roll_back()
        finally:
            if self._lock is not None:
                self._lock.release()

    def _roll_back(self) -> None:
        """Remove what was not there before, with the lock, and only what this attempt can make."""
        if self._makes_lock and self._lock is None and self._storage.exists(self._path):
            self._lock = self._storage.lock(self._path)  # or else others have it
        if self._makes_files:
            is_new = not any(_has_data(name) for name in self.names)
            names = set(self._storage.list(self._directory)) - self.names
            if is_new and filenames.CURRENT in names:
                # Unless it is gone for good all else stays, which it would still lead to.
                self._storage.remove(f"{self._directory}/{filenames.CURRENT}")
                self._storage.sync_directory(self._directory)
            for name in sorted(names - {filenames.CURRENT}):
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
    if name in BESIDE:
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
