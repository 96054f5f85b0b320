"""The failure of a flush, a compaction or a sync, after which writing stops."""

from __future__ import annotations

import attrs

from lsm.errors import Error, IOError, ReadOnlyError, SyncError
from policies.errors import cause


@attrs.frozen
class Failure:
    """The cause in words: an exception would refer to its frames, and so to the database.

    A failed sync ``is_final``, since nothing is known any more of what the disk has. Anything else
    can be retried.
    """

    cause: str
    number: int | None
    is_final: bool

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure that an exception stands for."""
        number = error.errno if isinstance(error, OSError) else None
        return cls(cause(error), number, isinstance(error, SyncError))

    def __str__(self) -> str:
        return self.cause

    def refusal(self, directory: str) -> Error:
        """The error of a write after this failure."""
        if self.is_final:
            return ReadOnlyError(
                f"{directory}: writing has stopped, reading goes on: {self.cause}; close the "
                "database, mend the cause, and open it again"
            )
        message = (
            f"writing waits, reading goes on: {self.cause}; the next write, or resume(), tries "
            "again once the cause is mended"
        )
        if self.number is None:
            return Error(f"{directory}: {message}")
        return IOError(self.number, message, directory)
