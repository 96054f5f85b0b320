"""Writing: who waits for the log, who writes for whom, and when to wait for the background.

A write is a **commit**: a record at its place in the log, and then the steps by which memtable,
log and readers take it in. Commits are made one at a time, by whoever has the lock. A commit is
registered before its first byte is written, and from then on *anybody* who has the lock carries it
out, by doing again what may be done already: the record is written to the same place, and the
steps, taken in one call, are taken once. So an interruption can come anywhere, and who comes next
goes on from there: the next writer, or a signal handler's write in the middle of this one.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from lsm.disk.keys import MAX_SEQUENCE, rank_of, sequence_of
from lsm.errors import Error, SyncError
from lsm.kernels.python.log_encoding import encode_batch
from lsm.memtable import Memtable
from lsm.reentrancy import is_reentrant
from lsm.starter import is_background
from lsm.steps import in_turn, take
from lsm.view import View
from lsm.write_log import WriteLog

if TYPE_CHECKING:
    from lsm.disk.keys import Entry
    from lsm.storage import Placed
    from lsm.store import Store
    from lsm.turnstile import Ticket

Operations = Sequence[tuple[bytes, bytes | None]]

# LevelDB's: how much one writer takes along of what others wait to write.
_GROUP_BYTES = 1 << 20
_SMALL_BYTES = 128 << 10
# LevelDB's: what a write waits for while level 0 has many tables.
_SLOW_SECONDS = 0.001

_NO_STEPS: Iterator[Any] = iter(())


class Writing:
    """A batch that waits for its turn. ``error`` says why it was not written when it is done."""

    __slots__ = ("done", "error", "operations", "size", "sync")

    def __init__(self, operations: Operations, size: int, sync: bool):
        self.operations = operations
        self.size = size
        self.sync = sync
        self.done = False
        self.error: Exception | None = None


@attrs.define(eq=False)
class Commit:
    """A group of batches on its way into log and memtable, as of the rank that was visible."""

    group: list[Writing]
    memtable: Memtable
    log: WriteLog
    placed: Placed
    entries: list[Entry]
    before: int
    rank: int
    sync: bool
    size: int
    steps: Iterator[Any] = _NO_STEPS
    is_logged: bool = False
    is_synced: bool = False


class Writer:
    """The queue before the log. Who has the lock writes, and takes along those who wait.

    The lock is the innermost one: who has it waits for nobody but the disk.
    """

    def __init__(self, store: Store):
        self._store = store
        self._queue: deque[Writing] = deque()
        self._pending: Commit | None = None
        # Reentrant, since a signal handler or a finalizer can write in the middle of a write.
        self.lock = threading.RLock()
        self._switching = threading.RLock()

    def write(self, operations: Operations, size: int, sync: bool) -> None:
        """Write operations as one: all of them or none are there, whatever happens."""
        writing = Writing(operations, size, sync)
        try:
            self._queue.append(writing)
            while not writing.done:
                if not self._has_room():
                    self._make_room()
                with self.lock:
                    while not writing.done and self._lead(writing):
                        pass
        except Exception:
            with self.lock:  # nobody has it in hand then
                if not writing.done:
                    self._remove(writing)
                    raise
        except BaseException:
            self._remove(writing)
            raise
        if writing.error is not None:
            error, writing.error = writing.error, None  # whose frames have both
            try:
                raise error
            finally:
                del error

    def switch(self) -> tuple[Memtable, ...]:
        """Give what is in memory to the background; the memtables that are to be flushed."""
        self._store.check_writable()
        with self.lock:
            self._settle()
        memtable = self._view.memtables[0]
        if memtable or (memtable.log is not None and memtable.log.is_torn):
            self._make_room(force=True)
        return self._view.memtables[1:]

    def start_log(self) -> WriteLog:
        """Begin a log."""
        return self._new_log(before=None)

    def close(self) -> None:
        """Carry out what an interrupted writer has left, and let nobody read or write any more."""
        with self.lock:
            view = self._store.view
            if view is None:
                return
            with contextlib.suppress(MemoryError, RecursionError):  # then the log has it
                self._settle()
            logs = [memtable.log for memtable in view.memtables if memtable.log is not None]
            try:
                in_turn(*[log.close for log in reversed(logs)])
            except Exception:
                self._store.view = None
                raise
            self._store.view = None

    # -- Room ------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        """Whether a write need not wait."""
        view, options = self._view, self._store.options
        return (
            view.memtables[0].has_room(options.write_buffer_size)
            and len(view.version.levels[0]) < options.level0_slow_files
        )

    def _make_room(self, force: bool = False) -> None:
        """Wait until there is a memtable with room; ``force`` asks for a new one in any case."""
        if _cannot_wait():
            return
        store, slow, tried = self._store, not force, False
        options = store.options
        while True:
            ticket = store.changed.ticket()
            store.check_writable()
            memtable, *others = self._view.memtables
            level0 = len(self._view.version.levels[0])
            if slow and level0 >= options.level0_slow_files:
                slow = False
                store.work.slowed_seconds += _waited(ticket, _SLOW_SECONDS)
            elif not force and memtable.has_room(options.write_buffer_size):
                return
            elif not others and level0 < options.level0_stop_files:
                self._switch(memtable)
                force = False
            else:
                tried = store.retry_once(tried)
                store.work.stopped_seconds += _waited(ticket)

    def _switch(self, full: Memtable) -> None:
        """Begin a new log and a new memtable in place of this one, and have it flushed."""
        store = self._store
        with self._switching:
            if self._view.memtables[0] is not full:
                return  # another thread has
            log = self._new_log(full.log)
            try:
                with self.lock:
                    self._settle()
                    view = self._view
                    memtables = (Memtable(store.comparator, log), *view.memtables)
                    store.show(View(memtables, view.version))
                    log.begin()
            except SyncError as error:
                store.fail(error)
                raise
            except BaseException:
                found = store.view
                # In a child that was forked here it is its parent's, who may have gone on with it.
                is_used = found is not None and found.memtables[0].log is log
                if not is_used and not store.is_abandoned:
                    log.abandon()
                raise
        store.background.schedule()

    def _new_log(self, before: WriteLog | None) -> WriteLog:
        store = self._store
        number = store.manifest.new_file_number()
        try:
            return WriteLog(store.storage, store.directory, number, before)
        except SyncError as error:
            store.fail(error)
            raise

    @property
    def _view(self) -> View:
        view = self._store.view
        if view is None:
            raise self._store.closed_error()
        return view

    # -- With the lock held ----------------------------------------------------------------

    def _lead(self, writing: Writing) -> bool:
        """Write the batches that have waited longest; in the end, this one is among them.

        False if that takes a new log, which nobody begins with the lock held.
        """
        self._settle()
        if writing.done:
            return True
        self._store.check_writable()
        if self._is_torn():
            return False
        group = self._group(writing)
        commit = self._commit(group)
        if commit is None:
            if group[0].sync:
                self._sync_log()
            self._finish(group)
            return True
        # Without a call between the comparison and the assignment nothing comes between them.
        if self._pending is None and self._store.visible == commit.before:
            self._pending = commit
            self._carry_out(commit, is_own=True)
        return True

    def _is_torn(self) -> bool:
        """Whether the log takes no more; an error where this thread cannot wait for another."""
        log = self._view.memtables[0].log
        if log is None or not log.is_torn:
            return False
        if _cannot_wait():
            raise Error(
                f"{self._store.directory}: the log takes no more since a write has failed, and one "
                "by a signal handler or a finalizer cannot begin another: write again later"
            )
        return True

    def _group(self, writing: Writing) -> list[Writing]:
        """The batch that has waited longest, and those behind it that one record takes along."""
        queue = self._queue
        if len(queue) == 1:
            return [writing]
        while queue and queue[0].done:  # and was left by who was interrupted
            self._remove(queue[0])
        first, *others = [each for each in queue.copy() if not each.done] or [writing]
        group = [first]
        room = _GROUP_BYTES if first.size > _SMALL_BYTES else first.size + _SMALL_BYTES
        total = first.size
        for each in others:
            total += each.size
            if total > room or (each.sync and not first.sync):
                break
            group.append(each)
        return group

    def _commit(self, group: list[Writing]) -> Commit | None:
        """The commit of a group's operations; None if there are none."""
        store, operations, size = self._store, group[0].operations, group[0].size
        if len(group) > 1:
            operations = [operation for each in group for operation in each.operations]
            size = sum(each.size for each in group)
        if not operations:
            return None
        visible, memtable = store.visible, self._view.memtables[0]
        last = sequence_of(visible) + len(operations)
        if last > MAX_SEQUENCE:
            raise Error(f"{store.directory}: the sequence numbers are used up, all 2^56 of them")
        log = memtable.log
        assert log is not None
        sequence = sequence_of(visible) + 1
        entries = memtable.prepare(sequence, operations)
        placed = log.place(encode_batch(sequence, operations))
        commit = Commit(
            group, memtable, log, placed, entries, visible, rank_of(last), group[0].sync, size
        )
        commit.steps = self._steps(commit, *memtable.steps(entries))
        memtable.grow(len(entries), size)
        return commit

    def _steps(self, commit: Commit, *adding: Any) -> Iterator[Any]:
        """The steps that take a commit in: at last it counts in the log, and readers see it."""
        log, store = commit.log, self._store
        return iter(
            (
                *adding,
                (setattr, log, "end", commit.placed.end),
                (setattr, store, "visible", commit.rank),
            )
        )

    def _settle(self) -> None:
        """Carry out the commit that somebody has left pending."""
        if self._pending is not None:
            self._carry_out(self._pending, is_own=False)

    def _carry_out(self, commit: Commit, *, is_own: bool) -> None:
        """Do all that is left to do of the pending commit, or give it up if that fails."""
        try:
            self._do(commit)
        except (MemoryError, RecursionError):
            raise  # whoever comes next goes on with it
        except Exception as error:
            if not is_own and is_reentrant():
                raise  # whose commit it is may be writing it at this moment, further up
            self._give_up(commit, error)
        except BaseException:
            with contextlib.suppress(Exception):  # which the next one finds, too
                self._do(commit)
            raise

    def _do(self, commit: Commit) -> None:
        if not commit.is_logged:
            commit.log.append(commit.placed)
            commit.is_logged = True
        if commit.sync and not commit.is_synced:
            commit.log.sync()
            commit.is_synced = True
        try:
            take(commit.steps)
        except MemoryError:
            commit.steps = _NO_STEPS
            raise
        if self._store.visible > commit.rank:  # no memory: the steps ended somewhere
            self._take_again(commit)
        self._finish(commit.group)
        if self._pending is commit:
            self._pending = None
            self._store.work.user_bytes += commit.size
            self._store.work.log_bytes += len(commit.placed)

    def _take_again(self, commit: Commit) -> None:
        """Take the steps that were not taken."""
        entries = commit.entries
        steps = commit.memtable.steps(entries)
        if commit.memtable.ends_with(entries):
            steps = steps[:-1]
        commit.steps = self._steps(commit, *steps)
        take(commit.steps)

    def _give_up(self, commit: Commit, error: Exception) -> None:
        """Tell those whose batches a commit has that it failed."""
        store, log = self._store, commit.log
        if self._pending is not commit:
            return  # it was carried out by who came in between
        log.is_torn = True
        if isinstance(error, SyncError):
            store.fail(error)
            log.cut()
        # The log may have the record all the same, so that no other may have its sequence numbers.
        if store.visible > commit.rank:
            store.visible = commit.rank
        for each in commit.group:
            each.error = error
        self._finish(commit.group)
        self._pending = None

    def _finish(self, group: list[Writing]) -> None:
        """Let go of a group that was written, or was not."""
        for each in group:
            each.done = True
            self._remove(each)

    def _remove(self, writing: Writing) -> None:
        queue = self._queue
        try:
            if queue[0] is writing:
                queue.popleft()
            else:
                queue.remove(writing)
        except (IndexError, ValueError):
            pass  # it was withdrawn, or this was done before

    def _sync_log(self) -> None:
        log = self._view.memtables[0].log
        assert log is not None
        try:
            log.begin()
            log.sync()
        except SyncError as error:
            self._store.fail(error)
            raise


def _cannot_wait() -> bool:
    """Whether who makes room may be waiting for this very thread."""
    return is_reentrant() or is_background()


def _waited(ticket: Ticket, seconds: float | None = None) -> float:
    """Wait for the turnstile, and say for how long that was."""
    start = time.perf_counter()
    ticket.wait(seconds)
    return time.perf_counter() - start
