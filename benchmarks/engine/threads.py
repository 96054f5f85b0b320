"""How long lookups take that several threads make at once, by the wall clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from benchmarks.timing import fresh_loop

Item = TypeVar("Item")
Get = Callable[[bytes], bytes | None]


def seconds(getter: Callable[[], Get], lists: Sequence[Sequence[bytes]]) -> float:
    """For looking up each of these lists in a thread of its own, from the start of all on.

    ``getter`` is called once for each. What a thread raises is raised here.
    """
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(lists) + 1)

    def worker(loop: Callable[[Any, Any], None], keys: Sequence[bytes], get: Get) -> None:
        barrier.wait()
        try:
            loop(keys, get)
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=worker, args=(fresh_loop("subject(key)"), keys, getter()))
        for keys in lists
    ]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    taken = time.perf_counter() - start
    if failures:
        raise failures[0]
    return taken


def dealt(items: Sequence[Item], threads: int) -> Iterator[Sequence[Item]]:
    """The items in so many lists, whose lengths differ by one at most."""
    return (items[at::threads] for at in range(threads))
