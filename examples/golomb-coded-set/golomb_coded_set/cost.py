"""What Golomb-coded sets cost, for placement by a budget."""

from __future__ import annotations

import math

from golomb_coded_set.parameters import Parameters
from policies.cost_models import Option

# The head, the count, and the block around them.
_BITS_AROUND = 8 * 96

# One lookup in readable Python: SipHash of a short key, and half a stretch decoded.
_PROBE_NS = 25_000.0


class GolombCostModel:
    """The filter that a rate asks for: the smallest M that keeps it."""

    policy = "bip158.golomb"

    def option(self, num_keys: int, fpr: float) -> Option | None:
        """What it takes for so many keys; None for a rate that no M has."""
        m = max(2, math.ceil(1 / fpr))
        if m >= 2**32 or 1 / m > fpr:
            return None
        bits = Parameters(m).bits_per_key + _BITS_AROUND / max(1, num_keys)
        return Option(self.policy, {"m": m}, bits, 1 / m, _PROBE_NS)
