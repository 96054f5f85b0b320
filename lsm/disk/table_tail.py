"""What stands behind a table's data blocks: properties, a filter, metaindex, index, footer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

from lsm.disk.checksum import trailer
from lsm.disk.compression import RAW
from lsm.disk.footer import Footer, Handle
from lsm.disk.plain_block import write_block
from lsm.disk.properties import METAINDEX_KEY, Properties
from policies.block import canonical_json

if TYPE_CHECKING:
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.disk.written_filter import WrittenFilter
    from lsm.storage import WritableFile

Stored: TypeAlias = tuple[int, Sequence[bytes | memoryview]]
"""A block as a file has it: its compression, and its bytes, which may come in some parts."""


@attrs.frozen(kw_only=True)
class TableTail:
    """All that a table has besides its data blocks.

    ``others`` are further blocks that its metaindex names. An ``is_bulk`` table counts only where a
    manifest names it.
    """

    plan: FilterPlan
    filter: WrittenFilter
    num_entries: int
    index: Stored
    is_bulk: bool
    others: Mapping[bytes, Stored] = attrs.field(factory=dict)

    def append_to(self, file: WritableFile) -> int:
        """Write it to the end of a file that has the data blocks, and hand all to the system.

        Returns the bytes of the filter as it is stored.
        """
        metaindex = {METAINDEX_KEY: _append(file, (RAW, (self._properties(),)))}
        filter_bytes = 0
        if self.filter.metaindex_key:
            handle, filter_bytes = self._append_filter(file)
            metaindex[self.filter.metaindex_key.encode()] = handle
        for key, stored in self.others.items():
            metaindex[key] = _append(file, stored)
        entries = [(key, handle.encode()) for key, handle in sorted(metaindex.items())]
        metaindex_handle = _append(file, (RAW, (write_block(entries),)))
        file.append(Footer(metaindex_handle, _append(file, self.index)).encode())
        file.flush()
        return filter_bytes

    def _append_filter(self, file: WritableFile) -> tuple[Handle, int]:
        """The filter, or its partitions and the index of them; the bytes of all that."""
        partitions = self.filter.partitions
        if not partitions:
            handle = _append(file, (RAW, self.filter.parts))
            return handle, handle.size
        handles = [_append(file, (RAW, partition.parts)) for partition in partitions]
        index = write_block(
            (partition.last, handle.encode())
            for partition, handle in zip(partitions, handles, strict=True)
        )
        handle = _append(file, (RAW, (index,)))
        return handle, handle.size + sum(partition.size for partition in handles)

    def _properties(self) -> bytes:
        filter = self.filter
        identity = filter.identity or self.plan.identity()
        return Properties(
            level=self.plan.level,
            num_entries=self.num_entries,
            num_filter_keys=filter.num_keys,
            filter_policy=identity.name,
            filter_params=identity.params,
            filter_state=filter.state,
            reason="bulk" if self.is_bulk else "",
            placement=filter.placement,
            filter_partition_blocks=filter.partition_blocks,
            filter_prefixes=_prefixes_of(self.plan) if filter.state == "built" else "",
        ).encode()


def _prefixes_of(plan: FilterPlan) -> str:
    """Which prefixes the filters of a plan have."""
    if plan.prefixes is None:
        return ""
    return canonical_json(plan.prefixes.entries()).decode()


def _append(file: WritableFile, stored: Stored) -> Handle:
    """A block, which may be large, without a copy in which its parts are joined."""
    kind, parts = stored
    offset = file.size
    for part in parts:
        file.append(part)
    file.append(trailer(kind, *parts))
    return Handle(offset, sum(map(len, parts)))
