"""Snapshots: the database as of one sequence number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from lsm import iterators
from lsm.disk.keys import rank_of
from lsm.kernels import Reader
from lsm.state import SNAPSHOT_CLOSED

if TYPE_CHECKING:
    from lsm.iterators import RawIterator
    from lsm.state import State


class Snapshot(Reader):
    """Reads the database as it was when the snapshot was taken, whatever is written later.

    While it is open, compactions keep the versions that it sees: ``close()`` it, use it in a
    ``with`` block, or drop it. Iterators made from it are not affected by its closing.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, store: State, prefix: bytes | None, pinned_db: object):
        store.check_open("Cannot operate on closed LevelDB database")
        self._store = store
        self._pinned_db = pinned_db
        self._prefix = prefix or None
        self._read_rank = rank_of(store.take_snapshot(self))

    def raw_iterator(
        self, *, verify_checksums: bool | None = False, fill_cache: bool | None = True
    ) -> RawIterator:
        """A raw iterator, over the whole database as in plyvel, prefixed or not."""
        return iterators.raw_iterator(
            self._open(),
            self._read_rank,
            self._pinned_db,
            verify_checksums=verify_checksums,
            fill_cache=fill_cache,
        )

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

    def _open(self) -> State:
        store = self._store
        if store is None:
            raise self._closed_error()
        store.check_open(SNAPSHOT_CLOSED)
        return store

    def _closed_iterator_error(self) -> RuntimeError:
        return self._closed_error()

    def _closed_error(self) -> RuntimeError:
        store = self._store
        return (
            RuntimeError(SNAPSHOT_CLOSED) if store is None else store.closed_error(SNAPSHOT_CLOSED)
        )

    def __repr__(self) -> str:
        return f"<lsm.Snapshot{' (closed)' if self._store is None else ''} at {id(self):#x}>"
