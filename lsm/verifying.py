"""Verifying a database: every checksum, every order, every filter, the manifest against the files.

Nothing is changed, created or repaired. What is wrong is reported, all of it, with file and offset;
what is damaged is read past.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from lsm import foreign, kernels, opening
from lsm import options as engine_options
from lsm.attempt import OPTIONS_NAME, Attempt
from lsm.comparator import BYTEWISE
from lsm.db import DB
from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.disk.log import LogReader
from lsm.errors import CorruptionError, IOError
from lsm.kernels import TableFile
from lsm.manifest import Manifest
from lsm.options import MIB
from lsm.quarantine import UNREADABLE
from lsm.storage import FileSystem
from lsm.table_check import Problem, TableCheck
from lsm.tables import open_table, path_of
from policies.errors import PolicyConfigError

if TYPE_CHECKING:
    from lsm.storage import Storage
    from lsm.version import PlacedTable

_LOOKED_UP_AT_ONCE = 1024

__all__ = ["Problem", "VerifyProgress", "VerifyReport", "verify"]


@attrs.frozen(kw_only=True)
class VerifyProgress:
    """How far ``verify()`` has come: so many bytes of tables, each of which is read twice."""

    bytes: int
    total_bytes: int


@attrs.frozen(kw_only=True)
class VerifyReport:
    """What was checked, and what is wrong.

    ``asked_keys`` is for how many keys filters were asked. ``notes`` tell of what is no damage, and
    what could not be checked here, as filters of policies that are not installed.
    """

    path: str
    tables: int
    blocks: int
    entries: int
    filters: int
    asked_keys: int
    logs: int
    log_records: int
    bytes: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return attrs.asdict(self) | {"is_sound": self.is_sound}


def verify(
    name: str | bytes | os.PathLike[str],
    *,
    storage: Storage | None = None,
    progress: Callable[[VerifyProgress], object] | None = None,
) -> VerifyReport:
    """Check a database of LevelDB's order of keys that nobody has open for writing.

    An error if there is none to check: NotADatabaseError, ForeignDatabaseError, ComparatorError,
    LockedError. ``progress`` is called now and then; what it raises ends the check.
    """
    storage = FileSystem() if storage is None else storage
    directory = storage.absolute(opening.directory_of(name))
    foreign.check(storage, directory)
    with Attempt(storage, directory) as attempt:
        attempt.lock_shared()
        if filenames.CURRENT not in attempt.names:
            opening.check_vacant(directory, attempt.names, create=False)
        return _Verification(storage, directory, attempt.names, progress or bool).run()


@attrs.define(eq=False)
class _Verification:
    """One verification of a directory that is locked."""

    storage: Storage
    directory: str
    names: frozenset[str]
    progress: Callable[[VerifyProgress], object]
    problems: list[Problem] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    blocks: int = 0
    entries: int = 0
    filters: int = 0
    asked_keys: int = 0
    logs: int = 0
    log_records: int = 0
    last_sequence: int = 0
    log_sequence: int = 0

    def run(self) -> VerifyReport:
        """Check all of it."""
        files = filenames.database_files(self.names)
        manifest = Manifest(self.storage, self.directory, BYTEWISE)
        is_told = self._recover(manifest)
        self._check_options()
        if is_told:
            placed = {table.number: table for table in manifest.current.tables()}
            self._look_for_missing(placed, files)
            self._check_logs(files, manifest.log_number, manifest.previous_log_number)
        else:
            self.notes.append("without a manifest nobody knows which tables and logs are in use")
            placed = {}
            self._check_logs(files, 0, 0)
        numbers = placed or files[Kind.TABLE].values()
        tables, total = self._check_tables(sorted(numbers), placed)
        if not self.problems:
            self._check_versions(manifest, total)
        return VerifyReport(
            path=self.directory,
            tables=tables,
            blocks=self.blocks,
            entries=self.entries,
            filters=self.filters,
            asked_keys=self.asked_keys,
            logs=self.logs,
            log_records=self.log_records,
            bytes=total,
            problems=tuple(self.problems),
            notes=tuple(self.notes),
        )

    def _recover(self, manifest: Manifest) -> bool:
        """Whether the manifest can be read, and tells of a tree in order."""
        try:
            manifest.recover()
        except CorruptionError as error:
            path, _, what = str(error).partition(": ")
            self.problems.append(Problem.of(path, CorruptionError(what)))
            return False
        return True

    def _check_options(self) -> None:
        path = self._path(OPTIONS_NAME)
        if OPTIONS_NAME not in self.names:
            return
        try:
            engine_options.from_kept(self.storage.read(path), path)
        except (IOError, PolicyConfigError) as error:
            self.problems.append(Problem.of(path, error))

    # -- Files --------------------------------------------------------------------------------

    def _look_for_missing(self, placed: dict[int, PlacedTable], files: filenames.Files) -> None:
        """Compare the tables that the manifest names with the files that are there."""
        there = files[Kind.TABLE]
        for number in sorted(placed.keys() - set(there.values())):
            path = self._path(filenames.table_name(number))
            level = placed[number].level
            what = f"it is missing, and the manifest has it on level {level}"
            self.problems.append(Problem(path, None, what))
        for name in sorted(name for name, number in there.items() if number not in placed):
            self.notes.append(f"{self._path(name)}: no table of the database, as it is now")
        for name in sorted(name for name in self.names if UNREADABLE in name):
            self.notes.append(f"{self._path(name)}: a repair could not read all of it")

    def _check_logs(self, files: filenames.Files, first: int, previous: int) -> None:
        """Read the records of every log that opening would replay."""
        for name, number in sorted(files[Kind.LOG].items(), key=lambda each: each[1]):
            if number >= first or number == previous:
                self._check_log(self._path(name))

    def _check_log(self, path: str) -> None:
        self.logs += 1
        reader = LogReader(self.storage.read(path), path)
        memtable = _new_memtable()
        for record in reader.records():
            try:
                sequence, count = memtable.apply(record)
            except CorruptionError as error:
                self.problems.append(Problem.of(path, error, reader.valid_start))
                continue
            self.log_records += 1
            self.log_sequence = max(self.log_sequence, sequence + count - 1)
            if not memtable.has_room():
                memtable = _new_memtable()
        for loss in reader.losses:
            what = f"{loss.reason} ({loss.bytes} bytes are lost)"
            self.problems.append(Problem.of(path, CorruptionError(what), loss.offset))

    # -- Tables -------------------------------------------------------------------------------

    def _check_tables(self, numbers: list[int], placed: dict[int, PlacedTable]) -> tuple[int, int]:
        """Check the tables of these numbers that are there; how many, and their bytes."""
        found = [each for number in numbers if (each := self._file(number, placed)) is not None]
        total = sum(file.size for file in found)
        before = 0
        for file in found:

            def done(offset: int, before: int = before) -> None:
                self.progress(VerifyProgress(bytes=before + offset, total_bytes=2 * total))

            self._check_table(file, placed.get(file.number), done)
            before += file.size
        return len(found), total

    def _file(self, number: int, placed: dict[int, PlacedTable]) -> TableFile | None:
        """The file of a table, as large as the manifest says or as it is; None if it is missing."""
        path = path_of(self.storage, self.directory, TableFile(number, 0))
        if not self.storage.exists(path):
            return None
        size = placed[number].size if number in placed else self.storage.size(path)
        return TableFile(number, size)

    def _check_table(
        self, file: TableFile, placed: PlacedTable | None, done: Callable[[int], object]
    ) -> None:
        path = path_of(self.storage, self.directory, file)
        try:
            table = open_table(self.storage, self.directory, file, BYTEWISE)
        except (CorruptionError, IOError) as error:
            self.problems.append(Problem.of(path, error))
            return
        try:
            check = TableCheck(table, done)
            check.run()
            if placed is not None:
                check.check_bounds(placed.smallest, placed.largest)
        finally:
            table.reader.mapped.close()
        self.problems += check.problems
        self.blocks += check.blocks
        self.entries += check.entries
        self.filters += bool(check.asked_keys)
        self.asked_keys += check.asked_keys
        self.last_sequence = max(self.last_sequence, check.last_sequence)
        if check.unasked:
            self.notes.append(f"{path}: {check.unasked}")

    def _check_versions(self, manifest: Manifest, total: int) -> None:
        """Look up every key that an iterator gives: neither finds a version the other does not.

        An iterator merges all levels, and a lookup ends at the first that has the key: where a
        newer version lies on a deeper level, or behind what the manifest calls the last, they
        differ.
        """
        path = self._path(filenames.manifest_name(manifest.number))
        if self.last_sequence > max(manifest.last_sequence, self.log_sequence):
            what = (
                f"it says that {manifest.last_sequence} is the last sequence number, and tables "
                f"have {self.last_sequence}"
            )
            self.problems.append(Problem(path, None, what))
            return
        seen = 0
        with DB(self.directory, storage=self.storage, read_only=True) as db:
            entries = iter(db.iterator(fill_cache=False))
            while some := list(islice(entries, _LOOKED_UP_AT_ONCE)):
                found = db.get_many(key for key, _ in some)
                for (key, value), other in zip(some, found, strict=True):
                    if value != other:
                        what = f"it has an older version of {key[:40]!r} above a newer one"
                        self.problems.append(Problem(path, None, what))
                        return
                seen += len(some)
                share = min(1.0, seen / max(1, self.entries))
                done = total + round(total * share)
                self.progress(VerifyProgress(bytes=done, total_bytes=2 * total))
        self.progress(VerifyProgress(bytes=2 * total, total_bytes=2 * total))

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"


def _new_memtable() -> Any:
    return kernels.of(BYTEWISE).Memtable(BYTEWISE, None, 4 * MIB)
