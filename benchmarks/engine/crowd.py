"""How much writers and readers get done that work at the same time, by the wall clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import attrs

from benchmarks.engine.data import cut
from benchmarks.engine.engine import Engine, Pairs
from benchmarks.engine.threads import dealt
from benchmarks.timing import fresh_loop

# How many operations a thread does between two looks at whether the time is up.
_BETWEEN_LOOKS = 64

Worker = Callable[[], int]


@attrs.frozen
class Done:
    """How many puts and gets were done in all, and in how many seconds."""

    puts: int
    gets: int
    seconds: float


def work(writers: Sequence[Worker], readers: Sequence[Worker], seconds: float) -> Done:
    """Have each of these work in a thread of its own for so long, from the start of all on.

    A worker does a few operations when it is called and says how many. What one raises is raised
    here, at once.
    """
    workers = [*writers, *readers]
    counts, failures = [0] * len(workers), list[BaseException]()
    over, barrier = threading.Event(), threading.Barrier(len(workers) + 1)

    def run(index: int, some: Worker) -> None:
        barrier.wait()
        done = 0
        try:
            done = some()
            while not over.is_set():
                done += some()
        except BaseException as error:
            failures.append(error)
            over.set()
        counts[index] = done

    threads = [threading.Thread(target=run, args=each) for each in enumerate(workers)]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    over.wait(seconds)
    over.set()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    if failures:
        raise failures[0]
    return Done(sum(counts[: len(writers)]), sum(counts[len(writers) :]), taken)


def of_each(
    engine: Engine, db: Any, count: int, pairs: Pairs, keys: Sequence[bytes], seconds: float
) -> Done:
    """So many writers, which put these pairs over and over, beside as many that look up the keys.

    Each has a part of its own.
    """
    writers = [_writer(engine.putter(db, sync=False), some) for some in dealt(pairs, count)]
    readers = [_reader(engine.getter(db), some) for some in dealt(keys, count)]
    return work(writers, readers, seconds)


def _writer(put: Callable[[bytes, bytes], object], pairs: Pairs) -> Worker:
    return _worker(fresh_loop("subject(key[0], key[1])"), put, pairs)


def _reader(get: Callable[[bytes], bytes | None], keys: Sequence[bytes]) -> Worker:
    return _worker(fresh_loop("subject(key)"), get, keys)


def _worker(loop: Callable[[Any, Any], None], subject: Any, items: Sequence[Any]) -> Worker:
    pieces = cycle(cut(items, _BETWEEN_LOOKS))

    def some() -> int:
        piece = next(pieces)
        loop(piece, subject)
        return len(piece)

    return some
