"""Write batches that are written from an event loop."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.aio.threads import Lane
    from lsm.batch import WriteBatch as Batch


class WriteBatch:
    """Puts and deletes that are all written, in their order, or none of them.

    They are collected by plain calls, which do not wait; ``await batch.write()`` writes them, and
    so does the end of an ``async with`` block, under the conditions of ``lsm.WriteBatch``: never
    one that was cancelled.
    """

    def __init__(self, lane: Lane, inner: Batch):
        self._lane = lane
        self._inner = inner

    def put(self, key: Buffer, value: Buffer) -> None:
        """Add an operation that sets the key's value."""
        self._inner.put(key, value)

    def delete(self, key: Buffer) -> None:
        """Add an operation that deletes the key."""
        self._inner.delete(key)

    def append(self, source: WriteBatch) -> None:
        """Add another batch's operations as they are, that one's prefix included."""
        self._inner.append(source._inner)

    def clear(self) -> None:
        """Drop the operations that were collected so far."""
        self._inner.clear()

    def approximate_size(self) -> int:
        """The bytes the batch would take in the log."""
        return self._inner.approximate_size()

    @property
    def count(self) -> int:
        """How many operations were collected."""
        return self._inner.count

    async def write(self) -> None:
        """Write all operations as one; what was collected stays."""
        await self._lane.carry_out(self._inner.write)

    async def __aenter__(self) -> Self:
        self._inner.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        leave = partial(self._inner.__exit__, kind, error, traceback)
        if kind is None or issubclass(kind, Exception):
            await self._lane.carry_out(leave)
        else:
            leave()  # which writes nothing
