"""Walking the visible entries of a view both ways, a window at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import attrs

from lsm.disk.keys import Entry
from lsm.kernels.python import merge

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.tables import Tables
    from lsm.view import View


@attrs.frozen
class Edge:
    """A key at which something begins or ends, and whether it is included."""

    key: OrderedKey
    included: bool


# Where the next window begins: at a key, at the very beginning, or nowhere, since all is seen.
_Start: TypeAlias = Edge | None
_SEEN = Edge(None, False)


@attrs.frozen
class Source:
    """What a cursor reads: a view as of a rank, between bounds; None is no bound."""

    view: View
    tables: Tables
    oldest: int
    fill_cache: bool = True
    low: Edge | None = None
    high: Edge | None = None

    def ascending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Windows from a key on."""
        version, tables, fill = self.view.version, self.tables, self.fill_cache
        runs = [memtable.ascending(start) for memtable in self.view.memtables]
        runs += [
            tables.ascending([placed], start, fill)
            for placed in version.levels[0]
            if start is None or not placed.high < start
        ]
        for level, highs in version.sorted_levels:
            first = 0 if start is None else bisect_left(highs, start)
            runs.append(tables.ascending(level[first:], start, fill))
        return merge.ascending(runs)

    def descending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Windows up to a key, the last one first."""
        version, tables, fill = self.view.version, self.tables, self.fill_cache
        runs = [memtable.descending(start) for memtable in self.view.memtables]
        runs += [
            tables.descending([placed], start, fill)
            for placed in version.levels[0]
            if start is None or not start < placed.low
        ]
        for level, _ in version.sorted_levels:
            end = len(level)
            if start is not None:
                end = bisect_right(level, start, key=lambda placed: placed.low)
            runs.append(tables.descending(level[:end], start, fill))
        return merge.descending(runs)


class Cursor:
    """A stretch of visible entries, and the way to the stretches on both sides of it.

    ``keys`` and ``values`` are what is visible of the current window within the bounds. ``right``
    and ``left`` replace it by the next one that has anything, or leave it and say that there is
    none. The ``place_`` methods leave an empty window from which to go either way.
    """

    __slots__ = ("_ascending", "_descending", "_left", "_right", "_source", "keys", "values")

    def __init__(self, source: Source):
        self._source = source
        self.place_before()

    def place_before(self) -> None:
        """Stand before the first entry."""
        self._place(left=_SEEN, right=self._source.low)

    def place_after(self) -> None:
        """Stand behind the last entry."""
        self._place(left=self._source.high, right=_SEEN)

    def place_at(self, key: OrderedKey) -> None:
        """Stand before the first entry from this key on."""
        source = self._source
        if source.low is not None and not source.low.key < key:
            self.place_before()
        elif source.high is not None and source.high.key < key:
            self.place_after()
        else:
            self._place(left=Edge(key, False), right=Edge(key, True))

    def _place(self, left: _Start, right: _Start) -> None:
        self._left, self._right = left, right
        self._ascending: Iterator[list[Entry]] | None = None
        self._descending: Iterator[list[Entry]] | None = None
        self.keys: list[OrderedKey] = []
        self.values: list[bytes] = []

    def right(self) -> bool:
        """Go on to the next window that has anything."""
        source, edge = self._source, self._right
        while edge is not _SEEN:
            if self._ascending is None:
                self._ascending = source.ascending(None if edge is None else edge.key)
            window = next(self._ascending, None)
            if window is None:
                self._right = _SEEN
                return False
            keys, values = visible(window, source.oldest)
            begin = 0 if edge is None else _first_from(keys, edge)
            end = len(keys) if source.high is None else _end_at(keys, source.high)
            last = window[-1][0]
            is_last = source.high is not None and not last < source.high.key
            edge = self._right = _SEEN if is_last else Edge(last, False)
            if begin < end:
                self.keys, self.values = keys[begin:end], values[begin:end]
                self._left = Edge(self.keys[0], False)
                self._descending = None
                return True
        return False

    def left(self) -> bool:
        """Go back to the window before that has anything."""
        source, edge = self._source, self._left
        while edge is not _SEEN:
            if self._descending is None:
                self._descending = source.descending(None if edge is None else edge.key)
            window = next(self._descending, None)
            if window is None:
                self._left = _SEEN
                return False
            keys, values = visible(window, source.oldest)
            begin = 0 if source.low is None else _first_from(keys, source.low)
            end = len(keys) if edge is None else _end_at(keys, edge)
            first = window[0][0]
            is_first = source.low is not None and not source.low.key < first
            edge = self._left = _SEEN if is_first else Edge(first, False)
            if begin < end:
                self.keys, self.values = keys[begin:end], values[begin:end]
                self._right = Edge(self.keys[-1], False)
                self._ascending = None
                return True
        return False


def visible(window: list[Entry], oldest: int) -> tuple[list[OrderedKey], list[bytes]]:
    """The keys that have a value as of a rank, and these values."""
    keys: list[OrderedKey] = []
    values = []
    last = None
    for key, version, value in window:
        if version < oldest or key == last:
            continue
        last = key
        if version & 1:
            keys.append(key)
            values.append(value)
    return keys, values


def _first_from(keys: list[OrderedKey], edge: Edge) -> int:
    return bisect_left(keys, edge.key) if edge.included else bisect_right(keys, edge.key)


def _end_at(keys: list[OrderedKey], edge: Edge) -> int:
    return bisect_right(keys, edge.key) if edge.included else bisect_left(keys, edge.key)
