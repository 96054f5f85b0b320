"""The blocks of a table of any store: as they stand in the file, their checksum, and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from lsm.disk import compression
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.errors import CorruptionError
from lsm.survey import block_checksums, block_compression
from lsm.survey.found import Guard
from lsm.survey.table_footer import LEVELDB_MAGIC

if TYPE_CHECKING:
    from lsm.survey.source import Source
    from lsm.survey.table_footer import TableFooter


@attrs.frozen
class StoredBlock:
    """A block as the file has it: the kind of its compression, its bytes, and their checksum."""

    kind: int
    data: bytes
    guard: Guard


class TableBlocks:
    """Reads the blocks of a table, one at a time.

    ``is_leveldbs`` says whether kinds of compression are LevelDB's, and ``has_dictionary`` whether
    data blocks may be compressed with one: who reads the metaindex sets both.
    """

    def __init__(self, source: Source, footer: TableFooter):
        self.source = source
        self.footer = footer
        self.is_leveldbs = footer.magic == LEVELDB_MAGIC
        self.has_dictionary = False

    def stored(self, handle: Handle, what: str) -> StoredBlock:
        """A block as it is, whatever its checksum says; CorruptionError if it is not there."""
        size, footer = handle.size, self.footer
        data = self.source.read(handle.offset, size + TRAILER_BYTES, what)
        kind, stored = data[size], int.from_bytes(data[size + 1 :], "little")
        data = data[:size]
        added = block_checksums.of_place(footer.base, handle.offset)
        guard = block_checksums.guard(footer.checksum, data, kind, added, stored)
        return StoredBlock(kind, data, guard)

    def opened(self, handle: Handle, what: str, *, is_data: bool = False) -> bytes:
        """The contents of a block; CorruptionError where its checksum is wrong."""
        stored = self.stored(handle, what)
        if stored.guard.checked == "wrong":
            raise self.mismatch(handle, what)
        return self.contents(handle, what, stored, is_data=is_data)

    def contents(
        self, handle: Handle, what: str, stored: StoredBlock, *, is_data: bool = False
    ) -> bytes:
        """What a block of which that is stored holds."""
        kind = stored.kind
        if kind == compression.RAW:
            return stored.data
        try:
            if self.is_leveldbs:
                return compression.decompress(kind, stored.data)
            if is_data and self.has_dictionary and kind != compression.SNAPPY:
                raise CorruptionError("it is compressed with a dictionary, which is not read here")
            return block_compression.decompress(kind, stored.data, self.footer.version)
        except CorruptionError as error:
            raise self.source.damaged(handle.offset, f"the {what}: {error}") from error

    def mismatch(self, handle: Handle, what: str) -> CorruptionError:
        """The error that says that a block's checksum is wrong."""
        name = block_checksums.name(self.footer.checksum)
        return self.source.damaged(
            handle.offset, f"the {what} of {handle.size} bytes does not match its {name} checksum"
        )
