"""The pace of writers while the background is behind: slower in time, instead of a wall at the end.

All is counted in **write buffers**: how full the memtable is, how many are being flushed, how many
tables are on level 0. Writers would have to stop where there is no **room** left: the memtable is
full, and the one before it is not yet flushed, or level 0 takes no more tables. Somebody is at work
to make room, and from what such work took lately there is an idea of how long it will be. So that
it need not stop, a writer goes no faster than so much room in so much time.

What has been written has its price at that pace. It is paid by whoever writes next, whichever
thread that is, and in pieces of a millisecond or more, so that a single small write costs no timer;
nor need it ask: what a millisecond allows is written at once.
Nothing here knows a clock or a thread.
"""

from __future__ import annotations

import math

import attrs

PIECE_SECONDS = 0.001
"""Nobody waits for less."""
LONGEST_SECONDS = 0.03
"""No single write is delayed for longer, whatever it costs; the next ones pay the rest."""

# While a memtable is flushed, so much of the next one may be filled at any pace.
_FREE_SHARE = 0.25
# Writers fill the rest so much faster than they would have to, since a flush that ends early leaves
# its thread with nothing to do, and one that ends late has them wait for a moment.
_HASTE = 1.25
# So much is written before anybody asks again, where nobody knows how long things take.
_LEAST_SHARE = 0.01
# Work that takes longer than expected will take so much more of the time it has taken.
_OVERDUE_SHARE = 0.25
# How much each measurement counts against all before it.
_NEWEST_SHARE = 0.5


@attrs.define
class Speed:
    """How long work takes for each unit of what there is to do, as lately measured."""

    amount: float = 0.0
    seconds: float = 0.0

    def measure(self, amount: float, seconds: float) -> None:
        """Take into account that so much took so many seconds."""
        self.amount += (amount - self.amount) * _NEWEST_SHARE
        self.seconds += (seconds - self.seconds) * _NEWEST_SHARE

    def expected(self, amount: float) -> float:
        """The seconds that so much will take; 0 before the first measurement."""
        return amount * self.seconds / self.amount if self.amount else 0.0


@attrs.frozen
class Relief:
    """Work that makes room: how long it is expected to take, and how long it has been going on."""

    expected: float
    elapsed: float = 0.0

    @property
    def seconds_left(self) -> float:
        """The seconds until it ends, as far as one can tell."""
        return max(self.expected - self.elapsed, self.elapsed * _OVERDUE_SHARE)


@attrs.frozen
class Backlog:
    """How far the background is behind: all in write buffers, ``level0`` in tables.

    ``filled`` is how full the memtable is, and ``flushing`` how many others are yet to be flushed.
    """

    filled: float
    flushing: int
    level0: int
    slow_files: int
    stop_files: int

    def rate(self, flush: Relief, compaction: Relief) -> float:
        """The write buffers per second that a writer may fill; infinite where nothing is behind."""
        rate = math.inf
        if self.flushing and self.filled > _FREE_SHARE:
            rate = _HASTE * _rate(1 - self.filled, flush.seconds_left)
        coming = self.level0 + self.flushing
        if coming + self.filled > self.slow_files:
            room = max(0, self.stop_files - coming) + 1 - self.filled
            rate = min(rate, _rate(room, compaction.seconds_left))
        return rate

    def allowed(self, rate: float) -> float:
        """The write buffers that may be filled at this rate before it is to be asked for again."""
        if rate < math.inf:
            return rate * PIECE_SECONDS
        coming = self.level0 + self.flushing
        free = _FREE_SHARE if self.flushing else 1.0
        return max(_LEAST_SHARE, min(free, self.slow_files - coming) - self.filled)

    def grown_since(self, before: Backlog) -> float:
        """What was written since then; 0 if anything else has changed, too."""
        if (before.flushing, before.level0) != (self.flushing, self.level0):
            return 0.0
        return max(0.0, self.filled - before.filled)


class Pace:
    """What writers owe for what was written: the moment up to which they have to wait."""

    def __init__(self) -> None:
        self._paid_until = -math.inf

    def charge(self, now: float, grown: float, rate: float) -> float:
        """The seconds to wait now, after so much was written at a time when this is the rate.

        At an infinite rate nothing is owed any more, and what was written until then is free.
        """
        if rate == math.inf or self._paid_until == -math.inf:
            self._paid_until = -math.inf if rate == math.inf else now
            return 0.0
        price = grown / rate if rate > 0 else LONGEST_SECONDS
        self._paid_until = max(self._paid_until, now) + price
        ahead = self._paid_until - now
        return 0.0 if ahead < PIECE_SECONDS else min(ahead, LONGEST_SECONDS)


def _rate(room: float, seconds: float) -> float:
    return max(room, 0.0) / seconds if seconds > 0 else math.inf
