"""Which filter for so many keys: the choices there are, ranked, with figures and the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from filters import advice, sizing
from filters.costs import Cost
from filters.families import FAMILIES
from filters.family import Family
from filters.sizing_parameters import checked_int, checked_number
from policies.contract import FilterPolicy
from policies.registry import create

# What costs are relative to.
YARDSTICK = "blocked"

MIN_FPR, MAX_FPR = 2.0**-32, 0.5


@attrs.frozen
class Recommendation:
    """One choice: a family with its parameters, what it takes, and why it stands where it stands.

    ``bits_per_key`` are those of the bytes as stored, ``expected_fpr`` is the rate at ``n`` keys.
    ``relative_cost`` is the time for building a key and for its lookups, over that of ``blocked``,
    as measured at a million keys and the families' default sizes. ``fits`` is False for what meets
    the rate with a reservation, which the reason tells.
    """

    family: str
    params: dict[str, Any] = attrs.field(hash=False)
    bits_per_key: float
    expected_fpr: float
    relative_cost: float
    fits: bool
    reason: str

    @property
    def policy(self) -> FilterPolicy | None:
        """The policy for tables; None for a structure that stands alone."""
        if not FAMILIES[self.family].policy:
            return None
        return create(self.family, **self.params)

    def __str__(self) -> str:
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return (
            f"{self.family}({params}): {self.bits_per_key:.2f} bits/key, "
            f"{100 * self.expected_fpr:.3g} % pass, {self.relative_cost:.2g} x the time of "
            f"{YARDSTICK}; {self.reason}"
        )


def recommend(
    n: int,
    *,
    fpr: float = 0.01,
    deletes: bool = False,
    grows: bool = False,
    lookups: float = 10,
) -> tuple[Recommendation, ...]:
    """The filters that keep at most this rate over ``n`` keys, the best first.

    ``deletes``: keys will be removed. ``grows``: more than ``n`` may come, and nobody knows how
    many. ``lookups``: how many lookups there will be for each key while the filter lives; few make
    building count, many make asking count.

    What fits comes before what fits with a reservation. Among these the order is by bits times
    time: a tenth less memory is worth a tenth more time.
    """
    count = checked_int("n", n, 1, 1 << 40)
    rate = checked_number("fpr", fpr, MIN_FPR, MAX_FPR)
    each = checked_number("lookups", lookups, 0, 1e12)
    found = [
        choice
        for family in FAMILIES.values()
        if not family.answers_ranges
        and (deletes or grows or family.in_tables)
        and (not deletes or family.removes)
        and (not grows or family.grows)
        and (choice := _choice(family, count, rate, grows, each)) is not None
    ]
    found.sort(key=lambda choice: (not choice.fits, choice.bits_per_key * choice.relative_cost))
    return tuple(found)


def _choice(
    family: Family, n: int, fpr: float, grows: bool, lookups: float
) -> Recommendation | None:
    """What a family makes of the rate; None where it cannot keep it, or nobody has timed it."""
    if family.cost is None:
        return None
    size: dict[str, Any] = {family.rate_parameter: fpr}
    try:
        bits = advice.silently(sizing.stored_bits_per_key, family.name, n=n, **size)
        expected = advice.silently(sizing.fpr, family.name, n=n, **size)
        is_unwise = _is_unwise(family.name, n, size)
    except ValueError:
        return None
    if expected > fpr * 1.001:
        return None
    fits = not family.foreign and not is_unwise and (family.outgrows or not grows)
    return Recommendation(
        family.name,
        size,
        bits,
        expected,
        family.cost.of(lookups) / _yardstick().of(lookups),
        fits,
        _reason(family, bits, fpr, grows, is_unwise),
    )


def _is_unwise(family: str, n: int, size: Mapping[str, Any]) -> bool:
    """Whether who chooses this size is advised against it."""
    try:
        advice.strictly(sizing.stored_bits_per_key, family, n=n, **size)
    except advice.UnwiseSizeError:
        return True
    return False


def _yardstick() -> Cost:
    cost = FAMILIES[YARDSTICK].cost
    assert cost is not None
    return cost


def _reason(family: Family, bits: float, fpr: float, grows: bool, unwise: bool) -> str:
    told = [family.strength, f"{bits / sizing.lower_bound(fpr):.2f} times the fewest bits possible"]
    if family.foreign:
        told.insert(0, f"for {family.foreign} own files")
    if unwise:
        told.append("its cache lines fill too unevenly for so many bits")
    if grows:
        told.append(family.grows)
    return "; ".join(told)
