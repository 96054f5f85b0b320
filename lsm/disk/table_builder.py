"""Writing a table: its body, the filter, and the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import attrs

from lsm.disk import compression
from lsm.disk.table_tail import TableTail
from lsm.storage import described
from lsm.syncing import checked_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lsm.comparator import Comparator
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.disk.keys import Entry
    from lsm.disk.written_filter import WrittenFilter
    from lsm.storage import WritableFile

# So many bytes of finished blocks are written at once. While they are made nobody else has to wait.
_WRITTEN_AT_ONCE = 1 << 22


class TableBody(Protocol):
    """Data blocks and index of a table that is being built; a kernel has it."""

    @property
    def offset(self) -> int:
        """The bytes of all finished blocks."""

    @property
    def size(self) -> int:
        """The same, or more where the keys take far more memory."""

    @property
    def num_entries(self) -> int:
        """How many entries were added."""

    @property
    def smallest(self) -> bytes:
        """The internal key of the first entry; no bytes if there is none."""

    @property
    def largest(self) -> bytes:
        """The internal key of the last entry of a finished block."""

    def add(self, entries: list[Entry], at: int, end: int | None = None) -> int:
        """Add entries from an index on, until the open block is finished; that of the next one."""

    def close_block(self) -> None:
        """Finish the open block, if there is one."""

    @property
    def drained(self) -> int:
        """How many bytes of finished blocks were written to the file already."""

    def drain_into(self, descriptor: int) -> None:
        """Write finished blocks to the end of this file before they are taken."""

    def take(self) -> bytes | memoryview:
        """The finished blocks that were neither taken nor drained yet."""

    def take_keys(self) -> tuple[Sequence[bytes], list[tuple[int, int]]]:
        """The keys of the blocks that were finished since, and where each ends."""

    def index(self) -> bytes:
        """The contents of the index block, once all blocks are finished; once only."""


class MakesBody(Protocol):
    """A kernel's class of bodies."""

    def __call__(
        self,
        block_size: int,
        restart_interval: int,
        kind: int,
        comparator: Comparator,
        with_keys: bool,
        /,
    ) -> TableBody:
        """The body of a table that is begun, which collects keys if somebody wants them."""


@attrs.frozen(kw_only=True)
class TableFormat:
    """How tables are written, whatever their level."""

    comparator: Comparator
    block_size: int
    block_restart_interval: int
    compression: int
    table_body: MakesBody


@attrs.frozen(kw_only=True)
class WrittenTable:
    """A table that was written."""

    size: int
    num_entries: int
    smallest: bytes
    largest: bytes
    filter: WrittenFilter
    filter_bytes: int


class TableBuilder:
    """Takes entries in order and writes a table of them.

    Keys are the user's bytes. Blocks are written when they are full, and between two calls of
    ``add`` or ``fill`` a caller can decide to finish the table there. Its filter gets the keys with
    the blocks, and is written when the last key is known: whether anything lies beneath the table
    can depend on it.
    """

    def __init__(self, file: WritableFile, format: TableFormat, filter_plan: FilterPlan):
        self._file = file
        self._format = format
        self._filter_plan = filter_plan
        self._filter = filter_plan.writer()
        self._body = format.table_body(
            format.block_size,
            format.block_restart_interval,
            format.compression,
            format.comparator,
            self._filter.wants_keys,
        )
        self._offset = 0
        self._drained = 0
        # What this writes itself goes through the file, and comes when the body is complete.
        self._described = described(file)
        if self._described is not None:
            self._body.drain_into(self._described.descriptor)

    @property
    def size(self) -> int:
        """The bytes that were written so far, or more where the keys take far more memory."""
        return self._body.size

    @property
    def num_entries(self) -> int:
        """How many entries were added."""
        return self._body.num_entries

    def add(self, entries: list[Entry], at: int = 0, size: int | None = None) -> int:
        """Add entries from an index on, all of them or until the table has about this size.

        Returns the index of the first that was not added. What has no block of its own yet waits
        for the next call.
        """
        body = self._body
        while at < len(entries) and (size is None or body.size < size):
            at = body.add(entries, at)
            if body.offset - self._offset >= _WRITTEN_AT_ONCE:
                self._write_blocks()
        self._write_blocks()
        return at

    def fill(self, write: Callable[[Any, int], bool]) -> bool:
        """Have some megabytes written into the body; whether the table is complete then."""
        is_complete = write(self._body, _WRITTEN_AT_ONCE)
        self._write_blocks()
        return is_complete

    def finish(self) -> WrittenTable:
        """Write what is missing, sync and close the file."""
        written = self.complete()
        self.seal()
        return written

    def complete(self) -> WrittenTable:
        """Hand the whole table to the system, which begins to write it; to be sealed."""
        body = self._body
        body.close_block()
        self._write_blocks(are_all=True)
        assert body.num_entries, "a table without entries"
        filter = self._filter.finish()
        kind, index = compression.compress(self._format.compression, body.index())
        filter_bytes = TableTail(
            plan=self._filter_plan,
            filter=filter,
            num_entries=body.num_entries,
            index=(kind, (index,)),
            is_bulk=self._filter_plan.reason == "bulk",
        ).append_to(self._file)
        return WrittenTable(
            size=self._file.size,
            num_entries=body.num_entries,
            smallest=body.smallest,
            largest=body.largest,
            filter=attrs.evolve(filter, parts=(), partitions=()),
            filter_bytes=filter_bytes,
        )

    def seal(self) -> None:
        """Sync and close the file."""
        checked_sync(self._file.sync)
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is; the caller removes it."""
        self._file.close()

    def _write_blocks(self, are_all: bool = False) -> None:
        """Write the blocks that are finished, and hand their keys to the filter."""
        keys, ends = self._body.take_keys()
        if self._described is not None:
            self._described.advance(self._body.drained - self._drained)
            self._drained = self._body.drained
        if are_all or self._described is None:
            self._file.append(self._body.take())
        if ends:
            self._offset = ends[-1][1]
            if self._filter.wants_keys:
                self._filter.add_blocks(keys, ends)
