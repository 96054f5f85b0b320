"""Snapshots: the database as of one sequence number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from lsm import lookups, reading
from lsm.arguments import flag, key_bytes
from lsm.disk.keys import rank_of
from lsm.reading import Ranges, Reading
from lsm.store import SNAPSHOT_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.iterators import RawIterator
    from lsm.store import Store


class Snapshot(Ranges):
    """Reads the database as it was when the snapshot was taken, whatever is written later.

    While it is open, compactions keep the versions that it sees: ``close()`` it, use it in a
    ``with`` block, or drop it. Iterators made from it are not affected by its closing.
    """

    __slots__ = ("__weakref__", "_pinned_db", "_prefix", "_read_rank", "_store")

    def __init__(self, store: Store, prefix: bytes | None, pinned_db: object):
        store.check_open("Cannot operate on closed LevelDB database")
        self._store: Store | None = store
        self._pinned_db: object = pinned_db
        self._prefix = prefix
        self._read_rank = rank_of(store.take_snapshot(self))

    def get(
        self,
        key: Buffer,
        default: Any = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Any:
        """The key's value at that moment, or the default."""
        whole = (self._prefix or b"") + key_bytes("key", key)
        flag("verify_checksums", verify_checksums)
        fill = flag("fill_cache", fill_cache)
        return lookups.get(self._open(), whole, default, self._read_rank, fill)

    def get_many(self, keys: Iterable[Buffer], default: Any = None) -> list[Any]:
        """The values of many keys at that moment, in order."""
        return lookups.get_many(self._open(), keys, default, self._read_rank, self._prefix or b"")

    def __contains__(self, key: Buffer) -> bool:
        return self.get(key) is not None

    def raw_iterator(
        self, *, verify_checksums: bool | None = False, fill_cache: bool | None = True
    ) -> RawIterator:
        """A raw iterator, over the whole database as in plyvel, prefixed or not."""
        return reading.raw_iterator(
            self._open(),
            self._read_rank,
            self._pinned_db,
            verify_checksums=verify_checksums,
            fill_cache=fill_cache,
        )

    def _reading(self) -> Reading:
        return Reading(self._open(), self._prefix, self._read_rank, self._pinned_db)

    def close(self) -> None:
        """Release the versions it sees; every further use except closing is a RuntimeError."""
        store, self._store = self._store, None
        if store is not None:
            store.release_snapshot(self)
        self._pinned_db = None

    release = close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> Store:
        store = self._store
        if store is None:
            raise RuntimeError(SNAPSHOT_CLOSED)
        store.check_open(SNAPSHOT_CLOSED)
        return store

    def __repr__(self) -> str:
        return f"<lsm.Snapshot{' (closed)' if self._store is None else ''} at {id(self):#x}>"
