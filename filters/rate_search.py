"""The smallest size that keeps a rate, with few looks at what rate a size has."""

from __future__ import annotations

import math
from collections.abc import Callable

from filters.sizing_parameters import smallest

# Rates that differ by so much are in order whatever the probes, whose number is chosen for a size
# and makes rates rise by a percent or two where it changes.
_CLEARLY = 1.1

# So many looks at where the rate is met, each of which leaves a hundredth of the distance or less.
_APPROACHES = 4
_NEAR_ENOUGH = 1e-5
# The logarithm of a rate falls by no less over that of a size.
_FLATTEST = -0.5


def bits_of_many(fpr: float, num_probes: int | None) -> float:
    """The bits per key of a Bloom filter of many keys that has this rate."""
    probes = num_probes or max(1.0, -math.log2(fpr))
    return -probes / math.log1p(-(fpr ** (1 / probes)))


class RateSearch:
    """Sizes whose rates are known, and what follows from them for other sizes.

    ``rate_of`` is the rate of a size with so many probes, ``probes_of`` how many it has. More of
    the same probes never have a higher rate.
    """

    def __init__(
        self,
        rate_of: Callable[[int, int], float],
        probes_of: Callable[[int], int],
        ceiling: float,
        low: int,
        high: int,
    ):
        self._rate_of, self._probes_of = rate_of, probes_of
        self._ceiling, self._low, self._high = ceiling, low, high
        # The largest size that is too small whatever its probes, and the smallest that is enough;
        # and the same by probes.
        self._few, self._enough = 0, math.inf
        self._few_by_probes: dict[int, int] = {}
        self._enough_by_probes: dict[int, float] = {}

    def smallest(self, near: float) -> int:
        """What ``smallest`` finds between both ends; the answer is thought to lie near a size."""
        self._approach(min(max(near, self._low), self._high))
        return smallest(self._is_enough, self._low, self._high)

    def _is_enough(self, size: int) -> bool:
        if size <= self._few or size >= self._enough:
            return size >= self._enough
        probes = self._probes_of(size)
        if size <= self._few_by_probes.get(probes, 0):
            return False
        if size >= self._enough_by_probes.get(probes, math.inf):
            return True
        return self._look(size) <= self._ceiling

    def _approach(self, near: float) -> None:
        """Look at sizes closer and closer to where the rate is met, and at some on both sides."""
        # Of a Bloom filter: each bit per key takes an equal share off the rate.
        slope = min(math.log(self._ceiling), _FLATTEST)
        size, found = near, self._distance(near)
        for _ in range(_APPROACHES):
            step = -found / slope
            if abs(step) * size < 1 or abs(found) < _NEAR_ENOUGH:
                break
            step = min(max(step, -1.0), 1.0)
            size *= math.exp(step)
            before, found = found, self._distance(size)
            seen = (found - before) / step
            if seen < _FLATTEST:
                slope = seen
        met = size * math.exp(-found / slope)
        for beside in (math.floor(met) - 1, math.ceil(met) + 1):
            self._distance(beside)
        clear = 1.5 * math.log(_CLEARLY) / -slope
        if self._few < met * math.exp(-2 * clear):
            self._distance(met * math.exp(-clear))
        if self._enough > met * math.exp(2 * clear):
            self._distance(met * math.exp(clear))

    def _distance(self, size: float) -> float:
        """How far the rate of a size lies above the ceiling, as a logarithm."""
        rate = self._look(round(min(max(size, self._low), self._high)))
        return math.log(max(rate, 1e-300) / self._ceiling)

    def _look(self, size: int) -> float:
        probes = self._probes_of(size)
        rate = self._rate_of(size, probes)
        if rate > self._ceiling:
            if size > self._few_by_probes.get(probes, 0):
                self._few_by_probes[probes] = size
            if rate > self._ceiling * _CLEARLY:
                self._few = max(self._few, size)
        else:
            if size < self._enough_by_probes.get(probes, math.inf):
                self._enough_by_probes[probes] = size
            if rate < self._ceiling / _CLEARLY:
                self._enough = min(self._enough, size)
        return rate
