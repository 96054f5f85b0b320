"""What a set is coded with: how rare false positives are, and how gaps are cut in two."""

from __future__ import annotations

import math

import attrs

MOST_KEYS = 2**32 - 1
"""BIP 158 counts in 32 bits. With M below 2**32, too, ``N * M`` keeps to the 64 of a hash."""


_STEEPEST = 700.0  # beyond, exp() has no float, and nothing is left to add


def is_whole(instance: object, attribute: attrs.Attribute[int], value: object) -> None:
    """A number that is an int, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.name} is an int, not {value!r}")


@attrs.frozen
class Parameters:
    """One absent key in ``m`` passes; the low ``p`` bits of a gap are written as they are."""

    m: int = attrs.field(validator=is_whole)
    p: int = attrs.field(
        default=attrs.Factory(lambda self: best_p(self.m), takes_self=True), validator=is_whole
    )

    def __attrs_post_init__(self) -> None:
        """Refuse what BIP 158's arithmetic cannot hold, and codes that would be mostly unary."""
        if not 2 <= self.m < 2**32:
            raise ValueError(f"m is {self.m}: allowed are 2 to 2**32 - 1")
        if not 1 <= self.p <= 32 or self.m >= 8 << self.p:
            raise ValueError(
                f"p is {self.p}: allowed are 1 to 32, with m below 8 * 2**p; for m={self.m} the "
                f"smallest filters have p={best_p(self.m)}"
            )

    @property
    def bits_per_key(self) -> float:
        """What a key takes in a large set.

        A gap's p low bits and the end of its unary part are always there. Of exponential gaps with
        mean M, ``gap >> p`` is ``1 / (exp(2**p / M) - 1)`` on average, and somewhat more where
        both ends of the gap were rounded down: ``M * (exp(1 / M) - 1)`` times as much.
        """
        steps = min(2**self.p / self.m, _STEEPEST)
        return self.p + 1 + self.m * math.expm1(1 / self.m) / math.expm1(steps)


def best_p(m: int) -> int:
    """The p that makes the smallest sets for an M, which is then about 1.5 times 2**p.

    What is no M gets the least p: the M itself is what is refused.
    """
    if not isinstance(m, int) or not 2 <= m < 2**32:
        return 1
    usable = (Parameters(m, p) for p in range(1, 33) if m < 8 << p)
    return min(usable, key=lambda each: each.bits_per_key).p


BIP158 = Parameters(m=784_931, p=19)
"""Those of Bitcoin's block filters."""
