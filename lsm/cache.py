"""A cache of parts of open tables, held to a number of bytes."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Protocol


class Cached(Protocol):
    """What a cache can hold: it is told when it must go, and says whether it was used of late.

    ``held`` belongs to the cache: None before it was admitted, True as long as it is in, and False
    for good when it has gone.
    """

    charge: int
    used: bool
    held: bool | None

    def evict(self) -> None:
        """Leave the place where readers look for it, if it is there."""


class ClockCache:
    """Holds what it admits until the bytes are needed for something else.

    Readers never come here: they look where the thing itself has its place, in its table, and set
    ``used``. What was used since the clock's hand last passed is passed over once more. A thing
    that leaves by another way is forgotten.

    An interruption may come at any moment, and use the cache itself. One that finds its own thread
    in the midst of a change leaves the ring alone: what it would have admitted goes at once, and
    what it forgets leaves with the next change. If it raises, the next change puts right what this
    one left.
    """

    def __init__(self, limit: int, most: int | None = None):
        self.limit = limit
        self._most = sys.maxsize if most is None else most
        self._ring: OrderedDict[Cached, None] = OrderedDict()  # from the hand on
        self._going: dict[Cached, None] = {}  # out of the ring, and perhaps not yet told so
        self._forgotten: list[Cached] = []  # to leave the ring
        self._settled = True
        self._lock = threading.RLock()
        self.bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._ring)

    def admit(self, item: Cached) -> None:
        """Take a new thing in, and let others go for it; one that is too large goes itself."""
        if not self._settled and self._is_mine():
            item.held = False
            item.evict()
            return
        ring = self._ring
        with self._lock:
            if not self._settled or self._forgotten:
                self._settle()
            self._settled = False
            if item.held is None:  # else it was forgotten before it came
                if item.charge > self.limit:
                    self._going[item] = None
                    item.held = False
                else:
                    ring[item] = None
                    self.bytes += item.charge
                    item.held = True
                while self.bytes > self.limit or len(ring) > self._most:
                    self._turn()
            self._settled = True
            if self._forgotten:
                self._settle()
        if self._going:
            self._tell()

    def forget(self, item: Cached) -> None:
        """Give back the bytes of a thing that nobody will look for any more."""
        if not self._settled and self._is_mine():
            item.held = False
            if item in self._ring:
                self._forgotten.append(item)
            return
        with self._lock:
            if not self._settled or self._forgotten:
                self._settle()
            self._settled = False
            self._remove(item)
            self._settled = True
            if self._forgotten:
                self._settle()

    def clear(self) -> None:
        """Forget all that is in."""
        with self._lock:
            items = (*self._ring, *self._going)
        for item in items:
            self.forget(item)
        self._going.clear()

    def _is_mine(self) -> bool:
        # What threading.Condition asks every RLock, too; its type does not tell of it.
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _remove(self, item: Cached) -> None:
        item.held = False
        if item in self._ring:
            del self._ring[item]
            self.bytes -= item.charge

    def _turn(self) -> None:
        """Move the hand by one; what has to go for it is going."""
        ring = self._ring
        item = next(iter(ring))
        if item.used:
            item.used = False
            ring.move_to_end(item)
        else:
            if item.held is not False:
                self._going[item] = None
                self.evictions += 1
                item.held = False
            del ring[item]
            self.bytes -= item.charge

    def _tell(self) -> None:
        """Evict what is going; what an interruption keeps from it goes with the next one."""
        going = self._going
        for item in tuple(going):
            item.evict()
            going.pop(item, None)

    def _settle(self) -> None:
        """Put right what interruptions left: the ring is true, and ``bytes`` is counted anew."""
        self._settled = False
        known = len(self._forgotten)
        for item in tuple(self._ring):
            if item.held is False:
                del self._ring[item]
        self.bytes = sum(item.charge for item in self._ring)
        del self._forgotten[:known]
        self._settled = True
