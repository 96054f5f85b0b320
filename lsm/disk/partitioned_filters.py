"""Filters of a table's partitions: each for some of its data blocks, and a block of its own.

The metaindex leads to an index of them, a block of plain keys: the last user key of each partition,
with the handle of its filter, which describes itself, and may stand in a frame that tells of
prefixes. A key is looked for in the first partition
whose last key is not before it, which is also the first that can have any of its versions; behind
all of them nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import attrs

from lsm.disk.coding import Fields
from lsm.disk.filter_part import FilterPart
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.plain_block import read_entries
from lsm.disk.written_filter import Ends, FilterPartition, WrittenFilter, part_of
from lsm.errors import CorruptionError
from policies import BuildContext, FilterPolicy
from policies.block import Identity
from policies.prefixes import Prefixes

PARTITIONED_PREFIX = "partitionedfilter.lsm."


class Cutter:
    """Where the partitions of a table end: behind each so many data blocks."""

    def __init__(self, partition_blocks: int):
        self._partition_blocks = partition_blocks
        self._num_blocks = 0
        self._offset = 0

    def cut(self, keys: Sequence[bytes], ends: Ends) -> Iterator[tuple[Sequence[bytes], bool]]:
        """The keys, partition by partition, and whether each ends here."""
        start = end = 0
        for end, next_offset in ends:
            if next_offset == self._offset:
                continue  # the block goes on
            self._offset = next_offset
            self._num_blocks += 1
            if self._num_blocks % self._partition_blocks == 0:
                yield part_of(keys, start, end), True
                start = end
        yield part_of(keys, start, end), False


class PartitionedFilters:
    """Writes a filter for each ``partition_blocks`` data blocks, and one for those that are left.

    A key whose versions lie on both sides of a border is in the filters of both, as is a prefix
    whose keys do.
    """

    wants_keys: ClassVar[bool] = True

    def __init__(
        self,
        policy: FilterPolicy,
        context: BuildContext,
        partition_blocks: int,
        prefixes: Prefixes | None = None,
    ):
        self._policy = policy
        self._context = context
        self._partition_blocks = partition_blocks
        self._prefixes = prefixes
        self._part: FilterPart | None = None
        self._last = b""
        self._cutter = Cutter(partition_blocks)
        self._partitions: list[FilterPartition] = []
        self._num_keys = 0
        self._identity: Identity | None = None
        self._trouble: WrittenFilter | None = None

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Collect the keys, and close each partition that has all of its blocks."""
        for some, ends_here in self._cutter.cut(keys, ends):
            self._take(some)
            if ends_here:
                self._close()

    def finish(self) -> WrittenFilter:
        """All partitions; none of them if one has come to nothing."""
        self._close()
        if self._trouble is not None:
            return self._trouble
        assert self._identity is not None, "a table without keys"
        return WrittenFilter(
            "built",
            PARTITIONED_PREFIX + self._identity.name,
            num_keys=self._num_keys,
            identity=self._identity,
            partitions=self._partitions,
            partition_blocks=self._partition_blocks,
        )

    def _take(self, keys: Sequence[bytes]) -> None:
        """Have some keys in the open partition."""
        if not len(keys) or self._trouble is not None:
            return
        self._last = keys[-1]
        if self._part is None:
            self._part = FilterPart(self._policy, self._context, self._prefixes)
        self._part.add_many(keys)

    def _close(self) -> None:
        """Build the filter of the open partition, if it has any keys."""
        part, self._part = self._part, None
        if part is not None:
            self.add(part, self._last)

    def add(self, part: FilterPart, last: bytes) -> None:
        """Build the filter of a partition whose last key this is."""
        if self._trouble is not None:
            return
        result = part.finish()
        if result.filter is None:
            self._trouble = WrittenFilter(result.state, reason=result.reason)
            self._partitions = []
            return
        self._identity = result.identity
        self._partitions.append(FilterPartition(last, part.stored(result)))
        self._num_keys += result.num_keys


@attrs.frozen
class PartitionIndex:
    """Of each partition the last user key, and where its filter is; ``size`` is of them all."""

    lasts: Sequence[bytes]
    handles: Sequence[Handle]
    size: int

    @classmethod
    def decode(cls, contents: bytes, file_size: int) -> Self:
        """The index in a block of a file of this size; CorruptionError for what is none.

        Whether its keys ascend is for those to see who know their order.
        """
        lasts: list[bytes] = []
        handles: list[Handle] = []
        total, most = len(contents), file_size // TRAILER_BYTES
        for last, value in read_entries(contents):
            if len(lasts) == most:
                raise CorruptionError(
                    f"the index of the filter's partitions has more entries than a file of "
                    f"{file_size} bytes can have blocks: {most} are allowed"
                )
            fields = Fields(value, "the handle of a filter's partition")
            handle = Handle.take(fields)
            fields.end()
            total += handle.size
            lasts.append(last)
            handles.append(handle)
        if not lasts:
            raise CorruptionError("the index of the filter's partitions has no entry")
        if total > file_size:
            raise CorruptionError(
                f"the filter's partitions would take {total} bytes of a file that has {file_size}"
            )
        return cls(lasts, handles, total)
