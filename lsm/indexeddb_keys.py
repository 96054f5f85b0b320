"""Where a key of Chrome's IndexedDB stands among others: as bytes that order as the keys do.

The order is ``idb_cmp1``, as Chromium has it in ``content/browser/indexed_db``: the function
``Compare`` of ``indexed_db_leveldb_coding.cc`` for keys as ``docs/leveldb_coding_scheme.md`` there
describes them. A key begins with three numbers, of a database, an object store and an index. With a
zero among the first two it is metadata, whose kind the next byte says; else it ends in what a web
page calls a key: a number, a date, a string, binary data, or an array of such.

Keys that Chromium holds equal are equal here, though their bytes differ: 0 and -0, numbers with
needless zeros at their end, and whatever stands behind a complete key. What it cannot read has no
order there, and has one here: it stands behind all that can be read in its place, and among its
like by its bytes. A key that ends where a part could begin stands before those that go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct

_HIGHEST = (1 << 63) - 1  # of the numbers that can be read
_UNREADABLE = b"\xff"  # no part's rank begins so

_PREFIX = Struct(">QQI").pack
_BIG = Struct(">Q").pack
_LITTLE = Struct("<Q").unpack_from

# The type bytes of keys that web pages make, and what stands for each in the order.
_STRING, _ARRAY, _BINARY = 1, 4, 6
_DOUBLES = {3: b"\x20", 2: b"\x30"}  # a number, a date
_BYTES = {_STRING: (b"\x40", 2), _BINARY: (b"\x50", 1)}  # ... and the bytes of a unit
_BOUNDS = {5: b"\x10", 0: b"\x70"}  # below and above all others
_ELEMENTS, _END = b"\x60", b"\x00"

_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_INFINITY = 0x7FF << 52


class _UnreadableError(Exception):
    """The next part of a key is none."""


class _Reading:
    """A key, how far it was read, and the ranks of its parts so far."""

    __slots__ = ("at", "key", "ranks")

    def __init__(self, key: bytes):
        self.key = key
        self.at = 0
        self.ranks: list[bytes] = []

    def rank(self) -> bytes:
        """Bytes that order as the whole key does."""
        try:
            self._read()
        except _UnreadableError:
            if self.at < len(self.key):
                self.ranks += (_UNREADABLE, self.key[self.at :])
        return b"".join(self.ranks)

    def _read(self) -> None:
        database, store, index = self._prefix()
        if self.at == len(self.key):
            return
        if not database or not store:
            kind = self.key[self.at]
            self.byte()
            kinds = _KINDS_OF_ONE_DATABASE if database else _KINDS_OF_ALL
            for part in kinds.get(kind, _NO_KIND):
                part(self)
        elif index in _INDEXES_OF_STORE:
            self._user_key()
        elif index >= _FIRST_INDEX:
            self._index_entry()
        else:
            raise _UnreadableError

    def _prefix(self) -> tuple[int, int, int]:
        """The three numbers; the first byte says how many bytes each has."""
        key = self.key
        if not key:
            raise _UnreadableError
        lengths = key[0]
        first = 2 + (lengths >> 5)
        second = first + 1 + (lengths >> 2 & 7)
        third = second + 1 + (lengths & 3)
        database = int.from_bytes(key[1:first], "little")
        store = int.from_bytes(key[first:second], "little")
        index = int.from_bytes(key[second:third], "little")
        if third > len(key) or database > _HIGHEST or store > _HIGHEST:
            raise _UnreadableError
        self.ranks.append(_PREFIX(database, store, index))
        self.at = third
        return database, store, index

    def byte(self) -> None:
        """A part of one byte."""
        if self.at == len(self.key):
            raise _UnreadableError
        self.ranks.append(self.key[self.at : self.at + 1])
        self.at += 1

    def number(self) -> None:
        """A part that is a varint."""
        value, self.at = self._varint(self.at)
        self.ranks.append(_BIG(value))

    def text(self) -> None:
        """A part that is a string, without a type."""
        self._bytes(self.at, *_BYTES[_STRING])

    def rest(self) -> None:
        """All that is left, which orders by its bytes."""
        self.ranks.append(self.key[self.at :])
        self.at = len(self.key)

    def _index_entry(self) -> None:
        """The key in the index, and behind it, where they are there, a number and the other key.

        The number, which is obsolete, counts last, and not without the other key.
        """
        self._user_key()
        if self.at == len(self.key):
            return
        number, at = self._varint(self.at)
        if at == len(self.key):
            return
        self.at = at
        self._user_key()
        self.ranks.append(_BIG(number))

    def _user_key(self) -> None:
        """A key with its type. Arrays within arrays can be as deep as the key is long."""
        open_arrays = [1]  # the elements that each is without, the key itself being one of one
        while open_arrays:
            if open_arrays[-1]:
                open_arrays[-1] -= 1
                self._element(open_arrays)
            else:
                open_arrays.pop()
                self.ranks.append(_END)

    def _element(self, open_arrays: list[int]) -> None:
        key, at = self.key, self.at
        if at == len(key):
            raise _UnreadableError
        kind = key[at]
        if kind in _DOUBLES:
            self._double(at + 1, _DOUBLES[kind])
        elif kind in _BYTES:
            self._bytes(at + 1, *_BYTES[kind])
        elif kind == _ARRAY:
            count, self.at = self._varint(at + 1)
            self.ranks.append(_ELEMENTS)
            open_arrays.append(count)
        elif kind in _BOUNDS:
            self.ranks.append(_BOUNDS[kind])
            self.at = at + 1
        else:
            raise _UnreadableError

    def _double(self, at: int, mark: bytes) -> None:
        """Eight bytes of a double; negative ones order backwards by their bits."""
        if at + 8 > len(self.key):
            raise _UnreadableError
        (bits,) = _LITTLE(self.key, at)
        if bits & ~_SIGN > _INFINITY:  # no number, which nothing can be compared with
            raise _UnreadableError
        bits = bits ^ _ALL_BITS if bits > _SIGN else bits | _SIGN
        self.ranks += (mark, _BIG(bits))
        self.at = at + 8

    def _bytes(self, at: int, mark: bytes, unit: int) -> None:
        """A varint, and so many units. The end orders before all that can follow."""
        length, start = self._varint(at)
        end = start + length * unit
        if end > len(self.key):
            raise _UnreadableError
        self.ranks += (mark, self.key[start:end].replace(b"\0", b"\0\xff"), b"\0\0")
        self.at = end

    def _varint(self, at: int) -> tuple[int, int]:
        """The varint at a place, and where it ends."""
        value = shift = 0
        for byte in self.key[at : at + 10]:
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                if value > _HIGHEST:
                    break
                return value, at
        raise _UnreadableError


_INDEXES_OF_STORE = frozenset((1, 2, 3))  # the data, which keys exist, and which have blobs
_FIRST_INDEX = 30

_Parts = tuple[Callable[[_Reading], None], ...]
_NO_KIND: _Parts = (_Reading.rest,)

# What follows each kind of metadata. The lowest kinds are alone: what follows is not looked at.
_KINDS_OF_ALL: Mapping[int, _Parts] = {
    **dict.fromkeys(range(7), ()),
    50: (_Reading.rest,),
    100: (_Reading.number,),
    201: (_Reading.text, _Reading.text),
}
_KINDS_OF_ONE_DATABASE: Mapping[int, _Parts] = {
    **dict.fromkeys(range(6), ()),
    50: (_Reading.number, _Reading.byte),
    100: (_Reading.number, _Reading.number, _Reading.byte),
    150: (_Reading.number,),
    151: (_Reading.number, _Reading.number),
    200: (_Reading.text,),
    201: (_Reading.number, _Reading.text),
}


def rank(key: bytes) -> bytes:
    """Bytes that order as the key does in ``idb_cmp1``."""
    return _Reading(key).rank()
