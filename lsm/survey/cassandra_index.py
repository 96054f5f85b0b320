"""The keys of an SSTable of Cassandra's, out of the ``Index.db`` beside its filter.

An entry for each partition, in the order of their tokens: the length of its key in two bytes, the
key, where its data begins, and the length of what is said of its rows, which is passed over. From
version ``ma`` on these two numbers are of one to nine bytes, as many more than one as the first has
leading ones; before, they are of eight and four. Everything is big-endian. The versions with tries
(``da``) have no such file. docs.scylladb.com, "SSTables 3.0 Index File Format", has it in words.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from lsm.survey.source import Source

_LENGTH_BYTES = 2
_LONGEST_NUMBER = 9
_LONGEST_KEY = 0xFFFF
_ENTRY_BYTES = _LENGTH_BYTES + _LONGEST_KEY + 2 * _LONGEST_NUMBER
"""The most that an entry takes, without what is said of rows."""

_WINDOW_BYTES = 1 << 20


def keys_of(path: str, *, has_varints: bool) -> Iterator[bytes]:
    """All keys in an ``Index.db``; CorruptionError, with the place, where it makes no sense."""
    with Source(path) as source:
        offset = 0
        while offset < source.size:
            window = _Window(source, offset, has_varints)
            while window.has_entry:
                yield window.key()
            offset = window.next


@attrs.define
class _Window:
    """Some of the file, from one entry on, with as many as are whole in it."""

    source: Source
    offset: int
    has_varints: bool
    data: bytes = attrs.field(init=False)
    at: int = 0

    def __attrs_post_init__(self) -> None:
        size = min(_WINDOW_BYTES, self.source.size - self.offset)
        self.data = self.source.read(self.offset, size, "entries")

    @property
    def next(self) -> int:
        """Where the next entry begins in the file."""
        return self.offset + self.at

    @property
    def has_entry(self) -> bool:
        """Whether the next entry is in here, as it is if all the rest of the file is."""
        left = len(self.data) - self.at
        is_last = self.offset + len(self.data) == self.source.size
        return left >= _ENTRY_BYTES or (is_last and left > 0)

    def key(self) -> bytes:
        """The key of the next entry, which is passed over."""
        start = self.next
        key = self._bytes(int.from_bytes(self._bytes(_LENGTH_BYTES), "big"))
        self._number(8)
        rows = self._number(4)
        self.at += rows
        if self.next > self.source.size:
            raise self.source.damaged(
                start,
                f"the entry of a key says of its rows {rows} bytes, and the file has "
                f"{self.source.size}",
            )
        return key

    def _number(self, width: int) -> int:
        if not self.has_varints:
            return int.from_bytes(self._bytes(width), "big")
        first = self._bytes(1)[0]
        more = 8 - (first ^ 0xFF).bit_length()
        return (first & 0xFF >> more) << 8 * more | int.from_bytes(self._bytes(more), "big")

    def _bytes(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            raise self.source.damaged(
                self.next,
                f"an entry takes {count} bytes from there, and the file has {self.source.size}",
            )
        taken = self.data[self.at : end]
        self.at = end
        return taken
