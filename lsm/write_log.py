"""The write-ahead log that is being written."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lsm.disk import filenames
from lsm.disk.fragments import BLOCK_BYTES, frame
from lsm.errors import IOError
from lsm.kernels import LogEnd
from lsm.storage import Placed, described
from lsm.syncing import checked_sync

if TYPE_CHECKING:
    from lsm.storage import Storage, WritableFile


class WriteLog(LogEnd):
    """One log file, from its creation on. Its name is durable before it takes a record.

    The first log of an open database, which no other one precedes, may be an empty file that was
    found: who only reads has nothing made durable.

    Once it is ready for its first record, the ``descriptor`` is that of its file, if that has one.
    What is torn is not cut off there and then: that might hit a record that a signal handler has
    written meanwhile.

    ``previous`` is the log that this one follows: it is synced and closed first, because a synced
    write to this one must not outlive an unsynced one to that.
    """

    def __init__(
        self, storage: Storage, directory: str, number: int, previous: WriteLog | None = None
    ):
        self.number = number
        self.end = 0
        self.is_torn = False
        self.descriptor = -1
        self._is_finished = False
        self._previous = previous
        self._storage = storage
        self._directory = directory
        self._path = f"{directory}/{filenames.log_name(number)}"
        self._file: WritableFile = storage.create(self._path, small_appends=True)
        self._is_ready = False
        self._has_name = False
        if previous is not None:
            try:
                self.sync_name()
            except BaseException:
                self._file.close()
                raise

    def place(self, record: bytes) -> Placed:
        """The bytes to append for the record that comes next, at their place."""
        end = self.end
        return Placed(end, frame(record, end % BLOCK_BYTES))

    def append(self, placed: Placed) -> None:
        """Hand a record to the system; until ``end`` is behind it, that can be done again."""
        if not self._is_ready:
            self._get_ready()
        self._file.append(placed)

    def _get_ready(self) -> None:
        """Make durable what has to be before the first record is there."""
        self.finish_previous()
        self.sync_name()
        self._is_ready = True
        file = described(self._file)
        self.descriptor = -1 if file is None else file.descriptor

    def sync_name(self) -> None:
        """Make the name of the file durable; once done, do nothing."""
        if not self._has_name:
            checked_sync(lambda: self._storage.sync_directory(self._directory))
            self._has_name = True

    def finish_previous(self) -> None:
        """Sync and close the log that this one follows, before the first record of this one."""
        previous = self._previous
        if previous is not None:
            previous.finish()
            previous.close()
            self._previous = None

    def assume_name(self) -> None:
        """Take it that somebody else has synced the directory since the file was created."""
        self._has_name = True

    def finish(self) -> None:
        """Sync for the last time; once done, do nothing."""
        self.descriptor = -1
        try:
            if not self._is_finished:
                self.sync()
        except ValueError:  # it is closed: by a write that came in between, and finished it first
            if not self._is_finished:
                raise
        self._is_finished = True

    def sync(self) -> None:
        """Return when all records survive the loss of power. After a failure there is no retry."""
        checked_sync(self._file.sync)

    def close(self) -> None:
        """Close the file, and that of the previous log."""
        self.descriptor = -1
        if self._previous is not None:
            self._previous.close()
        if self.is_torn:
            self.cut()
        self._file.close()

    def cut(self) -> None:
        """Cut a torn record off, if possible, when nobody writes any more; else replay drops it."""
        with contextlib.suppress(IOError, ValueError):  # or the file is closed already
            self._file.truncate(self.end)

    def abandon(self) -> None:
        """Close and remove a log that nobody has written to."""
        self._previous = None
        with contextlib.suppress(IOError):
            self._file.close()
            self._storage.remove(self._path)
