"""An embedded LSM store with LevelDB's files, plyvel's interface, and any filter at any level.

::

    import lsm

    with lsm.DB("shop.db", create_if_missing=True, config="lsm.toml") as db:
        db.put(b"user:42", b"Ada")
        print(db.get(b"user:42"), db.explain(b"user:43"))

``lsm.KERNEL`` names the kernel that runs, compiled or readable, and ``lsm.KERNEL_REASON`` says why.
"""

from __future__ import annotations

import lsm.neighbours as _neighbours  # noqa: F401 - first: are the packages beside it its own?
from lsm import bulk, comparators
from lsm.batch import WriteBatch
from lsm.db import DB
from lsm.errors import (
    CodecError,
    ComparatorError,
    CorruptionError,
    Error,
    ForeignDatabaseError,
    IOError,
    IteratorInvalidError,
    LockedError,
    NotADatabaseError,
    ReadOnlyError,
    SyncError,
)
from lsm.iterators import Iterator, RawIterator
from lsm.kernels import KERNEL, KERNEL_REASON
from lsm.mappings import mapping
from lsm.prefixed_db import PrefixedDB
from lsm.repair import destroy_db, repair_db
from lsm.snapshot import Snapshot

__version__ = "0.2.0"
__leveldb_version__ = "1.22"
"""The release of LevelDB whose files are read and written."""

__all__ = [
    "DB",
    "KERNEL",
    "KERNEL_REASON",
    "CodecError",
    "ComparatorError",
    "CorruptionError",
    "Error",
    "ForeignDatabaseError",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "LockedError",
    "NotADatabaseError",
    "PrefixedDB",
    "RawIterator",
    "ReadOnlyError",
    "Snapshot",
    "SyncError",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "bulk",
    "comparators",
    "destroy_db",
    "mapping",
    "repair_db",
]
