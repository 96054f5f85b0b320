"""Every built-in policy as the shared tests see it: at its default, and under its examples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import policies
from filters.families import every
from policies import FilterPolicy


def policies_of(family: str) -> Iterator[FilterPolicy]:
    """A family's policies, but for sizes that are advised against."""
    for size in ({}, *every()[family].examples):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                policy = policies.create(family, **size)
            except UserWarning:
                continue
        yield policy


def built_in() -> list[FilterPolicy]:
    """The policies of all families that have one."""
    named = (family.name for family in every().values() if family.policy)
    return [policy for name in named for policy in policies_of(name)]
