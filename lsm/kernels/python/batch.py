"""Write batches, and the records of a log that they are: pure functions from bytes to bytes.

A write batch is a record of a write-ahead log::

    u64  sequence number of the first operation      per operation: u8 1 put, 0 delete; then the
    u32  number of operations                        key, and a put's value, each behind its length
                                                     as a varint32
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from lsm.disk.coding import MAX_VARINT32, SHORT_VARINTS, Fields, varint
from lsm.disk.keys import DELETE, MAX_SEQUENCE, PUT
from lsm.errors import CorruptionError

_BATCH = Struct("<QI")

# What stands before a key whose length takes one byte.
_PUT_KEY = [bytes((PUT, length)) for length in range(128)]
_DELETE_KEY = [bytes((DELETE, length)) for length in range(128)]


def encode_batch(sequence: int, operations: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """The record of a batch whose first operation has this sequence number.

    An operation is (key, value), or (key, None) to delete the key.
    """
    count = len(operations)
    if not 0 <= sequence <= MAX_SEQUENCE + 1 - max(count, 1) or count > MAX_VARINT32:
        raise ValueError(
            f"a batch of {count} operations cannot start at sequence number {sequence}: "
            f"allowed are 0 to {MAX_SEQUENCE}, and {MAX_VARINT32} operations"
        )
    parts = [_BATCH.pack(sequence, count)]
    add = parts.extend
    for key, value in operations:
        length = len(key)
        if value is None:
            add((_DELETE_KEY[length] if length < 128 else b"\0" + _length(length), key))
            continue
        put = _PUT_KEY[length] if length < 128 else b"\1" + _length(length)
        length = len(value)
        add((put, key, SHORT_VARINTS[length] if length < 128 else _length(length), value))
    return b"".join(parts)


def _length(length: int) -> bytes:
    """A length that takes more than one byte."""
    if length < 1 << 14:
        return bytes((length & 127 | 128, length >> 7))
    if length > MAX_VARINT32:
        raise ValueError(f"a key or value has {length} bytes, allowed are {MAX_VARINT32}")
    return varint(length)


def decode_batch(record: bytes) -> tuple[int, list[tuple[bytes, bytes | None]]]:
    """The first sequence number and the operations; CorruptionError for what is no write batch."""
    sequence, count = _decode_header(record)
    operations: list[tuple[bytes, bytes | None]] = []
    add = operations.append
    at = _BATCH.size
    try:
        for _ in range(count):
            kind, length, at = record[at], record[at + 1], at + 2
            if length >= 128:
                length, at = _read_length(record, at - 1)
            key = record[at : at + length]
            at += length
            if kind == PUT:
                length, at = record[at], at + 1
                if length >= 128:
                    length, at = _read_length(record, at - 1)
                add((key, record[at : at + length]))
                at += length
            elif kind == DELETE:
                add((key, None))
            else:
                raise CorruptionError(
                    f"operation {len(operations) + 1} of {count} in a write batch is of the "
                    f"unknown type {kind}; known are {PUT} (put) and {DELETE} (delete)"
                )
    except IndexError:
        at = len(record) + 1
    # A slice beyond the end is cut short without a word, but leaves ``at`` beyond the end as well,
    # where the next operation finds no byte.
    if at != len(record):
        raise CorruptionError(
            f"a write batch of {count} operations has {len(record)} bytes, and they would take "
            + (f"{at}" if at < len(record) else "more")
        )
    return sequence, operations


def _decode_header(record: bytes) -> tuple[int, int]:
    """The first sequence number and the number of operations."""
    if len(record) < _BATCH.size:
        raise CorruptionError(
            f"a write batch has {len(record)} bytes, its header alone takes {_BATCH.size}"
        )
    sequence, count = _BATCH.unpack_from(record)
    if sequence > MAX_SEQUENCE + 1 - max(count, 1):
        raise CorruptionError(
            f"a write batch of {count} operations starts at sequence number {sequence}: "
            f"the last one there is is {MAX_SEQUENCE}"
        )
    return sequence, count


def _read_length(record: bytes, at: int) -> tuple[int, int]:
    """The varint at this place, of more than one byte, and where it ends."""
    second = record[at + 1]
    if second < 128:
        return record[at] & 127 | second << 7, at + 2
    fields = Fields(record, "a write batch")
    fields.at = at
    return fields.varint32("length of a key or value"), fields.at
