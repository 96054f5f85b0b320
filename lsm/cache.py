"""A cache of parts of open tables, held to a number of bytes."""

from __future__ import annotations

import threading
from collections import deque
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
        """Leave the place where readers look for it."""


class ClockCache:
    """Holds what it admits until the bytes are needed for something else.

    Readers never come here: they look where the thing itself has its place, in its table, and set
    ``used``. What was used since the clock's hand last passed is passed over once more. A thing
    that leaves by another way is forgotten.
    """

    def __init__(self, limit: int, most: int | None = None):
        self.limit = limit
        self._most = most
        self._ring: deque[Cached] = deque()
        self._count = 0
        self._lock = threading.Lock()
        self.bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        # One number, for who looks without the lock: the ring also has what is gone.
        return self._count

    def admit(self, item: Cached) -> None:
        """Take a new thing in, and let others go for it; one that is too large goes itself."""
        evicted = []
        with self._lock:
            if item.held is not None:
                return  # forgotten before it came
            if item.charge > self.limit:
                item.held = False
                evicted.append(item)
            else:
                item.held = True
                self._ring.append(item)
                self._count += 1
                self.bytes += item.charge
            while self._is_full():
                evicted += self._turn()
        for each in evicted:
            each.evict()

    def forget(self, item: Cached) -> None:
        """Give back the bytes of a thing that nobody will look for any more."""
        with self._lock:
            if item.held:
                self.bytes -= item.charge
                self._count -= 1
            item.held = False
            if len(self._ring) > 2 * self._count:
                self._ring = deque(each for each in self._ring if each.held)

    def _is_full(self) -> bool:
        return self.bytes > self.limit or (self._most is not None and len(self) > self._most)

    def _turn(self) -> list[Cached]:
        """Move the hand by one; what has to go for it."""
        item = self._ring.popleft()
        if not item.held:
            return []
        if item.used:
            item.used = False
            self._ring.append(item)
            return []
        self.bytes -= item.charge
        self._count -= 1
        item.held = False
        self.evictions += 1
        return [item]
