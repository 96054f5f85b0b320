"""Which filter for so many keys: the choices there are, ranked, with figures and the reason."""

from __future__ import annotations

import warnings
from typing import Any

import attrs

from filters import sizing
from filters.sizing_parameters import checked_int, checked_number
from policies.contract import FilterPolicy
from policies.costs import COSTS
from policies.registry import create

# What costs are relative to.
YARDSTICK = "blocked"

MIN_FPR, MAX_FPR = 2.0**-32, 0.5


@attrs.frozen
class Trait:
    """What a family can do besides answering, and what is to be said for it in words."""

    strength: str
    removes: bool = False
    grows: str = ""
    """What becomes of it past the number of keys it was made for; empty: it takes no more."""
    outgrows: bool = False
    """Its rate holds however many keys come."""
    foreign: str = ""
    """Whose files it is for."""
    has_policy: bool = True
    in_tables: bool = True


_RATE_RISES = "past that its rate rises"
_NO_SECRET = "its hash knows no secret, so that prepared keys can flood it"

TRAITS = {
    "blocked": Trait("one cache line a lookup, and the quickest to build", grows=_RATE_RISES),
    "classic": Trait("as many bits at any rate, one cache miss for each probe", grows=_RATE_RISES),
    "counting": Trait(
        "removes keys, in four times the bits", removes=True, grows=_RATE_RISES, in_tables=False
    ),
    "cuckoo": Trait("removes keys, two cache lines a lookup", removes=True),
    "binary-fuse": Trait("near the bound at rates of 1/256 and 1/65536, three cache lines"),
    "bumped-ribbon": Trait("nearest to the bound at any rate, and slower to build and to ask"),
    "xor": Trait("three cache lines; smaller than binary-fuse for few keys only"),
    "scalable": Trait(
        "keeps its rate however many keys come, a lookup asks every slice",
        grows="it goes on in a larger slice",
        outgrows=True,
        has_policy=False,
        in_tables=False,
    ),
    "leveldb": Trait(_NO_SECRET, foreign="LevelDB's"),
    "rocksdb": Trait(_NO_SECRET, foreign="RocksDB's"),
    "ribbon": Trait(_NO_SECRET, foreign="RocksDB's"),
    "cassandra": Trait(_NO_SECRET, foreign="Cassandra's"),
}

# What the sizing parameter for a rate is called, where it is not ``fpr``.
_RATE_PARAMETERS = {"cassandra": "fp_chance"}


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
        if not TRAITS[self.family].has_policy:
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
        for family in TRAITS
        if (deletes or grows or TRAITS[family].in_tables)
        and (not deletes or TRAITS[family].removes)
        and (not grows or TRAITS[family].grows)
        if (choice := _choice(family, count, rate, grows, each)) is not None
    ]
    found.sort(key=lambda choice: (not choice.fits, choice.bits_per_key * choice.relative_cost))
    return tuple(found)


def _choice(family: str, n: int, fpr: float, grows: bool, lookups: float) -> Recommendation | None:
    """What a family makes of the rate; None where it cannot keep such a rate."""
    size: dict[str, Any] = {_RATE_PARAMETERS.get(family, "fpr"): fpr}
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            bits = sizing.stored_bits_per_key(family, n=n, **size)
            expected = sizing.fpr(family, n=n, **size)
    except ValueError:
        return None
    if expected > fpr * 1.001:
        return None
    trait = TRAITS[family]
    cost, yardstick = COSTS[family], COSTS[YARDSTICK]
    relative = cost.of(lookups) / yardstick.of(lookups)
    fits = not trait.foreign and not warned and (trait.outgrows or not grows)
    return Recommendation(
        family, size, bits, expected, relative, fits, _reason(trait, bits, fpr, grows, bool(warned))
    )


def _reason(trait: Trait, bits: float, fpr: float, grows: bool, unwise: bool) -> str:
    told = [trait.strength, f"{bits / sizing.lower_bound(fpr):.2f} times the fewest bits possible"]
    if trait.foreign:
        told.insert(0, f"for {trait.foreign} own files")
    if unwise:
        told.append("its cache lines fill too unevenly for so many bits")
    if grows:
        told.append(trait.grows)
    return "; ".join(told)
