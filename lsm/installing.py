"""Installing new tables in the manifest and the view, and removing obsolete files."""

from __future__ import annotations

import errno
import logging
import threading
from typing import TYPE_CHECKING

from lsm.compaction import StoppedError
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.filenames import Kind
from lsm.disk.keys import sequence_of
from lsm.errors import IOError
from lsm.kernels import TableFile
from lsm.table_factory import Output, TableFactory

if TYPE_CHECKING:
    from lsm.disk.filenames import Files
    from lsm.kernels.python.memtable import Memtable
    from lsm.state import State
    from policies import LevelPolicies

_log = logging.getLogger("lsm")


class Installer:
    """Makes changes of the set of tables durable, one at a time, and publishes them to readers."""

    def __init__(self, state: State, policies: LevelPolicies):
        self._state = state
        self._lock = threading.Lock()
        # The thread that writes a table, by the table's number.
        self._pending: dict[int, int] = {}
        # The numbers in edits that may or may not have reached the manifest.
        self._in_doubt: set[int] = set()
        self.installs = 0
        self._tidied = 0
        self.factory = TableFactory.of(
            state.storage,
            state.directory,
            state.comparator,
            state.options,
            policies,
            self.new_number,
        )

    def new_number(self) -> int:
        """The number of a table that this thread is about to write; nobody removes its file."""
        number = self._state.manifest.new_file_number()
        self._pending[number] = threading.get_ident()
        return number

    def add(self, edit: Edit, level: int, outputs: list[Output]) -> list[TableFile]:
        """Add tables that were written for a level to an edit, and to the statistics."""
        state, files = self._state, []
        for output in outputs:
            table = output.table
            edit.added.append(
                NewFile(level, output.number, table.size, table.smallest, table.largest)
            )
            files.append(TableFile(output.number, table.size))
            if table.filter.state == "failed":
                _log.warning(
                    "%s/%s: written without a filter: %s",
                    state.directory,
                    filenames.table_name(output.number),
                    table.filter.reason,
                )
        failed = sum(output.table.filter.state == "failed" for output in outputs)
        if self.factory.placing is not None:
            self.factory.placing.note(outputs)
        with self._lock:
            state.work.table_bytes += sum(file.size for file in files)
            state.work.filters_failed += failed
        return files

    def install(
        self,
        edit: Edit,
        files: list[TableFile],
        flushed: Memtable | None = None,
        visible: int | None = None,
    ) -> None:
        """Make an edit durable, and publish the version that it results in.

        A rank to be ``visible`` becomes so then; no sequence number up to it is given anew, even if
        nobody knows whether the manifest holds the edit.
        """
        state = self._state
        with self._lock:
            if state.failure is not None and state.failure.is_final:
                raise StoppedError  # nothing is known of what the manifest has
            self._in_doubt.update(file.number for file in files)
            before = state.manifest.current
            rank = state.visible if visible is None else visible
            state.manifest.last_sequence = sequence_of(rank)
            try:
                version = state.manifest.apply(edit, files)
                state.heat.inherit(before, version)
                with state.lock:
                    if state.view is not None:
                        kept = tuple(each for each in state.view.memtables if each is not flushed)
                        state.publish(state.kernel.View(kept, version))
            finally:
                if visible is not None:  # behind the view: who looked before that sees none of it
                    state.visible = visible
            self.installs += 1
            for number in self._in_doubt:  # a manifest begun anew names none that was given up
                self._pending.pop(number, None)
            self._in_doubt.clear()
            state.tables.pin(version)
            state.heat.save_if_due(version)

    def discard_outputs(self, thread: int | None = None) -> None:
        """Remove the tables that this thread, or another, has written and not installed."""
        thread = threading.get_ident() if thread is None else thread
        for number in [each for each, writer in self._pending.copy().items() if writer == thread]:
            if number not in self._in_doubt:
                self._remove(filenames.table_name(number))
                self._pending.pop(number, None)

    def remove_obsolete_files(self) -> None:
        """Remove the files that no version, no reader and no thread needs any more."""
        state = self._state
        with self._lock:
            if state.failure is not None:  # what is in doubt stays
                return
            installs = self.installs
            try:
                files = filenames.database_files(state.storage.list(state.directory))
            except IOError as error:
                _log.warning("obsolete files stay: %s", error)
                self._tidied = installs
                return
            names = self.obsolete(files)
        # Without the lock, since it takes long: what is obsolete is so for good.
        for name in names:
            self._remove(name)
            if name in files[Kind.TABLE]:
                state.tables.drop(files[Kind.TABLE][name])
        self._tidied = max(self._tidied, installs)

    def doubt_tidiness(self) -> None:
        """Have somebody look again for what is obsolete, which a reader has kept until now."""
        self._tidied = -1

    def is_tidy(self, installs: int) -> bool:
        """Whether what so many installs have made obsolete was removed, as far as that goes."""
        return self._tidied >= installs

    def obsolete(self, files: Files) -> list[str]:
        """The names of those files that no version, no reader and no thread needs any more."""
        # After the list: a table in it that is being written is among the pending ones, and
        # none can become live as long as nobody else has the lock.
        manifest = self._state.manifest
        live = manifest.live_files() | set(self._pending.copy())
        obsolete = [
            name
            for kind in (Kind.TABLE, Kind.TEMPORARY)
            for name, number in files[kind].items()
            if number not in live
        ]
        obsolete += [
            name
            for name, number in files[Kind.LOG].items()
            if number < manifest.log_number and number != manifest.previous_log_number
        ]
        obsolete += [
            name for name, number in files[Kind.MANIFEST].items() if number < manifest.number
        ]
        return sorted(obsolete)

    def close(self) -> None:
        """Close the manifest, once no other thread is writing to it, and save the heat."""
        state = self._state
        with self._lock:
            if not state.read_only:
                state.heat.save(state.manifest.current)
            state.manifest.close()

    def _remove(self, name: str) -> None:
        try:
            self._state.storage.remove(f"{self._state.directory}/{name}")
        except IOError as error:
            if error.errno != errno.ENOENT:  # another thread was there first
                _log.warning("an obsolete file stays: %s", error)
