"""A version edit: one record of the manifest, what changed in the set of tables."""

from __future__ import annotations

import attrs

from lsm.disk.coding import Fields, length_prefixed, varint
from lsm.errors import CorruptionError

# A comparator's name may be any bytes; those that are no UTF-8 come back as they were.
_ANY_BYTES = "surrogateescape"

_COMPARATOR = 1
_LOG_NUMBER = 2
_NEXT_FILE_NUMBER = 3
_LAST_SEQUENCE = 4
_COMPACT_POINTER = 5
_DELETED_FILE = 6
_NEW_FILE = 7
_PREVIOUS_LOG_NUMBER = 9


@attrs.define
class NewFile:
    """A table that joins a level, with its bounds as internal keys."""

    level: int
    number: int
    size: int
    smallest: bytes
    largest: bytes


@attrs.define(kw_only=True)
class Edit:
    """What a manifest record says; None and empty lists are not written."""

    comparator: str | None = None
    log_number: int | None = None
    previous_log_number: int | None = None
    next_file_number: int | None = None
    last_sequence: int | None = None
    compact_pointers: list[tuple[int, bytes]] = attrs.field(factory=list)
    deleted: list[tuple[int, int]] = attrs.field(factory=list)
    added: list[NewFile] = attrs.field(factory=list)

    def encode(self) -> bytes:
        """The record, fields in LevelDB's order."""
        parts = []
        if self.comparator is not None:
            parts += [
                varint(_COMPARATOR),
                length_prefixed(self.comparator.encode("utf-8", _ANY_BYTES)),
            ]
        numbers = (
            (_LOG_NUMBER, self.log_number),
            (_PREVIOUS_LOG_NUMBER, self.previous_log_number),
            (_NEXT_FILE_NUMBER, self.next_file_number),
            (_LAST_SEQUENCE, self.last_sequence),
        )
        for tag, number in numbers:
            if number is not None:
                parts += [varint(tag), varint(number)]
        for level, key in self.compact_pointers:
            parts += [varint(_COMPACT_POINTER), varint(level), length_prefixed(key)]
        for level, number in self.deleted:
            parts += [varint(_DELETED_FILE), varint(level), varint(number)]
        for new in self.added:
            parts += [varint(_NEW_FILE), varint(new.level), varint(new.number), varint(new.size)]
            parts += [length_prefixed(new.smallest), length_prefixed(new.largest)]
        return b"".join(parts)

    @classmethod
    def decode(cls, record: bytes, levels: int) -> Edit:
        """The edit in a record; CorruptionError for anything else."""
        fields = Fields(record, "a manifest record")
        edit = cls()
        while fields.remaining:
            tag = fields.varint32("tag")
            if tag == _NEW_FILE:
                edit.added.append(
                    NewFile(
                        _level(fields, levels),
                        fields.varint64("file number"),
                        fields.varint64("file size"),
                        _internal_key(fields, "smallest key"),
                        _internal_key(fields, "largest key"),
                    )
                )
                fields.at = _add_usual_tables(record, fields.at, levels, edit.added)
            elif tag == _COMPARATOR:
                edit.comparator = fields.slice("comparator's name").decode("utf-8", _ANY_BYTES)
            elif tag == _LOG_NUMBER:
                edit.log_number = fields.varint64("log number")
            elif tag == _PREVIOUS_LOG_NUMBER:
                edit.previous_log_number = fields.varint64("previous log number")
            elif tag == _NEXT_FILE_NUMBER:
                edit.next_file_number = fields.varint64("next file number")
            elif tag == _LAST_SEQUENCE:
                edit.last_sequence = fields.varint64("last sequence number")
            elif tag == _COMPACT_POINTER:
                level = _level(fields, levels)
                edit.compact_pointers.append((level, _internal_key(fields, "compaction pointer")))
            elif tag == _DELETED_FILE:
                edit.deleted.append((_level(fields, levels), fields.varint64("file number")))
            else:
                raise CorruptionError(
                    f"a manifest record has the unknown tag {tag}: LevelDB has 1 to 7 and 9; "
                    "was the database written by RocksDB or by a later release?"
                )
        return edit


def _add_usual_tables(record: bytes, at: int, levels: int, added: list[NewFile]) -> int:
    """Add the new tables from a byte on, as far as they have usual forms; where the rest begins.

    A record of many tables is what opening spends its time on. With numbers below 2**56 and bounds
    below 128 bytes a table needs no checks but these. Any other one is left to who says what is
    wrong with it.
    """
    end = len(record)
    try:
        while at < end and record[at] == _NEW_FILE:
            level = record[at + 1]
            number, place = _short_varint(record, at + 2)
            size, place = _short_varint(record, place)
            keys = place + 1
            middle = keys + record[place]
            last = middle + 1 + record[middle]
            smallest, largest = record[keys:middle], record[middle + 1 : last]
            fits = last <= end and 8 <= middle - keys < 128 and 8 <= last - middle - 1 < 128
            if not (fits and level < levels < 128):
                break
            added.append(NewFile(level, number, size, smallest, largest))
            at = last
    except IndexError:  # behind the end
        pass
    return at


def _short_varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint of up to eight bytes, and where it ends; IndexError where there is none."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value -= 128
    for shift in (7, 14, 21, 28, 35, 42, 49):
        byte = data[at]
        at += 1
        if byte < 128:
            return value + (byte << shift), at
        value += (byte - 128) << shift
    raise IndexError


def _level(fields: Fields, levels: int) -> int:
    level = fields.varint32("level")
    if level >= levels:
        raise CorruptionError(f"a manifest record names level {level}: there are {levels}")
    return level


def _internal_key(fields: Fields, what: str) -> bytes:
    key = fields.slice(what)
    if len(key) < 8:
        raise CorruptionError(f"a manifest record's {what} has {len(key)} bytes, 8 is the least")
    return key
