"""How many keys are in a union of filters."""

from __future__ import annotations

from collections.abc import Collection

from filters.header import MAX_KEYS


def distinct(estimate: float, counts: Collection[int]) -> int:
    """What the fill of the union suggests, as far as the counts of its parts leave it open."""
    return max(max(counts), min(round(estimate), added(counts)))


def added(counts: Collection[int]) -> int:
    """The sum of the counts, or the most keys that a filter may claim."""
    return max(max(counts), min(sum(counts), MAX_KEYS))
