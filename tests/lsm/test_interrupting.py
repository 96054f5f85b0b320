"""The points of interruption: all that there are, each once, and none that there is not."""

from __future__ import annotations

import dis
import random
import signal
import sys
import threading
from bisect import bisect_right
from types import FrameType
from typing import Any

import pytest

import lsm
from lsm.cache import ClockCache
from tests.lsm import interrupting
from tests.lsm.interrupting import INSTRUCTIONS, interrupted_at, points
from tests.lsm.simulated import SimulatedStorage


class Thing:
    """What a cache holds."""

    charge = 1
    used = False
    held: bool | None = None

    def evict(self) -> None:
        """Nothing is to be left."""


def admitted() -> ClockCache:
    cache = ClockCache(2)
    for _ in range(4):
        cache.admit(Thing())
    return cache


def test_each_point_is_interrupted_once_and_in_order() -> None:
    total = points(admitted)
    assert 30 < total < 400
    places = []
    for number in range(total):
        outcome = interrupted_at(number, admitted)
        assert isinstance(outcome.raised, KeyboardInterrupt)
        assert outcome.raised.__traceback__ is None
        assert outcome.result is None
        places.append(outcome.where)
    assert places[0] is not None
    assert places[0].startswith("cache.py:")
    assert {str(place).split()[-1] for place in places} >= {"__init__", "admit", "_turn"}
    beyond = interrupted_at(total, admitted)
    assert beyond.where is beyond.raised is None
    assert len(beyond.result) == 2
    assert points(admitted) == total, "and nothing of it lasts"


def test_a_function_is_called_at_the_point_and_not_traced_itself() -> None:
    called = []
    for number in range(0, points(admitted), 7):
        outcome = interrupted_at(number, admitted, call=lambda: called.append(len(admitted())))
        assert outcome.raised is None
        assert len(outcome.result) == 2
    assert set(called) == {2}


def test_another_error_than_the_one_of_the_point_tells_where_it_comes_from() -> None:
    def swap() -> None:
        try:
            admitted()
        except MemoryError:
            raise LookupError from None

    outcome = interrupted_at(3, swap, raising=MemoryError)
    assert isinstance(outcome.raised, LookupError)
    assert str(outcome.where) in outcome.raised.__notes__[0]
    with pytest.raises(ZeroDivisionError):
        interrupted_at(10**6, lambda: 1 // 0)


def test_there_are_more_instructions_than_points_for_signals() -> None:
    assert points(admitted, INSTRUCTIONS) > 3 * points(admitted)
    places = {
        interrupted_at(number, admitted, raising=MemoryError, kind=INSTRUCTIONS).where
        for number in range(30)
    }
    assert None not in places


class Place:
    """Something that is put where nothing is."""

    def __init__(self) -> None:
        self.is_open = True
        self.taken: object = None

    def take(self, thing: object) -> None:
        if self.is_open and self.taken is None:
            self.taken = thing

    def replace(self, things: list[object]) -> None:
        self.taken = things.pop()


def test_no_finalizer_comes_between_a_look_at_what_is_kept_and_its_change() -> None:
    quiet = interrupting.quiet(Place.take.__code__)
    behind = {each.opname for each in dis.get_instructions(Place.take) if each.offset not in quiet}
    assert "STORE_ATTR" in behind
    assert not {name for name in behind if name.startswith(("LOAD", "POP_JUMP"))}


def test_a_finalizer_may_come_behind_whatever_lets_go_of_something() -> None:
    quiet = interrupting.quiet(Place.replace.__code__)
    told = dis.get_instructions(Place.replace)
    assert {"CALL", "STORE_ATTR"} <= {each.opname for each in told if each.offset not in quiet}


def test_what_python_drops_is_dropped_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Last:
        def __del__(self) -> None:
            admitted()

    def let_go() -> str:
        Last()
        return "done"

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    outcome = interrupted_at(5, let_go)
    assert (outcome.result, outcome.raised) == ("done", None)
    assert outcome.where is not None
    assert told == []


def test_a_lock_is_taken_or_not_and_never_in_between() -> None:
    """The interpreter promises it of `with lock`: no point is where the lock could be lost."""
    lock = threading.Lock()

    def use(cache: ClockCache) -> None:
        cache.admit(Thing())
        with lock:
            len(cache)

    for number in range(points(lambda: use(ClockCache(2)))):
        interrupted_at(number, lambda: use(ClockCache(2)))
        assert lock.acquire(blocking=False), "the lock was left taken"
        lock.release()


def test_loops_generators_and_far_jumps_have_their_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body so long that its jump back needs a prefix; a generator that is entered again."""
    body = "\n".join("        x = x + x - x" for _ in range(120))
    made: dict[str, Any] = {}
    source = f"""
def walk(n):
    x = 1
    for _ in n:
{body}
    return x

def many(n):
    for each in n:
        yield each

def nested(n):
    return len(list(range(n)))
"""
    exec(compile(source, "<far>", "exec"), made)
    monkeypatch.setattr(interrupting, "_ROOTS", ("<far>",))
    walk, many, nested = made["walk"], made["many"], made["nested"]
    for number in (0, 1, 3):
        assert points(lambda number=number: walk([1] * number)) == 1 + number
        places = 1 + 2 * number  # it is entered, and behind each yield, and each time jumps back
        assert points(lambda number=number: list(many([1] * number))) == places
    for _ in range(30):  # and as well when the interpreter has learned what is called there
        nested(3)
        assert points(lambda: nested(3)) == 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers to interrupt by")
def test_where_real_signals_come_is_a_point() -> None:
    """Wherever a timer happens to interrupt, it is behind an instruction that is known for it."""
    odd: set[str] = set()
    come = 0

    def note(_number: int, frame: FrameType | None) -> None:
        nonlocal come
        if frame is not None and interrupting.is_ours(frame.f_code.co_filename):
            come += 1
            starts = [each.offset for each in dis.get_instructions(frame.f_code)]
            behind = starts[bisect_right(starts, frame.f_lasti) - 1]  # it may be at a cache entry
            if behind not in interrupting.checked(frame.f_code):
                odd.add(f"{frame.f_code.co_name}: {behind}")

    before = signal.signal(signal.SIGALRM, note)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        for _ in range(20_000):
            admitted()
            if come > 300:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert come
    assert not odd


def test_the_samples_are_all_or_some_in_order(rng: random.Random) -> None:
    assert list(interrupting.chosen(5, None, rng)) == [0, 1, 2, 3, 4]
    assert list(interrupting.chosen(5, 9, rng)) == [0, 1, 2, 3, 4]
    some = list(interrupting.chosen(1000, 10, rng))
    assert some == sorted(set(some))
    assert len(some) == 10


def test_other_threads_go_on_and_the_trace_before_comes_back() -> None:
    def trace(*_: object) -> None:
        return None

    before = sys.gettrace()
    with lsm.DB("db", create_if_missing=True, storage=SimulatedStorage()) as db:
        db.put(b"key", b"value")
        sys.settrace(trace)
        try:
            outcome = interrupted_at(0, lambda: db.put(b"key", b"other"))
            assert sys.gettrace() is trace
        finally:
            sys.settrace(before)
        assert outcome.where is not None
        thread = threading.Thread(target=db.get, args=(b"key",))
        thread.start()
        thread.join()
