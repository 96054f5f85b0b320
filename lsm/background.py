"""Background threads: one that flushes memtables, and some that compact levels."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import attrs

from lsm import announcing, compaction, jobs, picking, refilter_job
from lsm.compaction import Job, StoppedError
from lsm.disk.edit import Edit, NewFile
from lsm.errors import SyncError
from lsm.following import Following
from lsm.options import LEVELS
from lsm.picking import Plan
from lsm.refiltering import Refiltering, RefilterPlan
from lsm.starter import STARTER
from lsm.table_factory import DeeperLevels
from lsm.warming import Warming
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.installing import Installer
    from lsm.jobs import Claim
    from lsm.kernels import TableFile
    from lsm.kernels.python import Memtable
    from lsm.loading import Load
    from lsm.manual import ManualCompaction
    from lsm.placing import Prospect
    from lsm.state import State
    from lsm.version import Version

_log = logging.getLogger("lsm")

# LevelDB's: a new table may go this deep at once if nothing there overlaps it.
DEEPEST_FLUSH = 2
# While tables keep coming to level 0, its compaction waits for so many times what makes it due, or
# for as many as slow writers down: those that LevelDB, which is slower, finds there under load.
_AWAITED_FACTOR = 2
# It waits no longer than this for the next one, however long merging once took.
_LONGEST_AWAITING_SECONDS = 1.0
# Who keeps to a pace looks so often whether somebody waits for him.
_LONGEST_LOOKING_AWAY_SECONDS = 0.05
# What a flush costs whatever its size is not to be taken for the cost of a full one.
_LEAST_FILLED = 0.25
# Where a compaction is always due, every so many of them let a table be refiltered.
_MOST_BEFORE_REFILTERING = 4


@attrs.frozen(eq=False)
class _Task:
    """What a compaction thread does next: a plan, or with None to say that no more is to be done.

    ``deeper`` are the levels below its outputs as they are when it begins. The version itself is
    not kept: none of its files could be removed before the task has ended. Tables that are written
    anew in place have their ``numbers`` from the beginning.
    """

    manual: ManualCompaction | None
    plan: Plan | RefilterPlan | None
    deeper: DeeperLevels
    numbers: tuple[int, ...] = ()


class _Worker:
    """A place for one thread, which lives as long as there is any work of its kind."""

    def __init__(self) -> None:
        # Held by the thread that works, so that one at most does, however many were started.
        self.busy = threading.Lock()


class _Kind:
    """A kind of background work, and as many workers as may do it at once."""

    def __init__(
        self, name: str, workers: int, has_work: Callable[[], bool], work: Callable[[], None]
    ):
        self.name = name
        self.workers = [_Worker() for _ in range(workers)]
        self.has_work = has_work
        self.work = work

    def is_busy(self) -> bool:
        """Whether any thread does such work."""
        return any(each.busy.locked() for each in self.workers)

    def idle(self) -> _Worker | None:
        """A worker that has no thread, if there is one."""
        return next((each for each in self.workers if not each.busy.locked()), None)


class Background:
    """Starts threads when there is something to do, and lets them end when there is nothing left.

    One flushes, the others compact what does not touch, as ``jobs.py`` has it. If a single job is
    asked for, one thread does both in turn. A flush may place its table below level 0 only while no
    compaction runs, whose outputs could come to lie around it; while it does so, none begins.
    """

    def __init__(self, state: State, installer: Installer):
        self._state = state
        self._installer = installer
        self._manual: deque[ManualCompaction] = deque()
        self._lock = threading.Lock()  # for its own threads: no interruption comes to them
        self._deep_flush = self._flush_has_begun = False
        self._refilterings: deque[Refiltering] = deque()
        self._begun_before_refiltering = 0
        self._claims: tuple[Claim, ...] = ()
        self._loads: deque[Load] = deque()
        count = jobs.at_once(state.options.max_background_jobs)
        self._flushes_apart = count > 1
        if count == 1:
            self._kinds = [_Kind("background", 1, self._has_work, self._do_work)]
        else:
            self._kinds = [
                _Kind("flush", 1, self._has_flush, self._flush),
                _Kind("compaction", count - 1, self._has_compaction, self._compact),
            ]
        self._loading = _Kind("load", 1, self._has_load, self._install_load)
        self._tidying = _Kind("tidying", 1, self._has_tidying, lambda: None)
        following = Following(self, state, installer)
        self._following = _Kind("following", 1, following.has_work, following.work)
        warming = Warming(state, self._is_kept_out)
        self._warming = _Kind("warming", 1, warming.has_work, warming.work)
        self._kinds += [self._loading, self._tidying, self._following, self._warming]

    def schedule(self, besides: _Kind | None = None) -> None:
        """Start a thread for each kind of work that is due and has a worker without one.

        That thread, once it has begun, sees whether there is more for another.
        """
        for kind in self._kinds:
            if kind is besides or self._state.must_stop():
                continue
            worker = kind.idle()
            if worker is not None and kind.has_work():
                STARTER.start(partial(self._run, kind, worker), kind.name, worker)

    def parts(self) -> tuple[object, ...]:
        """The objects with locks that have to be renewed in a forked child."""
        return self, *[worker for kind in self._kinds for worker in kind.workers]

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

    def compact_level(self, manual: ManualCompaction, tell: Callable[[], object]) -> None:
        """Return when a manual compaction is done.

        ``tell`` is called before it begins, when it can, and whenever it has come further. Whatever
        is raised meanwhile withdraws it.
        """
        state, told = self._state, -1
        tell()
        tried = self.retry_once(False)
        try:
            self._manual.append(manual)
            state.changed.notify_all()  # who waits for tables has something else to do
            while True:
                ticket = state.changed.ticket()
                if manual.is_done:
                    return
                state.check_writable()
                self.retry_once(tried)
                if manual.read_bytes > told:
                    told = manual.read_bytes
                    tell()
                    continue  # with a ticket from after that
                ticket.wait()
        except BaseException:
            manual.is_withdrawn = True
            self._leave_queue(manual)
            state.changed.notify_all()
            raise

    def wait_until_idle(self) -> None:
        """Return when no work is due, no thread works, and what is obsolete was removed.

        That is looked for once more when no thread works: one that did could have held an older
        version while another looked.
        """
        is_looked_for = False
        while not self._state.must_stop():
            ticket = self._state.changed.ticket()
            self.schedule()
            if any(kind.is_busy() or kind.has_work() for kind in self._kinds):
                ticket.wait()
            elif is_looked_for:
                return
            else:
                is_looked_for = True
                self._installer.doubt_tidiness()

    def wait_until_tidy(self) -> None:
        """Return when what is obsolete by now was removed, or nothing goes on."""
        installs = self._installer.installs
        while not self._state.must_stop():
            ticket = self._state.changed.ticket()
            if self._installer.is_tidy(installs):
                return
            self.schedule()
            ticket.wait()

    def tidy(self) -> None:
        """Have removed what was kept for a reader, and has become obsolete meanwhile."""
        self._installer.doubt_tidiness()
        self.schedule()

    def wait_until_ended(self) -> None:
        """Return when no thread works any more; they must have been told to stop before."""
        while True:
            ticket = self._state.changed.ticket()
            if not any(kind.is_busy() for kind in self._kinds):
                return
            ticket.wait()

    def _has_work(self) -> bool:
        return self._has_flush() or self._has_compaction()

    def _do_work(self) -> None:
        if self._has_flush():
            self._flush()
        else:
            self._compact()

    def _has_flush(self) -> bool:
        view = self._state.view
        return view is not None and len(view.memtables) > 1

    def _has_compaction(self) -> bool:
        view = self._state.view
        return view is not None and self._next(view.version) is not None

    def _has_tidying(self) -> bool:
        """Whether a failure kept whoever installed something from removing what is obsolete."""
        later = self._tidying, self._following, self._warming
        others = [kind for kind in self._kinds if kind not in later]
        return not self._installer.is_tidy(self._installer.installs) and not any(
            kind.is_busy() or kind.has_work() for kind in others
        )

    def _run(self, kind: _Kind, worker: _Worker) -> None:
        """Work, unless another thread does, until there is nothing left to do."""
        while self._is_due(kind) and worker.busy.acquire(blocking=False):
            try:
                while self._is_due(kind):
                    self._work(kind)
            finally:
                worker.busy.release()
                self._state.changed.notify_all()
            # Work may have come up since the last look, when this thread still held ``busy``.
        self.schedule()  # what waits until nobody works

    def _is_due(self, kind: _Kind) -> bool:
        return not self._state.must_stop() and kind.has_work()

    def _work(self, kind: _Kind) -> None:
        installer, retries = self._installer, self._state.retries
        self._state.begin_work()
        try:
            kind.work()
            self._state.changed.notify_all()  # before what takes long, and nobody waits for
            # Only now: its frames held the version that it began with.
            if kind.name != "flush" or not self._has_flush():
                installer.remove_obsolete_files()
        except BaseException as error:
            installer.discard_outputs()
            is_asked_for_again = retries != self._state.retries and not isinstance(error, SyncError)
            if is_asked_for_again and not isinstance(error, StoppedError):
                _log.error("%s: is tried again: %s", self._state.directory, cause(error))
            elif not isinstance(error, StoppedError):
                self._state.fail(error)
        finally:
            self._state.end_work()
        self.schedule(besides=kind)
        self._state.changed.notify_all()

    # -- Loading ---------------------------------------------------------------------------

    def wait_until_alone(self, load: Load) -> None:
        """Begin no compaction until the load is over, and return when none runs."""
        state = self._state
        load.is_alone = True
        state.changed.notify_all()  # who waits for tables is to go on without them
        others = [kind for kind in self._kinds if kind is not self._loading]
        while True:
            ticket = state.changed.ticket()
            self._check_going()
            if not any(kind.is_busy() for kind in others):
                return
            ticket.wait()

    def install_load(self, load: Load) -> None:
        """Return when a load is installed by a thread of the background, or raise why it is not."""
        state = self._state
        self._loads.append(load)
        while True:
            ticket = state.changed.ticket()
            if load.is_done:
                return
            if load.error is not None:
                self._raise_error_of(load)
            if load in self._loads:
                self._check_going()
            self.schedule()
            ticket.wait()

    def withdraw(self, load: Load) -> bool:
        """Take a load back; False if a thread of the background has taken it, which ends it."""
        try:
            self._loads.remove(load)
        except ValueError:
            return not load.is_taken
        return True

    def _is_kept_out(self) -> bool:
        load = self._state.current_load()
        return load is not None and load.is_alone

    def _has_load(self) -> bool:
        return bool(self._loads)

    def _install_load(self) -> None:
        state, installer = self._state, self._installer
        try:
            load = self._loads[0]
            load.is_taken = True  # before it is, so that who finds it gone knows by whom
            self._loads.remove(load)
        except (IndexError, ValueError):  # it was withdrawn
            return
        try:
            installer.install(load.edit, load.files, visible=load.visible)
            with state.lock:
                state.user_bytes += load.size
            load.is_done = True
        except BaseException as error:
            installer.discard_outputs(load.thread)
            if isinstance(error, SyncError):
                state.fail(error)
            load.error = error.with_traceback(None)
        load.is_over = True

    def _check_going(self) -> None:
        """Raise if the background has stopped."""
        state = self._state
        state.check_writable()
        if state.failure is not None:
            raise state.failure.refusal(state.directory)

    def _raise_error_of(self, load: Load) -> None:
        # Taken out of it: the frames that the error leads to have the load, and so its tables,
        # which would stay until the cycle is collected.
        error, load.error = load.error, None
        assert error is not None
        if isinstance(error, StoppedError):
            self._check_going()
        try:
            raise error
        finally:
            del error

    # -- Flushing --------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the oldest memtable to a table, after which its log is obsolete."""
        start, work = time.perf_counter(), self._state.work
        view = self._state.view
        if view is None:
            return
        *_, successor, memtable = view.memtables
        assert successor.log is not None
        edit, done = Edit(log_number=successor.log.number), None
        filled = memtable.filled
        work.flushing.begin(start, filled)
        try:
            files = self._write(edit, memtable) if memtable else []
            self._installer.install(edit, files, flushed=memtable)
            done = max(filled, _LEAST_FILLED)
        finally:
            with self._lock:  # who decides with a version from before finds them set
                self._deep_flush = self._flush_has_begun = False
            work.flushing.end(time.perf_counter(), done)
        seconds = time.perf_counter() - start
        work.flushes += 1
        work.flush_seconds += seconds
        work.flush_read_bytes += memtable.size
        work.flush_written_bytes += sum(file.size for file in files)
        announcing.flushed(self._state.directory, edit, memtable.size, seconds)

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
            self._flush_has_begun = True
        installer, deeper = self._installer, DeeperLevels(version, level)
        law = installer.factory.prospect(version, level, joins=True)
        output = compaction.flush(installer.factory, level, memtable, deeper, self._is_closed, law)
        return installer.add(edit, level, [output])

    def _level_for(self, version: Version, low: OrderedKey, high: OrderedKey) -> int:
        if self._claims:
            return 0
        limit = picking.GRANDPARENT_FACTOR * self._state.options.max_file_size
        return version.level_for_flush(low, high, DEEPEST_FLUSH, limit)

    # -- Compacting ------------------------------------------------------------------------

    def _compact(self) -> None:
        """Begin what is next, and do it while others may begin what does not touch it."""
        self._await_tables()
        start, task = time.perf_counter(), self._begin()
        if task is None:
            return
        try:
            if task.plan is not None:
                self.schedule()
            if isinstance(task.plan, RefilterPlan):
                self._refilter(task, task.plan)
            elif task.plan is not None:
                self._carry_out(task, task.plan, start)
        except BaseException:
            self._end(task)
            raise
        self._end(task, is_done=True)

    def _await_tables(self) -> None:
        """Wait while tables come to level 0 faster than those that are there could be merged.

        So more of them are merged at once, and level 1 is written less often. Who waits for the
        next one no longer than the merge would take loses at most as much again.
        """
        while self._flushes_apart:
            ticket = self._state.changed.ticket()
            seconds = self._seconds_to_wait_for_tables()
            if seconds <= 0 or self._state.must_stop():
                return
            ticket.wait(seconds)

    def _seconds_to_wait_for_tables(self) -> float:
        view, options, work = self._state.view, self._state.options, self._state.work
        manual, plan = (view and self._next(view.version)) or (None, None)
        if manual is not None or not isinstance(plan, Plan) or plan.level > 0:
            return 0.0
        awaited = min(options.level0_slow_files, _AWAITED_FACTOR * options.level0_compact_files)
        if len(plan.upper) >= awaited:
            return 0.0
        expected = max(
            work.relieving.speed.expected(sum(table.size for table in plan.inputs)),
            work.flushing.speed.expected(len(plan.upper)),  # where nothing was merged yet
        )
        patience = min(expected, _LONGEST_AWAITING_SECONDS)
        return work.flushing.ended + patience - time.perf_counter()

    def _next(
        self, version: Version
    ) -> tuple[ManualCompaction | None, Plan | RefilterPlan | None] | None:
        """The first manual compaction in the queue, or else what is due and need not wait.

        Where nothing else is, or always something else was, what somebody wants to be refiltered.
        Without a plan it is a manual compaction that has nothing left to do.
        """
        due = self._due(version, self._claims)
        if self._deep_flush or self._is_kept_out():
            return None
        if due is None or self._begun_before_refiltering >= _MOST_BEFORE_REFILTERING:
            plan = self._refiltering_plan(version, keeps_pace=due is not None)
            if plan is not None:
                return None, plan
        return due

    def _refiltering_plan(self, version: Version, keeps_pace: bool) -> RefilterPlan | None:
        """What somebody wants to be refiltered next, but for those whose pace asks to wait."""
        now = time.perf_counter()
        for request in self._refilterings.copy():
            waits = request.is_withdrawn or request.is_done
            if not waits and not (keeps_pace and request.wait_until > now):
                plan = request.next_plan(version, self._claims, not self._flush_has_begun)
                if plan is not None:
                    return plan
        return None

    def _due(
        self, version: Version, claims: tuple[Claim, ...]
    ) -> tuple[ManualCompaction | None, Plan | None] | None:
        """The compaction to begin next beside what is claimed, and who has asked for it."""
        state, waiting = self._state, []
        if self._deep_flush or self._is_kept_out():
            return None
        asked = (each for each in self._manual.copy() if not each.is_withdrawn)
        manual = next(asked, None)
        if manual is not None and not manual.is_running:
            plan = self._plan_of(manual, version)
            if plan is None or plan.claim.is_free(claims):
                return manual, plan
            waiting.append(plan.claim)
        pointers = state.manifest.compact_pointers
        plan = picking.pick(version, state.options, pointers, state.comparator, claims, waiting)
        return None if plan is None else (None, plan)

    def _plan_of(self, manual: ManualCompaction, version: Version) -> Plan | None:
        """What a manual compaction is to do next, if anything is left."""
        options, bounds = self._state.options, (manual.low, manual.high)
        if manual.older_than is not None:
            return picking.pick_in_place(version, manual.level, *bounds, manual.older_than, options)
        return picking.pick_range(version, manual.level, *bounds, options)

    def _begin(self) -> _Task | None:
        """Claim what is next."""
        with self._lock:
            view = self._state.view
            found = None if view is None else self._next(view.version)
            if view is None or found is None:
                return None
            manual, plan = found
            if manual is not None:
                manual.is_running = True
            if plan is not None:
                self._claims = (*self._claims, plan.claim)
                self._state.work.compacting = len(self._claims)
            numbers: tuple[int, ...] = ()
            level = LEVELS if plan is None else plan.level + 1
            self._begun_before_refiltering += 1
            if isinstance(plan, RefilterPlan):
                self._begun_before_refiltering, level = 0, plan.level
                numbers = tuple(self._installer.new_number() for _ in plan.tables)
            return _Task(manual, plan, DeeperLevels(view.version, level), numbers)

    def _end(self, task: _Task, is_done: bool = False) -> None:
        """Give back what a task has claimed; a manual one that ``is_done`` goes on behind it."""
        manual, plan = task.manual, task.plan
        with self._lock:
            if plan is not None:
                self._claims = tuple(each for each in self._claims if each != plan.claim)
                self._state.work.compacting = len(self._claims)
            if manual is None or isinstance(plan, RefilterPlan):
                return
            manual.is_running = False
            if is_done and plan is not None:
                manual.low = max(table.high for table in plan.upper or plan.lower)
                manual.read_bytes += sum(table.size for table in plan.inputs)
            # Level 0 is done at once: tables flushed since were not asked for.
            if is_done and (plan is None or plan.top == 0):
                self._leave_queue(manual)
                manual.is_done = True

    def _leave_queue(self, manual: ManualCompaction) -> None:
        with contextlib.suppress(ValueError):  # it has left, or was withdrawn
            self._manual.remove(manual)

    def _carry_out(self, task: _Task, plan: Plan, start: float) -> None:
        if task.manual is None and plan.is_move(self._state.options):
            self._move(plan)
        else:
            self._rewrite(task, plan, start)

    # -- Refiltering -----------------------------------------------------------------------

    def refilter(self, request: Refiltering, tell: Callable[[], object]) -> None:
        """Return when a request is done, or raise its error.

        ``tell`` is called before it begins and whenever a table is done. Whatever is raised
        meanwhile withdraws it: tables that were refiltered stay so.
        """
        state, told = self._state, -1
        tell()
        tried = self.retry_once(False)
        try:
            self._refilterings.append(request)
            while True:
                ticket = state.changed.ticket()
                self._skip_what_left(request)
                if request.is_done:
                    break
                state.check_writable()
                self.retry_once(tried)
                if len(request.done) > told:
                    told = len(request.done)
                    tell()
                    continue  # with a ticket from after that
                ticket.wait()
        finally:
            request.is_withdrawn = True
            with contextlib.suppress(ValueError):
                self._refilterings.remove(request)
            state.changed.notify_all()
        if request.error is not None:
            error, request.error = request.error, None
            try:
                raise error
            finally:
                del error

    def _skip_what_left(self, request: Refiltering) -> None:
        """Leave out the tables that were merged or moved since they were asked for."""
        with self._lock:  # nobody is between taking a table and counting it
            view = self._state.view
            if view is None:
                return
            at = {table.number: table.level for table in view.version.tables()}
            gone = [
                number for number, each in request.remaining.items() if at.get(number) != each.level
            ]
            claimed = {number for claim in self._claims for number in claim.tables}
            request.leave(number for number in gone if number not in claimed)

    def _refilter(self, task: _Task, plan: RefilterPlan) -> None:
        """Write tables anew with the filters that they lack; what cannot be copied stays."""
        pause = partial(self._pause_refiltering, plan.request)
        files = refilter_job.run(self._installer, plan, task.numbers, task.deeper, pause)
        with self._lock:
            self._state.work.refiltered += len(files)

    def follow(self, request: Refiltering) -> bool:
        """Whether a request of the background's own was done, and nobody has had to be let in."""
        self._refilterings.append(request)
        try:
            while not (self._state.must_stop() or self._is_kept_out()):
                ticket = self._state.changed.ticket()
                self._skip_what_left(request)
                if request.is_done:
                    return True
                self.schedule(besides=self._following)
                ticket.wait()
            return False
        finally:
            request.is_withdrawn = True
            self._refilterings.remove(request)

    def is_otherwise_idle(self) -> bool:
        """Whether nobody works, but for who would have filters follow, and nobody has to."""
        others = [kind for kind in self._kinds if kind is not self._following]
        return not self._is_kept_out() and not any(
            kind.is_busy() or kind.has_work() for kind in others
        )

    def _pause_refiltering(self, request: Refiltering, copied: int) -> None:
        """Stop when told to, and keep to the pace that was asked for while nobody waits."""
        self._check_wanted(request)
        if request.bytes_per_second is None:
            return
        with self._lock:  # others may be at it
            request.wait_until = max(request.wait_until, time.perf_counter())
            request.wait_until += copied / request.bytes_per_second
            end = request.wait_until
        while (seconds := end - time.perf_counter()) > 0:
            ticket = self._state.changed.ticket()
            self._check_wanted(request)
            if self._is_awaited():
                return
            ticket.wait(min(seconds, _LONGEST_LOOKING_AWAY_SECONDS))

    def _check_wanted(self, request: Refiltering) -> None:
        """StoppedError unless somebody wants to have what is refiltered."""
        if self._is_closed() or request.is_withdrawn or request.error is not None:
            raise StoppedError

    def _is_awaited(self) -> bool:
        """Whether anything else is to be done, which may wait for what is being refiltered."""
        view = self._state.view
        if view is None or self._has_flush() or self._is_kept_out():
            return True
        others = tuple(each for each in self._claims if not each.is_in_place)
        return self._due(view.version, others) is not None

    def _move(self, plan: Plan) -> None:
        """Move one table down as it is."""
        (table,) = plan.upper
        level = plan.level + 1
        edit = _edit_of(plan)
        edit.added.append(NewFile(level, table.number, table.size, table.smallest, table.largest))
        self._installer.install(edit, [table.file])
        with self._lock:
            self._state.work.moves += 1
        announcing.moved(self._state.directory, plan)

    def _rewrite(self, task: _Task, plan: Plan, start: float) -> None:
        """Merge a plan's tables into new ones a level deeper."""
        level, work = plan.level + 1, self._state.work
        size, done = sum(table.size for table in plan.inputs), None
        if plan.top == 0:
            work.relieving.begin(start, size)
        try:
            outputs = compaction.run(self._job(task, plan))
            edit = _edit_of(plan)
            files = self._installer.add(edit, level, outputs)
            self._installer.install(edit, files)
            done = size
        finally:
            if plan.top == 0:
                work.relieving.end(time.perf_counter(), done)
        seconds = time.perf_counter() - start
        with self._lock:
            cost = work.levels[level]
            cost.seconds += seconds
            cost.read_bytes += size
            cost.written_bytes += sum(file.size for file in files)
            work.compactions += 1
            work.compaction_seconds += seconds
        announcing.compacted(self._state.directory, plan, files, seconds)

    def _job(self, task: _Task, plan: Plan) -> Job:
        state, level = self._state, plan.level + 1
        runs: list[list[TableFile]] = []
        for above, tables in groupby(plan.inputs, attrgetter("level")):
            files = [table.file for table in tables]
            # Tables of level 0 overlap, so that each is a run of its own.
            runs += [[file] for file in files] if above == 0 else [files]
        return Job(
            factory=self._installer.factory,
            level=level,
            runs=runs,
            deeper=task.deeper,
            grandparents=[(table.high, table.size) for table in plan.grandparents],
            overlap_limit=picking.GRANDPARENT_FACTOR * state.options.max_file_size,
            oldest_snapshot=state.oldest_snapshot(),
            should_stop=partial(self._is_given_up, task),
            law=self._law_for(plan),
        )

    def _law_for(self, plan: Plan) -> Prospect | None:
        """What places the filters of a plan's outputs, from the tree as it is now."""
        view = self._state.view
        if view is None:
            raise StoppedError
        leaving = {table.number for table in plan.inputs}
        return self._installer.factory.prospect(view.version, plan.level + 1, leaving)

    def _is_given_up(self, task: _Task) -> bool:
        return self._is_closed() or (task.manual is not None and task.manual.is_withdrawn)

    def _is_closed(self) -> bool:
        return self._state.closed_by is not None


def _edit_of(plan: Plan) -> Edit:
    """An edit that deletes a plan's inputs and sets the pointer of a level that it takes from."""
    return Edit(
        compact_pointers=[(plan.level, plan.pointer)] if plan.upper else [],
        deleted=[(table.level, table.number) for table in plan.inputs],
    )
