"""The body of a table that is being written: its data blocks, and what leads to them.

A block that is full is finished: compressed, with a trailer, and entered in the index as soon as
the next key is known. Finished blocks wait to be taken, with their user keys for whoever makes a
filter of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsm.comparator import BYTEWISE
from lsm.disk import compression
from lsm.disk.checksum import trailer
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.keys import MAX_SEQUENCE, PUT, Entry, pack, rank_of, unpack
from lsm.disk.plain_block import write_block
from lsm.kernels.python.block_builder import BlockBuilder

if TYPE_CHECKING:
    from lsm.comparator import Comparator

# How many bytes of keys may go with one of the file, before the table counts as larger than it is.
# Keys of which nearly all is shared, or shrinks, are the only ones that come to more.
KEYS_TO_FILE = 16

_SEEK_RANK = rank_of(MAX_SEQUENCE, PUT)

TakenKeys = tuple[Sequence[bytes], list[tuple[int, int]]]
"""User keys, and of each block how many of them there are up to its end, and the offset behind."""


class TableBody:
    """Data blocks and index of a table, from entries that come in order."""

    def __init__(
        self,
        block_size: int,
        restart_interval: int,
        kind: int,
        comparator: Comparator = BYTEWISE,
        with_keys: bool = True,
    ):
        self._block_size = block_size
        self._kind = kind
        self._comparator = comparator
        self._with_keys = with_keys
        self._block = BlockBuilder(restart_interval)
        self._finished = bytearray()
        self._keys: list[bytes] = []
        self._ends: list[tuple[int, int]] = []
        self._index: list[tuple[bytes, bytes]] = []
        self._unindexed: Handle | None = None
        self.key_bytes = 0
        self.offset = 0
        self.num_entries = 0
        self.smallest = b""
        self.largest = b""

    @property
    def size(self) -> int:
        """The bytes of all finished blocks, or more where the keys take far more memory.

        Those in the index are held until it is written, and all of them for a plug-in's filter.
        """
        return max(self.offset, self.key_bytes // KEYS_TO_FILE)

    def add(self, entries: list[Entry], at: int, end: int | None = None) -> int:
        """Add entries from an index on, up to another one, until the open block is finished.

        Returns the index of the first that was not added. Keys are the user's, as bytes.
        """
        if end is not None and end < len(entries):
            entries = entries[:end]
        if at >= len(entries):
            return at
        if not self._block:
            self._begin_block(*entries[at][:2])
        end = self._block.fill(entries, at, self._block_size)
        keys = [entry[0] for entry in entries[at:end]]
        if self._with_keys:
            self._keys += keys
        self.key_bytes += sum(map(len, keys))
        self.num_entries += end - at
        if self._block.size >= self._block_size:
            self.close_block()
        return end

    def close_block(self) -> None:
        """Finish the open block, if there is one."""
        if not self._block:
            return
        self.largest = self._block.last_key
        kind, stored = compression.compress(self._kind, self._block.finish())
        self._finished += stored + trailer(kind, stored)
        self._unindexed = Handle(self.offset, len(stored))
        self.offset += len(stored) + TRAILER_BYTES
        self._ends.append((len(self._keys), self.offset))

    def drain_into(self, descriptor: int) -> None:
        """Write finished blocks to the end of this file before they are taken: C does that."""

    @property
    def drained(self) -> int:
        """How many bytes of blocks were written so."""
        return 0

    def take(self) -> bytes:
        """The bytes of finished blocks that were neither taken nor drained yet."""
        taken, self._finished = bytes(self._finished), bytearray()
        return taken

    def take_keys(self) -> TakenKeys:
        """The user keys of blocks that were finished since, and the blocks' ends."""
        count = self._ends[-1][0] if self._ends else 0
        taken = self._keys[:count], self._ends
        self._keys, self._ends = self._keys[count:], []
        return taken

    def index(self) -> bytes:
        """The contents of the index block, once all blocks are finished; once only."""
        if self._unindexed is not None:
            key = unpack(self.largest)[0]
            self._enter(self._shortened(self._comparator.successor(key)))
        return write_block(self._index)

    def _begin_block(self, key: bytes, rank: int) -> None:
        """What is due before the first entry of a block."""
        if not self.smallest:
            self.smallest = pack(key, rank)
        if self._unindexed is not None:
            separator = self._comparator.separator(unpack(self.largest)[0], key)
            self._enter(self._shortened(separator))

    def _shortened(self, shorter: bytes) -> bytes:
        """The internal key of a user key from the largest one on; that itself if it is as short."""
        internal = pack(shorter, _SEEK_RANK)
        return internal if len(internal) < len(self.largest) else self.largest

    def _enter(self, key: bytes) -> None:
        """Enter the block that was finished last in the index."""
        assert self._unindexed is not None
        self._index.append((key, self._unindexed.encode()))
        self._unindexed = None
