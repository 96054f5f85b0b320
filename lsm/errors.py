"""Every error the engine raises on purpose, besides TypeError and ValueError for misuse.

The first three are plyvel's, name for name; the others say more and are one of them.
"""

from __future__ import annotations

import builtins

ADVICE = "lsm.repair_db() keeps what can still be read"
"""What to do about damaged files."""


class Error(Exception):
    """The root of what the engine raises on purpose."""


class IOError(Error, builtins.IOError):
    """The file system failed or refused; the message names the file and what was tried."""


class SyncError(IOError):
    """A file could not be synced: what the disk has is unknown, and a second try would not tell."""


class CorruptionError(Error):
    """Bytes on disk are not what was written there; the message names file, place and remedy."""


class NotADatabaseError(Error):
    """There is no database here, or there is one where none was expected."""


class ForeignDatabaseError(NotADatabaseError):
    """The directory is another store's, such as RocksDB's; nothing in it was touched."""


class ComparatorError(Error):
    """The database's keys are ordered by another comparator than the one given."""


class LockedError(IOError):
    """Another process, or this one, has the database open."""


class ReadOnlyError(Error):
    """The database was opened for reading, or writing stopped after a failure that is named."""


class CodecError(Error, ValueError):
    """A codec of a mapping cannot encode a key or value, or not decode what is stored."""


class IteratorInvalidError(Error):
    """A raw iterator was asked for an entry while it stands at none."""
