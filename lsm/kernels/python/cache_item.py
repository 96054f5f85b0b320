"""What every item of a cache has: a reference bit, and where it stands with its cache."""

from __future__ import annotations


class CacheItem:
    """A base for items of a :class:`~lsm.cache.ClockCache`, which says what ``held`` means."""

    __slots__ = ("held", "used")

    def __init__(self) -> None:
        self.used = False
        self.held: bool | None = None
