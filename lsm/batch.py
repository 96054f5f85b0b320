"""Write batches: operations that are written as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from lsm.arguments import key_bytes
from lsm.disk.coding import varint

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

    from lsm.store import Store

_HEADER_BYTES = 12  # sequence number and count


class WriteBatch:
    """Puts and deletes that are all written, in their order, or none of them.

    That is a promise about the database: no crash and no reader ever finds some of them. Which of
    them were collected is up to the program. As a context manager the batch writes itself at the
    end of the block; if an exception leaves the block, it writes what was collected until then, and
    with ``transaction=True`` nothing. What may come anywhere never writes anything: all that is no
    ``Exception``, as a KeyboardInterrupt, and a MemoryError or RecursionError. ``write`` keeps the
    operations, so that it can be called again.
    """

    __slots__ = (
        "_operations",
        "_pinned_db",
        "_prefix",
        "_size",
        "_store",
        "_sync",
        "_transaction",
    )

    def __init__(
        self, store: Store, pinned_db: object, prefix: bytes, transaction: bool, sync: bool
    ):
        self._store = store
        self._pinned_db = pinned_db  # which stays open as long as this is in use
        self._prefix = prefix
        self._transaction = transaction
        self._sync = sync
        self._operations: list[tuple[bytes, bytes | None]] = []
        self._size = 0

    def put(self, key: Buffer, value: Buffer) -> None:
        """Add an operation that sets the key's value."""
        if type(key) is not bytes:
            key = key_bytes("key", key)
        self._store.check_open()
        if type(value) is not bytes:
            value = key_bytes("value", value)
        if self._prefix:
            key = self._prefix + key
        self._operations.append((key, value))
        self._size += len(key) + len(value)

    def delete(self, key: Buffer) -> None:
        """Add an operation that deletes the key."""
        key = self._prefix + key_bytes("key", key)
        self._store.check_open()
        self._operations.append((key, None))
        self._size += len(key)

    def append(self, source: WriteBatch) -> None:
        """Add another batch's operations as they are, that one's prefix included."""
        if not isinstance(source, WriteBatch):
            raise TypeError(f"source is a WriteBatch, not {type(source).__name__}")
        self._store.check_open()
        self._operations += source._operations
        self._size += source._size

    def clear(self) -> None:
        """Drop the operations that were collected so far."""
        self._store.check_open()
        self._operations, self._size = [], 0

    def write(self) -> None:
        """Write all operations as one; what was collected stays."""
        self._store.check_open()
        self._store.write(tuple(self._operations), self._size, self._sync)

    def approximate_size(self) -> int:
        """The bytes the batch would take in the log."""
        self._store.check_open()
        return _HEADER_BYTES + sum(
            1 + _encoded(key) + (0 if value is None else _encoded(value))
            for key, value in self._operations
        )

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
        return f"<lsm.WriteBatch of {len(self._operations)} operations, {self._size} bytes>"


def _encoded(data: bytes) -> int:
    """The bytes that a key or value takes behind its length."""
    return len(varint(len(data))) + len(data)
