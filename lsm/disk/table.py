"""Reading a table: blocks of a mapped file, found by its footer and its index."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from lsm.disk import compression
from lsm.disk.checksum import crc32c, mask
from lsm.disk.filter_blocks import PREFIXES
from lsm.disk.footer import FOOTER_BYTES, TRAILER_BYTES, Footer, Handle
from lsm.disk.keys import unpack
from lsm.disk.plain_block import read_block, read_entries
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.errors import ADVICE, CorruptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lsm.storage import Mapped

_CHECKSUM = Struct("<I").unpack
_PREFIXES = tuple(prefix.encode() for prefix in PREFIXES)


class TableReader:
    """Reads the blocks of a table file. Each is checked against its checksum.

    Whoever has a faster way than the library's to ``open_snappy`` data brings it along.
    """

    __slots__ = ("_index", "_open_snappy", "mapped", "metaindex", "metaindex_damage", "name")

    def __init__(
        self,
        name: str,
        mapped: Mapped,
        open_snappy: Callable[[bytes], bytes] = compression.open_snappy,
    ):
        self.name = name
        self.mapped = mapped
        self._open_snappy = open_snappy
        data = mapped.data
        try:
            footer = Footer.decode(data[max(0, len(data) - FOOTER_BYTES) :])
        except CorruptionError as error:
            raise self.damaged(error) from error
        self._index = footer.index
        self.metaindex: dict[bytes, bytes] = {}
        self.metaindex_damage: CorruptionError | None = None
        try:
            self.metaindex = read_block(self.read(footer.metaindex, "metaindex block"))
        except CorruptionError as error:
            self.metaindex_damage = error  # it has the filter and the properties, no data

    def read(self, handle: Handle, what: str) -> bytes:
        """The checked and decompressed contents of a block."""
        kind, stored = self.stored(handle, what)
        return stored if kind == compression.RAW else self._decompressed(handle, what, kind, stored)

    def read_filter(self, handle: Handle) -> tuple[bytes, bool]:
        """A filter's contents, and whether they are the very bytes that were checked.

        Those of a compressed block are not: its checksum is that of the compressed bytes.
        """
        kind, stored = self.stored(handle, "filter block")
        if kind == compression.RAW:
            return stored, True
        return self._decompressed(handle, "filter block", kind, stored), False

    def _decompressed(self, handle: Handle, what: str, kind: int, stored: bytes) -> bytes:
        try:
            if kind == compression.SNAPPY:
                return self._open_snappy(stored)
            return compression.decompress(kind, stored)
        except CorruptionError as error:
            raise self.damaged(f"the {what} at byte {handle.offset}: {error}") from error

    def stored(self, handle: Handle, what: str) -> tuple[int, bytes]:
        """The compression of a block and its bytes as they are in the file, checked."""
        data, end = self.mapped.data, handle.offset + handle.size
        if end + TRAILER_BYTES > len(data):
            raise self.damaged(
                f"the {what} would take bytes {handle.offset} to {end + TRAILER_BYTES}, "
                f"and the file has {len(data)}"
            )
        stored, kind = data[handle.offset : end], data[end : end + 1]
        (checksum,) = _CHECKSUM(data[end + 1 : end + TRAILER_BYTES])
        if mask(crc32c(kind, crc32c(stored))) != checksum:
            raise self.damaged(
                f"the {what} at bytes {handle.offset} to {end} does not match its checksum"
            )
        return kind[0], stored

    def block(self, handle: Handle) -> bytes:
        """The contents of a data block."""
        return self.read(handle, "data block")

    def stored_index(self) -> tuple[int, bytes]:
        """The compression of the index block, and its bytes as they are in the file."""
        return self.stored(self._index, "index block")

    def index_block(self) -> bytes:
        """The contents of the index block."""
        return self.read(self._index, "index block")

    @property
    def most_blocks(self) -> int:
        """How many blocks the file has at most."""
        return len(self.mapped.data) // TRAILER_BYTES

    def index_entries(self, contents: bytes | None = None) -> Iterator[tuple[bytes, int, Handle]]:
        """Of each data block a user key and a rank that nothing in it is behind, and its handle.

        ``contents`` are the index block's, where they were read already.
        """
        # Each entry leads to a block, which takes some bytes of the file. Lists that hold more than
        # these could take all memory: an entry may have no more than five bytes of its own.
        size, most = len(self.mapped.data), self.most_blocks
        contents = self.index_block() if contents is None else contents
        try:
            for count, (internal, value) in enumerate(read_entries(contents)):
                if count == most:
                    raise CorruptionError(
                        f"it has more entries than a file of {size} bytes can have blocks: {most} "
                        "are allowed"
                    )
                yield *unpack(internal), Handle.decode(value, "an index entry")
        except CorruptionError as error:
            raise self.damaged(f"the index block: {error}") from error

    def filter_entries(self) -> dict[str, Handle]:
        """The metaindex entries that are filters, known or not."""
        return {
            key.decode("utf-8", "replace"): Handle.decode(value, "a filter's handle")
            for key, value in self.metaindex.items()
            if key.startswith(_PREFIXES)
        }

    def other_entries(self) -> dict[bytes, Handle]:
        """The metaindex entries that are neither filters nor properties: other writers' blocks."""
        return {
            key: Handle.decode(value, "a handle of the metaindex")
            for key, value in self.metaindex.items()
            if not key.startswith(_PREFIXES) and key != METAINDEX_KEY
        }

    def properties(self) -> Properties | None:
        """What the table says about itself; None for another engine's, CorruptionError if bad."""
        value = self.metaindex.get(METAINDEX_KEY)
        if value is None:
            return None
        handle = Handle.decode(value, "the properties' handle")
        return Properties.decode(self.read(handle, "properties block"))

    def damaged(self, what: object) -> CorruptionError:
        """The error that says what is wrong with the file."""
        return CorruptionError(f"{self.name}: {what}; {ADVICE}")
