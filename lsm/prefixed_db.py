"""A part of a database: all keys with one prefix, without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.arguments import flag, key_bytes
from lsm.batch import WriteBatch
from lsm.kernels import Keyspace
from lsm.snapshot import Snapshot
from lsm.state import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.db import DB
    from lsm.store import Store


class PrefixedDB(Keyspace):
    """Reads and writes a database as if it held only the keys with a prefix, and not the prefix."""

    __slots__ = ("__weakref__", "_db")

    def __init__(self, store: Store, db: DB, prefix: bytes):
        self._store: Store = store
        self._db = self._pinned_db = db
        self._prefix, self._read_rank = prefix, None

    @property
    def db(self) -> DB:
        """The database that this is a part of, under no prefix."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """What all keys begin with in the database, the prefixes of outer parts included."""
        return self._prefix or b""

    def write_batch(
        self, *, transaction: bool | None = False, sync: bool | None = False
    ) -> WriteBatch:
        """A batch whose keys get the prefix."""
        return WriteBatch(
            self._store,
            self._db,
            self.prefix,
            flag("transaction", transaction),
            flag("sync", sync),
        )

    def _closed_error(self) -> RuntimeError:
        return self._store.closed_error()

    def _closed_iterator_error(self) -> RuntimeError:
        return self._store.closed_error(ITERATOR_CLOSED)

    def snapshot(self) -> Snapshot:
        """The part as it is now."""
        return Snapshot(self._store, self._prefix, self._db)

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """A part of this part."""
        return PrefixedDB(self._store, self._db, self.prefix + key_bytes("prefix", prefix))

    def __copy__(self) -> PrefixedDB:
        return PrefixedDB(self._store, self._db, self.prefix)

    def __repr__(self) -> str:
        return f"<lsm.PrefixedDB with prefix {self.prefix!r} at {id(self):#x}>"
