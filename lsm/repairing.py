"""Making a database of the files that can still be read, and removing a database.

**What is read.** Every table, block by block, and every log, past its damaged parts. A table that
is whole stays the file it is. Of any other the entries that can be read go into a new one; where
its index cannot be read either, the blocks are found by their checksums, from the first one on up
to the first that is damaged. What a manifest says was replaced is left out while all that replaced
it is whole: deletions may be gone from there that would have to hide what it holds.

**Which version of a key is found.** A lookup stops at the first table that has the key, asking
level 0 by descending file number, then one level after the other. Numbers do not tell what is
newer: a compaction that ends after a flush may have begun before it. So tables that share no range
of keys with another are kept as they are. Those that do are kept at the levels that a manifest
tells, logs coming on top, if this finds the newest version of every key: all their entries are
compared for that. If it does not, or tables are among them that the manifest does not know, those
of level 0 and the unknown ones are merged, if that will do, and else all of them. What is merged
has the newest version by sequence number of every key, deletions included, and no overlap.

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
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from lsm import compaction, opening
from lsm.compaction import Job
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.filenames import Kind
from lsm.disk.keys import MAX_SEQUENCE, Entry, pack, sequence_of, unpack
from lsm.disk.log import LogReader
from lsm.errors import ComparatorError, CorruptionError, IOError
from lsm.kernels.python import merge
from lsm.kernels.python.log_encoding import decode_batch
from lsm.manifest import Manifest
from lsm.manifest_history import ManifestHistory
from lsm.memtable import Memtable
from lsm.options import LEVELS
from lsm.salvage import Bound, Scan
from lsm.table_factory import DeeperLevels, Output, TableFactory
from lsm.tables import TableFile, path_of
from lsm.version import Version

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.options import Options
    from lsm.storage import Storage


_log = logging.getLogger("lsm")

Log: TypeAlias = "logging.Logger | logging.LoggerAdapter[logging.Logger]"

LOST = "lost"
"""The directory within a database's that keeps what repairing set aside."""

UNREADABLE = ".unreadable"
"""What the name of a table ends in that could not be read, or not all of it."""

_NUMBER_OF_UNREADABLE = re.compile(
    rf"0*([0-9]{{1,20}})\.(ldb|sst){re.escape(UNREADABLE)}(\.[0-9]+)?"
)
_DEVICE_ERRORS = {errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)}


@attrs.frozen(kw_only=True)
class Report:
    """What became of a database's files, and what could not be read.

    Tables are ``kept`` as they are, ``rewritten`` with what could be read or merged with others,
    left out because others have ``replaced`` them, or ``lost`` with all they had. ``set_aside`` are
    the names of the files that moved into ``lost/``, ``unreadable`` the paths of the tables of
    which not all could be read, as they are named from now on, and of those of earlier repairs.
    """

    tables_kept: int
    tables_rewritten: int
    tables_replaced: int
    tables_lost: int
    logs_replayed: int
    losses: tuple[str, ...]
    set_aside: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.tables_kept} tables kept, {self.tables_rewritten} rewritten, "
            f"{self.tables_replaced} left out as replaced, {self.tables_lost} lost, "
            f"{self.logs_replayed} logs replayed, {len(self.losses)} losses"
        )


@attrs.define(eq=False, kw_only=True)
class _Found:
    """A table with entries, and the level it is known to belong to, if any."""

    number: int
    size: int
    first: Bound
    last: Bound
    level: int | None
    name: str | None = None
    """The file's, if it was there before."""

    @property
    def file(self) -> TableFile:
        """The table to be opened."""
        return TableFile(self.number, self.size)


@attrs.define(eq=False)
class _Examined:
    """A table file that was there, and what its bytes showed."""

    name: str
    number: int
    size: int = 0
    first: Bound | None = None
    last: Bound | None = None
    count: int = 0
    newest: int = 0
    losses: list[str] = attrs.field(factory=list)
    defects: list[str] = attrs.field(factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether all of its entries were read."""
        return self.first is not None and not self.losses

    def take(self, entries: list[Entry]) -> None:
        """Count a block's entries in."""
        if self.first is None:
            self.first = entries[0][:2]
        self.last = entries[-1][:2]
        self.count += len(entries)
        self.newest = max(self.newest, sequence_of(min(rank for _, rank, _ in entries)))


class _UnknownLevels(DeeperLevels):
    """Levels that may hold older versions of any key, so that no tombstone is dropped."""

    def overlap(self, low: OrderedKey, high: OrderedKey) -> bool:
        """True: an unreadable table that is put back later may hold any key."""
        return True


class Repair:
    """One repair of a directory that is locked; ``log`` is told what is done."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        comparator: Comparator,
        options: Options,
        log: Log = _log,
    ):
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._options = options
        self._manifest = Manifest(storage, directory, comparator)
        self._history = ManifestHistory()
        self._last_sequence = 0
        self._deeper = _UnknownLevels(Version.empty(), 0)
        self._created: set[int] = set()
        self._aside: list[str] = []
        self._unread: list[str] = []
        self._log = log
        self._losses: list[str] = []
        self._rewritten = self._replaced = self._lost = self._replayed = 0
        self._factory = TableFactory.of(
            storage,
            directory,
            comparator,
            options,
            options.filters.with_seed(opening.seed_of(storage, directory)),
            self._new_number,
        )

    def run(self) -> Report:
        """Do it."""
        names = self._names()
        self._read_manifests(names[Kind.MANIFEST])
        try:
            examined = [self._examine(name, number) for name, number in names[Kind.TABLE]]
            whole = {table.number for table in examined if table.is_whole}
            found = self._usable(examined, whole)
            found += self._replay(names[Kind.LOG], whole)
            found = self._arranged(found)
            self._storage.sync_directory(self._directory)
            aside = [*self._aside, *(name for name, _ in names[Kind.LOG] + names[Kind.MANIFEST])]
            if aside:
                self._storage.make_directory(self._path(LOST))
        except BaseException:
            self._remove(self._created)  # nothing knows of them yet
            raise
        with self._set_apart():
            self._commit(found)
        self._remove(self._created - {table.number for table in found})
        self._set_aside(aside)
        report = Report(
            tables_kept=sum(table.name is not None for table in found),
            tables_rewritten=self._rewritten,
            tables_replaced=self._replaced,
            tables_lost=self._lost,
            logs_replayed=self._replayed,
            losses=tuple(self._losses),
            set_aside=tuple(aside),
            unreadable=tuple(self._path(name) for name in self._kept_unreadable()),
        )
        self._log.info("%s: repaired: %s", self._directory, report)
        return report

    # -- What there is -----------------------------------------------------------------------

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
            if (
                error.errno not in _DEVICE_ERRORS
            ):  # a refusal can be helped, and then nothing is lost
                raise
            raise CorruptionError(f"{path}: the device cannot read it: {error}") from error

    def _read_manifests(self, names: list[tuple[str, int]]) -> None:
        """Choose whom to ask about the tables: the manifest that CURRENT names, or the newest."""
        current = self._current()
        best = -1, -1
        for name, number in names:
            history = self._read_manifest(name)
            self._last_sequence = max(self._last_sequence, history.last_sequence)
            if history.log_number is not None and (name == current, number) > best:
                best, self._history = (name == current, number), history

    def _current(self) -> str:
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
                self._check_comparator(path, edit.comparator)
                history.add(edit)
            if reader.losses:
                self._log.warning("%s: read up to byte %d only", path, reader.valid_end)
        except CorruptionError as error:
            self._log.warning("%s: not read any further: %s", path, error)
        return history

    def _check_comparator(self, path: str, name: str | None) -> None:
        if name is not None and name != self._comparator.name:
            raise ComparatorError(
                f"{path}: the keys are ordered by the comparator {name!r}, and "
                f"{self._comparator.name!r} was given: repair it with comparator= and "
                "comparator_name= of the one that wrote it"
            )

    # -- Tables ------------------------------------------------------------------------------

    def _examine(self, name: str, number: int) -> _Examined:
        """Read a table file once from end to end."""
        table = _Examined(name, number)
        path = self._path(name)
        try:
            data = self._read(name)
        except CorruptionError as error:
            table.losses.append(str(error))
            return table
        table.size = len(data)
        scan = Scan(path, data, self._comparator)
        for entries in scan.blocks():
            table.take(entries)
        table.losses, table.defects = scan.losses, scan.defects
        if path_of(self._storage, self._directory, TableFile(number, len(data))) != path:
            table.defects.append(f"{path}: no database looks for a table under this name")
        self._log.info("%s: %d entries can be read", path, table.count)
        return table

    def _usable(self, examined: Iterable[_Examined], whole: set[int]) -> list[_Found]:
        """The tables to go on with: those without flaw, and what is written of the others."""
        superseded = self._history.superseded(whole)
        for number in sorted(self._history.live.keys() - {table.number for table in examined}):
            self._lost += 1
            path = self._path(filenames.table_name(number))
            if number in self._kept_unreadable().values():  # by a repair that was interrupted then
                self._lose(f"{path}: not all of this table could be read, and so it is kept")
            else:
                self._lose(_missing(path, self._history.live[number]))
        found = []
        for table in examined:
            if table.number in superseded:
                self._log.info("%s: left out: others have replaced it", self._path(table.name))
                self._replaced += 1
                self._aside.append(table.name)
            elif table.defects or not table.is_whole:
                found += self._salvaged(table)
            else:
                assert table.first is not None
                assert table.last is not None
                found.append(
                    _Found(
                        number=table.number,
                        size=table.size,
                        first=table.first,
                        last=table.last,
                        level=self._level_of(table.number),
                        name=table.name,
                    )
                )
            self._last_sequence = max(self._last_sequence, table.newest)
        return found

    def _level_of(self, number: int) -> int | None:
        new = self._history.live.get(number)
        return None if new is None else new.level

    def _salvaged(self, table: _Examined) -> list[_Found]:
        """What can be read of a table, in a new one of the same level."""
        path = self._path(table.name)
        for defect in table.defects:
            self._log.warning("%s", defect)
        for loss in table.losses:
            self._lose(loss)
        (self._unread if table.losses else self._aside).append(table.name)
        if table.first is None:
            if not table.losses:
                self._lose(f"{path}: no entries can be found in it")
            self._lost += 1
            return []
        self._rewritten += 1
        scan = Scan(path, self._read(table.name), self._comparator)
        entries = _newest(chain.from_iterable(scan.blocks()))
        return [self._write(entries, self._level_of(table.number))]

    # -- Logs --------------------------------------------------------------------------------

    def _replay(self, logs: list[tuple[str, int]], whole: set[int]) -> list[_Found]:
        """Tables of what the logs hold, unless it is in tables already."""
        memtable = Memtable(self._comparator)
        found: list[_Found] = []
        for name, number in logs:
            if self._history.is_flushed(number, whole):
                self._log.info("%s: not replayed: tables have it all", self._path(name))
                continue
            for sequence, operations in self._batches(name):
                memtable.apply(sequence, operations)
                last = sequence + len(operations) - 1
                self._last_sequence = max(self._last_sequence, last)
                if memtable.size > self._options.write_buffer_size:
                    found.append(self._write(_newest(memtable.entries()), 0))
                    memtable = Memtable(self._comparator)
            self._replayed += 1
        if memtable:
            found.append(self._write(_newest(memtable.entries()), 0))
        return found

    def _batches(self, name: str) -> Iterator[tuple[int, list[tuple[bytes, bytes | None]]]]:
        """Every batch of a log that can be read."""
        path = self._path(name)
        try:
            reader = LogReader(self._read(name), path)
        except CorruptionError as error:
            self._lose(str(error))
            return
        for record in reader.records():
            try:
                batch = decode_batch(record)
            except CorruptionError as error:
                self._lose(f"{path}: the record that ends at byte {reader.valid_end}: {error}")
            else:
                yield batch
        for loss in reader.losses:
            self._lose(f"{loss.reason} ({loss.bytes} bytes are lost)")
        self._log.info("%s: replayed", path)

    # -- Putting tables in order -------------------------------------------------------------

    def _arranged(self, found: list[_Found]) -> list[_Found]:
        """The tables of the database, each with its level."""
        resting = self._resting_level(sum(table.size for table in found))
        arranged: list[_Found] = []
        for group in _groups(found):
            if len(group) == 1:
                (table,) = group
                level = resting if table.level is None else table.level
                arranged.append(attrs.evolve(table, level=level))
                continue
            top = [table for table in group if not table.level]
            levels = [[table for table in group if table.level == n] for n in range(1, LEVELS)]
            top.sort(key=attrgetter("number"), reverse=True)
            is_known = all(table.level is not None for table in group)
            if is_known and self._is_in_order([*([table] for table in top), *levels]):
                arranged += group
            elif len(top) < len(group) and self._is_in_order([top, *levels]):
                arranged += [*self._merged(top, 0), *chain.from_iterable(levels)]
            else:
                arranged += self._merged(group, resting)
        return arranged

    def _resting_level(self, size: int) -> int:
        """The level from 1 on that has room for all of this."""
        levels = range(1, LEVELS - 1)
        limit = self._options.limit
        return next((level for level in levels if size <= limit(level)), LEVELS - 1)

    def _is_in_order(self, rows: Sequence[list[_Found]]) -> bool:
        """Whether the first row that has a key has its newest version, and levels can be rows.

        The last rows are those of the levels from 1 on, whose tables must not overlap.
        """
        for row in rows[1 - LEVELS :]:
            if any(not one.last < other.first for one, other in pairwise(row)):
                return False
        places = {table.number: place for place, row in enumerate(rows) for table in row}

        def tagged(run: list[_Found]) -> Iterator[list[Entry]]:
            for table in run:
                place: Any = places[table.number]
                for entries in self._factory.entries(table.file):
                    yield [(key, rank, place) for key, rank, _ in entries]

        for window in merge.ascending(tagged(run) for run in _runs(chain.from_iterable(rows))):
            newest: Any = None
            for entry in window:
                if newest is None or entry[0] != newest[0]:
                    newest = entry
                elif entry[2] < newest[2]:
                    return False
        return True

    def _merged(self, group: list[_Found], level: int) -> list[_Found]:
        """Tables without overlap, with the newest version of every key of a group."""
        self._log.info("%s: merging %d tables that overlap", self._directory, len(group))
        outputs = compaction.run(
            Job(
                factory=self._factory,
                level=level,
                runs=[[table.file for table in run] for run in _runs(group)],
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
                self._aside.append(table.name)
        return [self._found(output, level) for output in outputs]

    # -- Writing -----------------------------------------------------------------------------

    def _write(self, entries: list[Entry], level: int | None) -> _Found:
        """A new table; without a level, one that is as good for level 0."""
        output = self._factory.write(self._new_number(), level or 0, entries, self._deeper)
        return self._found(output, level)

    def _found(self, output: Output, level: int | None) -> _Found:
        table = output.table
        if table.filter.state == "failed":
            self._log.warning(
                "%s: written without a filter: %s",
                self._path(filenames.table_name(output.number)),
                table.filter.reason,
            )
        return _Found(
            number=output.number,
            size=table.size,
            first=self._bound(table.smallest),
            last=self._bound(table.largest),
            level=level,
        )

    def _bound(self, internal: bytes) -> Bound:
        key, rank = unpack(internal)
        return (key if self._comparator.wrap is None else self._comparator.wrap(key)), rank

    def _new_number(self) -> int:
        number = self._manifest.new_file_number()
        self._created.add(number)
        self._log.info("%s: writing it", self._path(filenames.table_name(number)))
        return number

    def _commit(self, found: list[_Found]) -> None:
        """Make a database of these tables, in one durable step.

        The numbers of those that are set aside are noted, so that a second repair leaves them out
        if this one goes no further.
        """
        aside = sorted({parsed[1] for name in self._aside if (parsed := filenames.parse(name))})
        unwrap = self._comparator.unwrap
        self._manifest.last_sequence = self._last_sequence
        added = [
            NewFile(
                table.level or 0,
                table.number,
                table.size,
                *(pack(unwrap(key), rank) for key, rank in (table.first, table.last)),
            )
            for table in found
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

    @contextlib.contextmanager
    def _set_apart(self) -> Iterator[None]:
        """Have the tables that cannot be read named so, and named as before if there is an error.

        Unless what is done then has come to count: an error may follow upon that.
        """
        before = self._current()
        renamed: list[tuple[str, str]] = []
        try:
            for name in self._unread:
                path = self._path(name)
                kept = _free(self._storage, f"{path}{UNREADABLE}")
                renamed.append((path, kept))
                self._storage.rename(path, kept)
                self._log.warning("%s: kept, for not all of it can be read, as %s", path, kept)
            if renamed:
                self._storage.sync_directory(self._directory)
            yield
        except BaseException:
            if self._current() == before:
                for path, kept in renamed:
                    with contextlib.suppress(IOError):
                        if not self._storage.exists(path):
                            self._storage.rename(kept, path)
            raise

    def _kept_unreadable(self) -> dict[str, int]:
        """The names of tables that could not be read, by this repair or before, with numbers."""
        names = self._storage.list(self._directory)
        matches = ((name, _NUMBER_OF_UNREADABLE.fullmatch(name)) for name in names)
        return {name: int(match[1]) for name, match in matches if match}

    def _set_aside(self, names: list[str]) -> None:
        """Move files into ``lost/``, beside those that earlier repairs moved there."""
        if not names:
            return
        lost = self._path(LOST)
        for name in names:
            self._storage.rename(self._path(name), _free(self._storage, f"{lost}/{name}"))
        self._storage.sync_directory(lost)
        self._storage.sync_directory(self._directory)
        self._log.info("%s: %d files are set aside in %s/", self._directory, len(names), LOST)

    def _lose(self, what: str) -> None:
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


def _newest(entries: Iterable[Entry]) -> list[Entry]:
    """The newest version of every key."""
    kept: list[Entry] = []
    for entry in entries:
        if not kept or kept[-1][0] != entry[0]:
            kept.append(entry)
    return kept


def _groups(tables: list[_Found]) -> Iterator[list[_Found]]:
    """Tables whose ranges of keys hang together, each such group sorted by its first keys."""
    group: list[_Found] = []
    high: OrderedKey = None
    for table in sorted(tables, key=attrgetter("first")):
        if group and high < table.first[0]:
            yield group
            group = []
        high = table.last[0] if not group else max(high, table.last[0])
        group.append(table)
    if group:
        yield group


def _runs(tables: Iterable[_Found]) -> list[list[_Found]]:
    """The tables in as few rows as can be of tables that ascend."""
    runs: list[list[_Found]] = []
    for table in sorted(tables, key=attrgetter("first")):
        for run in runs:
            if run[-1].last < table.first:
                run.append(table)
                break
        else:
            runs.append([table])
    return runs


def _free(storage: Storage, path: str) -> str:
    """The path, or the first of its kind that is free."""
    taken, number = path, 0
    while storage.exists(taken):
        number += 1
        taken = f"{path}.{number}"
    return taken


def is_directory(storage: Storage, path: str) -> bool:
    """Whether there is a directory under this name."""
    try:
        storage.list(path)
    except IOError:
        return False
    return True
