"""A file that is surveyed: mapped for reading, and every read checked against its length."""

from __future__ import annotations

import mmap
import os
from typing import Self

from lsm.errors import CorruptionError
from lsm.storage import FileSystem

# What was read stays in memory as long as the file is mapped, unless somebody lets go of it.
_MOST_RESIDENT = 1 << 26


class Source:
    """Reads of a file of anybody's, which is never written; lsm.IOError where it cannot be read.

    What it hands out are copies: they outlive it. Once closed it cannot be read any more.
    """

    __slots__ = ("_mapped", "_resident", "path", "size")

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        self._mapped = FileSystem().map(self.path)
        self.size = len(self._mapped.data)
        self._resident = 0

    def read(self, offset: int, size: int, what: str) -> bytes:
        """So many bytes from this place on; CorruptionError where the file does not have them."""
        end = offset + size
        if not 0 <= offset <= end <= self.size:
            raise self.damaged(
                offset,
                f"the {what} would take {size} bytes from there, and the file has {self.size}",
            )
        self._resident += size
        if self._resident > _MOST_RESIDENT:
            self._let_go()
        return self._mapped.data[offset:end]

    def _let_go(self) -> None:
        """Have the system take back what was read, where it can; it is there to be read again."""
        self._resident = 0
        if isinstance(self._mapped.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.data.madvise(mmap.MADV_DONTNEED)

    def end(self, size: int) -> bytes:
        """The last bytes, so many or as many as there are."""
        return self._mapped.data[max(0, self.size - size) :]

    def damaged(self, offset: int, problem: object) -> CorruptionError:
        """The error that says what is wrong with the file, and where."""
        return CorruptionError(f"{self.path}: at byte {offset}: {problem}")

    def close(self) -> None:
        """Give the mapping back."""
        self._mapped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
