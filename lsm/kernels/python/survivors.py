"""What survives a compaction: sorted runs made one, without what nobody can see any more.

An entry survives unless a newer version of its key hides it from every snapshot, or it is a
tombstone that hides nothing. A table ends before the first version of a key, if it is as large as
tables may be, or overlaps too much of the level below its own: of the tables there that have been
passed since its first key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lsm.disk.keys import Entry
from lsm.kernels.python import merge
from lsm.kernels.python.memtable import Memtable
from lsm.kernels.python.table import Table, pieces
from lsm.kernels.python.table_body import KEYS_TO_FILE, TableBody

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey

Run = Memtable | Iterator[Table]
"""What is in order: a memtable, or tables that are opened when it is their turn."""

Ranges = Sequence[tuple[Sequence["OrderedKey"], Sequence["OrderedKey"]]]
"""Of each level that has tables their lowest keys, and their highest."""


class Survivors:
    """The entries of some runs that survive, on their way into tables.

    What every snapshot sees is of the version ``horizon``, a rank, or newer; None drops nothing.
    ``deeper`` are the levels where tombstones may have something to hide, None levels that are not
    known. Tables end at ``max_file_size``, if there is one, and where the sizes of the
    ``grandparents``, which come with their highest keys, exceed ``overlap_limit``. ``pause`` is
    called now and then, and may raise.
    """

    def __init__(
        self,
        runs: Iterable[Run],
        comparator: Comparator,
        *,
        horizon: int | None = None,
        deeper: Ranges | None = None,
        max_file_size: int | None = None,
        grandparents: Sequence[tuple[OrderedKey, int]] = (),
        overlap_limit: int = 0,
        pause: Callable[[], object] = bool,
    ):
        self._windows = merge.ascending(map(_chunks, runs))
        self._comparator = comparator
        self._horizon = horizon
        self._deeper = deeper
        self._max_file_size = max_file_size
        self._grandparents = grandparents
        self._overlap_limit = overlap_limit
        self._pause = pause
        # A window's entries, and how many of them are written; as bodies take them; their keys.
        self._entries: list[Entry] = []
        self._unwrapped: list[Entry] = []
        self._at = 0
        self._key_bytes = 0
        self._passed = 0  # grandparents
        self._overlap = 0  # of them with the table that is being written

    def has_more(self) -> bool:
        """Whether there are more, which may take looking at many that do not survive."""
        while self._at == len(self._entries):
            window = next(self._windows, None)
            if window is None:
                return False
            self._pause()
            self._at, self._entries = 0, self._survivors(window)
            self._unwrapped = _unwrapped(self._comparator, self._entries)
            self._key_bytes = sum(len(key) for key, _, _ in self._unwrapped)
        return True

    def write(self, body: TableBody, most: int) -> bool:
        """Write the next ones into a table, until about so many bytes of it are finished.

        Returns whether it is complete: the next one begins another table, or there is none.
        """
        goal = body.offset + most
        while self.has_more():
            if self._is_cut(body):
                return True
            self._at = body.add(self._unwrapped, self._at, self._certain(body))
            if body.offset >= goal:
                return False
        return True

    def _survivors(self, window: list[Entry]) -> list[Entry]:
        """The entries of a window that a snapshot, taken or to come, may still see."""
        horizon = self._horizon
        if horizon is None:
            return window
        survivors, last, is_superseded = [], None, False
        for entry in window:
            key, rank, _ = entry
            if key == last:
                if is_superseded:
                    continue
            else:
                last, is_superseded = key, False
            if rank >= horizon:  # every snapshot sees this or a newer one, and none an older one
                is_superseded = True
                if not rank & 1 and not self._may_be_deeper(key):
                    continue  # a tombstone with nothing left to hide
            survivors.append(entry)
        return survivors

    def _may_be_deeper(self, key: OrderedKey) -> bool:
        return self._deeper is None or overlap(self._deeper, key, key)

    def _is_cut(self, body: TableBody) -> bool:
        """Whether the next entry begins another table."""
        key = self._entries[self._at][0]
        if self._at and self._entries[self._at - 1][0] == key:  # windows end with a key's versions
            return False
        while self._passed < len(self._grandparents):
            high, size = self._grandparents[self._passed]
            if not high < key:
                break
            self._passed += 1
            self._overlap += size if body.num_entries else 0
        if body.num_entries and self._is_full(body):
            self._overlap = 0
            return True
        return False

    def _is_full(self, body: TableBody) -> bool:
        """Whether the table is to end before the next key."""
        size = self._max_file_size
        return (size is not None and body.size >= size) or self._overlap > self._overlap_limit

    def _certain(self, body: TableBody) -> int:
        """Up to where nothing but the end of a block could make the table end."""
        size = self._max_file_size
        has_long_keys = size is not None and (
            body.key_bytes + self._key_bytes >= KEYS_TO_FILE * size
        )
        if has_long_keys or self._is_full(body):
            return self._at + 1
        if self._passed < len(self._grandparents):
            behind = (self._grandparents[self._passed][0], 1)
            return max(self._at + 1, bisect_left(self._entries, behind))
        return len(self._entries)


def overlap(levels: Ranges, low: OrderedKey, high: OrderedKey) -> bool:
    """Whether the range of any table on these levels overlaps this one, bounds included."""
    for lows, highs in levels:
        at = bisect_left(highs, low)
        if at < len(lows) and not high < lows[at]:
            return True
    return False


def _chunks(run: Run) -> Iterator[list[Entry]]:
    """The entries of a run, which are told where they do not ascend."""
    if isinstance(run, Memtable):
        yield run.entries()
        return
    before: Entry | None = None
    for table in run:
        for piece in pieces(table, before):
            before = piece[-1]
            yield piece


def _unwrapped(comparator: Comparator, entries: list[Entry]) -> list[Entry]:
    """The entries with the user's bytes for keys, as a body takes them."""
    if comparator.wrap is None:
        return entries
    unwrap = comparator.unwrap
    return [(unwrap(key), rank, value) for key, rank, value in entries]
