"""A cache of open tables or parts of them, limited in bytes: the second-chance clock."""

from __future__ import annotations

import sys
import threading
from collections import Counter, OrderedDict
from typing import Protocol


class Cached(Protocol):
    """An item that a cache can hold, with the reference bit of the clock in ``used``.

    ``held`` belongs to the cache: None before the item was admitted, True as long as it is in the
    cache, and False for good when it has left.
    """

    charge: int
    used: bool
    held: bool | None

    def evict(self) -> None:
        """Called when the cache drops the item: remove it from where readers look for it."""


class ClockCache:
    """Holds the items it admits until their bytes are needed for others.

    Readers never call it: they find an item where it belongs, in its table, and set ``used``. An
    item that was used since the clock's hand last came by gets a second chance. One that is dropped
    for another reason than room is forgotten.

    An interruption may come at any moment, and use the cache itself. A reentrant change leaves the
    ring alone: an item that it would have admitted is dropped at once, and one that it forgets
    leaves with the next change. If it raises, the next change restores what this one has left.
    """

    def __init__(self, limit: int, max_items: int | None = None):
        self.limit = limit
        self._max_items = sys.maxsize if max_items is None else max_items
        self._ring: OrderedDict[Cached, None] = OrderedDict()  # from the hand on
        self._evicting: dict[Cached, None] = {}  # out of the ring, and perhaps not yet evicted
        self._forgotten: list[Cached] = []  # to leave the ring
        self._is_consistent = True
        self._lock = threading.RLock()
        self.bytes = 0
        self._evicted: Counter[type] = Counter()

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def evictions(self) -> int:
        """How many items were evicted for the room of others."""
        return self._evicted.total()

    def has_room(self, charge: int) -> bool:
        """Whether an item of so many bytes would push out no other."""
        return self.bytes + charge <= self.limit and len(self._ring) < self._max_items

    def share_of(self, kind: type) -> tuple[int, int, int]:
        """Of the items of one kind the bytes, the number, and how many were evicted."""
        found = [item.charge for item in tuple(self._ring) if isinstance(item, kind)]
        return sum(found), len(found), self._evicted[kind]

    def admit(self, item: Cached) -> None:
        """Add a new item, and evict others for it; one that is too large is evicted itself."""
        if not self._is_consistent and self._is_reentrant():
            item.held = False
            item.evict()
            return
        ring = self._ring
        with self._lock:
            if not self._is_consistent or self._forgotten:
                self._restore()
            self._is_consistent = False
            if item.held is None:  # else it was forgotten before it came
                if item.charge > self.limit:
                    self._evicting[item] = None
                    item.held = False
                else:
                    ring[item] = None
                    self.bytes += item.charge
                    item.held = True
                while self.bytes > self.limit or len(ring) > self._max_items:
                    self._turn()
            self._is_consistent = True
            if self._forgotten:
                self._restore()
        if self._evicting:
            self._evict_pending()

    def forget(self, item: Cached) -> None:
        """Drop an item that no reader will look for any more, without evicting it."""
        if not self._is_consistent and self._is_reentrant():
            item.held = False
            if item in self._ring:
                self._forgotten.append(item)
            return
        with self._lock:
            if not self._is_consistent or self._forgotten:
                self._restore()
            self._is_consistent = False
            self._remove(item)
            self._is_consistent = True
            if self._forgotten:
                self._restore()

    def clear(self) -> None:
        """Drop all items, without evicting them."""
        with self._lock:
            items = (*self._ring, *self._evicting)
        for item in items:
            self.forget(item)
        self._evicting.clear()

    def _is_reentrant(self) -> bool:
        # What threading.Condition asks every RLock, too; its type does not tell of it.
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _remove(self, item: Cached) -> None:
        item.held = False
        if item in self._ring:
            del self._ring[item]
            self.bytes -= item.charge

    def _turn(self) -> None:
        """Move the hand by one item: give it a second chance, or have it evicted."""
        ring = self._ring
        item = next(iter(ring))
        if item.used:
            item.used = False
            ring.move_to_end(item)
        else:
            if item.held is not False:
                self._evicting[item] = None
                self._evicted[type(item)] += 1
                item.held = False
            del ring[item]
            self.bytes -= item.charge

    def _evict_pending(self) -> None:
        """Evict what has left the ring; what an interruption leaves, the next call does."""
        going = self._evicting
        for item in tuple(going):
            item.evict()
            going.pop(item, None)

    def _restore(self) -> None:
        """Make the ring consistent after interruptions, and count ``bytes`` anew."""
        self._is_consistent = False
        known = len(self._forgotten)
        for item in tuple(self._ring):
            if item.held is False:
                del self._ring[item]
        self.bytes = sum(item.charge for item in self._ring)
        del self._forgotten[:known]
        self._is_consistent = True
