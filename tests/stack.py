"""Calls that have little of the stack left, as of a caller who has recursed deeply."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def with_stack_for(frames: int, call: Callable[[], _T]) -> _T:
    """The result of a call that has so many frames left, or RecursionError."""
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back

    def down(left: int) -> _T:
        return down(left - 1) if left > 0 else call()

    return down(sys.getrecursionlimit() - depth - frames)
