"""Checkpoints: an open database as it is at one moment, in a directory of its own.

A moment is a view, and where the log of its newest memtable ends: those of the others grow no
more, and whatever is written later lies behind, in this log or in one that the view does not know.
So it takes no lock, and no writer waits.

Nobody removes the tables of a view that somebody has, nor what was mapped of a log. Tables never
change, and are linked, or copied where that cannot be; of logs the bytes up to the moment are
copied, and the manifest is written anew. CURRENT comes last, when all else is durable: a directory
without it is no database, and one with it a whole one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import attrs

from lsm import manifest
from lsm.attempt import HEAT_NAME, OPTIONS_NAME, SEED_NAME, Attempt
from lsm.disk import filenames
from lsm.disk.keys import sequence_of
from lsm.disk.log import LogReader
from lsm.errors import CorruptionError, IOError
from lsm.syncing import checked_sync
from lsm.tables import path_of

if TYPE_CHECKING:
    from mmap import mmap

    from lsm.disk.edit import Edit
    from lsm.kernels import TableFile
    from lsm.storage import Data, Mapped
    from lsm.store import Store
    from lsm.version import Version

_COPIED_AT_ONCE = 1 << 20

# What systems say where a file cannot have another name, here or at all.
_NOT_LINKABLE = {
    *(errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK),
    *(errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS),
}


@attrs.frozen(kw_only=True)
class CheckpointProgress:
    """How far a checkpoint has come: of so many tables and bytes of them."""

    tables: int
    total_tables: int
    bytes: int
    total_bytes: int


@attrs.frozen(kw_only=True)
class CheckpointReport:
    """What a checkpoint is made of.

    Of its ``bytes``, those of its tables and logs, ``log_bytes`` are in logs. No entry in it has a
    sequence number above ``sequence``.
    """

    path: str
    tables_linked: int
    tables_copied: int
    bytes: int
    log_bytes: int
    sequence: int
    seconds: float


def take(
    store: Store,
    path: str,
    *,
    flush: bool = False,
    progress: Callable[[CheckpointProgress], object] | None = None,
) -> CheckpointReport:
    """Make a checkpoint in a directory that is not there, or is empty; nothing of it if it fails.

    With ``flush`` what is in memory is written to tables before.
    """
    start, storage = time.perf_counter(), store.storage
    store.check_open()
    target = storage.absolute(path)
    _check_place(store, target)
    if flush:
        store.flush()
    with Attempt(storage, target) as attempt:
        attempt.create_directory()
        attempt.lock_exclusively()
        _check_empty(target, attempt.names - {filenames.LOCK})
        with _Moment.now(store) as moment:
            copy = _Copy(store, target, moment, progress)
            is_outlived = copy.complete()
    if is_outlived:
        store.background.tidy()
    return CheckpointReport(
        path=target,
        tables_linked=copy.linked,
        tables_copied=copy.copied,
        bytes=copy.bytes + copy.log_bytes,
        log_bytes=copy.log_bytes,
        sequence=moment.sequence,
        seconds=time.perf_counter() - start,
    )


def _check_place(store: Store, target: str) -> None:
    """Refuse a place within the database's own directory, and one where anything is."""
    storage = store.storage
    own, place = storage.real(store.directory), storage.real(target)
    if os.path.join(place, "").startswith(os.path.join(own, "")):
        raise ValueError(
            f"{target}: is within the database's own directory, {store.directory}; choose another "
            "one for the checkpoint"
        )
    if storage.exists(target):
        _check_empty(target, storage.list(target))


def _check_empty(target: str, names: Iterable[str]) -> None:
    first = min(names, default=None)
    if first is not None:
        raise IOError(
            errno.ENOTEMPTY,
            f"a checkpoint needs a directory that is not there yet, or is empty: this one has "
            f"{first!r}",
            target,
        )


@attrs.define(eq=False)
class _Moment:
    """A version, and how far each log counts beside it, by the log's number.

    The version's files, and what was in the logs, can be read until the moment is released.
    """

    version: Version | None
    sequence: int
    ends: Mapping[int, int]
    logs: dict[int, Mapped] = attrs.field(factory=dict)

    @classmethod
    def now(cls, store: Store) -> Self:
        """The state of a database as it is; nobody waits for that."""
        while True:
            view = store.opened_view()
            written = [each.log for each in view.memtables if each.log is not None]
            ends = {log.number: log.end for log in written} or store.replayed
            # After the logs' ends, so that it is no less than what they have. Of a load that is on
            # its way into the view the manifest knows first.
            last = max(sequence_of(store.visible), store.manifest.last_sequence)
            moment = cls(view.version, last, ends)
            try:
                moment._open_logs(store)
            except IOError:
                moment.release()
                if store.view is view:
                    raise
                continue  # a log was flushed meanwhile, and is gone
            except BaseException:
                moment.release()
                raise
            return moment

    def _open_logs(self, store: Store) -> None:
        for number in sorted(self.ends):
            if self.ends[number]:
                path = f"{store.directory}/{filenames.log_name(number)}"
                self.logs[number] = store.storage.map(path)

    def release(self) -> None:
        """Give back the files."""
        self.version = None
        for log in self.logs.values():
            _close(log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@attrs.define(eq=False)
class _Copy:
    """The copy of a moment on its way into an empty directory, and what it is made of so far."""

    store: Store
    target: str
    moment: _Moment
    progress: Callable[[CheckpointProgress], object] | None
    linked: int = 0
    copied: int = 0
    bytes: int = 0
    log_bytes: int = 0

    def complete(self) -> bool:
        """Write all of it, durably; whether the database has other tables by now."""
        version, storage = self.moment.version, self.store.storage
        assert version is not None
        self._add_tables([placed.file for placed in version.tables()])
        self._add_logs()
        self._add_our_files(version)
        above = os.path.dirname(storage.real(self.target))
        checked_sync(lambda: storage.sync_directory(above))
        self.store.check_open()
        manifest.begin(storage, self.target, *self._first_edit(version))
        view = self.store.view
        return view is not None and view.version is not version

    def _add_tables(self, files: Sequence[TableFile]) -> None:
        total = sum(file.size for file in files)
        self._tell(len(files), total)
        for file in files:
            self.store.check_open()  # else others may remove what is to be linked
            self._add_table(file)
            self.bytes += file.size
            self._tell(len(files), total)

    def _tell(self, tables: int, total: int) -> None:
        if self.progress is not None:
            self.progress(
                CheckpointProgress(
                    tables=self.linked + self.copied,
                    total_tables=tables,
                    bytes=self.bytes,
                    total_bytes=total,
                )
            )

    def _add_table(self, file: TableFile) -> None:
        storage = self.store.storage
        source = path_of(storage, self.store.directory, file)
        path = f"{self.target}/{os.path.basename(source)}"
        try:
            storage.link(source, path)
        except IOError as error:
            if error.errno not in _NOT_LINKABLE:
                raise
        else:
            self.linked += 1
            return
        mapped = storage.map(source)
        try:
            self._write(source, path, mapped.data, file.size)
        finally:
            _close(mapped)
        self.copied += 1

    def _add_logs(self) -> None:
        for number, mapped in self.moment.logs.items():
            name, end = filenames.log_name(number), self.moment.ends[number]
            source, data = f"{self.store.directory}/{name}", memoryview(mapped.data)[:end]
            failure = self.store.failure
            if failure is not None and failure.is_final:
                _check_log(source, bytes(data), end)
            self._write(source, f"{self.target}/{name}", data, end)
            self.log_bytes += end

    def _add_our_files(self, version: Version) -> None:
        storage = self.store.storage
        found = {HEAT_NAME: self.store.heat.encoded(version)}
        for name in (OPTIONS_NAME, SEED_NAME):
            path = f"{self.store.directory}/{name}"
            if storage.exists(path):  # as beside a database of LevelDB's it does not
                found[name] = storage.read(path)
        for name, data in found.items():
            if data is not None:
                path = f"{self.target}/{name}"
                storage.replace(path, data, f"{path}.dbtmp")

    def _first_edit(self, version: Version) -> tuple[int, Edit]:
        """The number of the manifest, and its only edit."""
        live = self.store.manifest
        edit, number = manifest.snapshot_of(version, self.store.comparator), live.number
        edit.log_number = min(self.moment.ends, default=live.log_number)
        edit.previous_log_number = 0
        edit.next_file_number = live.next_file_number  # all in it have lower ones
        edit.last_sequence = self.moment.sequence
        return number, edit

    def _write(self, source: str, path: str, data: Data | mmap, length: int) -> None:
        """Write a file of so many bytes, synced; other threads run while the system copies them."""
        whole = memoryview(data)
        if len(whole) != length:
            raise CorruptionError(f"{source}: has {len(whole)} bytes, and should have {length}")
        file = self.store.storage.create(path)
        try:
            for at in range(0, length, _COPIED_AT_ONCE):
                file.append(whole[at : at + _COPIED_AT_ONCE])
            file.flush()
            checked_sync(file.sync)
        except BaseException:
            with contextlib.suppress(IOError):
                file.close()
            raise
        file.close()


def _check_log(path: str, data: bytes, end: int) -> None:
    """CorruptionError unless a log has its records, which the system may drop after a failed sync.

    Else it has what was written, and looking through it would take longer than all the rest.
    """
    reader = LogReader(data, path)
    for _ in reader.records_until_loss():
        pass
    if reader.valid_end != end:
        raise CorruptionError(
            f"{path}: of {end} bytes that were written only {reader.valid_end} can be read back, "
            "since a sync has failed: copy what is in the database entry by entry, while it is open"
        )


def _close(mapped: Mapped) -> None:
    """Give a mapping back, unless the frames of an error have parts of it: then they do."""
    with contextlib.suppress(BufferError):
        mapped.close()
