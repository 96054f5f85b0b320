"""Filters with more keys than they were made for: whoever adds these is told, once for each."""

from __future__ import annotations

from filters import advice, families

UNLIMITED = (1 << 64) - 1
"""In the place of a number of keys that nobody has named."""


def limit(family: str, num_keys: int) -> int:
    """How many keys may come before somebody is told, for a filter made for so many."""
    record = families.every().get(family)
    is_told = record is not None and record.can_be_over_filled and advice.is_wanted()
    return num_keys if is_told else UNLIMITED


def limit_of_union(limit: int) -> int:
    """The same for a union: how many keys that has is an estimate, which may lie above them."""
    return min(UNLIMITED, limit + limit // 10 + 8)


def warn(family: str, capacity: int, num_keys: int) -> None:
    """A UserWarning for whoever has added keys to a filter that was made for fewer."""
    if not advice.is_wanted():
        return
    consequence = families.every()[family].grows
    advice.warn(
        lambda: (
            f"a {family} filter that was made for {capacity} keys has {num_keys}, and "
            f"{consequence}: make it for as many as will come, or take a scalable one"
        )
    )
