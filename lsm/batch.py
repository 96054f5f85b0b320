"""Write batches: operations that are written as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from lsm.kernels import Batch

if TYPE_CHECKING:
    from types import TracebackType

    from lsm.store import Store


class WriteBatch(Batch):
    """Puts and deletes that are all written, in their order, or none of them.

    That is a promise about the database: no crash and no reader ever finds some of them. Which of
    them were collected is up to the program. As a context manager the batch writes itself at the
    end of the block; if an exception leaves the block, it writes what was collected until then, and
    with ``transaction=True`` nothing. What may come anywhere never writes anything: all that is no
    ``Exception``, as a KeyboardInterrupt, and a MemoryError or RecursionError. ``write`` keeps the
    operations, so that it can be called again.
    """

    __slots__ = ("_pinned_db", "_sync", "_transaction")

    def __init__(
        self, store: Store, pinned_db: object, prefix: bytes, transaction: bool, sync: bool
    ):
        super().__init__()
        self._store, self._prefix = store, prefix
        self._pinned_db = pinned_db  # which stays open as long as this is in use
        self._transaction = transaction
        self._sync = sync

    def write(self) -> None:
        """Write all operations as one; what was collected stays."""
        self._store.check_open()
        self._store.write(self, self._sync)

    def __enter__(self) -> Self:
        self._store.check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._store.check_open()
        is_whole = kind is None or (
            issubclass(kind, Exception) and not issubclass(kind, (MemoryError, RecursionError))
        )
        if is_whole and (kind is None or not self._transaction):
            self.write()
        self.clear()

    def __repr__(self) -> str:
        return f"<lsm.WriteBatch of {self.count} operations, {self.payload} bytes>"
