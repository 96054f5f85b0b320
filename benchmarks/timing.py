"""How things are timed: fresh loops, several repeats in turn, nothing else going on.

Four things distort a comparison in CPython, and each is kept out here. From 3.11 on, bytecode is
specialised for the types it meets, function by function: a loop that two subjects share costs both
up to 10 ns more, so every timed loop is a function of its own. A disturbance from outside lasts
longer than a repeat: subjects therefore take turns, and the best repeat of each counts. The wall
clock goes on while somebody else has the processor: what counts is the processor's time for this
thread. The cyclic garbage collector comes when it wants to: it is off.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

# The best repeat is believed when another one confirms it to so much.
AGREEMENT = 1.02

_LOOP = """
def loop(keys, subject):
    for key in keys:
        {body}
"""
_ANSWERS = """
def answers(keys, subject):
    return [{body} for key in keys]
"""


@attrs.frozen
class Sample:
    """Something to time, how many keys it handles, and by which clock."""

    run: Callable[[], object]
    keys: int
    clock: Callable[[], float] = time.thread_time


def fresh_loop(body: str) -> Callable[[Iterable[Any], Any], None]:
    """A new function ``loop(keys, subject)`` that evaluates ``body`` for each ``key``."""
    return _compiled(_LOOP, body, "loop")


def fresh_answers(body: str) -> Callable[[Iterable[Any], Any], list[Any]]:
    """A new function ``answers(keys, subject)``: the list of what ``body`` is for each ``key``."""
    return _compiled(_ANSWERS, body, "answers")


def interleaved(
    samples: Sequence[Sample], repeats: int, *, at_most: int = 0, at_least: float = 0.0
) -> list[list[float]]:
    """For each sample, its nanoseconds per key in each repeat.

    In a repeat all samples have their turn, from the first on or from the last back, and each runs
    again until that has taken ``at_least`` so many seconds: what the other has left in the caches
    then counts for little. Repeats are added, ``at_most`` up to so many, until of every sample the
    two best agree: a disturbance that hits only one of them would pass for a result.
    """
    taken: list[list[float]] = [[] for _ in samples]
    order = list(range(len(samples)))
    with quiet():
        while len(taken[0]) < repeats or (len(taken[0]) < at_most and not _agreed(taken)):
            for index in order:
                seconds = _seconds(samples[index], at_least)
                taken[index].append(seconds / samples[index].keys * 1e9)
            order.reverse()
    return taken


def loop(body: str, keys: Sequence[Any], subject: Any) -> Sample:
    """``body`` for each key, in a function that nothing else has run through."""
    run = fresh_loop(body)
    return Sample(lambda: run(keys, subject), len(keys))


def by_buffer(built: Any, keys: Sequence[bytes]) -> Sample:
    """One call for all keys of a buffer, the answers into a bytearray that is there already."""
    out = bytearray(len(keys))
    return Sample(lambda: built.might_contain_many(keys, out=out), len(keys))


@contextmanager
def quiet(*, pinned: bool = True) -> Iterator[None]:
    """No garbage collection, and if ``pinned`` one processor, where the system lets us choose."""
    collecting = gc.isenabled()
    allowed = processors()
    gc.collect()
    gc.disable()
    run_on(allowed[-1:] if pinned else allowed)
    try:
        yield
    finally:
        run_on(allowed)
        if collecting:
            gc.enable()


def processors() -> list[int]:
    """The processors this thread may run on; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def run_on(allowed: Iterable[int]) -> None:
    """Let this thread run on these processors only; nothing happens without any."""
    chosen = set(allowed)
    if chosen:
        os.sched_setaffinity(0, chosen)


def _agreed(taken: Sequence[Sequence[float]]) -> bool:
    """Whether of every sample the two best repeats are nearly the same."""
    best = (sorted(repeats)[:2] for repeats in taken)
    return all(one[-1] <= AGREEMENT * one[0] for one in best)


def _seconds(sample: Sample, at_least: float) -> float:
    """How long it takes, the mean of several times where it takes less than so long.

    What it returns is freed while the clock stands still.
    """
    total, times = 0.0, 0
    while times == 0 or total < at_least:
        start = sample.clock()
        result = sample.run()
        total += sample.clock() - start
        times += 1
        del result
    return total / times


def _compiled(template: str, body: str, name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(compile(template.format(body=body), f"<{name}: {body}>", "exec"), names)
    made: Callable[..., Any] = names[name]
    return made
