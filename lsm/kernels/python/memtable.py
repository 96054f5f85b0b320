"""Memtables: the entries that were written last, sorted in memory, and in no table yet."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from operator import iconcat, ior, itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sortedcontainers import SortedList

from lsm.comparator import Comparator, OrderedKey
from lsm.disk.keys import NEWEST, PUT, Entry, rank_of
from lsm.kernels.python.batch import decode_batch, sequence_in
from lsm.steps import Step, run_steps

if TYPE_CHECKING:
    from lsm.write_log import WriteLog

_Found = TypeVar("_Found")

_CHUNK = 128
# What LevelDB's arena takes for an entry besides its key and value: version, lengths, skip list.
_ENTRY_BYTES = 32
# What Python takes for one, besides: a tuple, two objects of bytes, a number, and places in a list
# and a dictionary.
_OBJECT_BYTES = 300
# How much memory a memtable may take for each byte of its capacity.
_MEMORY_SHARE = 1.45
_SEQUENCE_STEP = 1 << 8
_key_of = itemgetter(0)


class Memtable:
    """Entries sorted by key, for any number of readers and one writer at a time.

    New entries are sorted when a reader needs the order, many at a time; until then the newest
    version of a key is found by its hash. With a comparator of the caller's, under which unequal
    bytes may be one key, every search uses the order.

    All entries are in one list in the order of their writing, which only grows. The sorted order is
    made of it again if sorting or searching in it ended with an exception.

    ``log`` is the one that has the same writes. ``size`` counts as LevelDB does, ``memory`` about
    what is held: both are bounded by the ``capacity``. A Python object has a header, so that small
    entries take up to ten times their size.
    """

    def __init__(
        self, comparator: Comparator, log: WriteLog | None = None, capacity: int = sys.maxsize
    ):
        self.log = log
        self._capacity = capacity
        self.size = 0
        self._wrap = comparator.wrap
        self._unwrap = comparator.unwrap
        self._newest: dict[bytes, Entry] = {}
        self._entries: list[Entry] = []
        # The order, and how many of the entries are in it: replaced together.
        self._order: tuple[SortedList[Entry], int] = (SortedList(), 0)
        self._in_use = False
        # Reentrant for the sake of signal handlers and finalizers, which then find it in use.
        self._lock = threading.RLock()

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def memory(self) -> int:
        """About how many bytes of memory the entries take."""
        return self.size + _OBJECT_BYTES * self.count

    def apply(self, record: bytes) -> tuple[int, int]:
        """Add the operations of a batch that was read from a log; its first number, and how many.

        CorruptionError for what is no write batch.
        """
        entries = self.prepare(record)
        self.grow(entries)
        run_steps(iter(self.steps(entries)))
        return sequence_in(record), len(entries)

    def prepare(self, record: bytes) -> list[Entry]:
        """The entries of a write batch, to be added; CorruptionError for what is none."""
        sequence, operations = decode_batch(record)
        rank = rank_of(sequence, PUT)
        if self._wrap is not None:
            operations = [(self._wrap(key), value) for key, value in operations]
        entries: list[Entry] = []
        for key, value in operations:
            if value is None:
                entries.append((key, rank + PUT, b""))
            else:
                entries.append((key, rank, value))
            rank -= _SEQUENCE_STEP
        return entries

    def steps(self, entries: list[Entry]) -> tuple[Step, ...]:
        """The steps that add prepared entries: only the last must not run twice."""
        add: Step = (iconcat, self._entries, entries)
        if self._wrap is not None:
            return (add,)
        newest = dict(zip(map(_key_of, entries), entries, strict=True))
        return ((ior, self._newest, newest), add)

    @property
    def filled(self) -> float:
        """The share of what it may take that is taken; more than 1 when it is full."""
        return max(self.size, self.memory / _MEMORY_SHARE) / max(self._capacity, 1)

    def has_room(self) -> bool:
        """Whether it is not full, and its log takes more records."""
        is_full = self.size > self._capacity or self.memory > _MEMORY_SHARE * self._capacity
        return not is_full and (self.log is None or not self.log.is_torn)

    def ends_with(self, entries: list[Entry]) -> bool:
        """Whether these prepared entries are the ones that were added last."""
        return bool(self._entries) and self._entries[-1] is entries[-1]

    def grow(self, entries: list[Entry]) -> None:
        """Count prepared entries in the size."""
        keys = map(_key_of, entries)
        plain = keys if self._wrap is None else map(self._unwrap, keys)
        values = [len(value) for _, _, value in entries]
        added = sum(map(len, plain)) + sum(values) + _ENTRY_BYTES * len(values)
        self.size += added

    def find(self, key: OrderedKey, read_rank: int) -> Entry | None:
        """The key's newest version that is visible at a read rank, tombstones included."""
        if self._wrap is None:
            entry = self._newest.get(key)
            if entry is None or entry[1] >= read_rank:
                return entry
        return self._query(partial(_first_from, key, read_rank))

    def ascending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Chunks of entries from a key on, or from the first one."""
        bound: tuple[Any, ...] = () if start is None else (start, NEWEST)
        while chunk := self._query(partial(_chunk_from, bound)):
            yield chunk
            key, rank, _ = chunk[-1]
            bound = (key, rank + 1)

    def descending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Chunks of entries up to a key, or to the last one; the last chunk first."""
        bound: tuple[Any, ...] | None = None if start is None else (start, 1)
        while chunk := self._query(partial(_chunk_before, bound)):
            yield chunk
            bound = chunk[0][:2]

    def entries(self) -> list[Entry]:
        """All entries, in the order of (key, rank)."""
        found: list[Entry] = self._query(list)
        return found

    def bounds(self) -> tuple[OrderedKey, OrderedKey]:
        """The lowest and the highest key; there is one at least."""
        found: tuple[OrderedKey, OrderedKey] = self._query(_first_and_last)
        return found

    def _query(self, query: Callable[[SortedList[Entry]], _Found]) -> _Found:
        """The answer of a query to the sorted order, which is brought up to date before."""
        with self._lock:
            if self._in_use:  # by the operation that this one interrupts, or one that has raised
                self._order = (SortedList(), 0)
            self._in_use = True
            order, count = self._order
            if count < len(self._entries):
                added = self._entries[count:]
                order.update(added)
                self._order = (order, count + len(added))
            found = query(order)
            self._in_use = False
            return found


def _first_from(key: OrderedKey, read_rank: int, entries: SortedList[Entry]) -> Entry | None:
    at = entries.bisect_left((key, read_rank))
    return entries[at] if at < len(entries) and entries[at][0] == key else None


def _first_and_last(entries: SortedList[Entry]) -> tuple[OrderedKey, OrderedKey]:
    return entries[0][0], entries[-1][0]


def _chunk_from(bound: tuple[Any, ...], entries: SortedList[Entry]) -> list[Entry]:
    at = entries.bisect_left(bound) if bound else 0
    return list(entries.islice(at, at + _CHUNK))


def _chunk_before(bound: tuple[Any, ...] | None, entries: SortedList[Entry]) -> list[Entry]:
    end = len(entries) if bound is None else entries.bisect_left(bound)
    return list(entries.islice(max(0, end - _CHUNK), end))
