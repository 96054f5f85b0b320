"""What Python would ask of anything, and databases and what is made of them refuse: in words."""

from __future__ import annotations


def no_length(thing: object) -> TypeError:
    """The error of ``len()``, with the ways to count."""
    return TypeError(
        f"{_named(thing)} has no len(): nobody counts entries while they are written, so that it "
        "takes reading all keys: sum(1 for _ in db.iterator(include_value=False)), or on the "
        "command line: lsm count"
    )


def no_pickle(thing: object) -> TypeError:
    """The error of pickling, and of copying as by ``copy.copy()``."""
    return TypeError(
        f"{_named(thing)} can be neither pickled nor copied: it belongs to a database that this "
        "process has open, and one process has a database open at a time. Hand on its path and "
        "open it there, any number of times with read_only=True where nobody writes"
    )


def _named(thing: object) -> str:
    """The thing's class, as programs know it."""
    return f"lsm.{type(thing).__name__}"
