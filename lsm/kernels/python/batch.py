"""Write batches, and the records of a log that they are.

A write batch is a record of a write-ahead log::

    u64  sequence number of the first operation      per operation: u8 1 put, 0 delete; then the
    u32  number of operations                        key, and a put's value, each behind its length
                                                     as a varint32
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, NoReturn

from lsm.arguments import key_bytes
from lsm.disk.coding import MAX_VARINT32, SHORT_VARINTS, Fields, varint
from lsm.disk.keys import DELETE, MAX_SEQUENCE, PUT
from lsm.errors import CorruptionError
from lsm.refusals import no_pickle

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.store import Store

_BATCH = Struct("<QI")
HEADER_BYTES = _BATCH.size
_NO_HEADER = bytes(HEADER_BYTES)

# What stands before a key whose length takes one byte.
_PUT_KEY = [bytes((PUT, length)) for length in range(128)]
_DELETE_KEY = [bytes((DELETE, length)) for length in range(128)]


def encode_batch(sequence: int, operations: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    """The record of a batch whose first operation has this sequence number.

    An operation is (key, value), or (key, None) to delete the key.
    """
    parts = [_header(sequence, len(operations))]
    for key, value in operations:
        parts += _encoded(key, value)
    return b"".join(parts)


def joined(sequence: int, count: int, records: Sequence[bytes]) -> bytes:
    """The record of the operations of all these, so many together, under another number."""
    operations = [memoryview(each)[HEADER_BYTES:] for each in records]
    return b"".join((_header(sequence, count), *operations))


def _header(sequence: int, count: int) -> bytes:
    if not 0 <= sequence <= MAX_SEQUENCE + 1 - max(count, 1) or count > MAX_VARINT32:
        raise ValueError(
            f"a batch of {count} operations cannot start at sequence number {sequence}: "
            f"allowed are 0 to {MAX_SEQUENCE}, and {MAX_VARINT32} operations"
        )
    return _BATCH.pack(sequence, count)


def _encoded(key: bytes, value: bytes | None) -> tuple[bytes, ...]:
    """An operation, in parts."""
    length = len(key)
    if value is None:
        return _DELETE_KEY[length] if length < 128 else b"\0" + _length(length), key
    put = _PUT_KEY[length] if length < 128 else b"\1" + _length(length)
    length = len(value)
    return put, key, SHORT_VARINTS[length] if length < 128 else _length(length), value


def _length(length: int) -> bytes:
    """A length that takes more than one byte."""
    if length < 1 << 14:
        return bytes((length & 127 | 128, length >> 7))
    if length > MAX_VARINT32:
        raise too_long(length)
    return varint(length)


def too_long(length: int) -> ValueError:
    """The error for a key or value of so many bytes."""
    return ValueError(f"a key or value has {length} bytes, allowed are {MAX_VARINT32}")


class Batch:
    """Puts and deletes in the order they came, of keys that get a prefix.

    ``_store`` is the database that they are for: once it is closed, nothing is collected any more.
    """

    __slots__ = ("_operations", "_prefix", "_store")

    _store: Store
    _prefix: bytes

    def __init__(self) -> None:
        # Of each the encoded bytes, and how many its key and value have. It grows by calls that
        # nothing comes into.
        self._operations: list[tuple[bytes, int]] = []

    def __reduce__(self) -> NoReturn:
        raise no_pickle(self)

    @property
    def count(self) -> int:
        """How many operations were collected."""
        return len(self._operations)

    @property
    def payload(self) -> int:
        """How many bytes their keys and values have."""
        return sum(payload for _, payload in self._operations)

    def put(self, key: Buffer, value: Buffer) -> None:
        """Add an operation that sets the key's value."""
        key = key_bytes("key", key)
        self._store.check_open()
        self._add(self._prefix + key, key_bytes("value", value))

    def delete(self, key: Buffer) -> None:
        """Add an operation that deletes the key."""
        key = key_bytes("key", key)
        self._store.check_open()
        self._add(self._prefix + key, None)

    def append(self, source: Batch) -> None:
        """Add another batch's operations as they are, that one's prefix included."""
        if not isinstance(source, Batch):
            raise TypeError(f"source is a WriteBatch, not {type(source).__name__}")
        self._store.check_open()
        self._operations += source._operations

    def clear(self) -> None:
        """Drop the operations that were collected so far."""
        self._store.check_open()
        self._operations = []

    def approximate_size(self) -> int:
        """The bytes the batch would take in the log."""
        self._store.check_open()
        return HEADER_BYTES + sum(len(encoded) for encoded, _ in self._operations)

    def record_to_stamp(self) -> bytes:
        """The record of all operations, with a header of zeros."""
        return b"".join((_NO_HEADER, *(encoded for encoded, _ in self._operations)))

    def commit_alone(self) -> bool:
        """Write all operations at once, if nothing is in the way; whether that was so.

        Here something always is: between two instructions of Python anybody may come.
        """
        return False

    def _add(self, key: bytes, value: bytes | None) -> None:
        encoded = b"".join(_encoded(key, value))
        self._operations.append((encoded, len(key) + len(value or b"")))


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


def sequence_in(record: bytes) -> int:
    """The first sequence number of a write batch."""
    sequence: int = _BATCH.unpack_from(record)[0]
    return sequence


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
