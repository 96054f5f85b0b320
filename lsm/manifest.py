"""The manifest: the durable record of which tables are live, written by edits and replayed."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from lsm.comparators import KNOWN
from lsm.disk import filenames
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE
from lsm.disk.log import LogReader, LogWriter
from lsm.errors import ComparatorError, CorruptionError, Error, IOError
from lsm.kernels import TableFile
from lsm.options import LEVELS
from lsm.syncing import checked_sync
from lsm.version import OverlapError, PlacedTable, Version

if TYPE_CHECKING:
    from lsm.comparator import Comparator
    from lsm.storage import Storage, WritableFile

_ADVICE = "lsm.repair_db() makes a new manifest of the tables that are there"

_HIGHEST = {
    "log_number": filenames.LAST_NUMBER,
    "previous_log_number": filenames.LAST_NUMBER,
    "next_file_number": filenames.LAST_NUMBER,
    "last_sequence": MAX_SEQUENCE,
}


NOTHING_DECODED: Mapping[bytes, Edit] = {}

# How many tables a compact manifest may add and delete, for each that is live, and beside that.
_MOST_TOLD = 2
_MOST_TOLD_IN_ANY_CASE = 32


@attrs.define
class _Replayed:
    """What the records of a manifest have told so far."""

    live: dict[int, PlacedTable] = attrs.field(factory=dict)
    added_at: dict[int, int] = attrs.field(factory=dict)
    """The offset of the record that added a table, by the table's number."""
    numbers: dict[str, int] = attrs.field(factory=dict)
    told: int = 0
    """How many tables were added and deleted."""


class Manifest:
    """The current version, the counters of files and sequence numbers, and the file with both.

    Whoever changes it after opening holds the installer's lock; file numbers have a lock of their
    own, so that logs and tables take them at any time.

    ``is_compact`` says whether the manifest that was replayed tells little but what is live: to
    begin another one would spare the next opening next to nothing.
    """

    def __init__(self, storage: Storage, directory: str, comparator: Comparator):
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._file: WritableFile | None = None
        self._log: LogWriter | None = None
        self._number_lock = threading.Lock()
        # By references that leave by themselves, in one call of C: no interruption is lost in it.
        self._live: dict[weakref.ref[Version], None] = {}
        self.number = 0
        self.next_file_number = 2
        self.last_sequence = 0
        self.log_number = 0
        self.previous_log_number = 0
        self.is_compact = False
        self.compact_pointers: dict[int, bytes] = {}
        self._install(Version.empty())

    @classmethod
    def create(cls, storage: Storage, directory: str, comparator: Comparator) -> None:
        """Begin a database without tables."""
        first = Edit(comparator=comparator.name, log_number=0, next_file_number=2, last_sequence=0)
        begin(storage, directory, 1, first)

    def recover(self, decoded: Mapping[bytes, Edit] = NOTHING_DECODED) -> None:
        """Replay the manifest that CURRENT names; CorruptionError says what is wrong where.

        ``decoded`` are edits that are known already, by their records.
        """
        name = self._current_name()
        path = f"{self._directory}/{name}"
        try:
            data = self._storage.read(path)
        except IOError as error:
            if self._storage.exists(path):
                raise
            raise CorruptionError(
                f"{path}: CURRENT names this manifest, and it is missing; {_ADVICE}"
            ) from error
        reader = LogReader(data, path)
        replayed = _Replayed()
        for record in reader.records_until_loss():
            try:
                edit = decoded.get(record) or Edit.decode(record, LEVELS)
                check_comparator(path, self._comparator, edit.comparator)
                self._replay(edit, reader.valid_start, replayed)
            except CorruptionError as error:
                raise _damaged(path, reader.valid_start, error) from error
        if reader.losses:
            loss = reader.losses[0]
            raise CorruptionError(
                f"{path}: damaged at byte {loss.offset}: {loss.reason}; {_ADVICE}"
            )
        self._take(path, replayed.numbers)
        live = replayed.live
        self.number = _number_of(name)
        self.is_compact = replayed.told <= _MOST_TOLD * len(live) + _MOST_TOLD_IN_ANY_CASE
        levels: list[list[PlacedTable]] = [[] for _ in range(LEVELS)]
        self.reserve(max(live, default=0))
        for table in live.values():
            levels[table.level].append(table)
        version = Version(levels)
        try:
            version.check_order()
        except OverlapError as error:
            at = max(replayed.added_at[table.number] for table in error.tables)
            raise _damaged(path, at, error) from error
        self._install(version)

    def new_file_number(self) -> int:
        """A number that no file of this directory has had; Error when all are used up."""
        with self._number_lock:
            number = self.next_file_number
            if number > filenames.LAST_NUMBER:
                raise Error(
                    f"{self._directory}: the numbers of files are used up, "
                    f"{filenames.LAST_NUMBER} is the highest; {_ADVICE}"
                )
            self.next_file_number += 1
            return number

    def reserve(self, number: int) -> None:
        """Never give this number, which a file has, to a new one."""
        with self._number_lock:
            self.next_file_number = max(self.next_file_number, number + 1)

    def apply(self, edit: Edit, files: Iterable[TableFile] = ()) -> Version:
        """Write an edit, synced, and make the version it leads to the current one.

        ``files`` are those of the tables it adds that are open or known already. After an error
        nobody knows whether the manifest holds the edit. Unless it is a SyncError the next edit
        goes to a new one, which begins with what was there before; until then no table that the
        edit adds may be removed.
        """
        known = {file.number: file for file in files}
        if edit.log_number is None:
            edit.log_number = self.log_number
        edit.previous_log_number = self.previous_log_number = 0
        edit.next_file_number = self.next_file_number
        edit.last_sequence = self.last_sequence
        removed = set(edit.deleted)
        levels = [
            [table for table in tables if (level, table.number) not in removed]
            for level, tables in enumerate(self.current.levels)
        ]
        try:  # before it is written, for nobody could open it again
            for new in edit.added:
                file = known.get(new.number) or TableFile(new.number, new.size)
                levels[new.level].append(
                    PlacedTable.at(new.level, file, new.smallest, new.largest, self._comparator)
                )
            version = Version(levels)
            version.check_order()
        except CorruptionError as error:
            raise CorruptionError(
                f"{self._directory}: not written to the manifest: {error}; a table has keys beyond "
                f"the bounds the manifest gives it; {_ADVICE}"
            ) from error
        self._write(edit)
        self.log_number = edit.log_number
        self.compact_pointers.update(edit.compact_pointers)
        return self._install(version)

    def live_files(self) -> set[int]:
        """The numbers of the tables of every version that is current or that a reader holds."""
        versions = [reference() for reference in self._live.copy()]
        return {table.file.number for version in versions if version for table in version.tables()}

    def close(self) -> None:
        """Close the file; without effect when it is closed."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._file = self._log = None

    def _write(self, edit: Edit) -> None:
        """Append to the manifest; with the first edit after opening, begin a new one."""
        try:
            if self._log is None or self._file is None:
                self._begin(edit)
            else:
                if edit.added:  # the names of these tables before the edit
                    self._sync_names()
                self._log.add(edit.encode())
                self._file.flush()
                checked_sync(self._file.sync)
        except BaseException:
            with contextlib.suppress(IOError):  # what is left in a buffer counts no more
                self.close()
            raise

    def _begin(self, edit: Edit) -> None:
        """Write a new manifest of the current state and an edit, and have CURRENT name it."""
        number = self.new_file_number()
        edit.next_file_number = self.next_file_number
        file = self._storage.create(f"{self._directory}/{filenames.manifest_name(number)}")
        try:
            log = LogWriter(file)
            log.add(self._snapshot().encode())
            log.add(edit.encode())
            file.flush()
            checked_sync(file.sync)
            self._sync_names()  # of this file, new tables and logs, before CURRENT makes them count
            _set_current(self._storage, self._directory, number)
        except BaseException:
            with contextlib.suppress(IOError):
                file.close()
            raise
        self._file, self._log, self.number = file, log, number

    def _sync_names(self) -> None:
        checked_sync(lambda: self._storage.sync_directory(self._directory))

    def _snapshot(self) -> Edit:
        """One edit that makes the current state of an empty one."""
        edit = snapshot_of(self.current, self._comparator)
        edit.compact_pointers = sorted(self.compact_pointers.items())
        return edit

    def _install(self, version: Version) -> Version:
        self._live[weakref.ref(version, self._live.pop)] = None
        self.current = version
        return version

    def _current_name(self) -> str:
        path = f"{self._directory}/{filenames.CURRENT}"
        try:
            text = self._storage.read(path).decode("ascii", "replace")
        except IOError as error:
            if self._storage.exists(path):
                raise
            raise CorruptionError(f"{path}: is missing; {_ADVICE}") from error
        if not text.endswith("\n"):
            raise CorruptionError(f"{path}: does not end in a newline: {text[:80]!r}; {_ADVICE}")
        name = text[:-1]
        parsed = filenames.parse(name)
        if parsed is None or parsed[0] is not filenames.Kind.MANIFEST:
            raise CorruptionError(f"{path}: names no manifest: {name[:80]!r}; {_ADVICE}")
        if parsed[1] > filenames.LAST_NUMBER:
            raise CorruptionError(
                f"{path}: names manifest {parsed[1]}, the highest allowed is "
                f"{filenames.LAST_NUMBER}; {_ADVICE}"
            )
        return name

    def _replay(self, edit: Edit, at: int, replayed: _Replayed) -> None:
        """Apply the edit of the record at this offset to what was replayed so far."""
        for name, highest in _HIGHEST.items():
            number = getattr(edit, name)
            if number is not None:
                _check_number(name.replace("_", " "), number, highest)
                replayed.numbers[name] = number
        self.compact_pointers.update(edit.compact_pointers)
        live, comparator = replayed.live, self._comparator
        for level, number in edit.deleted:
            if number in live and live[number].level == level:
                del live[number]
        for new in edit.added:
            number = new.number
            _check_number("number of a table", number, filenames.LAST_NUMBER)
            if number in live:
                raise CorruptionError(
                    f"table {number} is added to level {new.level}, and is part of level "
                    f"{live[number].level} already"
                )
            file = TableFile(number, new.size)
            live[number] = PlacedTable.at(new.level, file, new.smallest, new.largest, comparator)
            replayed.added_at[number] = at
        replayed.told += len(edit.added) + len(edit.deleted)

    def _take(self, path: str, numbers: Mapping[str, int]) -> None:
        for name in ("log_number", "next_file_number", "last_sequence"):
            if name not in numbers:
                words = name.replace("_", " ")
                raise CorruptionError(f"{path}: no record has the {words}; {_ADVICE}")
        self.log_number = numbers["log_number"]
        self.previous_log_number = numbers.get("previous_log_number", 0)
        self.next_file_number = numbers["next_file_number"]
        self.last_sequence = numbers["last_sequence"]
        for number in (self.log_number, self.previous_log_number):
            self.reserve(number)


def snapshot_of(version: Version, comparator: Comparator) -> Edit:
    """One edit that makes a version of an empty one; its numbers are still to be given."""
    return Edit(
        comparator=comparator.name,
        added=[
            NewFile(table.level, table.number, table.size, table.smallest, table.largest)
            for table in version.tables()
        ],
    )


def begin(storage: Storage, directory: str, number: int, first: Edit) -> None:
    """Begin a database: its first manifest, synced, then CURRENT, then the directory."""
    file = storage.create(f"{directory}/{filenames.manifest_name(number)}")
    with contextlib.closing(file):
        LogWriter(file).add(first.encode())
        file.sync()
    storage.sync_directory(directory)  # all names before the one that leads to them
    _set_current(storage, directory, number)


def check_comparator(path: str, comparator: Comparator, name: str | None) -> None:
    """ComparatorError if a manifest names another comparator; None is no name."""
    if name is None or name == comparator.name:
        return
    advice = "give the comparator= and comparator_name= that the database was created with"
    if (known := KNOWN.get(name)) is not None:
        advice = (
            f"this is {known.of}, and can be read with comparator=lsm.comparators.{name}, "
            f"comparator_name={known.name!r} and read_only=True"
        )
    raise ComparatorError(
        f"{path}: the keys are ordered by the comparator {name!r}, and {comparator.name!r} "
        f"was given: {advice}"
    )


def _set_current(storage: Storage, directory: str, number: int) -> None:
    """Have CURRENT name this manifest, in one durable step."""
    storage.replace(
        f"{directory}/{filenames.CURRENT}",
        f"{filenames.manifest_name(number)}\n".encode(),
        f"{directory}/{filenames.temporary_name(number)}",
    )


def _check_number(what: str, number: int, highest: int) -> None:
    if number > highest:
        raise CorruptionError(f"the {what} is {number}, the highest allowed is {highest}")


def _damaged(path: str, at: int, error: CorruptionError) -> CorruptionError:
    """The error that names a manifest and the offset of the record in which it was found."""
    return CorruptionError(f"{path}: the record at byte {at}: {error}; {_ADVICE}")


def _number_of(name: str) -> int:
    parsed = filenames.parse(name)
    assert parsed is not None
    return parsed[1]
