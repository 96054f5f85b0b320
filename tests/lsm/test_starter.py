"""Threads that are asked for: each place has one at a time, however often it is asked for."""

from __future__ import annotations

import threading
from collections import Counter

from lsm.starter import _Starter
from tests.lsm.crew import PATIENCE


def test_a_place_is_asked_for_again_and_again_and_has_one_thread() -> None:
    """Threads that find nothing to do have others started: these must not be more and more."""
    starter, begun, both = _Starter(), Counter[str](), threading.Barrier(3)

    def begin(place: str) -> None:
        begun[place] += 1
        both.wait(PATIENCE)

    for _ in range(100):
        for place in ("flush", "compaction"):
            starter.start(lambda place=place: begin(place), place, place)  # type: ignore[misc]
    starter.run()
    both.wait(PATIENCE)
    assert begun == {"flush": 1, "compaction": 1}
    again = threading.Event()
    starter.start(again.set, "flush", "flush")
    assert again.wait(PATIENCE), "what has begun is not asked for any more"
    assert begun == {"flush": 1, "compaction": 1}


def test_what_an_interruption_has_left_is_started_by_who_asks_next() -> None:
    starter, begun = _Starter(), threading.Event()
    starter._tasks["flush"] = (begun.set, "flush", True)  # and nobody was told
    starter.run()
    starter.start(lambda: None, "flush", "flush")
    assert begun.wait(PATIENCE)
