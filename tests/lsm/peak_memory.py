"""How much memory Python takes at most."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(most: int) -> Iterator[None]:
    """AssertionError if what is done within ever takes so many bytes at a time, or more."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
