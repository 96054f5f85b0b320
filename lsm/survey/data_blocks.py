"""The data blocks of a table of any store: where they are, and the user keys in them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from lsm import kernels
from lsm.comparator import BYTEWISE
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.keys import DELETE, PUT, VERSION_BYTES, unpack
from lsm.disk.plain_block import read_entries
from lsm.errors import ADVICE, CorruptionError
from lsm.survey.columnar_block import read_handles, read_keys
from lsm.survey.foreign_blocks import plain_form, plain_restarts, read_index
from lsm.survey.rocksdb_properties import TWO_LEVELS, WITH_FIRST_KEYS, RocksDBProperties

if TYPE_CHECKING:
    from lsm.survey.table_blocks import TableBlocks

IsAfter: TypeAlias = Callable[[bytes, bytes], bool]
"""Whether a user key comes after another one, in the order of a table."""


class DataBlocks:
    """The data blocks that an index leads to, one or two levels of it, in their order.

    What is kept of each is its place, 16 bytes. CorruptionError, with file and place, from whatever
    reads them. Tables that LevelDB's code wrote outside of a database may have bare keys, without
    versions, which are told by those of the first block.
    """

    def __init__(
        self,
        blocks: TableBlocks,
        index: Handle,
        properties: RocksDBProperties,
        *,
        is_columnar: bool = False,
        may_be_bare: bool = False,
    ):
        self._blocks = blocks
        self._index = index
        self._properties = properties
        self._is_columnar = is_columnar
        self._may_be_bare = may_be_bare

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def offsets(self) -> Sequence[int]:
        """Where in the file each block begins, which ascends."""
        return self._places[0]

    def keys(self, first: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Each user key of the blocks from one number up to another, in order."""
        last = None
        for number in range(first, len(self) if end is None else end):
            for key in self._keys_in(number):
                if key != last:
                    yield key
                    last = key

    def starts(self, lasts: Sequence[bytes], is_after: IsAfter) -> Sequence[int]:
        """Of each range of keys that ends with one of these the first block with any of them."""
        starts = array("Q", [0])
        number = 0
        for separator, _ in self._entries():
            key = self._user_key(separator)
            while len(starts) < len(lasts) and is_after(key, lasts[len(starts) - 1]):
                starts.append(number)
            number += 1
        starts.extend([number] * (len(lasts) - len(starts)))
        return starts

    @cached_property
    def _places(self) -> tuple[Sequence[int], Sequence[int]]:
        offsets, sizes, end = array("Q"), array("Q"), 0
        size = self._blocks.source.size
        for _, handle in self._entries():
            if handle.offset < end or handle.offset + handle.size + TRAILER_BYTES > size:
                raise self._blocks.source.damaged(
                    self._index.offset,
                    f"the index has a data block of {handle.size} bytes from byte {handle.offset} "
                    f"on: it should lie between byte {end} and {size}, the file's end",
                )
            offsets.append(handle.offset)
            sizes.append(handle.size)
            end = handle.offset + handle.size + TRAILER_BYTES
        return offsets, sizes

    def _entries(self) -> Iterator[tuple[bytes, Handle]]:
        """Keys that the data blocks have none behind, and the blocks."""
        if self._properties.index_type != TWO_LEVELS:
            yield from self._entries_in(self._index)
            return
        for _, handle in self._entries_in(self._index):
            yield from self._entries_in(handle)

    def _entries_in(self, handle: Handle) -> Iterator[tuple[bytes, Handle]]:
        properties = self._properties
        contents = self._blocks.opened(handle, "index block")
        try:
            if self._is_columnar:
                yield from read_handles(contents)
                return
            yield from read_index(
                contents,
                has_delta_handles=properties.has_delta_handles,
                has_first_keys=properties.index_type == WITH_FIRST_KEYS,
            )
        except CorruptionError as error:
            raise self._blocks.source.damaged(handle.offset, f"the index block: {error}") from error

    def _user_key(self, key: bytes) -> bytes:
        """The user key in one of the index."""
        if self._properties.has_user_keys:
            return key
        try:
            return unpack(key)[0]
        except CorruptionError as error:
            raise self._blocks.source.damaged(
                self._index.offset, f"the index block: {error}"
            ) from error

    @cached_property
    def _are_bare(self) -> bool:
        if not self._may_be_bare or not len(self):
            return False
        handle, contents = self._contents(0)
        try:
            return not all(_has_version(key) for key, _ in read_entries(contents))
        except CorruptionError as error:
            raise self._damaged(handle, error) from error

    def _keys_in(self, number: int) -> Iterator[bytes]:
        handle, contents = self._contents(number)
        are_bare = self._are_bare
        try:
            if self._is_columnar:
                yield from read_keys(contents)
                return
            if are_bare:
                for key, _ in read_entries(contents):
                    yield key
                return
            for piece in kernels.of(BYTEWISE).Block(contents).pieces():
                for key, _, _ in piece:
                    yield key
        except CorruptionError as error:
            raise self._damaged(handle, error) from error

    def _contents(self, number: int) -> tuple[Handle, bytes]:
        """A data block, in the form that LevelDB's are in."""
        handle = Handle(self._places[0][number], self._places[1][number])
        contents = self._blocks.opened(handle, "data block", is_data=True)
        if self._blocks.is_leveldbs or self._is_columnar:
            return handle, contents
        try:
            contents = plain_form(contents)
        except CorruptionError as error:
            raise self._damaged(handle, error) from error
        return handle, plain_restarts(contents) if self._blocks.footer.is_of_pebble else contents

    def _damaged(self, handle: Handle, error: CorruptionError) -> CorruptionError:
        problem = str(error).removesuffix(f"; {ADVICE}")
        return self._blocks.source.damaged(handle.offset, f"the data block: {problem}")


def _has_version(key: bytes) -> bool:
    """Whether the end of a key may say which version of it this is: the kind is a put's or not."""
    return len(key) >= VERSION_BYTES and key[-VERSION_BYTES] in (DELETE, PUT)
