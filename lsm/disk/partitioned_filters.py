"""Filters of a table's partitions: each for some of its data blocks, and a block of its own.

The metaindex leads to an index of them, a block of plain keys: the last user key of each partition,
with the handle of its filter, which describes itself. A key is looked for in the first partition
whose last key is not before it, which is also the first that can have any of its versions; behind
all of them nobody can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs

from lsm.disk.coding import Fields
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.plain_block import read_entries
from lsm.disk.written_filter import Ends, FilterPartition, WrittenFilter, part_of
from lsm.errors import CorruptionError
from policies import BuildContext, FilterPolicy, VerifiedBuilder
from policies.block import Identity, block_parts
from policies.builtin import is_built_in

PARTITIONED_PREFIX = "partitionedfilter.lsm."


class PartitionedFilters:
    """Writes a filter for each ``partition_blocks`` data blocks, and one for those that are left.

    A key whose versions lie on both sides of a border is in the filters of both.
    """

    wants_keys: ClassVar[bool] = True

    def __init__(self, policy: FilterPolicy, context: BuildContext, partition_blocks: int):
        self._policy = policy
        self._context = context
        self._partition_blocks = partition_blocks
        self._builder: VerifiedBuilder | None = None
        self._waiting: list[Sequence[bytes]] = []
        self._last = b""
        self._open_keys = 0
        self._num_blocks = 0
        self._offset = 0
        self._partitions: list[FilterPartition] = []
        self._num_keys = 0
        self._identity: Identity | None = None
        self._trouble: WrittenFilter | None = None

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Collect the keys, and close each partition that has all of its blocks."""
        start = end = 0
        for end, next_offset in ends:
            if next_offset == self._offset:
                continue  # the block goes on
            self._offset = next_offset
            self._num_blocks += 1
            if self._num_blocks % self._partition_blocks == 0:
                self._take(keys, start, end)
                self._close()
                start = end
        self._take(keys, start, end)

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

    def _take(self, keys: Sequence[bytes], start: int, end: int) -> None:
        """Have some keys in the open partition; a plug-in gets them when their number is known."""
        if start == end or self._trouble is not None:
            return
        self._last = keys[end - 1]
        self._open_keys += end - start
        if not is_built_in(self._policy):
            self._waiting.append(part_of(keys, start, end))
            return
        if self._builder is None:
            self._builder = VerifiedBuilder(self._policy, self._context)
        self._builder.add_many(part_of(keys, start, end))

    def _close(self) -> None:
        """Build the filter of the open partition, if it has any keys."""
        builder, count, self._builder, self._open_keys = self._builder, self._open_keys, None, 0
        if not count:
            return
        if builder is None:
            context = attrs.evolve(self._context, expected_keys=count)
            builder = VerifiedBuilder(self._policy, context)
            for keys in self._waiting:
                builder.add_many(keys)
            self._waiting.clear()
        result = builder.finish()
        if result.filter is None:
            self._trouble = WrittenFilter(result.state, reason=result.reason)
            self._partitions = []
            return
        assert result.identity is not None, "a filter that was verified for another policy"
        self._identity = result.identity
        parts = block_parts(result.identity, result.filter, result.num_keys)
        self._partitions.append(FilterPartition(self._last, parts))
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
