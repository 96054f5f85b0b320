"""Salvaging: reading the entries of a damaged table that can still be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from operator import lt
from struct import unpack_from
from typing import TYPE_CHECKING, TypeAlias

import attrs

from lsm import loaded_filter
from lsm.disk import compression as block_compression
from lsm.disk.checksum import crc32c, mask
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.keys import DELETE, PUT, Entry, sequence_of
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError
from lsm.kernels.python.block import Block
from lsm.kernels.python.table import Table
from lsm.storage import Mapped

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey

# Where a block may end: at the byte that says how it is compressed.
_KIND = re.compile(b"[\\0-\\2\\4]")
# A block of an unknown length is looked for so far. Larger than every block_size there may be.
_LONGEST_SEARCH = 16 << 20

Position: TypeAlias = "tuple[OrderedKey, int]"
"""Where an entry stands in the order of a table: its key and rank."""


@attrs.define(eq=False)
class ScannedTable:
    """A table file of a directory, and what a scan of its bytes showed."""

    name: str
    number: int
    size: int = 0
    first: Position | None = None
    last: Position | None = None
    count: int = 0
    last_sequence: int = 0
    losses: list[str] = attrs.field(factory=list)
    defects: list[str] = attrs.field(factory=list)
    is_of_load: bool = False
    """Whether a bulk load has written it, as far as that can be read."""

    @property
    def is_whole(self) -> bool:
        """Whether all of its entries were read."""
        return self.first is not None and not self.losses

    def read(self, scan: TableScan, size: int) -> None:
        """Take in what there is to say of all entries that a scan of so many bytes finds."""
        self.size = size
        for entries in scan.blocks():
            if self.first is None:
                self.first = entries[0][:2]
            self.last = entries[-1][:2]
            self.count += len(entries)
            newest = sequence_of(min(rank for _, rank, _ in entries))
            self.last_sequence = max(self.last_sequence, newest)
        self.losses, self.defects = scan.losses, scan.defects
        self.is_of_load = scan.is_of_load


class TableScan:
    """Reads all entries of a table that can be read.

    ``losses`` then tells what could not be read, and ``defects`` what is wrong in blocks that hold
    no entries, by which a reader of the table would be misled.
    """

    def __init__(self, path: str, data: bytes, comparator: Comparator):
        self._path = path
        self._data = data
        self._comparator = comparator
        self._before: Position | None = None
        self.losses: list[str] = []
        self.defects: list[str] = []
        self.is_of_load = False

    def blocks(self) -> Iterator[list[Entry]]:
        """The entries that can be read, in ascending order, in pieces of blocks."""
        try:
            table = Table(TableReader(self._path, Mapped(self._data)), self._comparator.wrap)
        except CorruptionError as error:
            self.defects.append(reason_of(error))
            yield from self._blocks_without_index()
            return
        yield from self._blocks_by_index(table)
        try:
            self.is_of_load = _check_meta_blocks(table.reader)
        except CorruptionError as error:
            self.defects.append(reason_of(error))

    def _blocks_by_index(self, table: Table) -> Iterator[list[Entry]]:
        bound: Position | None = None
        for number, next_bound in enumerate(table.bounds()):
            try:
                block = table.read(number)
                first, last = self._checked(block)
            except CorruptionError as error:
                at = table.handles[number].offset
                self.losses.append(self._damaged(f"the data block at byte {at}", error))
            else:
                if next_bound < last or (bound and not bound < first):
                    self.defects.append(f"{self._path}: its index leads to wrong blocks")
                yield from block.pieces()
            bound = next_bound

    def _blocks_without_index(self) -> Iterator[list[Entry]]:
        """The blocks from the beginning of the file on, found by their checksums.

        They end at the first that is damaged. One that is whole and holds no data, the filter, the
        properties or the metaindex, whose keys are no internal keys, shows that all were found.
        """
        at, data = 0, self._data
        while (end := _end_of_block(data, at)) is not None:
            try:
                contents = block_compression.decompress(data[end], data[at:end])
                block = Block(contents, self._comparator.wrap)
                self._checked(block)
            except CorruptionError:
                return
            yield from block.pieces()
            at = end + TRAILER_BYTES
        self.losses.append(
            f"{self._path}: without its index it can be read up to byte {at} of {len(data)}"
        )

    def _checked(self, block: Block) -> tuple[Position, Position]:
        """The first and last position of a block; CorruptionError if it cannot be the next one."""
        first: Position | None = None
        before = self._before
        for entries in block.pieces():
            if before is not None and entries[0][:2] < before:
                what = "do not ascend" if first else "do not follow those of the block before"
                raise CorruptionError(f"its keys {what}")
            if not all(map(lt, entries, islice(entries, 1, None))) and any(
                other[:2] < one[:2] for one, other in pairwise(entries)
            ):
                raise CorruptionError("its keys do not ascend")
            if not {-rank & 0xFF for _, rank, _ in entries} <= {DELETE, PUT}:
                raise CorruptionError("it has versions of an unknown kind")
            first, before = first or entries[0][:2], entries[-1][:2]
        if first is None or before is None:
            raise CorruptionError("it has no entries")
        self._before = before
        return first, before

    def _damaged(self, what: str, error: CorruptionError) -> str:
        reason = reason_of(error)
        return reason if reason.startswith(self._path) else f"{self._path}: {what}: {reason}"


def _check_meta_blocks(table: TableReader) -> bool:
    """Whether a bulk load has written the table.

    CorruptionError unless every block that the metaindex names can be read.
    """
    if table.metaindex_damage is not None:
        raise table.metaindex_damage
    for key, value in table.metaindex.items():
        table.read(Handle.decode(value, "a handle"), f"block {key.decode('utf-8', 'replace')!r}")
    properties = table.properties()
    loaded_filter.load(table, paranoid=True)
    return properties is not None and properties.reason == "bulk"


def _end_of_block(data: bytes, start: int) -> int | None:
    """Where the contents of a block that begins here end, by its checksum; None if none begins."""
    checksum, done = 0, start
    for kind in _KIND.finditer(data, start, min(len(data) - 4, start + _LONGEST_SEARCH)):
        end = kind.start()
        checksum, done = crc32c(data[done : end + 1], checksum), end + 1
        if mask(checksum) == unpack_from("<I", data, end + 1)[0]:
            return end
    return None


def reason_of(error: CorruptionError) -> str:
    """What an error says, without its advice to repair the database."""
    return str(error).partition("; lsm.repair_db()")[0]
