"""What becomes of a table's filter, and what makes it on the way: takes keys, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol, TypeAlias

import attrs

from filters import PackedKeys
from policies.block import Identity

Ends: TypeAlias = Sequence[tuple[int, int]]
"""Of each block how many keys there are up to its end, and where the next block begins."""


@attrs.frozen
class FilterPartition:
    """The filter of some data blocks, in some parts, and the last user key in these blocks."""

    last: bytes
    parts: Sequence[bytes | memoryview] = attrs.field(repr=False)


@attrs.frozen
class WrittenFilter:
    """What became of one table's filter. One that was built has a key and bytes, in some parts.

    In partitions of ``partition_blocks`` data blocks, it has these instead of parts.

    ``identity`` is how its policy was named when it was verified, if it was asked then;
    ``placement`` tells, as JSON, why a budget chose it.
    """

    state: str
    metaindex_key: str = ""
    parts: Sequence[bytes | memoryview] = attrs.field(default=(), repr=False)
    num_keys: int = 0
    reason: str = ""
    identity: Identity | None = None
    placement: str = ""
    partitions: Sequence[FilterPartition] = attrs.field(default=(), repr=False)
    partition_blocks: int = 0


class FilterWriter(Protocol):
    """Takes the keys of one table in order, and makes what the table stores of them."""

    wants_keys: ClassVar[bool]

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Take the keys of one data block or more, or where one ends whose keys were taken."""

    def finish(self) -> WrittenFilter:
        """The filter, or why there is none; once only."""


def part_of(keys: Sequence[bytes], start: int, end: int) -> Sequence[bytes]:
    """Some of the keys, in the form that they are in."""
    if isinstance(keys, PackedKeys) and keys.offsets is not None:
        return PackedKeys(keys.data, offsets=keys.offsets[start : end + 1])
    return keys[start:end]
