"""What a call came to, in words that are the same for both implementations."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

# From the most special to the most general; the first that fits is an error's kind.
ERRORS = ("IteratorInvalidError", "CorruptionError", "IOError", "Error")

only_plyvel = pytest.mark.parametrize("api", ["plyvel"], indirect=True)
only_lsm = pytest.mark.parametrize("api", ["lsm"], indirect=True)


# What both say of a database that is open already: the name of the file that says so.
LOCKED = "LOCK"

# The implementations with plyvel's quirks, which test_quirks.py tells of.
QUIRKY = {"plyvel"}


def is_quirky(api: ModuleType) -> bool:
    """Whether what nobody would guess is expected of it."""
    return api.__name__ in QUIRKY


def kind_of(api: ModuleType, error: BaseException) -> str:
    """The name of the error's nearest class that plyvel or Python knows."""
    for name in ERRORS:
        if isinstance(error, getattr(api, name)):
            return f"the database's {name}"
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == builtins.__name__)


@contextlib.contextmanager
def refused(api: ModuleType, name: str, match: str | None = None) -> Iterator[None]:
    """Within, this error of the database's is raised, and none that is more special."""
    with pytest.raises(getattr(api, name), match=match) as caught:
        yield
    assert kind_of(api, caught.value) == f"the database's {name}"


def outcome(api: ModuleType, call: Callable[[], Any]) -> tuple[str, Any]:
    """What a call returned, or the kind of error it raised."""
    try:
        return "returned", call()
    except Exception as error:
        return "raised", kind_of(api, error)


def keys(entries: Any) -> list[bytes]:
    """The keys of what a database, a snapshot or an iterator yields as pairs."""
    return [key for key, _ in entries]


def raw_items(iterator: Any) -> list[tuple[bytes, bytes]]:
    """All that a raw iterator walks over, from the first entry on."""
    items = []
    iterator.seek_to_first()
    while iterator.valid():
        items.append(iterator.item())
        iterator.next()
    return items


def compact(db: Any, start: bytes = b"", stop: bytes = b"\xff" * 9) -> None:
    """Compact every level of a whole database: without a stop, plyvel only empties the memory."""
    db.compact_range(start=start, stop=stop)
