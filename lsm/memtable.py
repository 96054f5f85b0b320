"""The writes that are in no table yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from operator import itemgetter

from sortedcontainers import SortedList

from lsm.comparator import Comparator, OrderedKey
from lsm.disk.keys import NEWEST, PUT, Entry, rank

_CHUNK = 64
# What LevelDB's arena takes for an entry besides its key and value: version, lengths, skip list.
_ENTRY_BYTES = 32
_SEQUENCE_STEP = 1 << 8
_key_of = itemgetter(0)


class Memtable:
    """Entries in order of their keys, to be read while one writer adds.

    What was added is sorted when an order is asked for, many entries at a time; until then the
    newest version of a key is found by its hash. With a comparator of the caller's, under which
    unequal bytes may be one key, every search goes by the order.

    ``size`` counts as LevelDB does. A Python object has a header, so that small entries take up to
    ten times that in memory.
    """

    def __init__(self, comparator: Comparator):
        self._wrap = comparator.wrap
        self._newest: dict[bytes, Entry] = {}
        self._sorted: SortedList[Entry] = SortedList()
        self._unsorted: list[Entry] = []
        self._lock = threading.Lock()
        self.size = 0
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def apply(self, sequence: int, operations: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Add operations that are in a log already."""
        size = sum(len(key) + len(value or b"") for key, value in operations)
        self.add(self.prepare(sequence, operations), size)

    def prepare(
        self, sequence: int, operations: Sequence[tuple[bytes, bytes | None]]
    ) -> list[Entry]:
        """The entries of operations under ascending sequence numbers; a value of None deletes."""
        version = rank(sequence, PUT)
        if self._wrap is not None:
            operations = [(self._wrap(key), value) for key, value in operations]
        entries: list[Entry] = []
        for key, value in operations:
            if value is None:
                entries.append((key, version + PUT, b""))
            else:
                entries.append((key, version, value))
            version -= _SEQUENCE_STEP
        return entries

    def add(self, entries: list[Entry], size: int) -> None:
        """Add prepared entries whose keys and values have so many bytes."""
        if self._wrap is None:
            self._newest.update(zip(map(_key_of, entries), entries, strict=True))
        with self._lock:
            self._unsorted += entries
        self.size += size + _ENTRY_BYTES * len(entries)
        self.count += len(entries)

    def find(self, key: OrderedKey, oldest: int) -> Entry | None:
        """The key's newest version whose rank is this or higher, tombstones included."""
        if self._wrap is None:
            entry = self._newest.get(key)
            if entry is None or entry[1] >= oldest:
                return entry
        with self._lock:
            entries = self._settled()
            at = entries.bisect_left((key, oldest))
            if at < len(entries) and entries[at][0] == key:
                found: Entry = entries[at]
                return found
        return None

    def has(self, key: OrderedKey) -> bool:
        """Whether there is any version of the key."""
        return self.find(key, NEWEST) is not None

    def ascending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Chunks of entries from a key on, or from the first one."""
        bound: tuple[OrderedKey, int] | None = None if start is None else (start, NEWEST)
        while True:
            with self._lock:
                entries = self._settled()
                at = 0 if bound is None else entries.bisect_left(bound)
                chunk = list(entries.islice(at, at + _CHUNK))
            if not chunk:
                return
            yield chunk
            key, version, _ = chunk[-1]
            bound = (key, version + 1)

    def descending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Chunks of entries up to a key, or to the last one; the last chunk first."""
        bound: tuple[OrderedKey, int] | None = None if start is None else (start, 1)
        while True:
            with self._lock:
                entries = self._settled()
                end = len(entries) if bound is None else entries.bisect_left(bound)
                chunk = list(entries.islice(max(0, end - _CHUNK), end))
            if not chunk:
                return
            yield chunk
            bound = chunk[0][:2]

    def entries(self) -> list[Entry]:
        """All entries in order."""
        with self._lock:
            return list(self._settled())

    def _settled(self) -> SortedList[Entry]:
        """The entries in order, those included that were added lately."""
        if self._unsorted:
            added, self._unsorted = self._unsorted, []
            self._sorted.update(added)
        return self._sorted
