"""A block in memory: entries, and restarts to begin reading at."""

from __future__ import annotations

from struct import unpack_from
from typing import TYPE_CHECKING

from lsm.disk.keys import VERSION_BYTES
from lsm.errors import CorruptionError
from lsm.kernels.python import block_search

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.keys import Entry

ADVICE = "lsm.repair_db() keeps what can still be read"

_WORD = 4
_LEAST_ENTRY = 3 + VERSION_BYTES  # at a restart: three lengths, and at least a version for a key
# What a block costs besides its bytes: the object, its lists, a key object per restart.
_OVERHEAD = 240
_RESTART_OVERHEAD = 100


class Block:
    """One block of a table, its entries decoded when they are asked for."""

    __slots__ = ("data", "entries_end", "place", "restart_keys", "restarts", "wrap")

    def __init__(self, data: bytes, comparator: Comparator, place: str = "a block"):
        count = unpack_from("<I", data, len(data) - _WORD)[0] if len(data) >= _WORD else 0
        end = len(data) - _WORD * (count + 1)
        if count == 0 or end < 0 or count > end // _LEAST_ENTRY + 2:
            raise CorruptionError(
                f"{place}: it has {len(data)} bytes and no room for its {count} restarts; {ADVICE}"
            )
        self.data = data
        self.place = place
        self.entries_end = end
        self.wrap = comparator.wrap
        self.restarts: tuple[int, ...] = unpack_from(f"<{count}I", data, end)
        if self.restarts[0] != 0 or max(self.restarts) > end:
            raise CorruptionError(
                f"{place}: its restarts lie outside of its {end} bytes of entries; {ADVICE}"
            )
        self.restart_keys: list[OrderedKey] | None = None

    @property
    def charge(self) -> int:
        """The bytes of memory that the block costs a cache."""
        return len(self.data) + _OVERHEAD + len(self.restarts) * _RESTART_OVERHEAD

    def find(self, key: OrderedKey, rank: int) -> Entry | None:
        """The first entry from (key, rank) on, or None if the block has none."""
        return block_search.find(self, key, rank)

    def pieces(self) -> Iterator[list[Entry]]:
        """All entries in order, in lists whose memory is bounded: see block_search."""
        return block_search.pieces(self)

    def pieces_backwards(self) -> Iterator[list[Entry]]:
        """The same lists, the last one first."""
        return block_search.pieces_backwards(self)

    def pieces_from(self, key: OrderedKey) -> Iterator[list[Entry]]:
        """The entries of all user keys from this one on, in such lists."""
        return block_search.pieces_from(self, key)

    def pieces_through(self, key: OrderedKey) -> Iterator[list[Entry]]:
        """The entries of all user keys up to this one, in such lists, the last one first."""
        return block_search.pieces_through(self, key)
