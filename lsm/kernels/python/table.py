"""Open tables: an index, the blocks of it that are cached, and a filter."""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from operator import lt
from typing import TYPE_CHECKING, Any

from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.kernels.python.block import Block
from lsm.kernels.python.cache_item import CacheItem

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.keys import Entry
    from lsm.disk.table import TableReader
    from lsm.loaded_filter import LoadedFilter

# What an index entry costs: a key object, a rank, a handle and their places in four lists.
_INDEX_OVERHEAD = 270
_USUAL_KEY = 64  # which that has room for
_MOST_OFFSET = (1 << 64) - 1


class TableFile:
    """A table's file; ``opened`` is its open table while that is in the table cache.

    ``missed`` counts the lookups that came by and whose key the table has not: its filter said no,
    or a block was read in vain. ``found`` counts those whose key it has, in whichever version.
    """

    __slots__ = ("found", "missed", "number", "opened", "size")

    def __init__(self, number: int, size: int):
        self.number = number
        self.size = size
        self.missed = self.found = 0
        self.opened: Table | None = None

    def __repr__(self) -> str:
        return f"<table {self.number}: {self.size} bytes>"


class Table(CacheItem):
    """A table with its index, its cached blocks, and its filter once that was loaded.

    ``owner`` has it in its cache, and releases it there. Its cached blocks and its filter refer to
    it by the weak ``reference`` only, so that its file is closed as soon as it has left the cache
    and nobody reads it. One that nobody caches needs neither ``file`` nor ``owner``.
    """

    __slots__ = (
        "__weakref__",
        "_blocks",
        "_keys",
        "_ranks",
        "_wrap",
        "charge",
        "file",
        "filter",
        "handles",
        "owner",
        "reader",
        "reference",
    )

    def __init__(
        self,
        reader: TableReader,
        wrap: Callable[[bytes], OrderedKey] | None,
        file: TableFile | None = None,
        owner: Any = None,
    ):
        self.reader = reader
        self.file = TableFile(0, len(reader.mapped.data)) if file is None else file
        self.owner = owner
        self.reference = weakref.ref(self)
        self.filter: LoadedFilter | None = None
        super().__init__()
        self._wrap = wrap
        self._keys: list[OrderedKey] = []
        self._ranks: list[int] = []
        self.handles: list[Handle] = []
        long_key_bytes = 0
        for key, rank, handle in reader.index_entries():
            if len(key) > _USUAL_KEY:
                long_key_bytes += len(key)
            self._keys.append(key if wrap is None else wrap(key))
            self._ranks.append(rank)
            self.handles.append(handle)
        self._blocks: list[Block | None] = [None] * len(self.handles)
        self.charge = _INDEX_OVERHEAD * (len(self.handles) + 4) + long_key_bytes

    @property
    def block_count(self) -> int:
        """How many data blocks there are."""
        return len(self.handles)

    def offset(self, number: int) -> int:
        """Where in the file a data block begins."""
        return self.handles[number].offset

    def bounds(self) -> Iterator[tuple[OrderedKey, int]]:
        """Of each block a position, key and rank, that nothing in it is behind."""
        return zip(self._keys, self._ranks, strict=True)

    def block_for(self, key: OrderedKey, rank: int) -> int:
        """The number of the block that has the first entry from (key, rank) on.

        As many as there are blocks, if none has one.
        """
        keys = self._keys
        number = bisect_left(keys, key)
        while number < len(keys) and keys[number] == key and self._ranks[number] < rank:
            number += 1
        return number

    def offset_of(self, key: OrderedKey) -> int:
        """About where in the file the key is or would be."""
        number = bisect_left(self._keys, key)
        if number < len(self.handles):
            return self.handles[number].offset
        last = self.handles[-1] if self.handles else Handle(0, 0)
        return last.offset + last.size

    def data_end(self) -> int | None:
        """Where the data blocks end that lie one behind the other from the first byte on.

        None if they do not lie so, or if there are none.
        """
        end = 0
        for handle in self.handles:
            if handle.offset != end or handle.size > _MOST_OFFSET - TRAILER_BYTES - end:
                return None
            end += handle.size + TRAILER_BYTES
        return end or None

    def read(self, number: int) -> Block:
        """The data block of this number, read anew."""
        handle = self.handles[number]
        place = f"{self.reader.name}: the data block at byte {handle.offset}"
        return Block(self.reader.block(handle), self._wrap, place)

    def cached(self, number: int) -> Block | None:
        """The data block of this number, if readers find it here."""
        return self._blocks[number]

    def place(self, number: int, block: Block | None) -> None:
        """Let readers find this block under this number, or none."""
        self._blocks[number] = block

    def emptied(self) -> tuple[list[Block], LoadedFilter | None]:
        """The blocks and the filter that readers have found here, and do not find any more."""
        empty: list[Block | None] = [None] * len(self.handles)
        blocks, self._blocks = self._blocks, empty
        loaded, self.filter = self.filter, None
        return [block for block in blocks if block is not None], loaded

    def evict(self) -> None:
        """Leave the table cache, with all its blocks; the last reader's reference closes it."""
        self.owner.release(self)

    def pieces(self) -> Iterator[list[Entry]]:
        """All entries in lists whose memory is bounded; CorruptionError where they do not ascend.

        For whoever writes them anew: what is out of order there would be so for good.
        """
        return pieces(self)


def pieces(table: Table, before: Entry | None = None) -> Iterator[list[Entry]]:
    """The pieces of all blocks, each of which is read when it is its turn, and checked.

    They ascend from an entry on, if one is given, as that of a table before has it.
    """
    for number in range(table.block_count):
        for piece in block_pieces(table, number, before):
            before = piece[-1]
            yield piece


def block_pieces(table: Table, number: int, before: Entry | None) -> Iterator[list[Entry]]:
    """The pieces of one block, which ascend from an entry on, if one is given."""
    for piece in table.read(number).pieces():
        if not _ascends(before, piece):
            raise table.reader.damaged(
                f"the data block at byte {table.offset(number)}: its keys do not "
                "ascend, or do not follow those of the block before"
            )
        before = piece[-1]
        yield piece


def _ascends(before: Entry | None, entries: list[Entry]) -> bool:
    """Whether the entries are in order; a version that is there twice is no harm."""
    if before is not None and entries[0][:2] < before[:2]:
        return False
    if all(map(lt, entries, islice(entries, 1, None))):
        return True
    return not any(other[:2] < one[:2] for one, other in pairwise(entries))
