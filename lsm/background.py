"""Background threads: one that flushes memtables, and one that compacts levels."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import attrs

from lsm import compaction, picking
from lsm.compaction import Job, StoppedError
from lsm.disk.edit import Edit, NewFile
from lsm.errors import SyncError
from lsm.options import LEVELS
from lsm.starter import STARTER
from lsm.table_factory import DeeperLevels

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.installing import Installer
    from lsm.kernels import TableFile
    from lsm.kernels.python import Memtable
    from lsm.picking import Plan
    from lsm.state import State
    from lsm.version import Version

# LevelDB's: a new table may go this deep at once if nothing there overlaps it.
DEEPEST_FLUSH = 2


@attrs.define(eq=False)
class ManualCompaction:
    """The requested compaction of a level between two bounds; None is no bound."""

    level: int
    low: OrderedKey | None
    high: OrderedKey | None
    is_done: bool = False


class _Worker:
    """One kind of background work, done by a thread that lives as long as there is any."""

    def __init__(self, name: str, has_work: Callable[[], bool], work: Callable[[], None]):
        self.name = name
        self.has_work = has_work
        self.work = work
        # Held by the thread that works, so that one at most does, however many were started.
        self.busy = threading.Lock()


class Background:
    """Starts a thread when there is something to do, and lets it end when there is nothing left.

    A flush may place its table below level 0 only while no compaction runs, whose outputs could
    come to lie around it; while it does so, no compaction starts.
    """

    def __init__(self, state: State, installer: Installer):
        self._state = state
        self._installer = installer
        self._manual: deque[ManualCompaction] = deque()
        self._lock = threading.Lock()  # for its own threads: no interruption comes to them
        self._deep_flush = False
        self._compacting = False
        self._workers = (
            _Worker("flush", self._has_flush, self._flush),
            _Worker("compaction", self._has_compaction, self._compact),
        )

    def schedule(self) -> None:
        """Start a thread for each kind of work that is due and that no thread is doing."""
        for worker in self._workers:
            if not worker.busy.locked() and not self._state.must_stop() and worker.has_work():
                STARTER.start(partial(self._run, worker), worker.name)

    def parts(self) -> tuple[object, ...]:
        """The objects with locks that have to be renewed in a forked child."""
        return self, *self._workers

    def retry_once(self, tried: bool) -> bool:
        """Retry what has failed, or raise that if it was ``tried``; True.

        What is under way now and fails is tried anew: it may have met what has been mended since.
        """
        state = self._state
        if not tried:
            state.retries += 1
        if state.failure is not None:
            if tried or state.failure.is_final:
                raise state.failure.refusal(state.directory)
            state.failure = None
        self.schedule()
        return True

    def compact_level(self, manual: ManualCompaction) -> None:
        """Return when a manual compaction is done."""
        state = self._state
        tried = self.retry_once(False)
        self._manual.append(manual)
        while True:
            ticket = state.changed.ticket()
            if manual.is_done:
                return
            state.check_writable()
            self.retry_once(tried)
            ticket.wait()

    def wait_until_idle(self) -> None:
        """Return when no work is due and no thread works."""
        while not self._state.must_stop():
            ticket = self._state.changed.ticket()
            self.schedule()
            if not any(each.busy.locked() or each.has_work() for each in self._workers):
                return
            ticket.wait()

    def wait_until_ended(self) -> None:
        """Return when no thread works any more; they must have been told to stop before."""
        while True:
            ticket = self._state.changed.ticket()
            if not any(each.busy.locked() for each in self._workers):
                return
            ticket.wait()

    def _has_flush(self) -> bool:
        view = self._state.view
        return view is not None and len(view.memtables) > 1

    def _has_compaction(self) -> bool:
        state = self._state
        view = state.view
        if view is None or self._deep_flush:
            return False
        return bool(self._manual) or picking.fullest(view.version, state.options)[1] >= 1

    def _run(self, worker: _Worker) -> None:
        """Work, unless another thread does, until there is nothing left to do."""
        while self._is_due(worker) and worker.busy.acquire(blocking=False):
            try:
                while self._is_due(worker):
                    self._work(worker)
            finally:
                worker.busy.release()
                self._state.changed.notify_all()
            # Work may have come up since the last look, when this thread still held ``busy``.

    def _is_due(self, worker: _Worker) -> bool:
        return not self._state.must_stop() and worker.has_work()

    def _work(self, worker: _Worker) -> None:
        installer, retries = self._installer, self._state.retries
        try:
            worker.work()
            # Only now: its frames held the version that it began with.
            installer.remove_obsolete_files()
        except BaseException as error:
            installer.discard_outputs()
            with self._lock:
                if worker.name == "flush":
                    self._deep_flush = False
                else:
                    self._compacting = False
            if isinstance(error, SyncError) or (
                retries == self._state.retries and not isinstance(error, StoppedError)
            ):
                self._state.fail(error)
        self.schedule()
        self._state.changed.notify_all()

    # -- Flushing --------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the oldest memtable to a table, after which its log is obsolete."""
        start, state = time.perf_counter(), self._state
        view = state.view
        if view is None:
            return
        *_, successor, memtable = view.memtables
        assert successor.log is not None
        edit = Edit(log_number=successor.log.number)
        files = []
        if memtable:
            files = self._write(edit, memtable)
        self._installer.install(edit, files, flushed=memtable)
        self._deep_flush = False
        state.work.flushes += 1
        state.work.flush_seconds += time.perf_counter() - start

    def _write(self, edit: Edit, memtable: Memtable) -> list[TableFile]:
        """Write a memtable to a table on the deepest level it may go to, and add it to an edit."""
        low, high = memtable.bounds()
        with self._lock:
            view = self._state.view
            if view is None:
                raise StoppedError
            version = view.version
            level = self._level_for(version, low, high)
            self._deep_flush = level > 0
        installer = self._installer
        output = compaction.flush(
            installer.factory, level, memtable, DeeperLevels(version, level), self._is_closed
        )
        return installer.add(edit, level, [output])

    def _level_for(self, version: Version, low: OrderedKey, high: OrderedKey) -> int:
        if self._compacting:
            return 0
        limit = picking.GRANDPARENT_FACTOR * self._state.options.max_file_size
        return version.level_for_flush(low, high, DEEPEST_FLUSH, limit)

    # -- Compacting ------------------------------------------------------------------------

    def _compact(self) -> None:
        """Run the first manual compaction in the queue, or else the one that is due."""
        start, state = time.perf_counter(), self._state
        with self._lock:
            view = state.view
            if self._deep_flush or view is None:
                return
            manual = self._manual[0] if self._manual else None
            plan = self._plan(view.version, manual)
            self._compacting = plan is not None
        if plan is None:
            if manual is not None:
                self._manual.popleft()
                manual.is_done = True
            return
        oldest_snapshot = state.oldest_snapshot()
        if manual is None and plan.is_move(state.options):
            self._move(plan)
        else:
            self._rewrite(plan, oldest_snapshot, start)
        self._compacting = False
        if manual is not None:
            manual.low = max(table.high for table in plan.upper)
            if manual.level == 0:  # done at once: tables flushed since were not asked for
                self._manual.popleft()
                manual.is_done = True

    def _plan(self, version: Version, manual: ManualCompaction | None) -> Plan | None:
        state = self._state
        if manual is None:
            pointers = state.manifest.compact_pointers
            return picking.pick(version, state.options, pointers, state.comparator)
        return picking.pick_range(version, manual.level, manual.low, manual.high, state.options)

    def _move(self, plan: Plan) -> None:
        """Move one table down as it is."""
        (table,) = plan.upper
        level = plan.level + 1
        edit = _edit_of(plan)
        edit.added.append(NewFile(level, table.number, table.size, table.smallest, table.largest))
        self._installer.install(edit, [table.file])
        self._state.work.moves += 1

    def _rewrite(self, plan: Plan, oldest_snapshot: int, start: float) -> None:
        """Merge a plan's tables into new ones a level deeper."""
        state, level = self._state, plan.level + 1
        outputs = compaction.run(self._job(plan, oldest_snapshot))
        edit = _edit_of(plan)
        files = self._installer.add(edit, level, outputs)
        self._installer.install(edit, files)
        seconds = time.perf_counter() - start
        cost = state.work.levels[level]
        cost.seconds += seconds
        cost.read_bytes += sum(table.size for table in plan.inputs)
        cost.written_bytes += sum(file.size for file in files)
        state.work.compactions += 1
        state.work.compaction_seconds += seconds

    def _job(self, plan: Plan, oldest_snapshot: int) -> Job:
        state, level = self._state, plan.level + 1
        upper = [table.file for table in plan.upper]
        # Tables of level 0 overlap, so that each is a run of its own.
        runs = [[file] for file in upper] if plan.level == 0 else [upper]
        return Job(
            factory=self._installer.factory,
            level=level,
            runs=[*runs, [table.file for table in plan.lower]],
            deeper=DeeperLevels(plan.version, level),
            grandparents=[(table.high, table.size) for table in plan.grandparents],
            overlap_limit=picking.GRANDPARENT_FACTOR * state.options.max_file_size,
            oldest_snapshot=oldest_snapshot,
            should_stop=self._is_closed,
        )

    def _is_closed(self) -> bool:
        return self._state.closed_by is not None


def levels_to_compact(version: Version, low: OrderedKey | None, high: OrderedKey | None) -> range:
    """The levels that a compaction of a range goes through: all above the deepest it touches."""
    touched = (level for level in range(1, LEVELS) if version.overlapping(level, low, high))
    return range(max(touched, default=1))


def _edit_of(plan: Plan) -> Edit:
    """An edit that deletes a plan's inputs and sets the level's compaction pointer."""
    return Edit(
        compact_pointers=[(plan.level, plan.pointer)],
        deleted=[(table.level, table.number) for table in plan.inputs],
    )
