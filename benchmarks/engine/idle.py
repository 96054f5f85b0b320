"""When an engine that cannot be asked has nothing left to do: when nothing about it moves any more.

What moves is what the caller looks at, such as the sizes of its files, and the processor time of
the threads of this process that are not Python's, where Linux tells it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from pathlib import Path

# A thread that waits for the disk does not sleep, and so is seen however long that takes.
STILL = 0.2
BETWEEN_LOOKS = 0.004

TASKS = Path("/proc/self/task")
_ASLEEP = "S"


def wait_until_still(look: Callable[[], Hashable | None]) -> float:
    """Return when what ``look`` gives has stayed the same for STILL seconds; for how long it has.

    None stands for something that is still going on.
    """
    last, since = look(), time.perf_counter()
    while True:
        time.sleep(BETWEEN_LOOKS)
        seen, now = look(), time.perf_counter()
        if seen is None or seen != last:
            last, since = seen, now
        elif now - since >= STILL:
            return now - since


def wait_until(done: Callable[[], bool]) -> None:
    """Return when this has been so twice in a row, for an engine that can be asked."""
    times = 0
    while times < 2:
        times = times + 1 if done() else 0
        time.sleep(BETWEEN_LOOKS / 4)


def sizes_of_files(directory: Path) -> Hashable | None:
    """The files of a directory with their sizes; None where one went meanwhile."""
    try:
        return frozenset((file.name, file.stat().st_size) for file in directory.iterdir())
    except FileNotFoundError:
        return None


def foreign_threads() -> Hashable | None:
    """The nanoseconds of the processor that threads have had which Python has not started.

    None while one of them works or waits for the disk. Nothing where the system does not tell.
    """
    if not TASKS.exists():
        return ()
    own = {str(thread.native_id) for thread in threading.enumerate()}
    taken = []
    for task in TASKS.iterdir():
        if task.name in own:
            continue
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            taken.append((task.name, (task / "schedstat").read_text().split()[0]))
        except (FileNotFoundError, ProcessLookupError):  # it has ended, or is about to
            return None
        if state != _ASLEEP:
            return None
    return frozenset(taken)
