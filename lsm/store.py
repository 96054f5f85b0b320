"""An open database: the state that its writer, its threads and its readers share.

Readers take ``view`` and ``visible``, and no lock. A thread that replaces the view holds the
writer's lock; one that changes the set of tables acquires the installer's before that. Threads wait
at ``changed``, holding no lock.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsm import kernels, recovery
from lsm.background import Background, ManualCompaction, levels_to_compact
from lsm.disk.edit import Edit
from lsm.disk.keys import rank_of, sequence_of
from lsm.errors import Error, ReadOnlyError
from lsm.failure import Failure
from lsm.installing import Installer
from lsm.kernels import Readable, TableFile, Walker, Walkers
from lsm.locks import renew_locks
from lsm.manifest import Manifest
from lsm.reentrancy import is_reentrant
from lsm.starter import STARTER, is_background
from lsm.steps import call_all
from lsm.table_factory import DeeperLevels
from lsm.tables import TableCache
from lsm.turnstile import Turnstile
from lsm.work import Work
from lsm.writer import Writer
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.filenames import Files
    from lsm.kernels.python import Memtable, View
    from lsm.options import Options
    from lsm.storage import Lock, Storage
    from policies import LevelPolicies

_log = logging.getLogger("lsm")

# plyvel's words.
CLOSED = "Database is closed"
ITERATOR_CLOSED = "Database or iterator is closed"
SNAPSHOT_CLOSED = "Database or snapshot is closed"


class Store(Readable):
    """An open database; ``opening.open_store`` makes one.

    ``view`` is what readers read, and None when it is closed; ``visible`` the rank of the newest
    versions they see. ``failure`` is why writing has stopped, ``closed_by`` why all has. Snapshots
    are known by weak references, which leave by themselves, as iterators do.
    """

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
        self.storage = storage
        self.directory = directory
        self.options = options
        self.comparator = comparator
        self.kernel = kernels.of(comparator)
        self.read_only = read_only
        self._lock = lock
        self.is_abandoned = False
        self.changed = Turnstile()
        self.work = Work()
        self.losses: list[recovery.LogLoss] = []
        self.failure: Failure | None = None
        self.retries = 0
        self.closed_by = None
        self.manifest = Manifest(storage, directory, comparator)
        self.tables = TableCache(storage, directory, options, comparator)
        memtable = self.kernel.Memtable(comparator)
        self.view: View | None = self.kernel.View((memtable,), self.manifest.current)
        self.visible = rank_of(0)
        self.writer = Writer(self)
        self.installer = Installer(self, policies)
        self.background = Background(self)
        self.walkers = Walkers()
        self._snapshots: dict[weakref.ref[Any], int] = {}
        # Reentrant, since a signal handler can close in the middle of closing.
        self._closing = threading.RLock()

    # -- Opening and closing ---------------------------------------------------------------

    def recover(self, files: Files, decoded: Mapping[bytes, Edit]) -> None:
        """Recover manifest and logs, and get ready to write unless opened for reading.

        ``files`` are those in the directory. ``decoded`` are edits that are known already, by the
        records of the manifest.
        """
        self.manifest.recover(decoded)
        recovery.check_tables(self.directory, files, self.manifest)
        edit = Edit()
        tables: list[TableFile] = []

        def flush(memtable: Memtable) -> None:
            output = self.installer.factory.write(
                self.installer.new_number(),
                0,
                memtable.entries(),
                DeeperLevels(self.manifest.current, 0),
            )
            tables.extend(self.installer.add(edit, 0, [output]))

        replayed = recovery.replay(
            self.storage,
            self.directory,
            files,
            self.manifest,
            self.comparator,
            paranoid=self.options.paranoid_checks,
            full=self._is_full,
            flush=flush,
        )
        self.losses = replayed.losses
        self.visible = rank_of(replayed.last_sequence)
        memtable = replayed.memtable
        if self.read_only:
            self.view = self.kernel.View((memtable,), self.manifest.current)
            return
        if memtable:
            flush(memtable)
            memtable = self.kernel.Memtable(self.comparator)
        STARTER.run()
        is_done = self._has_nothing_to_write(replayed, files)
        memtable.log = self.writer.start_log(max(replayed.logs, default=None) if is_done else None)
        self.view = self.kernel.View((memtable,), self.manifest.current)
        if not is_done:
            edit.log_number = memtable.log.number
            self.installer.install(edit, tables)
            memtable.log.assume_name()  # it was there when the new manifest was installed
            self.installer.remove_obsolete_files()
        self.background.schedule()

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
        self.closed_by = self.closed_by or CLOSED
        self.changed.notify_all()
        for iterator in self.walkers.alive():
            iterator.close()
        self.background.wait_until_ended()
        call_all(self.writer.close, self.installer.close, self.tables.close, self._release)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def close_when_collected(self) -> None:
        """Close, as a finalizer: the garbage collector calls it in any thread, anywhere."""
        if is_reentrant() or is_background():
            self._close_in_another_thread()
        else:
            self.close()

    def _close_in_another_thread(self) -> None:
        STARTER.run()
        STARTER.start(self._close_and_log, "close", daemon=False)

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

    def publish(self, view: View) -> None:
        """Make this the view of new readers; the caller holds the writer's lock."""
        self.view = view
        if self.is_abandoned:  # in a child that was forked before that
            self.view = None
            raise self.closed_error()

    def add_iterator(self, iterator: Walker) -> None:
        """Register an iterator, which is then closed with the database."""
        self.walkers.add(iterator)
        if self.closed_by is not None:  # by somebody who may not have found it there
            iterator.close()
            raise self.closed_error(ITERATOR_CLOSED)

    def check_open(self, message: str = CLOSED) -> None:
        """RuntimeError with this message if the database is closed."""
        if self.closed_by is not None:
            raise self.closed_error(message)

    def closed_error(self, message: str = CLOSED) -> RuntimeError:
        """The error of using it closed: with this message, unless there is a special reason."""
        if self.closed_by is None or self.closed_by == CLOSED:
            return RuntimeError(message)
        return RuntimeError(self.closed_by)

    def fail(self, error: BaseException) -> None:
        """Stop writing because of an error: for good after a failed sync, else until a retry."""
        if self.failure is None or not self.failure.is_final:
            self.failure = Failure.of(error)
            _log.error("%s: writing has stopped: %s", self.directory, self.failure)
        self.changed.notify_all()

    def check_writable(self) -> None:
        """Raise if no write can succeed: closed, read-only, or stopped for good."""
        self.check_open()
        if self.read_only:
            raise ReadOnlyError(f"{self.directory}: the database was opened with read_only=True")
        if self.failure is not None and self.failure.is_final:
            raise self.failure.refusal(self.directory)

    def retry_once(self, tried: bool) -> bool:
        """Have the background retry what has failed, or raise that if it was ``tried``; True.

        What is under way now and fails is tried anew: it may have met what has been mended since.
        """
        if not tried:
            self.retries += 1
        if self.failure is not None:
            if tried or self.failure.is_final:
                raise self.failure.refusal(self.directory)
            self.failure = None
        self.background.schedule()
        return True

    def _is_full(self, memtable: Memtable) -> bool:
        return not self.read_only and memtable.size > self.options.write_buffer_size

    # -- Snapshots -------------------------------------------------------------------------

    @property
    def last_visible(self) -> int:
        """The sequence number that is visible now."""
        return sequence_of(self.visible)

    def take_snapshot(self, holder: object) -> int:
        """The sequence number that is visible now, and will be as long as the holder is there."""
        # What is compacted meanwhile is hidden to whatever is visible after this.
        self._snapshots[weakref.ref(holder, self._snapshots.pop)] = self.last_visible
        return self.last_visible

    def release_snapshot(self, holder: object) -> None:
        """Release a snapshot; without effect when it is released."""
        self._snapshots.pop(weakref.ref(holder), None)

    def oldest_snapshot(self) -> int:
        """The sequence number of the oldest snapshot; the visible one where there is none."""
        visible = self.last_visible  # before the snapshots: one that is taken now sees no less
        # Their numbers only: a copy of the references would outlive those that are released.
        return min([visible, *list(self._snapshots.values())])

    # -- On demand -------------------------------------------------------------------------

    def write(
        self, operations: Sequence[tuple[bytes, bytes | None]], size: int, sync: bool
    ) -> None:
        """Write operations as one: all of them or none are there, whatever happens."""
        self.writer.write(operations, size, sync)

    def flush(self) -> None:
        """Write all that is in memory to tables, and return when that is done."""
        self._check_can_wait("flush()")
        self._flush(self.writer.switch)

    def resume(self) -> None:
        """Retry what has failed, and raise its error if it fails again."""
        self._check_can_wait("resume()")
        self.check_writable()
        self._flush(lambda: self._view.memtables[1:])

    def compact_range(self, low: OrderedKey | None, high: OrderedKey | None) -> None:
        """Flush, and compact all tables with keys between two bounds level by level."""
        self._check_can_wait("compact_range()")
        self._flush(self.writer.switch)
        # Nobody holds the version meanwhile: its files could not be removed.
        for level in levels_to_compact(self._view.version, low, high):
            self.background.compact_level(ManualCompaction(level, low, high))

    def wait_until_idle(self) -> None:
        """Return when no flush and no compaction is due."""
        self._check_can_wait("wait_until_idle()")
        self.background.wait_until_idle()

    def _flush(self, choose: Callable[[], tuple[Memtable, ...]]) -> None:
        tried = self.retry_once(False)
        flushed = choose()
        while True:
            ticket = self.changed.ticket()
            self.check_writable()
            if not any(each in flushed for each in self._view.memtables):
                return
            self.retry_once(tried)
            ticket.wait()

    def _check_can_wait(self, what: str) -> None:
        """Error in a reentrant call or a background thread, which may be the one waited for."""
        self.check_open()
        if is_reentrant() or is_background():
            raise Error(
                f"{self.directory}: {what} waits for the background, and cannot be called in the "
                "middle of another operation, as by a signal handler, a finalizer or a plug-in: "
                "call it when that has returned"
            )

    @property
    def _view(self) -> View:
        view = self.view
        if view is None:
            raise self.closed_error()
        return view


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
