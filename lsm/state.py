"""The state of an open database: what its readers, its writer and its background share.

Readers take ``view`` and ``visible``, and no lock. Who replaces the view or makes a commit holds
``lock``. Threads wait at ``changed``, holding no lock. ``docs/house.md`` has all locks and their
order.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsm import kernels
from lsm.disk.keys import rank_of, sequence_of
from lsm.errors import ReadOnlyError
from lsm.failure import Failure
from lsm.heat import Heat, is_wanted
from lsm.kernels import Readable, Walker, Walkers
from lsm.manifest import Manifest
from lsm.tables import TableCache
from lsm.turnstile import Turnstile
from lsm.work import Work

if TYPE_CHECKING:
    from lsm.commit import Commit
    from lsm.comparator import Comparator
    from lsm.filter_facts import FilterFacts
    from lsm.kernels.python import Memtable, View
    from lsm.loading import Load
    from lsm.options import Options
    from lsm.recovery import LogLoss
    from lsm.storage import Storage
    from lsm.write_log import WriteLog

_log = logging.getLogger("lsm")

# plyvel's words.
CLOSED = "Database is closed"
ITERATOR_CLOSED = "Database or iterator is closed"
SNAPSHOT_CLOSED = "Database or snapshot is closed"


class State(Readable):
    """What the parts of an open database have in common; none of them knows the others by it.

    ``view`` is what readers read, and None when it is closed; ``visible`` the rank of the newest
    versions they see. ``failure`` is why writing has stopped, ``closed_by`` why all has, and
    ``retries`` counts how often somebody has asked to go on after failures. Snapshots are known by
    weak references, which leave by themselves, as iterators do. ``replayed`` are the logs that a
    database opened for reading was found with, and where the last record taken of each ends.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        options: Options,
        comparator: Comparator,
        read_only: bool,
    ):
        self.storage = storage
        self.directory = directory
        self.options = options
        self.comparator = comparator
        self.kernel = kernels.of(comparator)
        self.read_only = read_only
        self.is_abandoned = False
        # Reentrant, since a signal handler or a finalizer can write in the middle of a write.
        self.lock = threading.RLock()
        self.changed = Turnstile()
        self.work = Work()
        self.losses: list[LogLoss] = []
        self.replayed: dict[int, int] = {}
        self.failure: Failure | None = None
        self.retries = 0
        self.closed_by = None
        self.manifest = Manifest(storage, directory, comparator)
        self.tables = TableCache(storage, directory, options, comparator)
        self.heat = Heat(storage, directory, is_kept=is_wanted(options))
        self.view: View | None = self.kernel.View((self.new_memtable(),), self.manifest.current)
        self.visible = rank_of(0)
        self.walkers = Walkers()
        self.pending: Commit | None = None
        # Weakly: whatever interrupts a load, it is over when nobody has it any more.
        self.load: weakref.ref[Load] | None = None
        self.is_unhindered = False
        self.unhindered_size = 0
        self.user_bytes = self.log_bytes = 0
        self.filter_facts: Mapping[int, FilterFacts] = {}  # by the number of a table's file
        self._snapshots: dict[weakref.ref[Any], int] = {}

    def new_memtable(self, log: WriteLog | None = None) -> Memtable:
        """An empty memtable for what this log will have."""
        made: Memtable = self.kernel.Memtable(self.comparator, log, self.options.write_buffer_size)
        return made

    def publish(self, view: View) -> None:
        """Make this the view of new readers; the caller holds the lock."""
        self.is_unhindered = False  # until a writer has looked at it
        self.unhindered_size = 0
        self.view = view
        if self.is_abandoned:  # in a child that was forked before that
            self.view = None
            raise self.closed_error()

    def opened_view(self) -> View:
        """The view; RuntimeError if the database is closed."""
        view = self.view
        if view is None:
            raise self.closed_error()
        return view

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
            self.is_unhindered = False
            _log.error("%s: writing has stopped: %s", self.directory, self.failure)
        self.changed.notify_all()

    def check_writable(self) -> None:
        """Raise if no write can succeed: closed, read-only, or stopped for good."""
        self.check_open()
        if self.read_only:
            raise ReadOnlyError(f"{self.directory}: the database was opened with read_only=True")
        if self.failure is not None and self.failure.is_final:
            raise self.failure.refusal(self.directory)

    def must_stop(self) -> bool:
        """Whether the background is to begin nothing."""
        return self.closed_by is not None or self.read_only or self.failure is not None

    def current_load(self) -> Load | None:
        """The load that keeps writers out, if there is one."""
        load = None if self.load is None else self.load()
        return None if load is None or load.is_over else load

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

    @property
    def snapshot_count(self) -> int:
        """How many snapshots there are."""
        return len(self._snapshots)

    def oldest_snapshot(self) -> int:
        """The sequence number of the oldest snapshot; the visible one where there is none."""
        visible = self.last_visible  # before the snapshots: one that is taken now sees no less
        # Their numbers only: a copy of the references would outlive those that are released.
        return min([visible, *list(self._snapshots.values())])
