"""What a plug-in raises is contained, whatever it is, unless it interrupts the caller.

A panic of a Rust extension and asyncio's ``CancelledError`` are no ``Exception``, and as foreign as
what is one. So whoever calls a plug-in catches ``BaseException``, and asks here first.
"""

from __future__ import annotations

import threading

INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Somebody wants the code to stop that is running, whatever it is doing."""

MOMENTARY = (MemoryError, RecursionError)
"""They tell of the moment, of the caller's stack or the machine's memory, not of the plug-in."""


def let_pass(error: BaseException, *, attended: bool = True) -> None:
    """Raise an interruption again, for who called is to see it; all else is the plug-in's.

    Where nobody called, in a thread of an engine's own, an interruption is the plug-in's, too.
    """
    if attended and issubclass(type(error), INTERRUPTIONS):
        raise error


def is_attended() -> bool:
    """Whether somebody may wait in this thread for a filter to be built.

    Filters are built in the background, or while a database is opened or repaired. Python
    interrupts the main thread only: what is raised elsewhere the plug-in has raised by itself.
    """
    return threading.current_thread() is threading.main_thread()


def is_momentary(error: BaseException | None) -> bool:
    """Whether the same may go well a moment later, so that nothing lasting follows from it."""
    return issubclass(type(error), MOMENTARY)
