"""How long single lookups take while something else goes on in another thread."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence

import attrs

from benchmarks.errors import WrongAnswersError

_BETWEEN_LOOKS = 64


@attrs.frozen
class Latencies:
    """What every lookup took, in ascending order, and how long all of it."""

    nanoseconds: Sequence[int]
    seconds: float

    def percentile(self, percent: float) -> int:
        """So many percent of the lookups took no longer than this; 100 is the slowest."""
        last = len(self.nanoseconds) - 1
        return self.nanoseconds[min(last, int(len(self.nanoseconds) * percent / 100))]


def during(
    work: Callable[[], object],
    get: Callable[[bytes], bytes | None],
    values: Mapping[bytes, bytes],
    keys: Sequence[bytes],
) -> Latencies:
    """Look keys up, one after the other, until ``work`` in another thread is done.

    WrongAnswersError if a value is wrong; what ``work`` raises is raised here.
    """
    failures: list[BaseException] = []

    def worker() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=worker)
    taken = array("q")
    start = time.perf_counter()
    thread.start()
    try:
        at = 0
        while thread.is_alive():
            some = [keys[(at + step) % len(keys)] for step in range(_BETWEEN_LOOKS)]
            at += _BETWEEN_LOOKS
            _look_up(get, values, some, taken)
    finally:
        thread.join()
    seconds = time.perf_counter() - start
    if failures:
        raise failures[0]
    return Latencies(sorted(taken) or [0], seconds)


def _look_up(
    get: Callable[[bytes], bytes | None],
    values: Mapping[bytes, bytes],
    keys: Sequence[bytes],
    taken: array[int],
) -> None:
    clock = time.perf_counter_ns
    for key in keys:
        start = clock()
        value = get(key)
        end = clock()
        if value != values[key]:
            raise WrongAnswersError(f"the value of {key!r} is wrong while tables are rewritten")
        taken.append(end - start)
