"""An open database: its state, and the parts that work on it, from opening to closing.

Each part is given the state and the parts that it needs, which come before it: the installer of
tables, the background that flushes and compacts, the writer.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lsm import announcing, compaction, drift, picking, recovery, refiltering, warming
from lsm.background import Background
from lsm.disk.edit import Edit
from lsm.disk.keys import rank_of
from lsm.errors import Error
from lsm.installing import Installer
from lsm.kernels import TableFile
from lsm.locks import renew_locks
from lsm.manual import (
    CompactionProgress,
    ManualCompaction,
    bytes_to_read,
    bytes_to_rewrite,
    levels_to_compact,
)
from lsm.options import LEVELS
from lsm.reentrancy import is_reentrant
from lsm.refiltering import Refiltering, RefilterProgress, RefilterReport
from lsm.starter import STARTER, is_background
from lsm.state import CLOSED, State
from lsm.steps import call_all
from lsm.table_factory import DeeperLevels
from lsm.writer import Writer
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.filenames import Files
    from lsm.kernels.python import Batch, Memtable
    from lsm.loading import Load
    from lsm.options import Options
    from lsm.storage import Lock, Storage
    from policies import LevelPolicies

_log = logging.getLogger("lsm")


class Store(State):
    """An open database; ``opening.open_store`` makes one."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        options: Options,
        policies: LevelPolicies,
        comparator: Comparator,
        lock: Lock | None,
        read_only: bool,
    ):
        super().__init__(storage, directory, options, comparator, read_only)
        self._directory_lock = lock
        self.installer = Installer(self, policies)
        self.background = Background(self, self.installer)
        self.writer = Writer(self, self.background)
        # Reentrant, since a signal handler can close in the middle of closing.
        self._closing = threading.RLock()
        self._is_announced = False  # as open

    # -- Opening and closing ---------------------------------------------------------------

    def recover(self, files: Files, decoded: Mapping[bytes, Edit]) -> None:
        """Recover manifest and logs, and get ready to write unless opened for reading.

        ``files`` are those in the directory. ``decoded`` are edits that are known already, by the
        records of the manifest.
        """
        start = time.perf_counter()
        self.manifest.recover(decoded)
        recovery.check_tables(self.directory, files, self.manifest)
        self.heat.load(self.manifest.current)
        edit = Edit()
        tables: list[TableFile] = []

        def flush(memtable: Memtable) -> None:
            factory, version = self.installer.factory, self.manifest.current
            law = factory.prospect(version, 0, joins=True)
            output = compaction.flush(factory, 0, memtable, DeeperLevels(version, 0), law=law)
            tables.extend(self.installer.add(edit, 0, [output]))

        replayed = recovery.replay(
            self.storage,
            self.directory,
            files,
            self.manifest,
            paranoid=self.options.paranoid_checks,
            new_memtable=self.new_memtable,
            flush=None if self.read_only else flush,
        )
        self.losses = replayed.losses
        self.visible = rank_of(replayed.last_sequence)
        memtable = replayed.memtable
        if self.read_only:
            self.replayed = replayed.logs
            self.view = self.kernel.View((memtable,), self.manifest.current)
            self._load_filters()
            self._announce_opening(replayed, tables, start)
            return
        if memtable:
            flush(memtable)
            memtable = self.new_memtable()
        STARTER.run()
        is_done = self._has_nothing_to_write(replayed, files)
        memtable.log = self.writer.start_log(max(replayed.logs, default=None) if is_done else None)
        self.view = self.kernel.View((memtable,), self.manifest.current)
        if not is_done:
            edit.log_number = memtable.log.number
            self.installer.install(edit, tables)
            memtable.log.assume_name()  # it was there when the new manifest was installed
            self.installer.remove_obsolete_files()
        self._load_filters()
        self._announce_opening(replayed, tables, start)
        self.background.schedule()

    def _announce_opening(
        self, replayed: recovery.Replayed, tables: Sequence[TableFile], start: float
    ) -> None:
        seconds = time.perf_counter() - start
        announcing.recovered(self.directory, replayed, tables, seconds)
        announcing.opened(self.directory, self.manifest.current, self.read_only, seconds)
        self._is_announced = True

    def _load_filters(self) -> None:
        """Pin what is to be pinned, and load what is to be there from the beginning."""
        self.tables.pin(self.opened_view().version)
        if self.options.load_filters == "open":
            warming.load_all(self)

    def _has_nothing_to_write(self, replayed: recovery.Replayed, files: Files) -> bool:
        """Whether the database can be written as it was found, its empty log included.

        An edit that did not become durable before its writer was killed has not had anything
        removed. So where nothing is obsolete, nothing depends on such an edit.
        """
        return (
            replayed.log_bytes == 0
            and all(number >= self.manifest.log_number for number in replayed.logs)
            and len(replayed.logs) <= 1
            and self.manifest.is_compact
            and not self.installer.obsolete(files)
        )

    def close(self) -> None:
        """Stop the threads, close the files, let others in. Tables being written are given up.

        If it is interrupted, the database stays locked and can be closed again. Called by a signal
        handler or a finalizer in the middle of an operation, it returns before that has ended, and
        a thread of its own closes after that.
        """
        if self.is_abandoned:
            return
        if is_reentrant() or is_background():
            self.closed_by = self.closed_by or CLOSED
            self._close_in_another_thread()
            return
        self.close_in_this_thread()

    def close_in_this_thread(self) -> None:
        """Close in this thread, which must not be within another operation of the engine."""
        with self._closing:
            self._finish()

    def _finish(self) -> None:
        """Make each call that closing takes; all of them can be repeated."""
        start = time.perf_counter()
        self.closed_by = self.closed_by or CLOSED
        self.changed.notify_all()
        for iterator in self.walkers.alive():
            iterator.close()
        self.background.wait_until_ended()
        self._give_up_load()
        call_all(self.writer.close, self.installer.close, self.tables.close, self._release)
        if self._is_announced:
            self._is_announced = False
            announcing.closed(self.directory, time.perf_counter() - start)

    def _give_up_load(self) -> None:
        """Remove what a load has written, which then finds the database closed."""
        while (load := self.current_load()) is not None and not load.is_given_up:
            ticket = self.changed.ticket()
            if load.busy.locked():
                ticket.wait()
                continue
            with load.busy:
                self.installer.discard_outputs(load.thread)
                load.is_given_up = True

    def _release(self) -> None:
        if self._directory_lock is not None:
            self._directory_lock.release()

    def close_when_collected(self) -> None:
        """Close, as a finalizer: the garbage collector calls it in any thread, anywhere."""
        if is_reentrant() or is_background():
            self._close_in_another_thread()
        else:
            self.close()

    def _close_in_another_thread(self) -> None:
        STARTER.run()
        STARTER.start(self._close_and_log, "close", self, daemon=False)

    def _close_and_log(self) -> None:
        """Close, and log an error: in a thread of its own nobody waits for it."""
        try:
            self.close_in_this_thread()
        except Error as error:
            _log.error("%s: closing it failed: %s", self.directory, cause(error))

    def abandon(self, reason: str) -> None:
        """In a forked child: refuse every operation from now on, and touch no file and no lock."""
        self.is_abandoned = True
        for part in (self, self.writer, self.installer, self.manifest, *self.background.parts()):
            renew_locks(part)
        for part in (self.tables, *self.tables.caches()):
            renew_locks(part)
        self.closed_by = reason
        self.view = None
        for iterator in self.walkers.alive():
            iterator.abandon(reason)

    # -- On demand -------------------------------------------------------------------------

    def write(self, batch: Batch, sync: bool) -> None:
        """Write a batch as one: all of it or nothing is there, whatever happens."""
        self.writer.write(batch, sync)

    def flush(self) -> None:
        """Write all that is in memory to tables, and return when that is done."""
        self.check_can_wait("flush()")
        self._flush(self.writer.switch)

    def resume(self) -> None:
        """Retry what has failed, and raise its error if it fails again."""
        self.check_can_wait("resume()")
        self.check_writable()
        self._flush(lambda: self.opened_view().memtables[1:])

    def compact_range(
        self,
        low: OrderedKey | None,
        high: OrderedKey | None,
        force: bool = False,
        progress: Callable[[CompactionProgress], object] | None = None,
    ) -> None:
        """Flush, and compact all tables with keys between two bounds level by level.

        With ``force``, those that are not written anew by that are written anew where they are.
        """
        self.check_can_wait("compact_range()")
        self._flush(self.writer.switch)
        # Nobody holds the version meanwhile: its files could not be removed.
        levels, read = len(levels_to_compact(self.opened_view().version, low, high)), 0
        at_once = picking.AT_ONCE_FACTOR * self.options.max_file_size
        older_than = self.manifest.next_file_number if force else 0

        def tell() -> None:
            if progress is not None:
                done, version = read + manual.read_bytes, self.opened_view().version
                left = bytes_to_rewrite(version, low, high, older_than)
                if manual.older_than is None:
                    left = max(left, bytes_to_read(version, manual, levels, at_once))
                progress(
                    CompactionProgress(
                        level=manual.level if manual.older_than is None else levels - 1,
                        levels=levels,
                        read_bytes=done,
                        total_bytes=done + left,
                    )
                )

        for level in range(levels):
            manual = ManualCompaction(level, low, high)
            self.background.compact_level(manual, tell)
            read += manual.read_bytes
        for level in range(1, LEVELS) if force else ():
            manual = ManualCompaction(level, low, high, older_than)
            self.background.compact_level(manual, tell)
            read += manual.read_bytes
        self.background.wait_until_tidy()
        if progress is not None:
            progress(
                CompactionProgress(
                    level=levels - 1, levels=levels, read_bytes=read, total_bytes=read
                )
            )

    def refilter(
        self,
        *,
        dry_run: bool,
        levels: Collection[int],
        max_bytes: int | None,
        bytes_per_second: int | None,
        progress: Callable[[RefilterProgress], object] | None = None,
    ) -> RefilterReport:
        """Give drifted tables the filters that they lack, the most useful first."""
        start = time.perf_counter()
        if not dry_run:
            self.check_can_wait("refilter()")
            self.check_writable()
        tree = drift.find(self)
        asked = [table for table in tree.drifted if table.level in levels]
        taken = refiltering.within(asked, max_bytes)
        if dry_run:
            return refiltering.report(tree, taken, (), len(asked), None, start)
        request = Refiltering.of(tree, taken, bytes_per_second)
        total = sum(table.size for table in taken)

        def tell() -> None:
            if progress is not None:
                progress(
                    RefilterProgress(
                        tables=len(request.done),
                        total_tables=len(taken),
                        bytes=request.done_bytes,
                        total_bytes=total,
                    )
                )

        self.background.refilter(request, tell)
        self.background.wait_until_tidy()
        tell()
        done = {table.number for table in request.done}
        return refiltering.report(
            tree,
            [table for table in taken if table.number in done],
            request.skipped,
            len(asked),
            drift.find(self),
            start,
        )

    def begin_load(self, load: Load) -> None:
        """Keep writers and compactions out until a load is over, and flush what is in memory."""
        while True:
            ticket = self.changed.ticket()
            self.check_writable()
            with self.lock:  # nobody is writing
                if self.current_load() is None:
                    self.load = weakref.ref(load)
                    self.is_unhindered = False
                    break
            ticket.wait()
        self._flush(self.writer.switch)
        self.background.wait_until_alone(load)

    def end_load(self, load: Load) -> None:
        """Let writers and compactions go on; what is written and not installed is removed."""
        if self.background.withdraw(load):
            with load.busy:
                if not load.is_given_up and not self.is_abandoned:
                    self.installer.discard_outputs(load.thread)
            load.is_over = True
        with self.lock:
            if load.is_over and self.load is not None and self.load() is load:
                self.load = None
        self.changed.notify_all()
        self.background.schedule()

    def wait_until_idle(self) -> None:
        """Return when no flush and no compaction is due."""
        self.check_can_wait("wait_until_idle()")
        self.background.wait_until_idle()

    def _flush(self, choose: Callable[[], tuple[Memtable, ...]]) -> None:
        tried = self.background.retry_once(False)
        flushed = choose()
        while True:
            ticket = self.changed.ticket()
            self.check_writable()
            if not any(each in flushed for each in self.opened_view().memtables):
                break
            self.background.retry_once(tried)
            ticket.wait()
        self.background.wait_until_tidy()

    def check_can_wait(self, what: str) -> None:
        """Error in a reentrant call or a background thread, which may be the one waited for."""
        self.check_open()
        if is_reentrant() or is_background():
            raise Error(
                f"{self.directory}: {what} waits for the background, and cannot be called in the "
                "middle of another operation, as by a signal handler, a finalizer or a plug-in: "
                "call it when that has returned"
            )


_STORES: dict[weakref.ref[Store], None] = {}


def watch_for_forks(store: Store) -> None:
    """Abandon the store in forked children, which have none of its threads, and not its locks."""
    _STORES[weakref.ref(store, _STORES.pop)] = None


def _after_fork_in_child() -> None:
    for reference in list(_STORES):
        store = reference()
        if store is not None:
            store.abandon(
                "this database was opened before a fork: open it anew in the child, when the "
                "parent has closed it"
            )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
