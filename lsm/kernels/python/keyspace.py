"""What programs write to: a database, or the part of it whose keys have a prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.arguments import flag
from lsm.kernels.python.batch import Batch
from lsm.kernels.python.reader import Reader

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.store import Store


class Keyspace(Reader):
    """A reader that writes, too; ``_store`` is there as long as it is."""

    __slots__ = ()

    _store: Store

    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = False) -> None:
        """Set the key's value.

        When this returns, the system has it, and it survives the end of the process; with ``sync``
        it survives the loss of power, too.
        """
        batch = self._batch()
        batch.put(key, value)
        self._store.write(batch, flag("sync", sync))

    def delete(self, key: Buffer, *, sync: bool | None = False) -> None:
        """Delete the key, if it is there."""
        batch = self._batch()
        batch.delete(key)
        self._store.write(batch, flag("sync", sync))

    def __setitem__(self, key: Buffer, value: Buffer) -> None:
        self.put(key, value)

    def __delitem__(self, key: Buffer) -> None:
        self.delete(key)

    def _batch(self) -> Batch:
        batch = Batch()
        batch._store, batch._prefix = self._store, self._prefix or b""
        return batch
