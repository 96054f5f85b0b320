"""Bulk loads: sorted input straight to tables, at the level where they may stay.

::

    report = lsm.bulk.load(db, sorted(pairs))

Nothing goes through the log and the memtable, nothing is merged, and each entry is written once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import lt
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
# Of these, so many are looked at together, each time by calls of C that go through all of them.
_PIECE_PAIRS = 64


@attrs.define
class _Chunk:
    """Keys with their values, and how many bytes these are."""

    keys: list[bytes] = attrs.field(factory=list)
    values: list[bytes] = attrs.field(factory=list)
    size: int = 0


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
        tables = _Tables(store, loading, first.keys[0], level)
        try:
            for chunk in chain((first,), chunks):
                tables.add(chunk)
                if progress is not None:
                    progress(tables.progress)
            tables.finish()
            store.background.install_load(loading)
        except BaseException:
            tables.abandon()
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
        factory = store.installer.factory
        law = factory.prospect(version, self.level, joins=True)
        self._plan = factory.plan(self.level, DeeperLevels(version, self.level), "bulk", law)
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
        count, first = len(chunk.keys), self._last + 1
        if self._last + count > MAX_SEQUENCE:
            raise Error(
                f"{self._store.directory}: the sequence numbers are used up, all 2^56 of them"
            )
        ranks = range(rank_of(first, PUT), rank_of(first + count, PUT), rank_of(1) - rank_of(0))
        entries = list(zip(chunk.keys, ranks, chunk.values, strict=True))
        self._at_work(partial(self._write, entries))
        self._last += count
        self._entries += count
        self._load.size += chunk.size

    def finish(self) -> None:
        """Finish the last table, and have the load say what is to be installed."""
        load = self._load
        self._at_work(self._finish_table)
        load.files = self._store.installer.add(load.edit, self.level, self._outputs)
        load.visible = rank_of(self._last)

    def abandon(self) -> None:
        """Close the file of a table that is not finished; in a forked child it is the parent's."""
        if self._builder is not None and not self._store.is_abandoned:
            with contextlib.suppress(IOError):
                self._builder.abandon()

    def _at_work(self, write: Callable[[], None]) -> None:
        """Write while nobody closes the database; a sync that fails stops all writing."""
        try:
            with self._load.busy:
                self._store.check_writable()
                write()
        except SyncError as error:
            self._store.fail(error)
            raise

    def _write(self, entries: list[Entry]) -> None:
        factory, at = self._store.installer.factory, 0
        while at < len(entries):
            if self._builder is None:
                self._number = factory.new_number()
                self._builder = factory.builder(self._number, self._plan)
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
    rest, wrap = iter(pairs), comparator.wrap
    chunk, count = _Chunk(), 0
    last: list[OrderedKey] = []
    while piece := list(islice(rest, _PIECE_PAIRS)):
        keys, values = _columns(piece, count)
        if prefix:
            keys = [prefix + key for key in keys]
        ordered = [*last, *(keys if wrap is None else map(wrap, keys))]
        if not all(map(lt, ordered, islice(ordered, 1, None))):
            raise _disorder(ordered, count - len(last), len(prefix), comparator)
        last = ordered[-1:]
        chunk.keys += keys
        chunk.values += values
        chunk.size += sum(map(len, keys)) + sum(map(len, values))
        count += len(piece)
        if chunk.size >= _CHUNK_BYTES or len(chunk.keys) >= _CHUNK_PAIRS:
            yield chunk
            chunk = _Chunk()
    if chunk.keys:
        yield chunk


def _columns(piece: list[Any], first: int) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Keys and values as bytes, of pairs of which the first has this number."""
    if set(map(type, piece)) != {tuple} or set(map(len, piece)) != {2}:
        piece = [_pair_of(number, pair) for number, pair in enumerate(piece, first)]
    keys: Sequence[Any]
    values: Sequence[Any]
    keys, values = zip(*piece, strict=True)
    if set(map(type, keys)) != {bytes}:
        keys = [key_bytes(f"the key of pair {at}", key) for at, key in enumerate(keys, first)]
    if set(map(type, values)) != {bytes}:
        values = [key_bytes(f"the value of pair {at}", it) for at, it in enumerate(values, first)]
    return keys, values


def _pair_of(number: int, pair: Any) -> tuple[Any, Any]:
    try:
        key, value = pair
    except (TypeError, ValueError):
        raise TypeError(f"pair {number} is no pair of a key and a value: {pair!r:.60}") from None
    return key, value


def _disorder(
    ordered: list[OrderedKey], first: int, prefix: int, comparator: Comparator
) -> ValueError:
    """The error that names the first key that does not come after the one before."""
    at = next(at for at in range(1, len(ordered)) if not ordered[at - 1] < ordered[at])
    before, key = (comparator.unwrap(each)[prefix:] for each in ordered[at - 1 : at + 1])
    return ValueError(
        f"keys must ascend: that of pair {first + at} is {key!r}, and the one before it {before!r}"
    )
