"""The threads of a database that is used from an event loop, and what waits for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lsm.state import CLOSED

_T = TypeVar("_T")

# Not lsm-, which begins the names of background threads: those may wait for nobody.
_PREFIX = "aio-lsm-"


class Lane:
    """Threads for one kind of work. Who finds all of them busy waits in the loop for a turn.

    So no queue grows where nobody sees it, and what has not begun is taken back by not asking.
    """

    def __init__(self, name: str, width: int):
        self._pool = ThreadPoolExecutor(width, thread_name_prefix=f"{_PREFIX}{name}")
        self._turns = asyncio.Semaphore(width)

    async def ask(self, call: Callable[[], _T]) -> _T:
        """What a call returns that changes nothing; who is cancelled leaves it to itself."""
        return await asyncio.wrap_future(await self.begin(call))

    async def carry_out(
        self, call: Callable[[], _T], give_up: Callable[[], object] | None = None
    ) -> _T:
        """What a call returns that changes something.

        Who is cancelled goes on when it has ended, or at once if it had not begun: nothing of it
        comes later. ``give_up`` asks it to end early.
        """
        return await ended(await self.begin(call), give_up)

    async def begin(self, call: Callable[[], _T]) -> Future[_T]:
        """Have a thread begin with a call, as soon as one is free."""
        await self._turns.acquire()
        try:
            begun = self._pool.submit(call)
        except RuntimeError:  # after the last one has ended
            self._turns.release()
            raise RuntimeError(CLOSED) from None
        except BaseException:
            self._turns.release()
            raise
        begun.add_done_callback(partial(self._give_back, asyncio.get_running_loop()))
        return begun

    def end(self) -> None:
        """Return when no call is under way, and take no more."""
        self._pool.shutdown()

    def _give_back(self, loop: asyncio.AbstractEventLoop, _ended: Future[_T]) -> None:
        with contextlib.suppress(RuntimeError):  # a loop that was closed meanwhile
            loop.call_soon_threadsafe(self._turns.release)


class Threads:
    """The lanes of one database.

    Reading, writing and upkeep have their own, so that a write that is stopped until there is room,
    or a compaction of an hour, keeps no lookup waiting.
    """

    def __init__(self, count: int):
        self.reading = Lane("reading", count)
        self.writing = Lane("writing", count)
        self.upkeep = Lane("upkeep", 1)
        self._closing: Future[None] | None = None

    async def close(self, close_db: Callable[[], None]) -> None:
        """Close the database, in a thread of its own, and then end the others.

        Who is cancelled goes on when that is done. If it fails it can be called again.
        """
        if self._closing is None or (self._closing.done() and self._closing.exception()):
            closer = ThreadPoolExecutor(1, thread_name_prefix=f"{_PREFIX}closing")
            self._closing = closer.submit(self._close, close_db)
            closer.shutdown(wait=False)
        await ended(self._closing, can_withdraw=False)

    def _close(self, close_db: Callable[[], None]) -> None:
        close_db()
        for lane in (self.reading, self.writing, self.upkeep):
            lane.end()


async def ended(
    begun: Future[_T],
    give_up: Callable[[], object] | None = None,
    *,
    can_withdraw: bool = True,
) -> _T:
    """What a call in another thread returns. Who is cancelled meanwhile goes on when it has ended.

    It is withdrawn instead where it has not begun, unless others wait for it, too.
    """
    waiting = asyncio.wrap_future(begun)
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            cancelled = error
            if can_withdraw and begun.cancel():
                raise
            if give_up is not None:
                give_up()
        except BaseException:
            if not waiting.done():
                raise
    if cancelled is not None:
        waiting.exception()  # which nobody else will ask for
        raise cancelled
    return waiting.result()
