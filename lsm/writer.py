"""Writing: who waits for the log, who writes for whom, and when to wait for the background."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from lsm.disk.keys import MAX_SEQUENCE, rank
from lsm.errors import Error
from lsm.kernels.python.log_encoding import encode_batch
from lsm.memtable import Memtable
from lsm.view import View
from lsm.write_log import WriteLog
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.store import Store

Operations = Sequence[tuple[bytes, bytes | None]]

# LevelDB's: how much one writer takes along of what others wait to write.
_GROUP_BYTES = 1 << 20
_SMALL_BYTES = 128 << 10
# LevelDB's: what a write waits for while level 0 has many tables.
_SLOW_SECONDS = 0.001


@attrs.define(eq=False)
class Writing:
    """A batch that waits for its turn; with ``alone``, a turn taken for something else.

    ``group`` is whom it writes for when its turn has come; ``claimed`` says that another takes it
    along. ``logging`` holds from the first byte in the log until readers see it all,
    up to the ``last`` sequence number.
    """

    operations: Operations
    size: int
    sync: bool
    alone: bool = False
    claimed: bool = False
    group: list[Writing] | None = None
    logging: bool = False
    last: int | None = None
    done: bool = False
    error: BaseException | None = None


class Writer:
    """The queue before the log. The first in it writes, and takes along those behind it.

    An interruption can come anywhere. It ends the write that it hits, and nobody else waits for it.
    """

    def __init__(self, store: Store):
        self._store = store
        self._turn = threading.Condition(store.mutex)
        self._queue: deque[Writing] = deque()
        self.log: WriteLog | None = None
        self.last_sequence = 0

    def write(self, operations: Operations, size: int, sync: bool) -> None:
        """Write operations as one: all of them or none are there, whatever happens."""
        writing = Writing(operations, size, sync)
        try:
            self._take_turn(writing)
            if not writing.done:
                self._make_room()
                with self._store.mutex:
                    group = self._group(writing)
                self._commit(writing)
                with self._store.mutex:
                    self._finish(group, None)
        except BaseException as error:
            with self._store.mutex:
                self._give_up(writing, error)
            raise
        if writing.error is not None:
            raise writing.error

    def switch(self) -> tuple[Memtable, ...]:
        """Give what is in memory to the background; the memtables that are to be flushed."""
        turn = Writing((), 0, sync=False, alone=True)
        try:
            with self._store.mutex:
                self._store.check_writable()
            self._take_turn(turn)
            if self._view.memtables[0]:
                self._make_room(force=True)
            with self._store.mutex:
                flushed = self._view.memtables[1:]
                self._finish([turn], None)
            return flushed
        except BaseException as error:
            with self._store.mutex:
                self._give_up(turn, error)
            raise

    def start_log(self) -> WriteLog:
        """Begin a new log."""
        store = self._store
        number = store.manifest.new_file_number()
        self.log = WriteLog(store.storage, store.directory, number)
        return self.log

    def wake(self) -> None:
        """Let those who wait see that the database is closing; with the mutex held."""
        self._turn.notify_all()

    def wait_until_empty(self) -> None:
        """Return when who writes has finished and who waits was refused; with the mutex held."""
        while self._queue:
            self._turn.wait()

    # -- The queue -------------------------------------------------------------------------

    def _take_turn(self, writing: Writing) -> None:
        """Queue, and return when it is first, or when somebody has written it."""
        with self._store.mutex:
            self._queue.append(writing)
            while not writing.done and self._queue[0] is not writing:
                self._turn.wait()

    def _group(self, first: Writing) -> list[Writing]:
        """The batch whose turn it is, and those behind it that one record takes along."""
        first.group = group = [first]
        room = _GROUP_BYTES if first.size > _SMALL_BYTES else first.size + _SMALL_BYTES
        total = first.size
        for each in itertools.islice(self._queue, 1, None):
            total += each.size
            if each.alone or total > room or (each.sync and not first.sync):
                break
            group.append(each)
            each.claimed = True
        return group

    def _finish(self, group: list[Writing], error: BaseException | None) -> None:
        """Let go of a group that was written, or was not; with the mutex held."""
        for each in group:
            each.error = error
            each.done = True
            if self._queue[0] is each:
                self._queue.popleft()
            else:
                self._queue.remove(each)
        if self._queue or len(group) > 1 or self._store.closed_by is not None:
            self._turn.notify_all()

    def _give_up(self, writing: Writing, error: BaseException) -> None:
        """After an error or an interruption leave nobody waiting; with the mutex held."""
        if writing.logging:  # the log may have it, and readers do not
            self._store.fail(error)
        group = [each for each in writing.group or (writing,) if each in self._queue]
        if not writing.claimed:  # else who has claimed it finishes it
            written = self.last_sequence == writing.last
            self._finish(group, None if written else _for_followers(error))

    def _make_room(self, force: bool = False) -> None:
        """Wait until there is a memtable with room; ``force`` asks for a new one in any case."""
        while not self._has_room(force):
            self._switch_memtable()
            force = False

    def _has_room(self, force: bool) -> bool:
        """Wait until there is a memtable with room, or until a new one may be begun."""
        store, may_slow = self._store, not force
        options = store.options
        with store.mutex:
            while True:
                store.check_writable()
                memtables = self._view.memtables
                level0 = len(self._view.version.levels[0])
                if may_slow and level0 >= options.level0_slow_files:
                    may_slow = False
                    store.work.slowed_seconds += self._wait(_SLOW_SECONDS)
                elif not force and memtables[0].size <= options.write_buffer_size:
                    return True
                elif len(memtables) == 1 and level0 < options.level0_stop_files:
                    return False
                else:
                    store.work.stopped_seconds += self._wait()

    def _wait(self, seconds: float | None = None) -> float:
        start = time.perf_counter()
        self._store.changed.wait(seconds)
        return time.perf_counter() - start

    def _switch_memtable(self) -> None:
        """Begin a new log and a new memtable, and have the old one flushed.

        Nobody but the first in the queue comes here, and without the mutex: a disk takes its time.
        """
        store = self._store
        try:
            if self.log is not None:
                # A synced write to the new log must not outlive an unsynced one to the old.
                self.log.sync()
                self.log.close()
            self.start_log()
            with store.mutex:
                view = self._view
                store.view = View((Memtable(store.comparator), *view.memtables), view.version)
                store.background.schedule()
        except BaseException as error:
            self._fail(error)
            raise

    @property
    def _view(self) -> View:
        view = self._store.view
        if view is None:
            raise self._store.closed_error()
        return view

    # -- The log; one writer at a time, without the mutex ------------------------------------

    def _commit(self, writing: Writing) -> None:
        """Log a group as one record, add it to the memtable, and let readers see it."""
        store, log, group = self._store, self.log, writing.group
        assert log is not None
        assert group is not None
        operations = writing.operations
        if len(group) > 1:
            operations = [operation for each in group for operation in each.operations]
        if not operations:
            if writing.sync:
                self._sync(log)
            return
        sequence = self.last_sequence + 1
        last = self.last_sequence + len(operations)
        if last > MAX_SEQUENCE:
            raise Error(f"{store.directory}: the sequence numbers are used up, all 2^56 of them")
        # All that takes time comes before the log has the record, for an interruption is harmless
        # there; one between the log and the memtable leaves them apart.
        memtable, size = self._view.memtables[0], sum(each.size for each in group)
        entries = memtable.prepare(sequence, operations)
        record = encode_batch(sequence, operations)
        before = log.size
        writing.logging, writing.last = True, last
        self._append(log, record, writing)
        memtable.add(entries, size)
        store.visible = rank(last)
        self.last_sequence = last
        writing.logging = False
        store.work.user_bytes += size
        store.work.log_bytes += log.size - before

    def _append(self, log: WriteLog, record: bytes, writing: Writing) -> None:
        """Append a record, or nothing if that fails."""
        before = log.size
        try:
            log.append(record)
            if writing.sync:
                self._sync(log)
        except BaseException:
            log.take_back(before)
            writing.logging = False
            raise

    def _sync(self, log: WriteLog) -> None:
        try:
            log.sync()
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        with self._store.mutex:
            self._store.fail(error)


def _for_followers(error: BaseException | None) -> BaseException | None:
    """What is raised in threads whose batches were taken along: an interruption is not theirs."""
    if error is None or isinstance(error, Exception):
        return error
    followers = Error(
        f"not written: the thread that had taken this batch along was interrupted by {cause(error)}"
    )
    followers.__cause__ = error
    return followers
