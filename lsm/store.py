"""The database at work: what its writer, its threads and its readers share.

Who writes or schedules holds ``mutex`` for the moment; who changes the set of tables, the
installer's lock, and then the mutex. Who reads takes ``view`` and ``visible``, and no lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsm import compaction, recovery
from lsm.background import Background, ManualCompaction, is_background, levels_to_compact
from lsm.compaction import Beneath
from lsm.disk.edit import Edit
from lsm.disk.keys import rank, sequence_of
from lsm.errors import ReadOnlyError
from lsm.installing import Installer
from lsm.manifest import Manifest
from lsm.memtable import Memtable
from lsm.tables import TableFile, Tables
from lsm.view import View
from lsm.work import Work
from lsm.writer import Writer
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.iterators import Walker
    from lsm.options import Options
    from lsm.storage import Lock, Storage
    from policies import LevelPolicies

_log = logging.getLogger("lsm")

# plyvel's words.
CLOSED = "Database is closed"
WALKER_CLOSED = "Database or iterator is closed"
SNAPSHOT_CLOSED = "Database or snapshot is closed"


class Store:
    """An open database; ``opening.open_store`` makes one.

    ``view`` is what readers read, and None when it is closed; ``visible`` the rank of the newest
    versions they see. ``failure`` is why writing has stopped, ``closed_by`` why all has.
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
        self.read_only = read_only
        self._lock = lock
        # Reentrant only because conditions wait on such a lock without a line of Python, in which
        # an interruption could leave it unlocked.
        self.mutex = threading.RLock()
        self.changed = threading.Condition(self.mutex)
        self.work = Work()
        self.losses: list[recovery.LogLoss] = []
        self.failure: BaseException | None = None
        self.closed_by: str | None = None
        self.manifest = Manifest(storage, directory, comparator)
        self.tables = Tables(storage, directory, options, comparator)
        self.view: View | None = View((Memtable(comparator),), self.manifest.current)
        self.visible = rank(0)
        self.writer = Writer(self)
        self.installer = Installer(self, policies)
        self.background = Background(self)
        self._walkers: weakref.WeakSet[Walker] = weakref.WeakSet()
        self._walkers_lock = threading.Lock()
        self._closed = threading.Event()
        self._snapshots: Counter[int] = Counter()
        self._released: deque[int] = deque()

    # -- Opening and closing ---------------------------------------------------------------

    def recover(self) -> None:
        """Find the state again, and be ready to write unless opened for reading."""
        self.manifest.recover()
        recovery.check_tables(self.storage, self.directory, self.manifest)
        edit = Edit()
        files: list[TableFile] = []

        def flush(memtable: Memtable) -> None:
            output = compaction.write_table(
                self.installer.workshop,
                self.installer.new_number(),
                0,
                memtable.entries(),
                Beneath(self.manifest.current, 0),
            )
            files.extend(self.installer.add(edit, 0, [output]))

        replayed = recovery.replay(
            self.storage,
            self.directory,
            self.manifest,
            self.comparator,
            paranoid=self.options.paranoid_checks,
            full=self._is_full,
            flush=flush,
        )
        self.losses = replayed.losses
        self.writer.last_sequence = replayed.last_sequence
        self.visible = rank(replayed.last_sequence)
        memtable = replayed.memtable
        if not self.read_only:
            if memtable:
                flush(memtable)
                memtable = Memtable(self.comparator)
            edit.log_number = self.writer.start_log().number
            self.installer.install(edit, files)
            self.installer.remove_obsolete_files()
        self.view = View((memtable,), self.manifest.current)
        with self.mutex:
            self.background.schedule()

    def close(self) -> None:
        """Stop the threads, close the files, let others in. Tables being written are given up."""
        is_first = False
        if self.closed_by is None:  # in a forked child it is not None, and locks may be dead
            try:
                with self.mutex:
                    is_first = self.closed_by is None
                    if is_first:
                        self.closed_by = CLOSED
                        self.changed.notify_all()
                        self.writer.wake()
                if is_first:
                    self._finish()
            finally:
                if is_first:
                    self._closed.set()
        self._closed.wait()

    def _finish(self) -> None:
        with contextlib.ExitStack() as stack:
            if self._lock is not None:
                stack.callback(self._lock.release)
            stack.callback(self.installer.close)
            with self._walkers_lock:
                walkers = list(self._walkers)
            for walker in walkers:
                walker.close()
            for thread in self.background.threads:
                thread.join()
            with self.mutex:
                self.writer.wait_until_empty()
                self.view = None
            if self.writer.log is not None:
                stack.callback(self.writer.log.close)

    def close_when_collected(self) -> None:
        """Close, called by the garbage collector in whatever thread it runs.

        Closing waits for the background, which cannot wait for itself; and where the mutex is
        taken, it may be by whoever waits for this very thread to start.
        """
        if not is_background() and self.mutex.acquire(blocking=False):
            self.mutex.release()
            self.close()
        else:
            threading.Thread(target=self.close, name="lsm-close").start()

    def abandon(self, reason: str) -> None:
        """In a forked child: touch no file and no lock, only refuse from now on."""
        self.closed_by = reason
        self.view = None
        self._closed = threading.Event()
        self._closed.set()
        for walker in list(self._walkers):
            walker.abandon(reason)

    def add_walker(self, walker: Walker) -> None:
        """Have an iterator closed with the database."""
        with self._walkers_lock:
            self.check_open(WALKER_CLOSED)
            self._walkers.add(walker)

    def check_open(self, message: str = CLOSED) -> None:
        """Raise if it is closed."""
        if self.closed_by is not None:
            raise self.closed_error(message)

    def closed_error(self, message: str = CLOSED) -> RuntimeError:
        """What to raise when it is closed: this message, unless there is a special reason."""
        if self.closed_by is None or self.closed_by == CLOSED:
            return RuntimeError(message)
        return RuntimeError(self.closed_by)

    def fail(self, error: BaseException) -> None:
        """Stop writing for good; reading goes on. With the mutex held."""
        if self.failure is None:
            self.failure = error
            _log.error("%s: writing has stopped: %s", self.directory, cause(error))
        self.changed.notify_all()

    def check_writable(self) -> None:
        """Raise what stands against writing, if anything does."""
        self.check_open()
        if self.read_only:
            raise ReadOnlyError(f"{self.directory}: the database was opened with read_only=True")
        if self.failure is not None:
            raise ReadOnlyError(
                f"{self.directory}: writing has stopped, reading goes on: {self.failure}; close "
                "the database, mend the cause, and open it again"
            ) from self.failure

    def _is_full(self, memtable: Memtable) -> bool:
        return not self.read_only and memtable.size > self.options.write_buffer_size

    # -- Snapshots -------------------------------------------------------------------------

    @property
    def last_visible(self) -> int:
        """The sequence number that is visible now."""
        return sequence_of(self.visible)

    def take_snapshot(self) -> int:
        """The sequence number that is visible now, and will be until it is released."""
        with self.mutex:
            sequence = self.last_visible
            self._snapshots[sequence] += 1
            return sequence

    def release_snapshot(self, sequence: int) -> None:
        """Let go of a snapshot; without a lock, since it may be collected at any moment."""
        self._released.append(sequence)

    def oldest_sequence(self) -> int:
        """The oldest sequence number that somebody may still ask for; with the mutex held."""
        while self._released:
            self._snapshots.subtract((self._released.popleft(),))
        self._snapshots = +self._snapshots  # those that somebody holds
        return min(self._snapshots, default=self.last_visible)

    # -- On demand -------------------------------------------------------------------------

    def write(
        self, operations: Sequence[tuple[bytes, bytes | None]], size: int, sync: bool
    ) -> None:
        """Write operations as one: all of them or none are there, whatever happens."""
        self.writer.write(operations, size, sync)

    def flush(self) -> None:
        """Write all that is in memory to tables, and return when that is done."""
        flushed = self.writer.switch()
        with self.mutex:
            while self.view is not None and any(each in flushed for each in self.view.memtables):
                self.check_writable()
                self.changed.wait()
            self.check_writable()

    def compact_range(self, low: OrderedKey | None, high: OrderedKey | None) -> None:
        """Flush, and compact all tables with keys between two bounds level by level."""
        self.flush()
        with self.mutex:
            self.check_writable()
            assert self.view is not None
            levels = levels_to_compact(self.view.version, low, high)
        for level in levels:
            self.background.compact_level(ManualCompaction(level, low, high))

    def wait_until_idle(self) -> None:
        """Return when no flush and no compaction is due."""
        with self.mutex:
            self.background.wait_until_idle()


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def watch_for_forks(store: Store) -> None:
    """Have the store refuse in a forked child, whose copies of its threads and locks are dead."""
    _STORES.add(store)


def _after_fork_in_child() -> None:
    for store in list(_STORES):
        store.abandon(
            "this database was opened before a fork: open it anew in the child, when the parent "
            "has closed it"
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
