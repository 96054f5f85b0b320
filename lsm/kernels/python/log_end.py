"""Where a log ends: what a commit has to know of the log that it goes to."""

from __future__ import annotations


class LogEnd:
    """The end of a write-ahead log.

    ``end`` is where the last record ends that counts, and where the next one goes. A log that
    ``is_torn`` has part of a record behind that, and takes no more. ``descriptor`` is the system's,
    if a record may be written at ``end`` without asking anybody; else it is negative.
    """

    end: int
    is_torn: bool
    descriptor: int
