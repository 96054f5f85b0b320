"""Commits: batches in the queue, and a group of them on its way into log and memtable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from lsm.disk.keys import Entry
    from lsm.kernels.python import Batch, Memtable
    from lsm.storage import Placed
    from lsm.write_log import WriteLog

NO_STEPS: Iterator[Any] = iter(())


class QueuedWrite:
    """A batch in the queue; once it is ``done``, ``error`` is why it was not written, if so."""

    __slots__ = ("count", "done", "error", "record", "size", "sync")

    def __init__(self, batch: Batch, sync: bool):
        self.record = batch.record_to_stamp()
        self.count = batch.count
        self.size = batch.payload
        self.sync = sync
        self.done = False
        self.error: Exception | None = None


@attrs.define(eq=False)
class Commit:
    """A group of batches on its way into log and memtable.

    ``visible_before`` is the rank that was visible when it was made, ``rank`` the one that it makes
    visible.
    """

    group: list[QueuedWrite]
    memtable: Memtable
    log: WriteLog
    placed: Placed
    entries: list[Entry]
    visible_before: int
    rank: int
    sync: bool
    steps: Iterator[Any] = NO_STEPS
    is_logged: bool = False
    is_synced: bool = False
