"""Recovery: checking that the tables are there, and replaying the logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.disk.log import LogReader
from lsm.errors import CorruptionError

if TYPE_CHECKING:
    from lsm.disk.filenames import Files
    from lsm.kernels.python import Memtable
    from lsm.manifest import Manifest
    from lsm.storage import Storage

_log = logging.getLogger("lsm")


@attrs.frozen
class LogLoss:
    """The bytes of a write-ahead log that replay could not use, from an offset on, and why."""

    path: str
    offset: int
    bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.bytes} bytes from byte {self.offset} on: {self.reason}"


@attrs.define
class Replayed:
    """The outcome of a replay: the last memtable, which logs were read, and what was lost."""

    memtable: Memtable
    last_sequence: int
    logs: dict[int, int] = attrs.field(factory=dict)
    """Where the last record that was taken of each ends, by its number."""
    log_bytes: int = 0
    losses: list[LogLoss] = attrs.field(factory=list)


def check_tables(directory: str, files: Files, manifest: Manifest) -> None:
    """Refuse a database whose manifest names tables that are not there."""
    missing = {table.file.number for table in manifest.current.tables()}
    missing.difference_update(files[Kind.TABLE].values())
    if missing:
        first = f"{directory}/{filenames.table_name(min(missing))}"
        raise CorruptionError(
            f"{first}: this table is missing"
            + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; the manifest says it is part of the database. Bring it back from a copy, or let "
            "lsm.repair_db() go on without its entries"
        )


def replay(
    storage: Storage,
    directory: str,
    files: Files,
    manifest: Manifest,
    *,
    paranoid: bool,
    new_memtable: Callable[[], Memtable],
    flush: Callable[[Memtable], None] | None,
) -> Replayed:
    """Replay the logs that were not flushed, and ``flush`` each memtable that is full, if given.

    Each log is read up to its first bad record. What follows that is an error if ``paranoid``, and
    else reported as lost.
    """
    replayed = Replayed(new_memtable(), manifest.last_sequence)
    for number in _log_numbers(directory, files, manifest):
        replayed.logs[number] = 0
        path = f"{directory}/{filenames.log_name(number)}"
        data = storage.read(path)
        if not data:
            continue
        replayed.log_bytes += len(data)
        reader = LogReader(data, path)
        for record in reader.records_until_loss():
            try:
                sequence, count = replayed.memtable.apply(record)
            except CorruptionError as error:
                reader.lose_record(str(error))
                break
            replayed.logs[number] = reader.valid_end
            replayed.last_sequence = max(replayed.last_sequence, sequence + count - 1)
            if flush is not None and not replayed.memtable.has_room():
                flush(replayed.memtable)
                replayed.memtable = new_memtable()
        for loss in reader.losses:
            replayed.losses.append(LogLoss(path, loss.offset, loss.bytes, loss.reason))
    for lost in replayed.losses:
        if paranoid:
            raise CorruptionError(
                f"{lost}; opened without paranoid_checks, the database goes on without these "
                "bytes, and lsm.repair_db() keeps what can be read behind them"
            )
        _log.warning("replay left %s", lost)
    return replayed


def _log_numbers(directory: str, files: Files, manifest: Manifest) -> list[int]:
    """The logs to replay, the oldest first; no number in use is given to a file to come."""
    for names in files.values():
        number = max(names.values(), default=0)
        if number > filenames.LAST_NUMBER:
            highest = max(names, key=names.__getitem__)
            raise CorruptionError(
                f"{directory}/{highest}: its number leaves too few for files to come, the highest "
                f"allowed is {filenames.LAST_NUMBER}; move it elsewhere if it is none of this "
                "database's, or else give it a lower number and call lsm.repair_db()"
            )
        manifest.reserve(number)
    return sorted(
        number
        for number in files[Kind.LOG].values()
        if number >= manifest.log_number or number == manifest.previous_log_number
    )
