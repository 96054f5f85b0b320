"""The write path: the queue before the log, group commit, and waiting for the background.

A write is a **commit**: a record at its offset in the log, and then the steps that add it to the
memtable, count it in the log and make it visible. Commits are made one at a time, by whichever
thread holds the lock. A commit is registered as pending before its first byte is written, and from
then on *any* thread that holds the lock finishes it, by repeating what may be done already: the
record is written to the same offset, and the steps, run by one call, run once. So an interruption
can come anywhere, and the next thread goes on from there: the next writer, or a signal handler's
write in the middle of this one.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lsm.commit import NO_STEPS, Commit, QueuedWrite
from lsm.disk.keys import MAX_SEQUENCE, rank_of, sequence_of
from lsm.errors import Error, SyncError
from lsm.kernels.python.batch import joined
from lsm.pace import LONGEST_SECONDS, Backlog, Pace
from lsm.reentrancy import is_reentrant
from lsm.starter import is_background
from lsm.steps import call_all, run_steps
from lsm.write_log import WriteLog

if TYPE_CHECKING:
    from lsm.background import Background
    from lsm.kernels.python import Batch, Memtable, View
    from lsm.state import State
    from lsm.turnstile import Ticket

# LevelDB's: how many bytes one commit may hold, and how many more than a small first batch.
_GROUP_BYTES = 1 << 20
_SMALL_BYTES = 128 << 10
_UNLIMITED = (1 << 63) - 1


class Writer:
    """The queue before the log: the thread that holds the state's lock writes for those that wait.

    Of the background it wants that somebody makes room: ``schedule()`` when a memtable is full, and
    ``retry_once()`` when it has to wait.
    """

    def __init__(self, state: State, background: Background):
        self._state = state
        self._background = background
        self._queue: deque[QueuedWrite] = deque()
        self._switching = threading.RLock()
        self._pace = Pace()
        # What the pace was last asked about: the memtable's log, and what was behind.
        self._seen = 0, Backlog(0.0, 0, 0, 0, 0)

    def write(self, batch: Batch, sync: bool) -> None:
        """Write a batch as one: all of it or nothing is there, whatever happens."""
        if not sync and batch.commit_alone():
            return
        queued = QueuedWrite(batch, sync)
        try:
            self._queue.append(queued)
            while not queued.done:
                if not self._has_room():
                    self._make_room()
                with self._state.lock:
                    while not queued.done and self._write_group(queued):
                        pass
        except Exception:
            with self._state.lock:  # nobody has it in hand then
                if not queued.done:
                    self._withdraw(queued)
                    raise
        except BaseException:
            self._withdraw(queued)
            raise
        if queued.error is not None:
            error, queued.error = queued.error, None  # whose frames have both
            try:
                raise error
            finally:
                del error

    def switch(self) -> tuple[Memtable, ...]:
        """Have what is in memory flushed; the memtables that this concerns."""
        self._state.check_writable()
        with self._state.lock:
            self._finish_pending()
        memtable = self._view.memtables[0]
        if memtable or (memtable.log is not None and memtable.log.is_torn):
            self._make_room(force=True)
        return self._view.memtables[1:]

    def start_log(self, found: int | None = None) -> WriteLog:
        """The first log of an open database, in the empty one of this number if there is one."""
        return self._new_log(previous=None, found=found)

    def close(self) -> None:
        """Finish the commit that an interruption left pending, and end reading and writing."""
        with self._state.lock:
            view = self._state.view
            if view is None:
                return
            with contextlib.suppress(MemoryError, RecursionError):  # then the log has it
                self._finish_pending()
            logs = [memtable.log for memtable in view.memtables if memtable.log is not None]
            try:
                call_all(*[log.close for log in reversed(logs)])
            except Exception:
                self._state.view = None
                raise
            self._state.view = None

    # -- Room ------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        """Whether a write can go on at once, and need not ask for the pace."""
        state, memtable = self._state, self._view.memtables[0]
        return (
            (state.load is None or state.current_load() is None)
            and memtable.has_room()
            and (memtable.size < state.unhindered_size or not self._is_behind())
        )

    def _is_behind(self) -> bool:
        """Whether the background has so much to do that it sets the pace."""
        view = self._view
        level0 = len(view.version.levels[0])
        return len(view.memtables) > 1 or level0 >= self._state.options.level0_slow_files

    def _make_room(self, force: bool = False) -> None:
        """Go at the background's pace, and stall until there is a memtable with room.

        ``force`` asks for a new one in any case, and at once.
        """
        state, options = self._state, self._state.options
        if not force and not self._owed() and self._has_room():
            return
        if _cannot_wait():
            return
        slowed, stopped, tried, is_write = 0.0, 0.0, False, not force
        try:
            while True:
                ticket = state.changed.ticket()
                state.check_writable()
                memtable, *others = self._view.memtables
                level0 = len(self._view.version.levels[0])
                if is_write and self._is_kept_out():
                    stopped += _waited(ticket)
                elif not force and memtable.has_room():
                    owed = min(self._owed(), LONGEST_SECONDS - slowed)
                    if owed <= 0:
                        return
                    slowed += _waited(ticket, owed)
                elif not others and level0 < options.level0_stop_files:
                    self._switch(memtable)
                    force = False
                else:
                    tried = self._background.retry_once(tried)
                    stopped += _waited(ticket)
        finally:
            state.work.slowed.add(slowed)
            state.work.stopped.add(stopped)

    def _owed(self) -> float:
        """The seconds to wait for what has been written, at the pace of the background.

        Until the memtable has the state's ``unhindered_size`` nobody need ask again.
        """
        state, view, now = self._state, self._view, time.perf_counter()
        memtable, *others = view.memtables
        backlog = Backlog(
            memtable.filled,
            len(others),
            len(view.version.levels[0]),
            state.options.level0_slow_files,
            state.options.level0_stop_files,
        )
        flushing, relieving = state.work.flushing, state.work.relieving
        rate = backlog.rate(flushing.relief(now), relieving.relief(now))
        if state.failure is not None:  # nobody is at work: who is stopped tries again
            rate = math.inf
        allowed = backlog.allowed(rate) * state.options.write_buffer_size
        state.unhindered_size = memtable.size + max(1, int(allowed))
        number = 0 if memtable.log is None else memtable.log.number
        (before, then), self._seen = self._seen, (number, backlog)
        return self._pace.charge(now, backlog.grown_since(then) if before == number else 0.0, rate)

    def _switch(self, full: Memtable) -> None:
        """Replace this memtable and its log by new ones, and have it flushed."""
        state = self._state
        with self._switching:
            if self._view.memtables[0] is not full:
                return  # another thread has
            log = self._new_log(full.log)
            try:
                with self._state.lock:
                    self._finish_pending()
                    view = self._view
                    memtable = state.new_memtable(log)
                    memtables = (memtable, *view.memtables)
                    state.publish(state.kernel.View(memtables, view.version))
                    log.finish_previous()
            except SyncError as error:
                state.fail(error)
                raise
            except BaseException:
                found = state.view
                # In a child that was forked here it is its parent's, who may have gone on with it.
                is_used = found is not None and found.memtables[0].log is log
                if not is_used and not state.is_abandoned:
                    log.abandon()
                raise
        self._background.schedule()

    def _new_log(self, previous: WriteLog | None, found: int | None = None) -> WriteLog:
        state = self._state
        number = state.manifest.new_file_number() if found is None else found
        try:
            return WriteLog(state.storage, state.directory, number, previous)
        except SyncError as error:
            state.fail(error)
            raise

    @property
    def _view(self) -> View:
        return self._state.opened_view()

    # -- With the lock held ----------------------------------------------------------------

    def _write_group(self, queued: QueuedWrite) -> bool:
        """Write the batches at the front of the queue; called until this one was among them.

        False if that needs a new log, which no thread begins with the lock held.
        """
        self._finish_pending()
        if queued.done:
            return True
        self._state.check_writable()
        if self._is_kept_out() or self._is_torn():
            return False
        group = self._batch_group(queued)
        commit = self._new_commit(group)
        if commit is None:
            if group[0].sync:
                self._sync_log()
            self._leave_queue(group)
            return True
        if self._state.pending is None:
            self._state.pending = commit
            self._run(commit, is_own=True)
            self._look_ahead()
        return True

    def _look_ahead(self) -> None:
        """Find out whether the next writer is to wait for anything."""
        state = self._state
        if state.view is not None and not self._is_behind():
            state.unhindered_size = _UNLIMITED
        state.is_unhindered = state.view is not None and self._has_room()
        if state.failure is not None or state.closed_by is not None:  # since then, too
            state.is_unhindered = False

    def _is_kept_out(self) -> bool:
        """Whether a load is to end first; an error where this thread must not wait for that."""
        if self._state.current_load() is None:
            return False
        if _cannot_wait():
            raise Error(
                f"{self._state.directory}: a bulk load keeps writers out, and one by a signal "
                "handler, a finalizer, or the load's own input or progress cannot wait for its "
                "end: write when it has returned"
            )
        return True

    def _is_torn(self) -> bool:
        """Whether the log takes no more records; an error where this thread must not wait."""
        log = self._view.memtables[0].log
        if log is None or not log.is_torn:
            return False
        if _cannot_wait():
            raise Error(
                f"{self._state.directory}: the log takes no more since a write has failed, and one "
                "by a signal handler or a finalizer cannot begin another: write again later"
            )
        return True

    def _batch_group(self, queued: QueuedWrite) -> list[QueuedWrite]:
        """The first batch of the queue, and those behind it that one record has room for."""
        queue = self._queue
        if len(queue) == 1:
            return [queued]
        while queue and queue[0].done:  # an interruption kept its thread from withdrawing it
            self._withdraw(queue[0])
        first, *others = [each for each in queue.copy() if not each.done] or [queued]
        group = [first]
        room = _GROUP_BYTES if first.size > _SMALL_BYTES else first.size + _SMALL_BYTES
        total = first.size
        for each in others:
            total += each.size
            if total > room or (each.sync and not first.sync):
                break
            group.append(each)
        return group

    def _new_commit(self, group: list[QueuedWrite]) -> Commit | None:
        """The commit of a group's operations; None if there are none."""
        state = self._state
        count = sum([each.count for each in group])
        if not count:
            return None
        visible, memtable = state.visible, self._view.memtables[0]
        last = sequence_of(visible) + count
        if last > MAX_SEQUENCE:
            raise Error(f"{state.directory}: the sequence numbers are used up, all 2^56 of them")
        log = memtable.log
        assert log is not None
        record = joined(sequence_of(visible) + 1, count, [each.record for each in group])
        entries = memtable.prepare(record)
        commit = Commit(
            group, memtable, log, log.place(record), entries, visible, rank_of(last), group[0].sync
        )
        commit.steps = self._steps(commit, *memtable.steps(entries))
        memtable.grow(entries)
        return commit

    def _steps(self, commit: Commit, *adding: Any) -> Iterator[Any]:
        """The steps of a commit: ``adding`` to the memtable, then the log's end and visibility."""
        log, state = commit.log, self._state
        return iter(
            (
                *adding,
                (setattr, log, "end", commit.placed.end),
                (setattr, state, "visible", commit.rank),
            )
        )

    def _finish_pending(self) -> None:
        """Finish the commit that another thread or operation has left pending."""
        if self._state.pending is not None:
            self._run(self._state.pending, is_own=False)

    def _run(self, commit: Commit, *, is_own: bool) -> None:
        """Finish the pending commit, or fail it."""
        try:
            self._advance(commit)
        except (MemoryError, RecursionError):
            raise  # the next thread that holds the lock goes on with it
        except Exception as error:
            if not is_own and is_reentrant():
                raise  # whose commit it is may be writing it at this moment, further up
            self._fail_commit(commit, error)
        except BaseException:
            with contextlib.suppress(Exception):  # which the next one finds, too
                self._advance(commit)
            raise

    def _advance(self, commit: Commit) -> None:
        """Do what is not known to be done of a commit, from its record to its visibility."""
        if self._state.visible != commit.visible_before and not commit.is_logged:
            # A reentrant write came between making this commit and registering it, and has its
            # place and its sequence numbers. Its batches are still in the queue, or written. Asked
            # in this order: what makes a commit visible has marked it as logged before.
            if self._state.pending is commit:
                self._state.pending = None
            return
        if not commit.is_logged:
            commit.log.append(commit.placed)
            commit.is_logged = True
        if commit.sync and not commit.is_synced:
            commit.log.sync()
            commit.is_synced = True
        try:
            run_steps(commit.steps)
        except MemoryError:
            commit.steps = NO_STEPS
            raise
        if self._state.visible > commit.rank:  # no memory: the steps ended somewhere
            self._run_missing_steps(commit)
        self._leave_queue(commit.group)
        if self._state.pending is commit:
            self._state.pending = None
            self._state.user_bytes += sum([each.size for each in commit.group])
            self._state.log_bytes += len(commit.placed)

    def _run_missing_steps(self, commit: Commit) -> None:
        """Run the steps that have not run, after there was no memory in the midst of them."""
        entries = commit.entries
        steps = commit.memtable.steps(entries)
        if commit.memtable.ends_with(entries):
            steps = steps[:-1]
        commit.steps = self._steps(commit, *steps)
        run_steps(commit.steps)

    def _fail_commit(self, commit: Commit, error: Exception) -> None:
        """Have every batch of a commit fail with this error."""
        state, log = self._state, commit.log
        if self._state.pending is not commit:
            return  # a reentrant write has finished it
        log.is_torn = True
        if isinstance(error, SyncError):
            state.fail(error)
            log.cut()
        # The log may have the record all the same, so that no other may have its sequence numbers.
        if state.visible > commit.rank:
            state.visible = commit.rank
        for each in commit.group:
            each.error = error
        self._leave_queue(commit.group)
        self._state.pending = None

    def _leave_queue(self, group: list[QueuedWrite]) -> None:
        """Withdraw the batches of a group, written or failed, from the queue."""
        for each in group:
            each.done = True
            self._withdraw(each)

    def _withdraw(self, queued: QueuedWrite) -> None:
        queue = self._queue
        try:
            if queue[0] is queued:
                queue.popleft()
            else:
                queue.remove(queued)
        except (IndexError, ValueError):
            pass  # it was withdrawn before

    def _sync_log(self) -> None:
        log = self._view.memtables[0].log
        assert log is not None
        try:
            log.finish_previous()
            log.sync()
        except SyncError as error:
            self._state.fail(error)
            raise


def _cannot_wait() -> bool:
    """Whether the threads that make room may be waiting for this very one."""
    return is_reentrant() or is_background()


def _waited(ticket: Ticket, seconds: float | None = None) -> float:
    """The seconds that this thread has waited at a turnstile."""
    start = time.perf_counter()
    ticket.wait(seconds)
    return time.perf_counter() - start
