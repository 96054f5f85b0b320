"""Counts and times of an open database's flushes, compactions, stalls and written bytes."""

from __future__ import annotations

import math

import attrs

from lsm.options import LEVELS
from lsm.pace import Relief, Speed


@attrs.define
class LevelWork:
    """The time and bytes that compactions into a level have taken."""

    seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0


@attrs.define
class Stalls:
    """How often writers had to wait, for how long, and the longest time that one did.

    They count without a lock, so that under a free-threaded interpreter a few may go missing.
    """

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """Count the seconds that one write has waited, if it did."""
        if seconds:
            self.count += 1
            self.seconds += seconds
            self.longest = max(self.longest, seconds)


@attrs.define
class Drain:
    """Work that makes room for writers: how fast it was lately, and the job that is under way.

    ``ended`` is when the last one was done.
    """

    speed: Speed = attrs.field(factory=Speed)
    began: float | None = None
    ended: float = -math.inf
    expected: float = 0.0

    def begin(self, now: float, amount: float) -> None:
        """Begin a job with so much to do."""
        self.expected = self.speed.expected(amount)
        self.began = now

    def end(self, now: float, amount: float | None) -> None:
        """End it, after so much was done; None after a failure."""
        began, self.began = self.began, None
        if amount is not None and began is not None:
            self.speed.measure(amount, now - began)
            self.ended = now

    def relief(self, now: float) -> Relief:
        """When it makes room; for a job that has yet to begin, as long as the last ones took."""
        began = self.began
        if began is None:
            return Relief(self.speed.seconds)
        return Relief(self.expected, max(0.0, now - began))


@attrs.define
class Work:
    """Counts and times since opening; one thread at a time adds to each.

    ``flushing`` counts in write buffers, ``relieving`` is the compaction of level 0, in bytes;
    ``compacting`` is how many compactions are under way.
    """

    flushes: int = 0
    compactions: int = 0
    moves: int = 0
    refiltered: int = 0
    compacting: int = 0
    flush_seconds: float = 0.0
    flush_read_bytes: int = 0
    flush_written_bytes: int = 0
    compaction_seconds: float = 0.0
    slowed: Stalls = attrs.field(factory=Stalls)
    stopped: Stalls = attrs.field(factory=Stalls)
    flushing: Drain = attrs.field(factory=Drain)
    relieving: Drain = attrs.field(factory=Drain)
    table_bytes: int = 0
    filters_failed: int = 0
    levels: list[LevelWork] = attrs.field(factory=lambda: [LevelWork() for _ in range(LEVELS)])
