"""What chance does: intervals around rates, how far a rate is from its expectation, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

# 95 % of a normal distribution.
Z = 1.959964

# A rate this many standard errors from its expectation is not chance: once in 30,000 rows or so.
MARKED = 4.0


def wilson(hits: int, trials: int, z: float = Z) -> tuple[float, float]:
    """Wilson's interval around a measured share: right also for none, and for all."""
    if not trials:
        return 0.0, 1.0
    share, square = hits / trials, z * z
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = z * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    half /= 1 + square / trials
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == trials else middle + half
    return max(0.0, low), min(1.0, high)


def sigmas(hits: int, trials: int, expected: float) -> float:
    """By how many standard errors so many hits lie from the expected share of the trials."""
    error = math.sqrt(max(expected * (1 - expected), 1e-300) * trials)
    difference = hits - expected * trials
    if abs(difference) < 1e-9:
        return 0.0
    # For few expected hits, the count's own error: a Poisson count is not below zero.
    return difference / max(error, 1.0)


def differ(one: Sequence[float], other: Sequence[float], at_least: float = 0.05) -> bool:
    """Whether two sets of repeats differ by more than their noise.

    Their ranges must not meet, and their medians differ by ``at_least`` so large a share.
    """
    if max(one) >= min(other) and max(other) >= min(one):
        return False
    low, high = sorted((abs(median(one)), abs(median(other))))
    return high > low * (1 + at_least)
