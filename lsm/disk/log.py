"""Logs: the write-ahead log of a database, and its manifest, are sequences of records.

``fragments`` has the layout. A program or machine that stops leaves a torn
record at the tail, and that is where the log then ends. Anything else that is no record is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import attrs

from lsm.disk.checksum import crc32c, mask
from lsm.disk.fragments import (
    BLOCK_BYTES,
    FIRST,
    FRAGMENT,
    FULL,
    HEADER_BYTES,
    LAST,
    MIDDLE,
    frame,
)

if TYPE_CHECKING:
    from lsm.storage import WritableFile

_LENGTH_AT = 4
_TYPE_AT = 6  # the checksum takes in all from here on

_KINDS = (FULL, FIRST, MIDDLE, LAST)
_KNOWN = f"known are {FULL} to {LAST}"


@attrs.frozen
class Loss:
    """So many bytes of a log file, from this offset on, that no record could be read from."""

    offset: int
    bytes: int
    reason: str


class LogWriter:
    """Appends records to a log file that has ``offset`` bytes already.

    After an append that failed, truncate the file to ``offset``, or write no more to it.
    """

    def __init__(self, file: WritableFile, offset: int = 0):
        self._file = file
        self._offset = offset

    @property
    def offset(self) -> int:
        """How many bytes the file has."""
        return self._offset

    def add(self, record: bytes) -> None:
        """Append one record; it is on its way to the file then, and not synced."""
        data = frame(record, self._offset % BLOCK_BYTES)
        self._file.append(data)
        self._offset += len(data)


# A fragment that is intact: where it starts and ends, its type, its payload.
_Fragment: TypeAlias = tuple[int, int, int, bytes]


class LogReader:
    """Reads the records in the contents of a log file; the reasons of losses begin with its name.

    Reading raises nothing, whatever the bytes are. ``losses`` and the offsets of the last intact
    record and behind it, ``valid_start`` and ``valid_end``, grow while records are drawn, and start
    anew with each reading.
    """

    def __init__(self, data: bytes, name: str):
        self._data = data
        self._view = memoryview(data)
        self._name = name
        self._zeros_from = len(data.rstrip(b"\0"))
        self.losses: list[Loss] = []
        self.valid_start = self.valid_end = 0

    def records(self) -> Iterator[bytes]:
        """Every record that is whole, past any losses."""
        self.losses, self.valid_start, self.valid_end = [], 0, 0
        for found in self._scan():
            if isinstance(found, Loss):
                self.losses.append(found)
            else:
                self.valid_start, self.valid_end, record = found
                yield record

    def records_until_loss(self) -> Iterator[bytes]:
        """The records before the first loss, which then counts all the rest of the file as lost."""
        self.losses, self.valid_start, self.valid_end = [], 0, 0
        for found in self._scan():
            if isinstance(found, Loss):
                self.losses.append(attrs.evolve(found, bytes=len(self._data) - found.offset))
                return
            self.valid_start, self.valid_end, record = found
            yield record

    def lose_record(self, reason: str) -> None:
        """Count the last record, which means nothing, and all behind it as lost."""
        start = self.valid_start
        self.losses.append(Loss(start, len(self._data) - start, reason))

    def _scan(self) -> Iterator[tuple[int, int, bytes] | Loss]:
        """Each record with its start and end, put together from fragments, and each loss."""
        parts: list[bytes] = []
        begin: int | None = None  # of the record whose parts these are
        for found in self._fragments():
            if isinstance(found, Loss):
                if begin is not None:
                    found = Loss(begin, found.offset + found.bytes - begin, found.reason)
                    begin = None
                yield found
                continue
            start, end, kind, payload = found
            if kind in (FULL, FIRST):
                # A first fragment of no bytes may stand alone: early releases of LevelDB left it.
                if begin is not None and any(parts):
                    yield self._loss(begin, start, "a record without an end")
                begin, parts = (start, [payload]) if kind == FIRST else (None, [])
                if kind == FULL:
                    yield start, end, payload
            elif begin is None:
                yield self._loss(start, end, "part of a record without a beginning")
            else:
                parts.append(payload)
                if kind == LAST:
                    yield begin, end, b"".join(parts)
                    begin = None

    def _fragments(self) -> Iterator[_Fragment | Loss]:
        """The intact fragments and the losses between them, to the end or the tear at the tail."""
        data = self._data
        at = 0
        while True:
            room = BLOCK_BYTES - at % BLOCK_BYTES
            if room < HEADER_BYTES:
                at += room
                continue
            # Zeros to the end of the file are room that was set aside for records to come.
            if at + HEADER_BYTES > len(data) or self._zeros_from <= at + _LENGTH_AT:
                return
            masked, length, kind = FRAGMENT.unpack_from(data, at)
            end = at + HEADER_BYTES + length
            is_torn = kind in _KINDS or self._zeros_from <= at + _TYPE_AT
            if len(data) < end <= at + room and is_torn and self._is_last(at):
                return
            if damage := self._damage(at, room, masked, length, kind):
                # Where the next fragment starts is not known then, save at the next block.
                end = min(at + room, len(data))
                yield self._loss(at, end, damage)
            elif kind in _KINDS:
                yield at, end, kind, data[at + HEADER_BYTES : end]
            else:
                yield self._loss(at, end, f"a fragment of the unknown type {kind}; {_KNOWN}")
            at = end

    def _damage(self, at: int, room: int, masked: int, length: int, kind: int) -> str | None:
        """What shows that there is no intact fragment here, or None."""
        end = at + HEADER_BYTES + length
        if end > at + room:
            return f"a fragment of {length} bytes, and its block has {room - HEADER_BYTES} left"
        if kind == length == 0:
            return "zeros where a fragment should be, and more data behind them"
        if end > len(self._data):
            return f"a fragment of type {kind} that ends at {end}, behind the file's last byte"
        if mask(crc32c(self._view[at + _TYPE_AT : end])) != masked:
            return "a fragment that does not match its checksum"
        return None

    def _is_last(self, at: int) -> bool:
        """Whether no intact fragment follows this one, which the end of the file cuts short.

        Else it was not torn: its length is damaged, and hides what was written after it.
        """
        data = self._data
        for start in range(at + HEADER_BYTES, len(data) - HEADER_BYTES + 1):
            if data[start + _TYPE_AT] in _KINDS:
                masked, length, _ = FRAGMENT.unpack_from(data, start)
                end = start + HEADER_BYTES + length
                if end <= len(data) and mask(crc32c(self._view[start + _TYPE_AT : end])) == masked:
                    return False
        return True

    def _loss(self, start: int, end: int, what: str) -> Loss:
        return Loss(start, end - start, f"{self._name}, byte {start}: {what}")
