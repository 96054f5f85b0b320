"""Blocks read in vain beside those that were predicted, and whether chance explains it."""

from __future__ import annotations

import math

import attrs

from benchmarks.rows import AS_EXPECTED, UNEXPECTED
from benchmarks.statistics import MARKED

# A prediction that is as close as this has done its work: it chose the right configuration.
CLOSE = 0.15

# What cannot be by chance at all, in standard errors.
FARTHEST = 1000.0


@attrs.frozen
class Surplus:
    """Blocks that were read in vain: how many, how many were predicted, and the standard error.

    The error is that of counting so many lookups, and that of the filter being one of many which
    scatter around the rate of their kind.
    """

    counted: float
    predicted: float
    variance: float

    @property
    def sigmas(self) -> float:
        """By how many standard errors they differ, as if counts were normal.

        They are nearly Poisson's, and lopsided where few are expected. Therefore it is the root of
        the deviance, with half a count for continuity, which is as likely as that many errors are.
        """
        away = self.counted - self.predicted
        if abs(away) <= 0.5 or not self.variance:
            return 0.0 if abs(away) <= 0.5 else math.copysign(FARTHEST, away)
        counted = self.counted - math.copysign(0.5, away)
        deviance = 2 * (counted * math.log(counted / self.predicted) - counted + self.predicted)
        spread = self.variance / self.predicted
        return math.copysign(min(FARTHEST, math.sqrt(max(0.0, deviance) / spread)), away)

    @property
    def verdict(self) -> str:
        """UNEXPECTED for what neither chance explains nor rounding."""
        away = abs(self.counted - self.predicted) > CLOSE * self.predicted
        return UNEXPECTED if away and abs(self.sigmas) > MARKED else AS_EXPECTED

    @property
    def note(self) -> str:
        """The distance, in words."""
        return (
            f"{self.counted:,.0f} blocks read in vain where {self.predicted:,.1f} were predicted, "
            f"{abs(self.sigmas):.1f} standard errors"
        )
