"""How far one filter's rate lies from what is typical of its kind, by chance alone.

Filters of few keys differ: where the bits fall decides how full the array gets, and for filters
whose keys share cache lines which of the lines are crowded. A rate is a power of that fill, so its
mean square over the square of its mean tells how much it varies.
"""

from __future__ import annotations

import math
from typing import Any

from filters import occupancy
from filters.families import every

# By how much the number of keys is changed to see what that does to the rate.
_UP, _DOWN = 1.01, 0.99


def scatter(family: str, keys: int, **params: Any) -> float:
    """The standard deviation of the rates of such filters, as a share of the typical rate.

    It is nothing worth mentioning where a filter keeps fingerprints, whose number is given.
    """
    geometry = every()[family].sized(keys, **params)
    if hasattr(geometry, "lines"):
        return _of_lines(keys, geometry.lines, geometry.num_probes)
    if hasattr(geometry, "bits"):
        return _of_array(keys, geometry.bits, geometry.num_probes)
    return 0.0


def _of_lines(keys: int, lines: int, probes: int) -> float:
    """Of lines that differ, less what they have in common: their keys are so many together."""
    first = occupancy.line_moment(keys, lines, probes, probes)
    second = occupancy.line_moment(keys, lines, probes, 2 * probes)
    more, fewer = (occupancy.line_fpr(keys * each, lines, probes) for each in (_UP, _DOWN))
    slope = math.log(more / fewer) / math.log(_UP / _DOWN)
    # Where one line has a key more, others have one less: what is linear in the number of a line's
    # keys, a binomial one, adds up to nothing over all lines.
    shared = slope**2 * lines / keys * (1 - 1 / lines)
    return math.sqrt(max(0.0, second / first**2 - 1 - shared) / lines)


def _of_array(keys: int, bits: int, probes: int) -> float:
    first = occupancy.power_of_fill(keys * probes, bits, probes)
    second = occupancy.power_of_fill(keys * probes, bits, 2 * probes)
    return math.sqrt(max(0.0, second / first**2 - 1)) if first else 0.0
