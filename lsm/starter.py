"""Starting threads where interruptions come: also in a signal handler or a finalizer."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType

_PREFIX = "lsm-"  # of the names of threads
# What a thread begins with, in all versions of Python there are.
_FIRST = getattr(getattr(threading.Thread, "_bootstrap", None), "__code__", None)
_RETRY_SECONDS = 0.1

Task = tuple[Callable[[], None], str, bool]


class _Starter:
    """One thread for the whole process, which starts all others.

    ``Thread.start`` waits for the new thread in Python, and an interruption there can leave that
    one waiting for good. To ask for a thread here is one call of C, and no interruption ever comes
    to the thread that then starts it.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the thread and its tasks, as in a forked child, which has no threads."""
        self._tasks: dict[object, Task] = {}
        self._asked: SimpleQueue[object] = SimpleQueue()
        self._is_running = False

    def run(self) -> None:
        """Start the starting thread unless it runs."""
        if not self._is_running:
            threading.Thread(target=self._serve, name=f"{_PREFIX}starter", daemon=True).start()
            self._is_running = True

    def start(
        self, task: Callable[[], None], name: str, place: object, *, daemon: bool = True
    ) -> None:
        """Have a task run in a thread of its own; the process waits for it unless ``daemon``.

        Nothing happens if the thread of another one for the same place is still to be started:
        threads that have others started could otherwise be more and more.
        """
        self._tasks.setdefault(place, (task, name, daemon))
        self._asked.put(place)  # anew, for an interruption may have come between the two before

    def _serve(self) -> None:
        tasks, asked = self._tasks, self._asked
        while True:
            place = asked.get()
            if place in tasks:
                task, name, daemon = tasks.pop(place)
                while not _started(task, name, daemon):
                    time.sleep(_RETRY_SECONDS)
                del task  # which holds a database
            del place


def _started(task: Callable[[], None], name: str, daemon: bool) -> bool:
    """Whether the system has let this thread start."""
    try:
        threading.Thread(target=task, name=_PREFIX + name, daemon=daemon).start()
    except RuntimeError:  # as many threads as it allows
        return False
    return True


STARTER = _Starter()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=STARTER.forget)


def is_background() -> bool:
    """Whether the calling thread is a background thread of any database."""
    return (_beginning() or threading.current_thread()).name.startswith(_PREFIX)


def _beginning() -> threading.Thread | None:
    """The thread that the stack of this one begins with; None in one that is none of Python's.

    A finalizer may come before ``threading`` itself knows what runs here. The starter waits until
    it does, so that nobody in a thread of its may wait for another one.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _FIRST:
            found = frame.f_locals.get("self")
            return found if isinstance(found, threading.Thread) else None
        frame = frame.f_back
    return None
