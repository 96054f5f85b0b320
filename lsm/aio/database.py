"""Databases, their parts and snapshots, as an event loop uses them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, TypeVar, overload

import lsm
from filters.sizing_parameters import checked_int
from lsm.aio.batches import WriteBatch
from lsm.aio.iteration import Iterator
from lsm.aio.threads import Threads, ended

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from lsm.checkpoint import CheckpointReport
    from lsm.manual import CompactionProgress
    from lsm.range_options import RangeOptions
    from lsm.refiltering import RefilterProgress, RefilterReport
    from lsm.stats import Stats

_Default = TypeVar("_Default")
_Inner = TypeVar("_Inner", lsm.DB, lsm.PrefixedDB)

MOST_THREADS = 64


class _Reader:
    """What reads, wherever it is from."""

    def __init__(self, threads: Threads, inner: lsm.DB | lsm.PrefixedDB | lsm.Snapshot):
        self._threads = threads
        self._reader = inner

    @overload
    async def get(self, key: Buffer, default: None = None) -> bytes | None: ...
    @overload
    async def get(self, key: Buffer, default: _Default) -> bytes | _Default: ...
    async def get(self, key: Buffer, default: Any = None) -> Any:
        """The key's value, or the default if it has none."""
        return await self._threads.reading.ask(partial(self._reader.get, key, default))

    @overload
    async def get_many(
        self, keys: Iterable[Buffer], default: None = None
    ) -> list[bytes | None]: ...
    @overload
    async def get_many(
        self, keys: Iterable[Buffer], default: _Default
    ) -> list[bytes | _Default]: ...
    async def get_many(self, keys: Iterable[Buffer], default: Any = None) -> list[Any]:
        """The values of many keys as of one moment, in order; one turn for all of them."""
        listed = list(keys)  # here: what gives them may be the loop's
        return await self._threads.reading.ask(partial(self._reader.get_many, listed, default))

    async def contains(self, key: Buffer) -> bool:
        """Whether the key has a value: ``in`` cannot be awaited."""
        return await self._threads.reading.ask(partial(self._reader.__contains__, key))

    def __contains__(self, key: object) -> NoReturn:
        raise TypeError("'in' cannot be awaited, and may have to wait: await db.contains(key)")

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
        **others: Unpack[RangeOptions],
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
        **others: Unpack[RangeOptions],
    ) -> Iterator[None]: ...
    def iterator(
        self,
        *,
        include_key: bool | None = True,
        include_value: bool | None = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[Any]:
        """An iterator for ``async for``, over the range that ``lsm.DB.iterator()`` takes.

        It has the entries as they are at its first step.
        """
        make: Callable[[], Any] = partial(
            self._reader.iterator, include_key=include_key, include_value=include_value, **others
        )
        return Iterator(self._threads.reading, make)

    def __aiter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()


class Snapshot(_Reader):
    """The database as it was at one moment. Taking and closing it waits for nothing."""

    _reader: lsm.Snapshot

    def close(self) -> None:
        """Release the versions it sees."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()


class _Keyspace(_Reader, Generic[_Inner]):
    """What is written, too."""

    _reader: _Inner

    async def put(self, key: Buffer, value: Buffer, *, sync: bool | None = False) -> None:
        """Set the key's value."""
        await self._threads.writing.carry_out(partial(self._reader.put, key, value, sync=sync))

    async def delete(self, key: Buffer, *, sync: bool | None = False) -> None:
        """Delete the key, if it is there."""
        await self._threads.writing.carry_out(partial(self._reader.delete, key, sync=sync))

    def write_batch(
        self, *, transaction: bool | None = False, sync: bool | None = False
    ) -> WriteBatch:
        """An empty batch, for ``async with``."""
        inner = self._reader.write_batch(transaction=transaction, sync=sync)
        return WriteBatch(self._threads.writing, inner)

    def snapshot(self) -> Snapshot:
        """What is there now, to be read later."""
        return Snapshot(self._threads, self._reader.snapshot())

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """The part whose keys begin with a prefix."""
        return PrefixedDB(self._threads, self._reader.prefixed_db(prefix))


class PrefixedDB(_Keyspace[lsm.PrefixedDB]):
    """The part of a database whose keys have a prefix, without it."""

    @property
    def prefix(self) -> bytes:
        """What all keys begin with in the database."""
        return self._reader.prefix


class DB(_Keyspace[lsm.DB]):
    """A database whose calls wait in threads of its own; ``lsm.aio.open()`` makes one.

    What may have to wait, for the disk or for others, is to be awaited. What does not is a plain
    call. One event loop uses it; ``inner`` is the database itself, for any thread.
    """

    def __init__(self, threads: Threads, inner: lsm.DB):
        super().__init__(threads, inner)

    @property
    def inner(self) -> lsm.DB:
        """The database; its calls may block the caller."""
        return self._reader

    @property
    def name(self) -> str | bytes | os.PathLike[str]:
        """The directory, as it was given."""
        return self._reader.name

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._reader.closed

    async def compact_range(
        self,
        *,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        force: bool | None = False,
        progress: Callable[[CompactionProgress], object] | None = None,
    ) -> None:
        """Write what is in memory to tables, and merge all tables of a range.

        Cancelled, it ends with the merge that is under way, and what was merged until then stays
        so. ``progress`` is called by the event loop, which is told of what it raises.
        """
        told = _Progress(progress)
        call = partial(
            self._reader.compact_range, start=start, stop=stop, force=force, progress=told
        )
        await self._threads.upkeep.carry_out(call, told.give_up)

    async def refilter(
        self,
        *,
        dry_run: bool | None = False,
        levels: Iterable[int] | None = None,
        max_bytes: int | str | None = None,
        bytes_per_second: int | str | None = None,
        progress: Callable[[RefilterProgress], object] | None = None,
    ) -> RefilterReport:
        """Give tables the filters that they would be given today, as ``lsm.DB.refilter()`` does.

        Cancelled, it ends with the table that is under way. ``progress`` is the event loop's, too.
        """
        told = _Progress(progress)
        call = partial(
            self._reader.refilter,
            dry_run=dry_run,
            levels=levels,
            max_bytes=max_bytes,
            bytes_per_second=bytes_per_second,
            progress=told,
        )
        return await self._threads.upkeep.carry_out(call, told.give_up)

    async def checkpoint(
        self, path: str | bytes | os.PathLike[str], *, flush: bool | None = False
    ) -> CheckpointReport:
        """Copy the database as it is at this moment; cancelled, it leaves nothing of the copy."""
        told = _Progress(None)
        call = partial(self._reader.checkpoint, path, flush=flush, progress=told)
        return await self._threads.upkeep.carry_out(call, told.give_up)

    async def flush(self) -> None:
        """Write what is in memory to tables."""
        await self._threads.upkeep.carry_out(self._reader.flush)

    async def resume(self) -> None:
        """Go on after a failure that was mended; raise it if it still stands."""
        await self._threads.upkeep.carry_out(self._reader.resume)

    async def wait_until_idle(self) -> None:
        """Return when nothing is left to be flushed and no level is full."""
        await self._threads.upkeep.ask(self._reader.wait_until_idle)

    async def stats(self) -> Stats:
        """What there is and what was counted since the database was opened."""
        return await self._threads.reading.ask(self._reader.stats)

    async def close(self) -> None:
        """Stop, let others open it, and end the threads. What was written is in the log."""
        await self._threads.close(self._reader.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<lsm.aio.DB over {self._reader!r}>"


class GivenUpError(Exception):
    """Nobody waits any more for what was under way."""


class _Progress:
    """Hands progress to the event loop, and ends what it is of when nobody wants it any more."""

    def __init__(self, progress: Callable[[Any], object] | None):
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._is_given_up = False

    def __call__(self, step: Any) -> None:
        if self._is_given_up:
            raise GivenUpError
        if self._progress is not None:
            self._loop.call_soon_threadsafe(self._progress, step)

    def give_up(self) -> None:
        """Have the next step end it."""
        self._is_given_up = True


class Opening:
    """A database on its way to be open: to be awaited, or entered by ``async with``."""

    def __init__(self, name: str | bytes | os.PathLike[str], count: int, options: dict[str, Any]):
        self._open_db = partial(lsm.DB, name, **options)
        self._count = checked_int("threads", count, 1, MOST_THREADS)
        self._db: DB | None = None

    def __await__(self) -> Generator[Any, None, DB]:
        return self._open().__await__()

    async def __aenter__(self) -> DB:
        self._db = await self._open()
        return self._db

    async def __aexit__(self, *exc: object) -> None:
        if self._db is not None:
            await self._db.close()

    async def _open(self) -> DB:
        """Open it in a thread; who is cancelled meanwhile leaves it closed."""
        threads = Threads(self._count)
        opening = await threads.upkeep.begin(self._open_db)
        try:
            inner = await ended(opening)
        except BaseException:
            is_open = opening.done() and not opening.cancelled() and not opening.exception()
            await threads.close(opening.result().close if is_open else _nothing)
            raise
        return DB(threads, inner)


def _nothing() -> None:
    """What closing takes where nothing was opened."""


def open(name: str | bytes | os.PathLike[str], *, threads: int = 4, **options: Any) -> Opening:
    """Open a database for an event loop, with the options of ``lsm.DB``.

    ``async with lsm.aio.open(path) as db`` closes it at the end; ``await lsm.aio.open(path)`` is
    closed by ``await db.close()``. As many ``threads`` at most read at a time, as many write, and
    one looks after the database; they are started when they are needed.
    """
    return Opening(name, threads, options)
