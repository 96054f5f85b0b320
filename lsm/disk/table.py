"""Reading a table: its index in memory, its blocks from a mapping of the file."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice, pairwise
from operator import lt
from struct import Struct
from typing import TYPE_CHECKING

from lsm.disk import compression
from lsm.disk.checksum import crc32c, mask
from lsm.disk.filter_blocks import PREFIXES
from lsm.disk.footer import FOOTER_BYTES, TRAILER_BYTES, Footer, Handle
from lsm.disk.keys import unpack as unpack_key
from lsm.disk.plain_block import read_block, read_entries
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.errors import ADVICE, CorruptionError
from lsm.kernels.python.block import Block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.keys import Entry
    from lsm.storage import Mapped

# What an index entry costs: a key object, a rank, a handle and their places in three lists.
_INDEX_OVERHEAD = 260
_USUAL_KEY = 64  # which that has room for

_CHECKSUM = Struct("<I").unpack


class Table:
    """An open table. Every block is checked against its checksum when it enters memory."""

    __slots__ = (
        "_long_key_bytes",
        "comparator",
        "index_handles",
        "index_keys",
        "index_ranks",
        "mapped",
        "metaindex",
        "metaindex_damage",
        "name",
    )

    def __init__(self, name: str, mapped: Mapped, comparator: Comparator):
        self.name = name
        self.mapped = mapped
        self.comparator = comparator
        data = mapped.data
        try:
            footer = Footer.decode(data[max(0, len(data) - FOOTER_BYTES) :])
        except CorruptionError as error:
            raise self._damaged(error) from error
        self.index_keys: list[OrderedKey] = []
        self.index_ranks: list[int] = []
        self.index_handles: list[Handle] = []
        self._long_key_bytes = 0
        self._read_index(footer.index)
        self.metaindex: dict[bytes, bytes] = {}
        self.metaindex_damage: CorruptionError | None = None
        try:
            self.metaindex = read_block(self.read(footer.metaindex, "metaindex block"))
        except CorruptionError as error:
            self.metaindex_damage = error  # it has the filter and the properties, no data

    @property
    def charge(self) -> int:
        """The bytes of memory that the index costs a cache."""
        return _INDEX_OVERHEAD * (len(self.index_keys) + 4) + self._long_key_bytes

    def read(self, handle: Handle, what: str) -> bytes:
        """The checked and decompressed contents of a block."""
        kind, stored = self._stored(handle, what)
        return stored if kind == compression.RAW else self._decompressed(handle, what, kind, stored)

    def read_filter(self, handle: Handle) -> tuple[bytes, bool]:
        """A filter's contents, and whether they are the very bytes that were checked.

        Those of a compressed block are not: its checksum is that of the compressed bytes.
        """
        kind, stored = self._stored(handle, "filter block")
        if kind == compression.RAW:
            return stored, True
        return self._decompressed(handle, "filter block", kind, stored), False

    def _decompressed(self, handle: Handle, what: str, kind: int, stored: bytes) -> bytes:
        try:
            return compression.decompress(kind, stored)
        except CorruptionError as error:
            raise self._damaged(f"the {what} at byte {handle.offset}: {error}") from error

    def _stored(self, handle: Handle, what: str) -> tuple[int, bytes]:
        """The compression of a block and its bytes as they are in the file, checked."""
        data, end = self.mapped.data, handle.offset + handle.size
        if end + TRAILER_BYTES > len(data):
            raise self._damaged(
                f"the {what} would take bytes {handle.offset} to {end + TRAILER_BYTES}, "
                f"and the file has {len(data)}"
            )
        stored, kind = data[handle.offset : end], data[end : end + 1]
        (checksum,) = _CHECKSUM(data[end + 1 : end + TRAILER_BYTES])
        if mask(crc32c(kind, crc32c(stored))) != checksum:
            raise self._damaged(
                f"the {what} at bytes {handle.offset} to {end} does not match its checksum"
            )
        return kind[0], stored

    def block(self, number: int) -> Block:
        """The data block of this number, read anew."""
        handle = self.index_handles[number]
        place = f"{self.name}: the data block at byte {handle.offset}"
        return Block(self.read(handle, "data block"), self.comparator.wrap, place)

    def pieces(self) -> Iterator[list[Entry]]:
        """All entries in lists whose memory is bounded; CorruptionError where they do not ascend.

        For whoever writes them anew: what is out of order there would be so for good.
        """
        before: Entry | None = None
        for number in range(len(self.index_handles)):
            for piece in self.block(number).pieces():
                if not _ascends(before, piece):
                    handle = self.index_handles[number]
                    raise self._damaged(
                        f"the data block at byte {handle.offset}: its keys do not ascend, or do "
                        "not follow those of the block before"
                    )
                before = piece[-1]
                yield piece

    def block_for(self, key: OrderedKey, rank: int) -> int:
        """The number of the block that has the first entry from (key, rank) on.

        As many as there are blocks, if none has one.
        """
        keys = self.index_keys
        number = bisect_left(keys, key)
        while number < len(keys) and keys[number] == key and self.index_ranks[number] < rank:
            number += 1
        return number

    def offset_of(self, key: OrderedKey) -> int:
        """About where in the file the key is or would be."""
        number = bisect_left(self.index_keys, key)
        if number < len(self.index_handles):
            return self.index_handles[number].offset
        last = self.index_handles[-1] if self.index_handles else Handle(0, 0)
        return last.offset + last.size

    def filter_entries(self) -> dict[str, Handle]:
        """The metaindex entries that are filters, known or not."""
        return {
            key.decode("utf-8", "replace"): Handle.decode(value, "a filter's handle")
            for key, value in self.metaindex.items()
            if key.decode("utf-8", "replace").startswith(PREFIXES)
        }

    def properties(self) -> Properties | None:
        """What the table says about itself; None for another engine's, CorruptionError if bad."""
        value = self.metaindex.get(METAINDEX_KEY)
        if value is None:
            return None
        handle = Handle.decode(value, "the properties' handle")
        return Properties.decode(self.read(handle, "properties block"))

    def _read_index(self, handle: Handle) -> None:
        contents = self.read(handle, "index block")
        wrap = self.comparator.wrap
        # Each entry leads to a block, which takes some bytes of the file. Lists that hold more than
        # these could take all memory: an entry may have no more than five bytes of its own.
        most = len(self.mapped.data) // TRAILER_BYTES
        try:
            for internal, value in read_entries(contents):
                if len(self.index_keys) == most:
                    raise CorruptionError(
                        f"it has more entries than a file of {len(self.mapped.data)} bytes can "
                        f"have blocks: {most} are allowed"
                    )
                key, rank = unpack_key(internal)
                if len(key) > _USUAL_KEY:
                    self._long_key_bytes += len(key)
                self.index_keys.append(key if wrap is None else wrap(key))
                self.index_ranks.append(rank)
                self.index_handles.append(Handle.decode(value, "an index entry"))
        except CorruptionError as error:
            raise self._damaged(f"the index block: {error}") from error

    def _damaged(self, what: object) -> CorruptionError:
        return CorruptionError(f"{self.name}: {what}; {ADVICE}")


def _ascends(before: Entry | None, entries: list[Entry]) -> bool:
    """Whether the entries are in order; a version that is there twice is no harm."""
    if before is not None and entries[0][:2] < before[:2]:
        return False
    if all(map(lt, entries, islice(entries, 1, None))):
        return True
    return not any(other[:2] < one[:2] for one, other in pairwise(entries))
