"""Iterating over a database from an event loop: a chunk at a time, each when it is asked for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from lsm.aio.threads import Lane
from lsm.state import ITERATOR_CLOSED

if TYPE_CHECKING:
    from lsm.iterators import Iterator as Walk

_Item = TypeVar("_Item")

# A chunk takes about so many bytes, as far as the one before it tells, and no more entries.
_CHUNK_BYTES = 1 << 18
_MOST_ENTRIES = 1024
_FIRST_ENTRIES = 32
# So many entries of a chunk tell the size of all.
_SAMPLE = 32


class Iterator(Generic[_Item]):
    """Iterates over a range, as the database is at the first step.

    A thread reads a chunk when those before it were taken, and never ahead: who takes none has
    none read. A step that is cancelled loses nothing; the next one waits for the same chunk.
    """

    def __init__(self, lane: Lane, make: Callable[[], Walk[_Item]]):
        self._lane = lane
        self._make = make
        self._walk: Walk[_Item] | None = None
        self._ready: deque[_Item] = deque()
        self._fetching: Future[bool] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._count = _FIRST_ENTRIES
        self._is_over = self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _Item:
        while not self._ready:
            if self._is_closed:
                raise RuntimeError(ITERATOR_CLOSED)
            if self._is_over:
                raise StopAsyncIteration
            async with self._one_at_a_time:
                if not (self._ready or self._is_over or self._is_closed):
                    await self._fetch()
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Release what it reads; every further step is a RuntimeError."""
        self._is_closed = True
        self._ready.clear()
        async with self._one_at_a_time:
            if self._fetching is not None:
                await asyncio.wait([asyncio.wrap_future(self._fetching)])
            self._ready.clear()
            if self._walk is not None:
                self._walk.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _fetch(self) -> None:
        """Wait for the chunk that is being read, or have one read."""
        if self._fetching is None:
            self._fetching = await self._lane.begin(self._read)
        fetching = self._fetching
        try:
            self._is_over = await asyncio.shield(asyncio.wrap_future(fetching))
        finally:
            if fetching.done():
                self._fetching = None

    def _read(self) -> bool:
        """Read a chunk, in a thread; whether that was the last one.

        What fails behind some entries fails again in the next chunk: the walk stands before it.
        """
        if self._walk is None:
            self._walk = self._make()
        chunk: list[_Item] = []
        try:
            chunk.extend(islice(self._walk, self._count))
        except Exception:
            if not chunk:
                raise
            self._ready.extend(chunk)
            return False
        is_last = len(chunk) < self._count
        if chunk:
            self._count = _entries_for(chunk)
        self._ready.extend(chunk)
        return is_last


def _entries_for(chunk: list[Any]) -> int:
    """How many entries the next chunk is to have, if they are as large as these."""
    sample = chunk[:: max(1, len(chunk) // _SAMPLE)]
    size = sum(map(_size, sample)) // len(sample) or 1
    return min(max(_CHUNK_BYTES // size, 1), _MOST_ENTRIES)


def _size(item: Any) -> int:
    """The bytes of what an iterator gives: a pair, a key or a value, or nothing."""
    return sum(map(len, item)) if isinstance(item, tuple) else len(item or b"")
