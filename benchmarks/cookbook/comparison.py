"""A program of the cookbook and the obvious alternative to it, on the same data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs

PROGRAMS = Path(__file__).parents[2] / "docs" / "cookbook"
TASKS = 4  # that ask one filter, and partitions that make one


@attrs.frozen
class Side:
    """One way of doing it: what it is called, doing it, and what is kept in memory for it."""

    words: str
    run: Callable[[], Any]
    size: int | None = None


@attrs.frozen
class Comparison:
    """Two ways of doing the same, of which the second one is without a filter.

    ``agrees`` is given what both return: no key that is there may be missing from the first.
    """

    program: str
    what: str
    keys: int
    ours: Side
    other: Side
    agrees: Callable[[Any, Any], bool]


def load(name: str) -> Any:
    """A program as a module, which processes that are started here find by its name."""
    if str(PROGRAMS) not in sys.path:
        sys.path.append(str(PROGRAMS))
    return import_module(name)


def set_bytes(found: Iterable[str]) -> int:
    """What a set takes with all that is in it."""
    found = set(found)
    return sys.getsizeof(found) + sum(map(sys.getsizeof, found))


def names(kind: str, count: int) -> list[str]:
    """Texts that look like names of users."""
    return [f"{kind}-{number}" for number in range(count)]
