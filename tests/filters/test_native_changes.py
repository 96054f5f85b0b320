"""Filters that change, or are gone, while somebody asks, writes or holds on to them.

One writer or many readers, says the contract. Who breaks it may get an answer from before or from
after, never a crash, and never bytes that are damaged.
"""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest

from filters import CapacityError, PackedKeys, header
from filters.header import FAMILY_IDS
from tests.effort import by_effort
from tests.filters.cases import (
    Case,
    every_family,
    every_growing_family,
    needs_native,
    random_keys,
    twins,
)
from tests.filters.test_c_door import opened

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
HAS_A_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def packed(keys: list[bytes]) -> PackedKeys:
    return PackedKeys(b"".join(keys), offsets=array("q", accumulate(map(len, keys), initial=0)))


@contextmanager
def meanwhile(work: Callable[[], Any]) -> Iterator[None]:
    """Let a thread work over and over, in turns that are as short as can be."""
    before = sys.getswitchinterval()
    ended, failed = threading.Event(), []

    def toil() -> None:
        try:
            while not ended.is_set():
                work()
        except BaseException as error:
            failed.append(error)

    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=toil)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)
    assert not failed


# ---- a filter that is added to ----

WRITES = by_effort(60, 200, 100_000)


@every_growing_family
def test_what_is_written_while_keys_are_added_can_be_read(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """The filter is large enough that hashing and joining it let other threads run."""
    cls = case.cls(kernel)
    known, more = random_keys(rng, 50), random_keys(rng, 1000, length=9)
    size = {"fpr": 0.001} if case.family == "scalable" else {}
    built = cls.with_capacity(300_000, seed=SEED, salt=SALT, **size)
    built.add_many(known)
    assert built.size_in_bytes > 300_000
    turn = iter(range(10**9))

    def add() -> None:
        key = more[next(turn) % len(more)]
        if case.family == "cuckoo":  # which keeps every copy
            built.remove(key)
        built.add(key)

    with meanwhile(add):
        for _ in range(WRITES if HAS_A_GIL else 1):
            again = cls.from_bytes(built.to_bytes())
            assert again.might_contain_many(known) == [True] * len(known)


def test_the_checksum_is_that_of_the_bytes_that_are_written() -> None:
    """Whatever becomes of the payload while they are joined and hashed."""
    payload = bytearray(1000)

    def change(*_: Any) -> None:
        payload[500] += 1

    head = header.Header("classic", 3, 8000, 1, seed=SEED, salt=SALT)
    sys.setprofile(change)
    try:
        data = header.pack(head, payload[:100], payload)
    finally:
        sys.setprofile(None)
    assert payload[500] > 3
    assert header.unpack(data, "classic")[0] == head


@every_growing_family
def test_a_filter_that_grows_is_asked_in_every_form(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """From its bytes, so that the first key moves them, and on to further slices."""
    cls = case.cls(kernel)
    known = random_keys(rng, 100)
    asked = packed(known * 5)
    for _ in range(by_effort(2, 6, 4_000)):
        built = cls.from_bytes(case.build(kernel, known, **secrets(case)).to_bytes())
        digests = cls.digests(seed=SEED)
        digests.add_many(known)
        keys = iter(random_keys(rng, 400, length=9))

        def add(built: Any = built, keys: Iterator[bytes] = keys) -> None:
            try:
                built.add_many([key for key, _ in zip(keys, range(20), strict=False)])
            except CapacityError:
                assert case.family == "cuckoo"

        with meanwhile(add):
            for _ in range(20):
                denied = built.might_contain_many(asked).count(False)
                denied += built.might_contain_many(known, bytearray(100)).count(0)
                denied += built.count_missing(digests)
                # A fingerprint that is just being moved is nowhere for a moment.
                assert denied == 0 or case.family == "cuckoo"
        assert all(built.might_contain_many(known))


# ---- bytes that change under a view ----


@needs_native
@every_family
def test_whatever_is_scribbled_over_a_view_stays_within_it(case: Case, rng: random.Random) -> None:
    """The page asks not to; who does gets nonsense."""
    cls = case.cls(twins()[1])
    keys = [rng.randbytes(length) for length in range(200)]
    for _ in range(by_effort(6, 20, 20_000)):
        memory = bytearray(cls.build(keys, **secrets(case)).to_bytes())
        viewed = cls.from_bytes(memoryview(memory).toreadonly())
        door = opened(viewed)
        for _ in range(4):
            at = rng.randrange(len(memory))
            scribble = rng.choice((b"\xff" * 64, bytes(64), rng.randbytes(64)))[: len(memory) - at]
            memory[at : at + len(scribble)] = scribble
            assert len(viewed.might_contain_many(packed(keys))) == len(keys)
            assert {door.ask(key) for key in keys} <= {0, 1}
            assert 0 <= viewed.might_contain_many(keys, bytearray(200)).count(1) <= 200
            assert repr(viewed)
            assert viewed.fill >= 0
        if hasattr(viewed, "add"):
            with_all(viewed, keys)
        assert len(viewed.to_bytes()) >= len(memory)


def with_all(built: Any, keys: list[bytes]) -> None:
    """Add the keys, if they find room."""
    try:
        built.add_many(keys)
    except CapacityError:
        return
    assert all(built.might_contain_many(keys))


# ---- doors to filters that are gone ----


@needs_native
@every_family
def test_a_native_door_outlives_its_filter_wherever_that_came_from(
    case: Case, rng: random.Random
) -> None:
    """Built, read, viewed, unpickled, copied; grown since; and closed in any order."""
    python, native = twins()
    cls = case.cls(native)
    origins: list[Callable[[Any], Any]] = [
        lambda built: built,
        lambda built: cls.from_bytes(built.to_bytes()),
        lambda built: cls.from_bytes(bytearray(built.to_bytes())),
        lambda built: cls.from_bytes(memoryview(bytearray(built.to_bytes())).toreadonly()),
        lambda built: pickle.loads(pickle.dumps(built)),
        lambda built: pickle.loads(pickle.dumps(case.cls(python).from_bytes(built.to_bytes()))),
        lambda built: copy.deepcopy(copy.copy(built)),
    ]
    for _ in range(by_effort(2, 6, 3_000)):
        keys = [rng.randbytes(rng.randrange(40)) for _ in range(100)]
        for origin in origins:
            born = origin(cls.build(keys, **secrets(case)))
            doors = [opened(born) for _ in range(3)]
            if hasattr(born, "add") and rng.random() < 0.7:
                with_all(born, random_keys(rng, 30, length=9))
            del born
            while doors:
                door = doors.pop(rng.randrange(len(doors)))
                assert all(map(door.ask, keys))
                if case.family in FAMILY_IDS and not case.record.answers_ranges:
                    assert all(door.ask_digest(door.digest(key)) for key in keys[:10])
                del door
        gc.collect(0)


@pytest.mark.parametrize("slices", [2, 6])
def test_what_is_written_amid_growth_is_a_whole_chain(
    kernel: ModuleType, slices: int, rng: random.Random
) -> None:
    """A scalable filter that gets a slice more while its head is being written."""
    grown = kernel.ScalableBloomFilter.with_capacity(10, seed=SEED, salt=SALT)
    while grown.num_slices < slices:
        grown.add(rng.randbytes(12))
    grows = iter(range(10**9))

    def grow(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "head_of" and next(grows) == 0:
            while grown.num_slices == slices:
                grown.add(rng.randbytes(12))

    sys.setprofile(grow)
    try:
        data = grown.to_bytes()
    finally:
        sys.setprofile(None)
    assert next(grows) > 0
    assert kernel.ScalableBloomFilter.from_bytes(data).num_slices in (slices, slices + 1)
