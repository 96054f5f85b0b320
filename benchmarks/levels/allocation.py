"""Memory where it saves most: rates in proportion to how many keys a level has.

With such rates no byte saves more reads on another level than on its own (Dayan, Athanassoulis and
Idreos, "Monkey", 2017): a small level above gets many bits per key, a large one below a few less.
"""

from __future__ import annotations

from collections.abc import Mapping

from filters import sizing

# Rates beyond these are not asked for: the highest that all families take, and the lowest.
HIGHEST, LOWEST = 0.5, 1e-8

# The search halves the interval of the logarithm until a step no longer moves a byte in a thousand.
_STEPS = 24


def proportional_rates(
    family: str, counts: Mapping[int, int], bits_per_key: float, most_bits: float | None = None
) -> dict[int, float]:
    """A rate for each level, in the memory that so many bits per key on all levels would take.

    No level gets more than ``most_bits`` per key, above which some families gain little.
    """
    budget = sum(
        count * sizing.bits_per_key(family, n=count, bits_per_key=bits_per_key)
        for count in counts.values()
    )
    lowest = LOWEST if most_bits is None else sizing.fpr(family, bits_per_key=most_bits)

    def rates(factor: float) -> dict[int, float]:
        return {
            level: _rounded(min(HIGHEST, max(lowest, factor * count)))
            for level, count in counts.items()
        }

    low, high = LOWEST / max(counts.values()), HIGHEST / min(counts.values())
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if _bits(family, counts, rates(middle)) > budget:
            low = middle
        else:
            high = middle
    return rates(high)


def _bits(family: str, counts: Mapping[int, int], rates: Mapping[int, float]) -> float:
    return sum(
        count * sizing.bits_per_key(family, n=count, fpr=rates[level])
        for level, count in counts.items()
    )


def _rounded(rate: float) -> float:
    """With the digits that somebody would write into a configuration."""
    return float(f"{rate:.4g}")
