"""The write-ahead log that is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.disk import filenames
from lsm.disk.log import LogWriter

if TYPE_CHECKING:
    from lsm.storage import Storage, WritableFile


class WriteLog:
    """One log file, from its creation on. Its name is durable before it takes a record."""

    def __init__(self, storage: Storage, directory: str, number: int):
        self.number = number
        path = f"{directory}/{filenames.log_name(number)}"
        self._file: WritableFile = storage.create(path, small_appends=True)
        try:
            storage.sync_directory(directory)
        except BaseException:
            self._file.close()
            raise
        self._records = LogWriter(self._file)

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self._file.size

    def append(self, record: bytes) -> None:
        """Hand a record to the system; if that fails, ``take_back`` what it took."""
        self._records.add(record)

    def take_back(self, size: int) -> None:
        """Cut the file where a record ended: behind a torn one the next would not be found."""
        self._file.truncate(size)
        self._records = LogWriter(self._file, size)

    def sync(self) -> None:
        """Return when all records survive the loss of power. After a failure there is no retry."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
