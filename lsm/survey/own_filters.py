"""Our own filters in a table: blocks that describe themselves, framed or not, and partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from filters.errors import FilterError
from filters.families import every
from lsm.disk.footer import Handle
from lsm.disk.partitioned_filters import PartitionIndex
from lsm.survey.added_keys import AddedKeys
from lsm.survey.filter_look import Keys, Opened, look
from policies import CorruptBlockError, describe_block
from policies.block import read_block
from policies.prefixes import MAGIC as FRAME_MAGIC
from policies.prefixes import Prefixes

if TYPE_CHECKING:
    from lsm.survey.found import FilterFound, Guard
    from lsm.survey.table import Table

_CHECKED = "right"


def full(table: Table, handle: Handle) -> tuple[int, Callable[[int], FilterFound]]:
    """The one filter of a table."""
    open = partial(_open, lambda: table.data.keys())
    return 1, lambda _: look(table, handle, "filter block", open)


def partitioned(table: Table, handle: Handle) -> tuple[int, Callable[[int], FilterFound]]:
    """The filters of so many data blocks each; CorruptionError where their index is damaged."""
    contents = table.blocks.opened(handle, "index of the filter's partitions")
    index = PartitionIndex.decode(contents, table.source.size)
    blocks = 0 if table.own is None else table.own.filter_partition_blocks

    def partition(number: int) -> FilterFound:
        keys = _keys_of_blocks if blocks else _keys_up_to_last
        open = partial(_open, partial(keys, table, index.lasts, blocks, number))
        where = f"partition {number + 1} of {len(index.handles)}"
        return look(table, index.handles[number], where, open)

    return len(index.handles), partition


def _keys_of_blocks(
    table: Table, lasts: Sequence[bytes], blocks: int, number: int
) -> Iterator[bytes]:
    """The keys of a partition's data blocks: it is of so many, and the last one of what is left."""
    data = table.data
    first = number * blocks
    return data.keys(min(first, len(data)), min(first + blocks, len(data)))


def _keys_up_to_last(
    table: Table, lasts: Sequence[bytes], blocks: int, number: int
) -> Iterator[bytes]:
    """The keys of a partition by the last one of each, whatever order they are in."""
    at = 0
    data = table.data
    for key in data.keys(0, len(data)):
        if at > number:
            return
        if at == number:
            yield key
        at += key == lasts[at]


def _open(keys: Keys, contents: bytes, guard: Guard) -> Opened:
    """The filter in a block; what its policy needs and is not here leaves it described."""
    prefixes, block = None, memoryview(contents)
    if contents.startswith(FRAME_MAGIC):
        prefixes, block = Prefixes.decode(contents)
    described = describe_block(block)
    reader, problem = None, ""
    try:
        _, reader = read_block(bytes(block), is_checked=guard.checked == _CHECKED)
    except CorruptBlockError:
        raise
    except FilterError as error:
        problem = str(error)
    form = f"a block that describes itself, of policy {described.policy}"
    if prefixes is not None:
        form += f", of {'whole keys and ' if prefixes.whole_keys else ''}prefixes ({prefixes})"
    added = AddedKeys()
    if prefixes is not None:
        added = AddedKeys(whole_keys=prefixes.whole_keys, prefix=prefixes.of)
    return Opened(
        family=described.policy if described.policy in every() else None,
        form=form,
        parameters=described.params,
        num_keys=described.num_keys,
        problem=problem,
        reader=reader,
        keys=lambda: added.of(keys()),
    )
