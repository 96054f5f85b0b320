"""Keys of Chrome's IndexedDB as values that compare themselves, slowly, and how they are written.

From Chromium's ``leveldb_coding_scheme.md`` and the IndexedDB specification's "compare two keys";
shares no line with ``lsm``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal

Padding = int
"""How many needless zeros numbers have behind them."""


def varint(value: int, padding: Padding = 0) -> bytes:
    groups = []
    while value >= 128:
        groups.append(value % 128)
        value //= 128
    groups += [value] + [0] * min(padding, 9 - len(groups))  # more than ten bytes are no number
    return bytes(group + 128 for group in groups[:-1]) + bytes(groups[-1:])


def compared(one: Any, other: Any) -> int:
    """-1, 0 or 1; Python's own numbers, bytes and lists of them order as is wanted."""
    return (one > other) - (one < other)


UserKind = Literal["below", "number", "date", "string", "binary", "array", "above"]
ORDER: list[UserKind] = ["below", "number", "date", "string", "binary", "array", "above"]
TYPES = {"above": 0, "string": 1, "date": 2, "number": 3, "array": 4, "below": 5, "binary": 6}


@dataclass(frozen=True)
class UserKey:
    """What a web page calls a key: a float, code units, bytes, or a tuple of such."""

    kind: UserKind
    value: Any = None

    def against(self, other: UserKey) -> int:
        if self.kind != other.kind:
            return compared(ORDER.index(self.kind), ORDER.index(other.kind))
        if self.kind == "array":
            for one, another in zip(self.value, other.value, strict=False):
                if found := one.against(another):
                    return int(found)
            return compared(len(self.value), len(other.value))
        return 0 if self.value is None else compared(self.value, other.value)

    def encoded(self, padding: Padding = 0) -> bytes:
        start = bytes((TYPES[self.kind],))
        if self.kind in ("number", "date"):
            return start + struct.pack("<d", self.value)
        if self.kind == "string":
            return start + text(self.value, padding)
        if self.kind == "binary":
            return start + varint(len(self.value), padding) + bytes(self.value)
        if self.kind == "array":
            elements = b"".join(each.encoded(padding) for each in self.value)
            return start + varint(len(self.value), padding) + elements
        return start


def text(units: tuple[int, ...], padding: Padding = 0) -> bytes:
    """A string with its length: UTF-16, the high byte of each unit first."""
    return varint(len(units), padding) + struct.pack(f">{len(units)}H", *units)


@dataclass(frozen=True)
class Key:
    """A key of the store: its prefix, and what stands behind that.

    ``kind`` is the byte of metadata. ``fields`` are ints, tuples of code units and a last byte in
    metadata; a user's key; or of an index entry a user's key, a number, and another key.
    """

    prefix: tuple[int, int, int]
    kind: int | None
    fields: tuple[Any, ...]

    def against(self, other: Key) -> int:
        if self.prefix != other.prefix:
            return compared(self.prefix, other.prefix)
        if self.kind != other.kind:
            assert self.kind is not None
            assert other.kind is not None
            return compared(self.kind, other.kind)
        if self.kind is None and self.prefix[2] >= 30:
            return self._against_entry(other)
        for one, another in zip(self.fields, other.fields, strict=True):
            found = one.against(another) if isinstance(one, UserKey) else compared(one, another)
            if found:
                return int(found)
        return 0

    def _against_entry(self, other: Key) -> int:
        """By the key, then by the other one, and by the number only where both have that."""
        (key, *more), (other_key, *others) = self.fields, other.fields
        if found := key.against(other_key):
            return int(found)
        if len(more) < 2 or len(others) < 2:
            return compared(len(more) == 2, len(others) == 2)
        return int(more[1].against(others[1])) or compared(more[0], others[0])

    def encoded(self, padding: Padding = 0) -> bytes:
        """The bytes; ``padding`` makes others that mean the same."""
        lengths, numbers = [], b""
        for number, most in zip(self.prefix, (8, 8, 4), strict=True):
            length = min(max(1, (number.bit_length() + 7) // 8) + padding, most)
            lengths.append(length - 1)
            numbers += number.to_bytes(length, "little")
        first, second, third = lengths
        data = bytes((first << 5 | second << 2 | third,)) + numbers
        data += b"" if self.kind is None else bytes((self.kind,))
        return data + b"".join(self._field(each, padding) for each in self.fields)

    def _field(self, field: Any, padding: Padding) -> bytes:
        if isinstance(field, UserKey):
            return field.encoded(padding)
        if isinstance(field, tuple):
            return text(field, padding)
        if isinstance(field, bytes):
            return field
        return varint(field, padding)
