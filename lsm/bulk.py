"""Bulk loads: sorted input straight to tables, at the level where they may stay.

::

    report = lsm.bulk.load(db, sorted(pairs))

Nothing goes through the log and the memtable, nothing is merged, and each entry is written once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from lsm.arguments import key_bytes
from lsm.db import DB
from lsm.disk.keys import MAX_SEQUENCE, PUT, rank_of
from lsm.errors import Error, IOError, SyncError
from lsm.loading import Load
from lsm.options import LEVELS
from lsm.prefixed_db import PrefixedDB
from lsm.table_factory import DeeperLevels, Output

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.keys import Entry
    from lsm.disk.table_builder import TableBuilder
    from lsm.store import Store
    from lsm.version import Version

# What is taken from the input before any of it is written: so many pairs, or bytes of them.
_CHUNK_PAIRS = 4096
_CHUNK_BYTES = 4 << 20


@attrs.frozen
class _Chunk:
    """Some pairs, and the bytes of their keys and values."""

    pairs: list[tuple[bytes, bytes]]
    size: int


@attrs.frozen
class BulkProgress:
    """How far a load has come: entries and tables that are written, and the bytes of these."""

    entries: int
    tables: int
    bytes: int


@attrs.frozen
class BulkReport:
    """What was loaded: entries, their tables, the bytes of these, and the level they are on.

    There is no level where there was nothing to load.
    """

    entries: int
    tables: int
    bytes: int
    level: int | None
    seconds: float


def load(
    db: DB | PrefixedDB,
    pairs: Iterable[tuple[Buffer, Buffer]],
    *,
    level: int | None = None,
    progress: Callable[[BulkProgress], object] | None = None,
) -> BulkReport:
    """Write pairs of keys and values, the keys ascending, as tables of one level.

    They count as written after all that is in the database, and become visible together at the end;
    a crash, or a loss of power, leaves all of them or none. After an error or an interruption
    nothing is loaded; one that comes while a thread of the background installs the tables may find
    that all of it is. ValueError for keys that do not ascend.

    Without a ``level`` they go to the deepest one such that no table on it, or above it, has keys
    from the first one on; ValueError for one that is deeper. Other writers, and compactions, wait
    until it has ended. ``progress`` is called now and then, in this thread; what it raises ends
    the load.
    """
    start = time.perf_counter()
    store, prefix = _parts_of(db)
    _check_level(level)
    store.check_can_wait("lsm.bulk.load()")
    store.check_writable()
    chunks = _chunks(pairs, prefix, store.comparator)
    first = next(chunks, None)
    if first is None:
        return BulkReport(0, 0, 0, None, time.perf_counter() - start)
    loading = Load()
    try:
        store.begin_load(loading)
        tables = _Tables(store, loading, first.pairs[0][0], level)
        try:
            for chunk in chain((first,), chunks):
                tables.add(chunk)
                if progress is not None:
                    progress(tables.progress)
            tables.finish()
            store.background.install_load(loading)
        except BaseException as error:
            tables.abandon()
            if isinstance(error, SyncError):
                store.fail(error)
            raise
    finally:
        store.end_load(loading)
    done = tables.progress
    seconds = time.perf_counter() - start
    return BulkReport(done.entries, done.tables, done.bytes, tables.level, seconds)


class _Tables:
    """Writes tables of one level, each up to ``max_file_size``."""

    def __init__(self, store: Store, loading: Load, first: bytes, level: int | None):
        version = store.opened_view().version
        wrap = store.comparator.wrap
        self.level = _level_for(version, first if wrap is None else wrap(first), first, level)
        self._store = store
        self._load = loading
        self._deeper = DeeperLevels(version, self.level)
        self._last = store.last_visible
        self._outputs: list[Output] = []
        self._builder: TableBuilder | None = None
        self._number = 0
        self._entries = 0

    @property
    def progress(self) -> BulkProgress:
        """What is written, and what is in the table that is being written."""
        written = sum(output.table.size for output in self._outputs)
        if self._builder is None:
            return BulkProgress(self._entries, len(self._outputs), written)
        return BulkProgress(self._entries, len(self._outputs), written + self._builder.size)

    def add(self, chunk: _Chunk) -> None:
        """Write pairs behind those before."""
        pairs, first = chunk.pairs, self._last + 1
        if first + len(pairs) - 1 > MAX_SEQUENCE:
            raise Error(
                f"{self._store.directory}: the sequence numbers are used up, all 2^56 of them"
            )
        entries = [
            (key, rank_of(sequence, PUT), value)
            for sequence, (key, value) in enumerate(pairs, first)
        ]
        with self._load.busy:
            self._store.check_writable()
            self._write(entries)
        self._last += len(pairs)
        self._entries += len(pairs)
        self._load.size += chunk.size

    def finish(self) -> None:
        """Finish the last table, and have the load say what is to be installed."""
        load = self._load
        with load.busy:
            self._store.check_writable()
            self._finish_table()
            load.files = self._store.installer.add(load.edit, self.level, self._outputs)
        load.visible = rank_of(self._last)

    def abandon(self) -> None:
        """Close the file of a table that is not finished; in a forked child it is the parent's."""
        if self._builder is not None and not self._store.is_abandoned:
            with contextlib.suppress(IOError):
                self._builder.abandon()

    def _write(self, entries: list[Entry]) -> None:
        factory, at = self._store.installer.factory, 0
        while at < len(entries):
            if self._builder is None:
                self._number = factory.new_number()
                self._builder = factory.builder(self._number, self.level, self._deeper, "bulk")
            at = self._builder.add(entries, at, factory.max_file_size)
            if self._builder.size >= factory.max_file_size:
                self._finish_table()

    def _finish_table(self) -> None:
        if self._builder is not None:
            self._outputs.append(Output(self._number, self._builder.finish()))
            self._builder = None


def _parts_of(db: Any) -> tuple[Store, bytes]:
    """The store of a database, or of a part of one, and what its keys begin with."""
    if not isinstance(db, (DB, PrefixedDB)):
        raise TypeError(f"db is an lsm.DB or a PrefixedDB, not {type(db).__name__}")
    return db._store, db.prefix if isinstance(db, PrefixedDB) else b""


def _check_level(level: Any) -> None:
    if level is None:
        return
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"level is a number or None, not {type(level).__name__}")
    if not 0 <= level < LEVELS:
        raise ValueError(f"there is no level {level}: allowed are 0 to {LEVELS - 1}")


def _level_for(version: Version, low: OrderedKey, first: bytes, wanted: int | None) -> int:
    """The level for keys from one on: newer versions of a key must not lie below older ones."""
    deepest = 0
    if not version.overlapping(0, low, None):
        while deepest + 1 < LEVELS and not version.overlapping(deepest + 1, low, None):
            deepest += 1
    if wanted is None:
        return deepest
    if wanted > deepest:
        raise ValueError(
            f"level {wanted} cannot take keys from {first[:40]!r} on: there are tables with such "
            f"keys on it or above it, and allowed are 0 to {deepest}"
        )
    return wanted


def _chunks(
    pairs: Iterable[tuple[Buffer, Buffer]], prefix: bytes, comparator: Comparator
) -> Iterator[_Chunk]:
    """The pairs as bytes, with the prefix, in chunks; none of these is empty."""
    wrap = comparator.wrap
    chunk: list[tuple[bytes, bytes]] = []
    size = 0
    last: Any = None
    for at, pair in enumerate(pairs):
        try:
            key, value = pair
        except (TypeError, ValueError):
            raise TypeError(f"pair {at} is no pair of a key and a value: {pair!r:.60}") from None
        if type(key) is not bytes:
            key = key_bytes(f"the key of pair {at}", key)
        if type(value) is not bytes:
            value = key_bytes(f"the value of pair {at}", value)
        if prefix:
            key = prefix + key
        ordered = key if wrap is None else wrap(key)
        if at and not last < ordered:
            before = last if wrap is None else comparator.unwrap(last)
            raise ValueError(
                f"keys must ascend: that of pair {at} is {key[len(prefix) :]!r}, and the one "
                f"before it {before[len(prefix) :]!r}"
            )
        last = ordered
        chunk.append((key, value))
        size += len(key) + len(value)
        if size >= _CHUNK_BYTES or len(chunk) >= _CHUNK_PAIRS:
            yield _Chunk(chunk, size)
            chunk, size = [], 0
    if chunk:
        yield _Chunk(chunk, size)
