"""Doing something between two steps of other code, as the handler of a signal would, or failing."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tests.lsm.simulated import SimulatedStorage


@contextmanager
def at_step(
    is_meant: Callable[[CodeType], bool], step: int, do: Callable[[], None], *, what: str = "opcode"
) -> Iterator[list[int]]:
    """Within, do something before one step of the functions that are meant.

    A step is a bytecode, or with ``what="line"`` a line. The number that is given is how many steps
    were left when the block ended: below zero if it was done.
    """
    left = [step]

    def each(frame: FrameType, event: str, _argument: Any) -> Any:
        if not is_meant(frame.f_code):
            return None
        frame.f_trace_opcodes = what == "opcode"
        if event == what:
            left[0] -= 1
            if left[0] == -1:
                do()
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        yield left
    finally:
        sys.settrace(before)


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def fails_at(storage: SimulatedStorage, place: int, error: int = errno.EIO) -> list[str]:
    """Have one operation fail; then its name is in the list."""
    failed = []

    def when(what: str, _path: str, index: int) -> bool:
        if index == place:
            failed.append(what)
        return index == place

    storage.fail(when, error)
    return failed
