"""Where lookups of absent keys fall: evenly, by Zipf's law, or mostly in one hot range."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import attrs

RANGES = 1000
"""The key space is cut into so many equal ranges, in each of which lookups fall evenly."""

EVEN, ZIPF, HOT = "even", "Zipf 0.99", "hot range"
_EXPONENT = 0.99
_HOT_RANGES, _HOT_SHARE = RANGES // 100, 0.9
_DIGITS = 8
# Rounded down, so that no place in the last range is outside of all.
_RANGE = float((1 << 8 * _DIGITS) // RANGES >> 11 << 11)


@attrs.frozen
class Lookups:
    """Keys that are nowhere, each range of the key space with a share of them."""

    name: str
    shares: Sequence[float] = attrs.field(repr=False)
    _upto: Sequence[float] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Sum up the shares, for whoever asks for a part of them."""
        object.__setattr__(self, "_upto", [0.0, *accumulate(self.shares)])

    def keys(self, count: int, rng: random.Random, key_bytes: int) -> list[bytes]:
        """So many random keys; among as many bytes none of a store's own turns up by chance."""
        chosen = rng.choices(range(RANGES), self.shares, k=count)
        tails = rng.randbytes((key_bytes - _DIGITS) * count)
        size = key_bytes - _DIGITS
        return [
            int((at + rng.random()) * _RANGE).to_bytes(_DIGITS, "big")
            + tails[size * place : size * (place + 1)]
            for place, at in enumerate(chosen)
        ]

    def share(self, low: bytes, high: bytes) -> float:
        """The share of the lookups that fall between two keys."""
        return max(0.0, self._below(high) - self._below(low))

    def _below(self, key: bytes) -> float:
        digits = key[:_DIGITS].ljust(_DIGITS, b"\0")
        place = int.from_bytes(digits, "big") / _RANGE
        at = min(int(place), RANGES - 1)
        return self._upto[at] + min(1.0, place - at) * self.shares[at]


def all_lookups(seed: int) -> tuple[Lookups, ...]:
    """The three of them; where it is hot, the seed decides."""
    rng = random.Random(seed)
    ranks = list(range(1, RANGES + 1))
    rng.shuffle(ranks)
    weights = [rank**-_EXPONENT for rank in ranks]
    first = rng.randrange(RANGES - _HOT_RANGES)
    cold = (1 - _HOT_SHARE) / (RANGES - _HOT_RANGES)
    hot = [
        _HOT_SHARE / _HOT_RANGES if first <= at < first + _HOT_RANGES else cold
        for at in range(RANGES)
    ]
    return (
        Lookups(EVEN, [1 / RANGES] * RANGES),
        Lookups(ZIPF, [weight / sum(weights) for weight in weights]),
        Lookups(HOT, hot),
    )
