"""Making a database of the files in a directory that can still be read.

**What is read.** Every table, block by block, and every log, past its damaged parts. A table that
is whole stays the file it is. Of any other the entries that can be read go into a new one; where
its index cannot be read either, the blocks are found by their checksums, from the first one on up
to the first that is damaged. A table that is superseded, by a manifest's word, is left out while
all that replaced it is whole: tombstones may be gone from there that would have to hide its keys.

**Which version of a key is found.** The newest; ``level_placement`` says how. What is merged for
that has the newest version by sequence number of every key, tombstones included, and no overlap.

**What survives what.** All tables are written and synced before a new manifest and CURRENT, in one
step, make a database of them. Then what the database does not consist of moves into ``lost/``,
where it is never removed. A repair that was interrupted is repeated; who opens the database instead
finds the old one or the new one, which removes what was not set aside yet.

A table of which not all could be read stays where it is, under its own name with ``.unreadable``
behind it, which no database reads and none removes: somebody may be able to read it another day, on
another device, or with the comparator or the compression that is wanting here. Under the old name
again, it is one of the tables that a repair reads. It gets its name before the new manifest counts,
so that nobody can open the new database, and remove what is of no use to it, in between; the old
database, which misses it, is not opened.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from lsm import compaction, kernels, opening
from lsm.compaction import Job
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.filenames import Kind
from lsm.disk.keys import MAX_SEQUENCE, Entry, pack, unpack
from lsm.disk.log import LogReader
from lsm.errors import CorruptionError, IOError
from lsm.kernels import TableFile
from lsm.level_placement import LevelPlacement, UsableTable, sorted_runs
from lsm.manifest import Manifest, check_comparator
from lsm.manifest_history import ManifestHistory
from lsm.options import LEVELS
from lsm.quarantine import UNREADABLE, Log, Quarantine
from lsm.repair_report import RepairProgress, Report
from lsm.salvage import Position, ScannedTable, TableScan
from lsm.table_factory import DeeperLevels, Output, TableFactory
from lsm.tables import path_of

if TYPE_CHECKING:
    from lsm.comparator import Comparator
    from lsm.kernels.python import Memtable
    from lsm.options import Options
    from lsm.storage import Storage

_log = logging.getLogger("lsm")

_DEVICE_ERRORS = {errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)}


class Repair:
    """One repair of a directory that is locked; ``log`` is told what is done."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        comparator: Comparator,
        options: Options,
        log: Log = _log,
        progress: Callable[[RepairProgress], object] = bool,
    ):
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._options = options
        self._log = log
        self._progress = progress
        self._manifest = Manifest(storage, directory, comparator)
        self._quarantine = Quarantine(storage, directory, log)
        self._history = ManifestHistory()
        # No tombstone is dropped: an unreadable table that is put back later may hold any key.
        self._deeper = DeeperLevels.unknown()
        self._factory = TableFactory.of(
            storage,
            directory,
            comparator,
            options,
            options.filters.with_seed(opening.seed_of(storage, directory)),
            self._new_number,
        )
        self._last_sequence = 0
        self._written: set[int] = set()  # numbers of the tables that are new
        self._set_aside: list[str] = []
        self._unreadable: list[str] = []
        self._losses: list[str] = []
        self._rewritten = self._replaced = self._lost = self._replayed = 0

    def run(self) -> Report:
        """Repair the directory; after an error it is as it was, or the new database is complete."""
        names = self._names()
        self._read_manifests(names[Kind.MANIFEST])
        try:
            scanned = list(self._scanned_all(names[Kind.TABLE]))
            whole = {table.number for table in scanned if table.is_whole}
            tables = self._usable(scanned, whole)
            tables += self._replay(names[Kind.LOG], whole)
            placement = LevelPlacement(self._factory, self._options, self._merged)
            tables = placement.placed(tables)
            self._storage.sync_directory(self._directory)
            aside = [*self._set_aside, *(name for name, _ in names[Kind.LOG])]
            aside += [name for name, _ in names[Kind.MANIFEST]]
            if aside:
                self._quarantine.make()
        except BaseException:
            self._remove(self._written)  # nothing knows of them yet
            raise
        before = self._current()
        with self._quarantine.renamed(self._unreadable, lambda: self._current() == before):
            self._commit(tables)
        self._remove(self._written - {table.number for table in tables})
        self._quarantine.move(aside)
        report = self._report(tables, aside)
        self._log.info("%s: repaired: %s", self._directory, report)
        return report

    def _report(self, tables: list[UsableTable], aside: list[str]) -> Report:
        return Report(
            tables_kept=sum(table.name is not None for table in tables),
            tables_rewritten=self._rewritten,
            tables_replaced=self._replaced,
            tables_lost=self._lost,
            logs_replayed=self._replayed,
            losses=tuple(self._losses),
            set_aside=tuple(aside),
            unreadable=tuple(map(self._path, self._quarantine.unreadable())),
        )

    # -- Files and manifests -------------------------------------------------------------------

    def _names(self) -> dict[Kind, list[tuple[str, int]]]:
        """The files by kind, in the order of their numbers, none of which is given out again."""
        names: dict[Kind, list[tuple[str, int]]] = {kind: [] for kind in Kind}
        for name in self._storage.list(self._directory):
            parsed = filenames.parse(name.partition(UNREADABLE)[0])
            if parsed is not None:
                kind, number = parsed
                self._manifest.reserve(number)
                if UNREADABLE in name:
                    continue
                if not is_directory(self._storage, self._path(name)):
                    names[kind].append((name, number))
        for files in names.values():
            files.sort(key=lambda file: file[1])
        return names

    def _read(self, name: str) -> bytes:
        """A file's bytes; CorruptionError where the device cannot read them."""
        path = self._path(name)
        try:
            return self._storage.read(path)
        except IOError as error:
            if error.errno not in _DEVICE_ERRORS:
                raise  # a refusal can be helped, and then nothing is lost
            raise CorruptionError(f"{path}: the device cannot read it: {error}") from error

    def _read_manifests(self, names: list[tuple[str, int]]) -> None:
        """Choose whose history of the tables counts: the manifest in use, or the newest."""
        current = self._current()
        best = -1, -1
        for name, number in names:
            history = self._read_manifest(name)
            self._last_sequence = max(self._last_sequence, history.last_sequence)
            if history.log_number is not None and (name == current, number) > best:
                best, self._history = (name == current, number), history

    def _current(self) -> str:
        """The name of the manifest in use; empty where that cannot be read."""
        try:
            return self._read(filenames.CURRENT).decode("ascii", "replace").rstrip("\n")
        except (CorruptionError, IOError):
            return ""

    def _read_manifest(self, name: str) -> ManifestHistory:
        history, path = ManifestHistory(), self._path(name)
        try:
            reader = LogReader(self._read(name), path)
            for record in reader.records_until_loss():
                edit = Edit.decode(record, LEVELS)
                check_comparator(path, self._comparator, edit.comparator)
                history.add(edit)
            history.is_whole = not reader.losses
            if reader.losses:
                self._log.warning("%s: read up to byte %d only", path, reader.valid_end)
        except CorruptionError as error:
            self._log.warning("%s: not read any further: %s", path, error)
        return history

    # -- Tables ------------------------------------------------------------------------------

    def _scanned_all(self, names: list[tuple[str, int]]) -> Iterator[ScannedTable]:
        for count, (name, number) in enumerate(names, 1):
            yield self._scanned(name, number)
            self._progress(RepairProgress(tables=count, total_tables=len(names)))

    def _scanned(self, name: str, number: int) -> ScannedTable:
        """A table file that was read once from end to end."""
        table = ScannedTable(name, number)
        path = self._path(name)
        try:
            data = self._read(name)
        except CorruptionError as error:
            table.losses.append(str(error))
            return table
        table.read(TableScan(path, data, self._comparator), len(data))
        if path_of(self._storage, self._directory, TableFile(number, len(data))) != path:
            table.defects.append(f"{path}: no database looks for a table under this name")
        self._log.info("%s: %d entries can be read", path, table.count)
        return table

    def _usable(self, scanned: Iterable[ScannedTable], whole: set[int]) -> list[UsableTable]:
        """The tables to go on with: those without flaw, and what is written of the others."""
        superseded = self._history.superseded(whole)
        self._report_missing({table.number for table in scanned})
        usable = []
        for table in scanned:
            if table.number in superseded:
                self._log.info("%s: left out: others have replaced it", self._path(table.name))
                self._replaced += 1
                self._set_aside.append(table.name)
            elif table.is_of_load and self._history.has_never_had(table.number):
                path = self._path(table.name)
                self._log.info("%s: left out: it is of a bulk load that did not end", path)
                self._replaced += 1
                self._set_aside.append(table.name)
            elif table.defects or not table.is_whole:
                usable += self._rewrite(table)
            else:
                assert table.first is not None
                assert table.last is not None
                usable.append(
                    UsableTable(
                        number=table.number,
                        size=table.size,
                        first=table.first,
                        last=table.last,
                        level=self._level_of(table.number),
                        name=table.name,
                    )
                )
            self._last_sequence = max(self._last_sequence, table.last_sequence)
        return usable

    def _report_missing(self, found: set[int]) -> None:
        """Report the tables that the manifest has and the directory has not."""
        for number in sorted(self._history.live.keys() - found):
            self._lost += 1
            path = self._path(filenames.table_name(number))
            if number in self._quarantine.unreadable().values():  # a repair was interrupted then
                self._report_loss(f"{path}: not all of this table could be read, and so it is kept")
            else:
                self._report_loss(_missing(path, self._history.live[number]))

    def _level_of(self, number: int) -> int | None:
        """The level at which the manifest has this table."""
        new = self._history.live.get(number)
        return None if new is None else new.level

    def _rewrite(self, table: ScannedTable) -> list[UsableTable]:
        """What can be read of a table, in a new one of the same level."""
        path = self._path(table.name)
        for defect in table.defects:
            self._log.warning("%s", defect)
        for loss in table.losses:
            self._report_loss(loss)
        (self._unreadable if table.losses else self._set_aside).append(table.name)
        if table.first is None:
            if not table.losses:
                self._report_loss(f"{path}: no entries can be found in it")
            self._lost += 1
            return []
        self._rewritten += 1
        scan = TableScan(path, self._read(table.name), self._comparator)
        entries = _newest_versions(chain.from_iterable(scan.blocks()))
        return [self._write(entries, self._level_of(table.number))]

    # -- Logs --------------------------------------------------------------------------------

    def _replay(self, logs: list[tuple[str, int]], whole: set[int]) -> list[UsableTable]:
        """Tables of what the logs hold, unless it was flushed already."""
        memtable = self._new_memtable()
        flushed: list[UsableTable] = []
        for name, number in logs:
            if self._history.is_flushed(number, whole):
                self._log.info("%s: not replayed: tables have it all", self._path(name))
                continue
            for record, end in self._records(name):
                try:
                    sequence, count = memtable.apply(record)
                except CorruptionError as error:
                    path = self._path(name)
                    self._report_loss(f"{path}: the record that ends at byte {end}: {error}")
                    continue
                self._last_sequence = max(self._last_sequence, sequence + count - 1)
                if not memtable.has_room():
                    flushed.append(self._write(_newest_versions(memtable.entries()), 0))
                    memtable = self._new_memtable()
            self._replayed += 1
        if memtable:
            flushed.append(self._write(_newest_versions(memtable.entries()), 0))
        return flushed

    def _new_memtable(self) -> Memtable:
        new_memtable = kernels.of(self._comparator).Memtable
        made: Memtable = new_memtable(self._comparator, None, self._options.write_buffer_size)
        return made

    def _records(self, name: str) -> Iterator[tuple[bytes, int]]:
        """Every record of a log that can be read, and where it ends."""
        path = self._path(name)
        try:
            reader = LogReader(self._read(name), path)
        except CorruptionError as error:
            self._report_loss(str(error))
            return
        for record in reader.records():
            yield record, reader.valid_end
        for loss in reader.losses:
            self._report_loss(f"{loss.reason} ({loss.bytes} bytes are lost)")
        self._log.info("%s: replayed", path)

    # -- New tables --------------------------------------------------------------------------

    def _merged(self, group: list[UsableTable], level: int) -> list[UsableTable]:
        """Tables without overlap, with the newest version of every key of a group."""
        self._log.info("%s: merging %d tables that overlap", self._directory, len(group))
        outputs = compaction.run(
            Job(
                factory=self._factory,
                level=level,
                runs=[[table.file for table in run] for run in sorted_runs(group)],
                deeper=self._deeper,
                grandparents=(),
                overlap_limit=0,
                oldest_snapshot=MAX_SEQUENCE,
                should_stop=lambda: False,
            )
        )
        for table in group:
            if table.name is not None:
                self._rewritten += 1
                self._set_aside.append(table.name)
        return [self._usable_output(output, level) for output in outputs]

    def _write(self, entries: list[Entry], level: int | None) -> UsableTable:
        """A new table; without a level, one that is as good for level 0."""
        output = self._factory.write(self._new_number(), level or 0, entries, self._deeper)
        return self._usable_output(output, level)

    def _usable_output(self, output: Output, level: int | None) -> UsableTable:
        table = output.table
        if table.filter.state == "failed":
            self._log.warning(
                "%s: written without a filter: %s",
                self._path(filenames.table_name(output.number)),
                table.filter.reason,
            )
        return UsableTable(
            number=output.number,
            size=table.size,
            first=self._position(table.smallest),
            last=self._position(table.largest),
            level=level,
        )

    def _position(self, internal: bytes) -> Position:
        key, rank = unpack(internal)
        return (key if self._comparator.wrap is None else self._comparator.wrap(key)), rank

    def _new_number(self) -> int:
        number = self._manifest.new_file_number()
        self._written.add(number)
        self._log.info("%s: writing it", self._path(filenames.table_name(number)))
        return number

    # -- The new database ----------------------------------------------------------------------

    def _commit(self, tables: list[UsableTable]) -> None:
        """Make a database of these tables, in one durable step.

        The numbers of those that are set aside are noted, so that a second repair leaves them out
        if this one goes no further.
        """
        parsed = map(filenames.parse, self._set_aside)
        aside = sorted({each[1] for each in parsed if each is not None})
        unwrap = self._comparator.unwrap
        self._manifest.last_sequence = self._last_sequence
        added = [
            NewFile(
                table.level or 0,
                table.number,
                table.size,
                *(pack(unwrap(key), rank) for key, rank in (table.first, table.last)),
            )
            for table in tables
        ]
        edit = Edit(
            log_number=self._manifest.new_file_number(),  # above that of every log there is
            deleted=[(self._level_of(number) or 0, number) for number in aside],
            added=added,
        )
        try:
            self._manifest.apply(edit)
        finally:
            self._manifest.close()

    def _report_loss(self, what: str) -> None:
        self._log.warning("%s", what)
        self._losses.append(what)

    def _remove(self, numbers: Iterable[int]) -> None:
        """Remove tables that were written here and are of no use."""
        for number in sorted(numbers):
            with contextlib.suppress(IOError):
                self._storage.remove(self._path(filenames.table_name(number)))

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def _missing(path: str, new: NewFile) -> str:
    (low, _), (high, _) = unpack(new.smallest), unpack(new.largest)
    return (
        f"{path}: this table of level {new.level} is missing, with keys from {low[:40]!r} "
        f"to {high[:40]!r}"
    )


def _newest_versions(entries: Iterable[Entry]) -> list[Entry]:
    """The newest version of every key."""
    newest: list[Entry] = []
    for entry in entries:
        if not newest or newest[-1][0] != entry[0]:
            newest.append(entry)
    return newest


def is_directory(storage: Storage, path: str) -> bool:
    """Whether there is a directory under this name."""
    try:
        storage.list(path)
    except IOError:
        return False
    return True
