"""The multiply chain: probe positions of the classic and the counting filter."""

from __future__ import annotations

from collections.abc import Iterator

from filters.hashing import MASK64

# 2^64 divided by the plastic number: the multiplier of the chain. Any odd constant without
# structure serves; it differs from the one that mixed the salt in.
CHAIN = 0xC13F_A9A9_02A6_328F


def positions(mixed: int, size: int, num_probes: int) -> Iterator[int]:
    """``num_probes`` positions below ``size``, which may be anything up to 2^40.

    Each position is the high half of a product, and the next number is the last one multiplied and
    folded, so that every probe is a hash of its own. Double hashing would walk in even steps and
    miss the theoretical rate by a factor of two for ten keys at sixteen bits each.
    """
    for _ in range(num_probes):
        yield mixed * size >> 64
        product = mixed * CHAIN
        mixed = (product & MASK64) ^ (product >> 64)
