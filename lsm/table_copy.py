"""Writing a table anew with another filter, its data blocks copied byte for byte.

What is read is checked as a compaction checks it, blocks and order; nothing is merged, compressed
or indexed anew. The index stays as it is, since no block moves. The tail is a new table's, but for
what only its first writer knew: whether a bulk load has written it, and blocks that the metaindex
names and that are neither filters nor ours, which are copied under new handles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from lsm import kernels
from lsm.disk.table_builder import WrittenTable
from lsm.disk.table_tail import Stored, TableTail
from lsm.errors import CorruptionError, IOError
from lsm.kernels.python.table_body import KEYS_TO_FILE
from lsm.syncing import checked_sync
from lsm.table_factory import Output, TableFactory

if TYPE_CHECKING:
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.disk.footer import Handle
    from lsm.disk.table import TableReader
    from lsm.disk.written_filter import WrittenFilter
    from lsm.kernels import TableFile
    from lsm.version import PlacedTable

# So many bytes are checked, copied and filtered at once: what a processor's cache holds meanwhile.
_COPIED_AT_ONCE = 1 << 20


class NotCopiableError(Exception):
    """A table that can be read, and cannot be copied without a loss; the message says why."""


def copy(
    factory: TableFactory,
    file: TableFile,
    number: int,
    plan: FilterPlan,
    pause: Callable[[int], object] = bool,
) -> Output:
    """The same table under another number, with the filter that is planned; synced.

    ``pause`` is called with the number of bytes each time that some were copied, and may wait or
    raise. CorruptionError if the table is damaged, NotCopiableError if it is to stay as it is; no
    file is left then, nor after any other error, unless the storage keeps it.
    """
    table_copy = TableCopy(factory, file, number, plan)
    try:
        written = table_copy.complete(pause)
        table_copy.seal()
    except BaseException:
        table_copy.abandon()
        raise
    return Output(number, written)


def check_bounds(output: Output, table: PlacedTable) -> None:
    """CorruptionError unless a copy has the bounds that the manifest has for the original."""
    found = output.table.smallest, output.table.largest
    if found != (table.smallest, table.largest):
        raise CorruptionError(
            f"table {table.number} of level {table.level} has other bounds than the manifest says; "
            "lsm.repair_db() makes a new manifest of the tables that are there"
        )


class TableCopy:
    """A copy on its way: first all of it is handed to the system, then it is to be sealed."""

    def __init__(self, factory: TableFactory, file: TableFile, number: int, plan: FilterPlan):
        self._factory = factory
        self._number = number
        self._plan = plan
        self._table = factory.open(file)
        reader = self._table.reader
        end = self._table.data_end()
        if end is None:
            raise NotCopiableError(
                f"{reader.name}: its data blocks do not follow one another from its first byte on"
            )
        if end > len(reader.mapped.data):
            raise reader.damaged(
                f"the data blocks would end at byte {end}, "
                f"and the file has {len(reader.mapped.data)}"
            )
        self._end = end
        self._is_bulk, self._others = _besides(reader, end)
        self._file = factory.create(number)

    def complete(self, pause: Callable[[int], object]) -> WrittenTable:
        """Hand the whole table to the system, which begins to write it."""
        factory, reader = self._factory, self._table.reader
        filter = self._plan.writer()
        comparator = factory.format.comparator
        keys = kernels.of(comparator).TableKeys(self._table, comparator, filter.wants_keys)
        most_key_bytes = KEYS_TO_FILE * (self._end + factory.max_file_size)
        copied = 0
        while True:
            some, ends = keys.take(_COPIED_AT_ONCE)
            if not ends:
                break
            if keys.key_bytes > most_key_bytes:
                raise NotCopiableError(
                    f"{reader.name}: its keys take more than {most_key_bytes} bytes"
                )
            if filter.wants_keys:
                filter.add_blocks(some, ends)
            # In whole pieces, which the system has a place for: what straddles takes longer.
            whole = ends[-1][1] // _COPIED_AT_ONCE * _COPIED_AT_ONCE
            copied = self._copy(copied, whole, pause)
        self._copy(copied, self._end, pause)
        if not keys.num_entries:
            raise NotCopiableError(f"{reader.name}: it has no entries")
        return self._end_with(filter.finish(), keys)

    def _copy(self, start: int, end: int, pause: Callable[[int], object]) -> int:
        """Copy what lies between two offsets, if anything does."""
        if start < end:
            self._file.append(memoryview(self._table.reader.mapped.data)[start:end])
            pause(end - start)
        return end

    def _end_with(self, filter: WrittenFilter, keys: Any) -> WrittenTable:
        kind, index = self._table.reader.stored_index()
        filter_bytes = TableTail(
            plan=self._plan,
            filter=filter,
            num_entries=keys.num_entries,
            index=(kind, (index,)),
            is_bulk=self._is_bulk,
            others=self._others,
        ).append_to(self._file)
        return WrittenTable(
            size=self._file.size,
            num_entries=keys.num_entries,
            smallest=keys.smallest,
            largest=keys.largest,
            filter=attrs.evolve(filter, parts=(), partitions=()),
            filter_bytes=filter_bytes,
        )

    def seal(self) -> None:
        """Sync and close the file."""
        checked_sync(self._file.sync)
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is, and remove it."""
        with contextlib.suppress(IOError):  # such as that there is no room for what is left
            self._file.close()
        with contextlib.suppress(IOError):  # whoever opens the database removes it
            self._factory.remove(self._number)


def _besides(reader: TableReader, data_end: int) -> tuple[bool, dict[bytes, Stored]]:
    """Whether a bulk load has written the table, and the blocks that no filter and no data are.

    Both are lost where they cannot be read, and a repair would take what a load has left behind for
    what was written: such a table stays as it is.
    """
    try:
        if reader.metaindex_damage is not None:
            raise reader.metaindex_damage
        properties = reader.properties()
        others = reader.other_entries()
        if sum(handle.size for handle in others.values()) > len(reader.mapped.data) - data_end:
            raise CorruptionError("its metaindex leads to more bytes than stand behind its data")
        blocks = {key: _stored(reader, key, handle) for key, handle in others.items()}
    except CorruptionError as error:
        what = str(error)
        if not what.startswith(reader.name):
            what = f"{reader.name}: {what}"
        raise NotCopiableError(what) from error
    return properties is not None and properties.reason == "bulk", blocks


def _stored(reader: TableReader, key: bytes, handle: Handle) -> Stored:
    kind, stored = reader.stored(handle, f"block {key.decode('utf-8', 'replace')!r}")
    return kind, (stored,)
