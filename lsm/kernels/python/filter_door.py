"""A loaded filter as a lookup asks it."""

from __future__ import annotations

from lsm.kernels.python.cache_item import CacheItem


class FilterDoor(CacheItem):
    """The base of a loaded filter. Here lookups ask its ``reader`` or ``windows`` themselves.

    Of one in partitions that is the filter of a partition.
    """

    __slots__ = ()
