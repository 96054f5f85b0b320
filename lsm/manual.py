"""Compactions that somebody asks for: which levels they go through, and how far they have come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from lsm.options import LEVELS

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.version import Version


@attrs.define(eq=False)
class ManualCompaction:
    """The requested compaction of a level between two bounds; None is no bound.

    With ``older_than``, tables of the level whose numbers are below that are written anew in place.
    ``read_bytes`` is what it has read up to now. Once it is withdrawn, nobody goes on with it.
    """

    level: int
    low: OrderedKey | None
    high: OrderedKey | None
    older_than: int | None = None
    is_running: bool = False
    is_done: bool = False
    is_withdrawn: bool = False
    read_bytes: int = 0


@attrs.frozen(kw_only=True)
class CompactionProgress:
    """How far ``compact_range()`` has come: the level that it merges into the next, of so many.

    It tells the last of them, too, while tables are written anew where they are.
    ``read_bytes`` is the size of the tables that it has merged, ``total_bytes`` what that will be
    in the end, as far as one can tell now: less, where much is deleted or overwritten.
    """

    level: int
    levels: int
    read_bytes: int
    total_bytes: int


def levels_to_compact(version: Version, low: OrderedKey | None, high: OrderedKey | None) -> range:
    """The levels that a compaction of a range goes through: all above the deepest it touches."""
    touched = (level for level in range(1, LEVELS) if version.overlapping(level, low, high))
    return range(max(touched, default=1))


def bytes_to_read(version: Version, manual: ManualCompaction, levels: int, at_once: int) -> int:
    """What is left to be read if nothing is dropped, by a compaction through so many levels.

    Each merges what it has taken along with the level below; that of level 0 goes through as many
    levels as have no more than what is merged ``at_once``.
    """
    total = 0
    sizes = [_bytes(version, level, manual.low, manual.high) for level in range(levels + 1)]
    along = sizes[manual.level]
    for level in range(manual.level, levels):
        merged, further = along + sizes[level + 1], sum(sizes[level + 2 : level + 3])
        if manual.level > 0 or not (along and merged > along and further):
            at_once = 0
        if along and merged + further > at_once:
            total += merged
            at_once = 0
        along = merged
    return total


def bytes_to_rewrite(
    version: Version, low: OrderedKey | None, high: OrderedKey | None, older_than: int
) -> int:
    """What the tables of a range take, below level 0, whose numbers are below one."""
    return sum(
        table.size
        for level in range(1, LEVELS)
        for table in version.overlapping(level, low, high)
        if table.number < older_than
    )


def _bytes(version: Version, level: int, low: OrderedKey | None, high: OrderedKey | None) -> int:
    return sum(table.size for table in version.overlapping(level, low, high))
