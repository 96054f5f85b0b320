"""Merging sorted runs of entries, a window of user keys at a time.

A run comes in chunks, lists of entries. As far as every run is known, the chunks are put together
and sorted as one list, which Python does by merging: no step of it is taken entry by entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from lsm.disk.keys import Entry

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey

Chunks = Iterator[list[Entry]]


def ascending(runs: Iterable[Chunks]) -> Iterator[list[Entry]]:
    """The entries of all runs in order, in windows that each hold all versions of their keys.

    The runs' chunks ascend; a chunk may end within the versions of a key.
    """
    open_runs = [_Run(chunks) for chunks in runs]
    while open_runs:
        for run in open_runs:
            if not run.entries:
                run.entries = run.next_chunk()
        open_runs = [run for run in open_runs if run.entries]
        unfinished = [run.entries[-1][0] for run in open_runs if not run.finished]
        if not unfinished:
            rest = [run.entries for run in open_runs]
            if rest:
                yield _merged(rest)
            return
        # A run that goes on may have more versions of its last key: up to there, without it.
        bound = (min(unfinished),)
        pieces = []
        for run in open_runs:
            count = bisect_left(run.entries, bound)
            if count:
                pieces.append(run.entries[:count])
                run.entries = run.entries[count:]
        if pieces:
            yield _merged(pieces)
        else:
            for run in open_runs:
                run.read_past(bound[0])


def descending(runs: Iterable[Chunks]) -> Iterator[list[Entry]]:
    """The same from the end: the last window first, the entries of a window in ascending order.

    Of the runs, too, the last chunk comes first.
    """
    open_runs = [_Run(chunks) for chunks in runs]
    while open_runs:
        for run in open_runs:
            if not run.entries:
                run.entries = run.next_chunk()
        open_runs = [run for run in open_runs if run.entries]
        unfinished = [run.entries[0][0] for run in open_runs if not run.finished]
        if not unfinished:
            rest = [run.entries for run in open_runs]
            if rest:
                yield _merged(rest)
            return
        bound = (max(unfinished), 1)  # behind all versions of that key: ranks are not positive
        pieces = []
        for run in open_runs:
            start = bisect_right(run.entries, bound)
            if start < len(run.entries):
                pieces.append(run.entries[start:])
                run.entries = run.entries[:start]
        if pieces:
            yield _merged(pieces)
        else:
            for run in open_runs:
                run.read_back_past(bound[0])


class _Run:
    """A run, with the entries that were read of it and not merged yet."""

    __slots__ = ("_chunks", "entries", "finished")

    def __init__(self, chunks: Chunks):
        self._chunks = chunks
        self.entries: list[Entry] = []
        self.finished = False

    def read_past(self, key: OrderedKey) -> None:
        """If what is known ends in this key, read until it ends in another one."""
        chunks = [self.entries]
        while not self.finished and chunks[-1][-1][0] == key:
            chunks.append(self.next_chunk())
        self.entries = _joined(chunks)  # once, however many versions the key has

    def read_back_past(self, key: OrderedKey) -> None:
        """The same from the end: if what is known begins with this key."""
        chunks = [self.entries]
        while not self.finished and chunks[-1][0][0] == key:
            chunks.append(self.next_chunk())
        self.entries = _joined(chunks[::-1])

    def next_chunk(self) -> list[Entry]:
        """The next chunk that has entries; an empty one if the run is finished."""
        for chunk in self._chunks:
            if chunk:
                return chunk
        self.finished = True
        return []


def _joined(chunks: list[list[Entry]]) -> list[Entry]:
    if len(chunks) == 2:
        return chunks[0] + chunks[1]
    return chunks[0] if len(chunks) == 1 else list(chain.from_iterable(chunks))


def _merged(pieces: list[list[Entry]]) -> list[Entry]:
    if len(pieces) == 1:
        return pieces[0]
    merged = pieces[0]
    for piece in pieces[1:]:
        merged = merged + piece
    merged.sort()
    return merged
