"""Cursors over the visible entries of a view, in both directions, a window at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import attrs

from lsm.disk.keys import NEWEST, Entry
from lsm.kernels.python import merge

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.kernels.python.view import View
    from lsm.tables import TableCache
    from lsm.version import PlacedTable


class Edge(NamedTuple):
    """A key at which something begins or ends, and whether it is included."""

    key: OrderedKey
    included: bool


_low_of = attrgetter("low")

# Where the next window begins: at a key, at the very beginning, or nowhere: all entries were read.
_Start: TypeAlias = Edge | None
_EXHAUSTED = Edge(None, False)


@attrs.frozen
class Source:
    """What a cursor reads, a view at a read rank between bounds, and what it makes of entries.

    A bound is a key, and whether it is included; None is no bound. Items are pairs of key and
    value, or what is included of them; of each key the first bytes are cut.
    """

    view: View
    tables: TableCache
    read_rank: int
    fill_cache: bool = True
    low: tuple[OrderedKey, bool] | None = None
    high: tuple[OrderedKey, bool] | None = None
    include_key: bool = True
    include_value: bool = True
    cut: int = 0
    unwrap: Callable[[OrderedKey], bytes] | None = None

    def items_of(self, keys: list[OrderedKey], values: list[bytes]) -> list[Any]:
        """The items of entries, by their keys and values."""
        if not self.include_key:
            return values if self.include_value else [None] * len(keys)
        if self.unwrap is not None:
            keys = list(map(self.unwrap, keys))
        if self.cut:
            keys = [key[self.cut :] for key in keys]
        return list(zip(keys, values, strict=True)) if self.include_value else keys

    def ascending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Windows from a key on."""
        runs = [memtable.ascending(start) for memtable in self.view.memtables]
        runs += [self._ascending(tables, start) for tables in self._sorted_runs(start, None)]
        return merge.ascending(runs)

    def descending(self, start: OrderedKey | None) -> Iterator[list[Entry]]:
        """Windows up to a key, the last one first."""
        runs = [memtable.descending(start) for memtable in self.view.memtables]
        runs += [self._descending(tables, start) for tables in self._sorted_runs(None, start)]
        return merge.descending(runs)

    def _ascending(
        self, run: Sequence[PlacedTable], start: OrderedKey | None
    ) -> Iterator[list[Entry]]:
        """Chunks of the entries of a run of tables, from a key on."""
        for placed in run:
            table = self.tables.opened(placed.file)
            first = 0 if start is None else table.block_for(start, NEWEST)
            for number in range(first, table.block_count):
                block = self.tables.block(table, number, self.fill_cache)
                yield from block.pieces() if start is None else block.pieces_from(start)
                start = None

    def _descending(
        self, run: Sequence[PlacedTable], start: OrderedKey | None
    ) -> Iterator[list[Entry]]:
        """Chunks of the entries of a run of tables, up to a key, the last chunk first."""
        for placed in reversed(run):
            table = self.tables.opened(placed.file)
            last = table.block_count - 1
            if start is not None:
                last = min(last, table.block_for(start, 0))
            for number in range(last, -1, -1):
                block = self.tables.block(table, number, self.fill_cache)
                if start is None:
                    yield from block.pieces_backwards()
                else:
                    yield from block.pieces_through(start)
            # Tables before this one end below the key, and are bounded by that alone.

    def _sorted_runs(
        self, low: OrderedKey | None, high: OrderedKey | None
    ) -> Iterator[Sequence[PlacedTable]]:
        """The tables with keys between two bounds, as runs: each of level 0, and every level."""
        version = self.view.version
        for placed in version.levels[0]:
            if (low is None or not placed.high < low) and (high is None or not high < placed.low):
                yield (placed,)
        for level, highs in version.sorted_levels:
            first = 0 if low is None else bisect_left(highs, low)
            end = len(level) if high is None else bisect_right(level, high, key=_low_of)
            yield level[first:end]


class Window:
    """A run of consecutive visible entries, and where reading goes on from both of its ends.

    ``at`` is where its iterator stands among ``items``, what it makes of the entries. An empty
    window is only a position: entries begin on either side of it. ``ascending`` and ``descending``
    go on reading from its ends, once that was begun.
    """

    __slots__ = ("ascending", "at", "descending", "end", "items", "left", "right")

    def __init__(self, items: list[Any], left: _Start, right: _Start) -> None:
        self.items = items
        self.left = left
        self.right = right
        self.ascending: Iterator[list[Entry]] | None = None
        self.descending: Iterator[list[Entry]] | None = None
        self.at = 0
        self.end = len(items)

    def vacated(self) -> Window:
        """An empty window that entries on both sides of this one are found from."""
        return Window([], self.left, self.right)


class Cursor:
    """Finds windows: the first one, and the nearest with entries on either side of another.

    An iterator's whole position is in ``window``, which is replaced as a whole: a step that raises
    leaves it as it was, and the merge it had begun is begun anew by the next step.
    """

    __slots__ = ("_source", "window")

    def __init__(self, source: Source):
        self._source = source
        self.window = self.before_first()

    def before_first(self) -> Window:
        """An empty window before the first entry."""
        return Window([], left=_EXHAUSTED, right=_edge(self._source.low))

    def after_last(self) -> Window:
        """An empty window behind the last entry."""
        return Window([], left=_edge(self._source.high), right=_EXHAUSTED)

    def place_of(self, key: OrderedKey) -> Window:
        """An empty window before the first entry from this key on."""
        source = self._source
        if source.low is not None and not source.low[0] < key:
            return self.before_first()
        if source.high is not None and source.high[0] < key:
            return self.after_last()
        return Window([], left=Edge(key, False), right=Edge(key, True))

    def next_window(self, window: Window) -> Window | None:
        """The nearest window behind this one that has entries; None if there is none."""
        source, edge = self._source, window.right
        walk, window.ascending = window.ascending, None  # it goes on from here once, or not at all
        while edge is not _EXHAUSTED:
            if walk is None:
                walk = source.ascending(None if edge is None else edge.key)
            entries = next(walk, None)
            if entries is None:
                break
            keys, values = visible(entries, source.read_rank)
            begin, end = _between(keys, edge, source.high)
            last = entries[-1][0]
            is_last = source.high is not None and not last < source.high[0]
            edge = _EXHAUSTED if is_last else Edge(last, False)
            if begin < end:
                left = Edge(keys[begin], False)
                items = source.items_of(keys[begin:end], values[begin:end])
                found = Window(items, left, edge)
                found.ascending = walk
                return found
        window.right = _EXHAUSTED
        return None

    def previous_window(self, window: Window) -> Window | None:
        """The nearest window before this one that has entries; None if there is none."""
        source, edge = self._source, window.left
        walk, window.descending = window.descending, None
        while edge is not _EXHAUSTED:
            if walk is None:
                walk = source.descending(None if edge is None else edge.key)
            entries = next(walk, None)
            if entries is None:
                break
            keys, values = visible(entries, source.read_rank)
            begin, end = _between(keys, source.low, edge)
            first = entries[0][0]
            is_first = source.low is not None and not source.low[0] < first
            edge = _EXHAUSTED if is_first else Edge(first, False)
            if begin < end:
                right = Edge(keys[end - 1], False)
                items = source.items_of(keys[begin:end], values[begin:end])
                found = Window(items, edge, right)
                found.descending = walk
                return found
        window.left = _EXHAUSTED
        return None


class Closed(Cursor):
    """The cursor of an iterator that is closed: it finds nothing on either side."""

    __slots__ = ()

    def __init__(self) -> None:
        self.window = Window([], left=_EXHAUSTED, right=_EXHAUSTED)


CLOSED = Closed()


def visible(window: list[Entry], read_rank: int) -> tuple[list[OrderedKey], list[bytes]]:
    """The keys that have a value at a read rank, and these values."""
    keys: list[OrderedKey] = []
    values = []
    last = None
    for key, rank, value in window:
        if rank < read_rank or key == last:
            continue
        last = key
        if rank & 1:
            keys.append(key)
            values.append(value)
    return keys, values


def _edge(bound: tuple[OrderedKey, bool] | None) -> Edge | None:
    return None if bound is None else Edge._make(bound)


def _between(
    keys: list[OrderedKey],
    low: tuple[OrderedKey, bool] | None,
    high: tuple[OrderedKey, bool] | None,
) -> tuple[int, int]:
    """Where the keys between two edges begin and end; None is no bound."""
    begin, end = 0, len(keys)
    if low is not None:
        key, is_included = low
        begin = (bisect_left if is_included else bisect_right)(keys, key)
    if high is not None:
        key, is_included = high
        end = (bisect_right if is_included else bisect_left)(keys, key)
    return begin, end
