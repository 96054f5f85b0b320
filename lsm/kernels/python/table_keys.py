"""The user keys of a table, read block by block for whoever makes a filter of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsm.comparator import BYTEWISE
from lsm.disk.footer import TRAILER_BYTES
from lsm.disk.keys import Entry, pack
from lsm.kernels.python.table import Table, block_pieces
from lsm.kernels.python.table_body import TakenKeys

if TYPE_CHECKING:
    from lsm.comparator import Comparator


class TableKeys:
    """The keys of a table that is read from its first block to its last, and checked.

    CorruptionError where a block is damaged, or where keys do not ascend.
    """

    def __init__(self, table: Table, comparator: Comparator = BYTEWISE, with_keys: bool = True):
        self._table = table
        self._comparator = comparator
        self._with_keys = with_keys
        self._pieces = _pieces(table)
        self._last: Entry | None = None
        self.num_entries = 0
        self.key_bytes = 0
        self.smallest = b""

    @property
    def largest(self) -> bytes:
        """The internal key of the last entry that was read."""
        return b"" if self._last is None else self._packed(self._last)

    def take(self, most: int) -> TakenKeys:
        """The user keys that come next, of about so many bytes, and the ends of their blocks.

        Of each block that is how many of these keys there are up to its end, and the offset behind
        it; a block that goes on comes last, with its own offset. There are no ends any more behind
        the last block, and no keys if none are wanted.
        """
        unwrap = self._comparator.unwrap
        keys: list[bytes] = []
        ends: list[tuple[int, int]] = []
        read_bytes = key_bytes = number = 0
        for number, piece in self._pieces:
            if piece is None:
                handle = self._table.handles[number]
                read_bytes += handle.size + TRAILER_BYTES
                ends.append((len(keys), handle.offset + handle.size + TRAILER_BYTES))
            else:
                if not self.smallest:
                    self.smallest = self._packed(piece[0])
                self._last = piece[-1]
                keys += [unwrap(key) for key, _, _ in piece]
                key_bytes += sum(map(len, keys[-len(piece) :]))
            if keys and max(read_bytes, key_bytes) >= most:
                break
        if keys and (not ends or ends[-1][0] < len(keys)):
            ends.append((len(keys), self._table.handles[number].offset))
        self.num_entries += len(keys)
        self.key_bytes += key_bytes
        return (keys if self._with_keys else []), ends

    def _packed(self, entry: Entry) -> bytes:
        key, rank, _ = entry
        return pack(self._comparator.unwrap(key), rank)


def _pieces(table: Table) -> Iterator[tuple[int, list[Entry] | None]]:
    """All entries in pieces, with the number of their block, and nothing at its end."""
    before: Entry | None = None
    for number in range(table.block_count):
        for piece in block_pieces(table, number, before):
            before = piece[-1]
            yield number, piece
        yield number, None
