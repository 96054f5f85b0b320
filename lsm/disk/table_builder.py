"""Writing a table: data blocks, the filter, properties, metaindex, index, footer."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Protocol

import attrs

from lsm.disk import compression
from lsm.disk.checksum import crc32c, mask
from lsm.disk.footer import Footer, Handle
from lsm.disk.keys import MAX_SEQUENCE, PUT, Entry, rank_of, unpack
from lsm.disk.keys import pack as pack_key
from lsm.disk.plain_block import write_block
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.syncing import checked_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lsm.comparator import Comparator
    from lsm.disk.filter_blocks import FilterPlan, WrittenFilter
    from lsm.storage import WritableFile

# How many bytes of keys may go with one of the file, before the table counts as larger than it is.
# Keys of which nearly all is shared, or shrinks, are the only ones that come to more.
_KEYS_TO_FILE = 16

_SEEK_RANK = rank_of(MAX_SEQUENCE, PUT)


class BlockBuilder(Protocol):
    """Builds the data blocks of a table, one after the other; a kernel has it."""

    @property
    def size(self) -> int:
        """The bytes of the block if it were finished now."""

    @property
    def last_key(self) -> bytes:
        """The internal key that was added last."""

    def __bool__(self) -> bool: ...

    def fill(self, entries: list[Entry], at: int, target: int) -> int:
        """Add entries from an index on; that of the first which the block had no room for."""

    def finish(self) -> bytes:
        """The block; the builder then starts the next one."""


@attrs.frozen(kw_only=True)
class TableFormat:
    """How tables are written, whatever their level; a block builder is of a restart interval."""

    comparator: Comparator
    block_size: int
    block_restart_interval: int
    compression: int
    block_builder: Callable[[int], BlockBuilder]


@attrs.frozen(kw_only=True)
class WrittenTable:
    """A table that was written and synced."""

    size: int
    num_entries: int
    smallest: bytes
    largest: bytes
    filter: WrittenFilter


class TableBuilder:
    """Takes entries in order and writes a table of them.

    Keys are the user's bytes. The open block is written when it is full, so that between two calls
    of ``add_block`` a caller can decide to finish the table there. Its filter gets the keys with
    each block, and is written when the last key is known: whether anything lies beneath the table
    can depend on it.
    """

    def __init__(self, file: WritableFile, format: TableFormat, filter_plan: FilterPlan):
        self._file = file
        self._format = format
        self._filter_plan = filter_plan
        self._filter = filter_plan.writer()
        self._offset = 0
        self._block = format.block_builder(format.block_restart_interval)
        self._block_keys: list[bytes] = []
        self._index: list[tuple[bytes, bytes]] = []
        self._unindexed: Handle | None = None
        self._smallest: bytes | None = None
        self._largest = b""
        self._key_bytes = 0
        self.num_entries = 0

    @property
    def size(self) -> int:
        """The bytes that were written so far, or more where the keys take far more memory.

        Those in the index are held until it is written, and all of them for a plug-in's filter.
        """
        return max(self._offset, self._key_bytes // _KEYS_TO_FILE)

    def add_block(self, entries: list[Entry], at: int) -> int:
        """Add entries from an index on, until the open block is full and written.

        Returns the index of the first that was not added. With fewer entries than the block has
        room for, it stays open for the next call.
        """
        first_key = pack_key(*entries[at][:2])
        if self._smallest is None:
            self._smallest = first_key
        if self._unindexed is not None:
            self._add_to_index(self._separator(self._largest, first_key))
        target = self._format.block_size
        end = self._block.fill(entries, at, target)
        keys = [entry[0] for entry in entries[at:end]]
        self._block_keys += keys
        self._key_bytes += sum(map(len, keys))
        self.num_entries += end - at
        if self._block.size >= target:
            self._write_data_block()
        return end

    def finish(self) -> WrittenTable:
        """Write what is missing, sync and close the file."""
        if self._block:
            self._write_data_block()
        if self._unindexed is not None:
            self._add_to_index(self._successor(self._largest))
        filter = self._filter.finish()
        metaindex = {METAINDEX_KEY: self._write_raw(self._properties(filter)).encode()}
        if filter.metaindex_key:
            metaindex[filter.metaindex_key.encode()] = self._append_parts(filter.parts).encode()
        metaindex_handle = self._write_raw(write_block(sorted(metaindex.items())))
        index_handle = self._write(write_block(self._index))
        self._file.append(Footer(metaindex_handle, index_handle).encode())
        self._file.flush()
        checked_sync(self._file.sync)
        self._file.close()
        assert self._smallest is not None, "a table without entries"
        return WrittenTable(
            size=self._file.size,
            num_entries=self.num_entries,
            smallest=self._smallest,
            largest=self._largest,
            filter=attrs.evolve(filter, parts=()),
        )

    def abandon(self) -> None:
        """Close the file as it is; the caller removes it."""
        self._file.close()

    def _write_data_block(self) -> None:
        self._largest = self._block.last_key
        self._unindexed = self._write(self._block.finish())
        keys, self._block_keys = self._block_keys, []
        self._filter.add_block(keys, self._offset)

    def _add_to_index(self, key: bytes) -> None:
        assert self._unindexed is not None
        self._index.append((key, self._unindexed.encode()))
        self._unindexed = None

    def _write(self, block: bytes) -> Handle:
        return self._append(*compression.compress(self._format.compression, block))

    def _write_raw(self, contents: bytes) -> Handle:
        return self._append(compression.RAW, contents)

    def _append(self, kind: int, contents: bytes) -> Handle:
        self._file.append(contents + _trailer(kind, crc32c(contents)))
        return self._appended(len(contents))

    def _append_parts(self, parts: Sequence[bytes | memoryview]) -> Handle:
        """A large block, without a copy in which its parts are joined."""
        size = checksum = 0
        for part in parts:
            self._file.append(part)
            size += len(part)
            checksum = crc32c(part, checksum)
        self._file.append(_trailer(compression.RAW, checksum))
        return self._appended(size)

    def _appended(self, size: int) -> Handle:
        handle = Handle(self._offset, size)
        self._offset = self._file.size
        return handle

    def _properties(self, filter: WrittenFilter) -> bytes:
        identity = filter.identity or self._filter_plan.identity()
        return Properties(
            level=self._filter_plan.level,
            num_entries=self.num_entries,
            num_filter_keys=filter.num_keys,
            filter_policy=identity.name,
            filter_params=identity.params,
            filter_state=filter.state,
        ).encode()

    def _separator(self, low: bytes, high: bytes) -> bytes:
        """A short internal key from ``low`` on and below ``high``."""
        low_key, high_key = unpack(low)[0], unpack(high)[0]
        return self._shortened(low, low_key, self._format.comparator.separator(low_key, high_key))

    def _successor(self, key: bytes) -> bytes:
        """A short internal key from this one on."""
        user_key = unpack(key)[0]
        return self._shortened(key, user_key, self._format.comparator.successor(user_key))

    def _shortened(self, internal: bytes, user_key: bytes, shorter: bytes) -> bytes:
        return pack_key(shorter, _SEEK_RANK) if len(shorter) < len(user_key) else internal


def _trailer(kind: int, checksum: int) -> bytes:
    """What follows a block of this compression, whose bytes have this checksum."""
    tag = bytes((kind,))
    return tag + pack("<I", mask(crc32c(tag, checksum)))
