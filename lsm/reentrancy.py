"""Reentrant operations: what a signal handler or a finalizer asks of the engine.

Python runs both in the middle of whatever the thread was doing, and that may be an operation of the
engine, which then cannot go on before they return. So what is asked for there never waits for
anybody who may in turn wait for this thread. The same goes for comparators, plug-ins and file
systems of the caller's, which the engine itself calls.
"""

from __future__ import annotations

import sys
from types import FrameType

_PACKAGE = __name__.partition(".")[0] + "."
# What calls the engine as any program does, and is no operation of it.
_PROGRAMS = tuple(_PACKAGE + each for each in ("cli", "aio", "mappings"))


def is_reentrant() -> bool:
    """Whether who calls was itself called within another operation of the engine."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (_is_ours(frame) or _module(frame) == "contextlib"):
        frame = frame.f_back
    while frame is not None:
        if _is_ours(frame):
            return True
        frame = frame.f_back
    return False


def _is_ours(frame: FrameType) -> bool:
    module = _module(frame)
    return module.startswith(_PACKAGE) and not module.startswith(_PROGRAMS)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
