"""What runs in the background: a thread that flushes memtables, and one that compacts."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from lsm import compaction, picking
from lsm.compaction import Beneath, Job, StoppedError
from lsm.disk.edit import Edit, NewFile
from lsm.options import LEVELS

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.picking import Plan
    from lsm.store import Store
    from lsm.version import Version

# LevelDB's: a new table may go this deep at once if nothing there overlaps it.
DEEPEST_FLUSH = 2

_PREFIX = "lsm-"  # of the names of threads


@attrs.define(eq=False)
class ManualCompaction:
    """A level, and the bounds of what is to be compacted there; None is no bound."""

    level: int
    low: OrderedKey | None
    high: OrderedKey | None
    done: bool = False


class Background:
    """Starts a thread when there is something to do, and lets it end when there is nothing left.

    A flush may place its table below level 0 only while no compaction runs, whose outputs could
    come to lie around it; while it does so, no compaction starts.
    """

    def __init__(self, store: Store):
        self._store = store
        self._manual: deque[ManualCompaction] = deque()
        self._flusher: threading.Thread | None = None
        self._compactor: threading.Thread | None = None
        self._deep_flush = False
        self._compacting = False

    @property
    def threads(self) -> list[threading.Thread]:
        """The threads that run now."""
        return [each for each in (self._flusher, self._compactor) if each is not None]

    def schedule(self) -> None:
        """Start the threads that have something to do; with the mutex held."""
        if self._must_stop():
            return
        if self._flusher is None and self._has_flush():
            self._flusher = _started(self._flush_all, "flush")
        if self._compactor is None and self._has_compaction():
            self._compactor = _started(self._compact_all, "compaction")

    def compact_level(self, manual: ManualCompaction) -> None:
        """Return when a manual compaction is done."""
        store = self._store
        with store.mutex:
            self._manual.append(manual)
            self.schedule()
            while not manual.done:
                store.check_writable()
                store.changed.wait()

    def wait_until_idle(self) -> None:
        """Return when nothing is left to do; with the mutex held."""
        while not self._must_stop():
            self.schedule()
            if not self.threads:
                return
            self._store.changed.wait()

    def _must_stop(self) -> bool:
        store = self._store
        return store.closed_by is not None or store.read_only or store.failure is not None

    def _has_flush(self) -> bool:
        view = self._store.view
        return view is not None and len(view.memtables) > 1

    def _has_compaction(self) -> bool:
        store = self._store
        if store.view is None or self._deep_flush:
            return False
        return bool(self._manual) or picking.fullest(store.view.version, store.options)[1] >= 1

    def _flush_all(self) -> None:
        self._run("_flusher", self._has_flush, self._flush)

    def _compact_all(self) -> None:
        self._run("_compactor", self._has_compaction, self._compact)

    def _run(self, thread: str, has_work: Callable[[], bool], work: Callable[[], None]) -> None:
        store = self._store
        error: BaseException | None = None
        while error is None:
            with store.mutex:
                if self._must_stop() or not has_work():
                    break
            try:
                work()
                # Only now: as long as it ran it held the version it began with.
                store.installer.remove_obsolete_files()
            except BaseException as raised:
                error = raised
        with store.mutex:
            setattr(self, thread, None)
            if error is not None:
                self._compacting = self._deep_flush = False
                if not isinstance(error, StoppedError):
                    store.fail(error)
            elif not self._must_stop():
                self.schedule()  # what came up since it was found that there is no work
            store.changed.notify_all()

    # -- Flushing --------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the oldest memtable to a table, and drop its log."""
        start, store = time.perf_counter(), self._store
        with store.mutex:
            assert store.view is not None
            assert store.writer.log is not None
            memtable = store.view.memtables[-1]
            edit = Edit(log_number=store.writer.log.number)
        entries = memtable.entries()
        with store.mutex:
            assert store.view is not None
            version = store.view.version
            level = self._level_for(version, entries[0][0], entries[-1][0])
            self._deep_flush = level > 0
        installer = store.installer
        output = compaction.write_table(
            installer.workshop,
            installer.new_number(),
            level,
            entries,
            Beneath(version, level),
        )
        files = installer.add(edit, level, [output])
        installer.install(edit, files, flushed=memtable)
        with store.mutex:
            self._deep_flush = False
            store.work.flushes += 1
            store.work.flush_seconds += time.perf_counter() - start
            self.schedule()
            store.changed.notify_all()

    def _level_for(self, version: Version, low: OrderedKey, high: OrderedKey) -> int:
        if self._compacting:
            return 0
        limit = picking.GRANDPARENT_FACTOR * self._store.options.max_file_size
        return version.level_for_flush(low, high, DEEPEST_FLUSH, limit)

    # -- Compacting ------------------------------------------------------------------------

    def _compact(self) -> None:
        """Do the manual compaction that waits longest, or the one that is due."""
        start, store = time.perf_counter(), self._store
        with store.mutex:
            if self._deep_flush or store.view is None:
                return
            manual = self._manual[0] if self._manual else None
            plan = self._plan(store.view.version, manual)
            if plan is None:
                if manual is not None:
                    manual.done = True
                    self._manual.popleft()
                    store.changed.notify_all()
                return
            self._compacting = True
            oldest = store.oldest_sequence()
        if manual is None and plan.is_move(store.options):
            self._move(plan)
        else:
            self._rewrite(plan, oldest, start)
        with store.mutex:
            self._compacting = False
            if manual is not None:
                manual.low = max(table.high for table in plan.upper)
                # Level 0 goes down at once, and what is flushed meanwhile was not asked for.
                manual.done = manual.level == 0
            self.schedule()
            store.changed.notify_all()

    def _plan(self, version: Version, manual: ManualCompaction | None) -> Plan | None:
        store = self._store
        if manual is None:
            pointers = store.manifest.compact_pointers
            return picking.pick(version, store.options, pointers, store.comparator)
        if manual.done:
            return None
        return picking.pick_range(version, manual.level, manual.low, manual.high, store.options)

    def _move(self, plan: Plan) -> None:
        """Move one table down as it is."""
        (table,) = plan.upper
        level = plan.level + 1
        edit = _edit_of(plan)
        edit.added.append(NewFile(level, table.number, table.size, table.smallest, table.largest))
        self._store.installer.install(edit, [table.file])
        self._store.work.moves += 1

    def _rewrite(self, plan: Plan, oldest: int, start: float) -> None:
        """Merge a plan's tables into new ones a level deeper."""
        store, level = self._store, plan.level + 1
        outputs = compaction.run(self._job(plan, oldest))
        edit = _edit_of(plan)
        files = store.installer.add(edit, level, outputs)
        store.installer.install(edit, files)
        seconds = time.perf_counter() - start
        cost = store.work.levels[level]
        cost.seconds += seconds
        cost.read_bytes += sum(table.size for table in plan.inputs)
        cost.written_bytes += sum(file.size for file in files)
        store.work.compactions += 1
        store.work.compaction_seconds += seconds

    def _job(self, plan: Plan, oldest: int) -> Job:
        store, level = self._store, plan.level + 1
        upper = [table.file for table in plan.upper]
        # Tables of level 0 overlap, so that each is a run of its own.
        runs = [[file] for file in upper] if plan.level == 0 else [upper]
        return Job(
            workshop=store.installer.workshop,
            level=level,
            runs=[*runs, [table.file for table in plan.lower]],
            beneath=Beneath(plan.version, level),
            grandparents=[(table.high, table.size) for table in plan.grandparents],
            overlap_limit=picking.GRANDPARENT_FACTOR * store.options.max_file_size,
            oldest_sequence=oldest,
            should_stop=lambda: store.closed_by is not None,
        )


def levels_to_compact(version: Version, low: OrderedKey | None, high: OrderedKey | None) -> range:
    """The levels that a compaction of a range goes through: all above the deepest it touches."""
    touched = (level for level in range(1, LEVELS) if version.overlapping(level, low, high))
    return range(max(touched, default=1))


def _edit_of(plan: Plan) -> Edit:
    """The edit that takes a plan's tables away."""
    return Edit(
        compact_pointers=[(plan.level, plan.pointer)],
        deleted=[(table.level, table.number) for table in plan.inputs],
    )


def is_background() -> bool:
    """Whether this is a thread of some database's."""
    return threading.current_thread().name.startswith(_PREFIX)


def _started(target: Callable[[], None], name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=_PREFIX + name, daemon=True)
    thread.start()
    return thread
