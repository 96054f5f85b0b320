"""The cache of parts of tables: held to its bytes, with a second chance for what was used."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm.cache import ClockCache
from lsm.disk.footer import Handle
from tests.effort import examples
from tests.lsm.crew import PATIENCE, Crew
from tests.lsm.interrupting import INSTRUCTIONS, SIGNALS, Kind, interrupted_at, points
from tests.lsm.simulated import SimulatedStorage


@attrs.define(eq=False)
class Item:
    """Something of a size."""

    charge: int
    used: bool = False
    held: bool | None = None
    evicted: int = 0
    forgotten: bool = False

    def evict(self) -> None:
        self.evicted += 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.integers(1, 60)),
        st.tuples(st.sampled_from(["forget", "use"]), st.integers(0, 40)),
    ),
    max_size=80,
)


def test_whoever_counts_without_the_lock_counts_right_at_every_line() -> None:
    """As another thread may, between any two lines of whoever changes the cache."""
    cache, items = ClockCache(100), [Item(10) for _ in range(10)]
    counts: list[int] = []

    def look(frame: FrameType, event: str, _argument: object) -> Any:
        if frame.f_code.co_filename.endswith("cache.py") and frame.f_code.co_name != "__len__":
            counts.append(len(cache))
            return look
        return None

    before = sys.gettrace()
    sys.settrace(look)
    try:
        for item in items:
            cache.admit(item)
        for item in items:
            cache.forget(item)
    finally:
        sys.settrace(before)
    assert len(counts) > 50
    assert 0 <= min(counts) <= max(counts) <= 10


@examples(300)
@given(st.integers(0, 100), st.one_of(st.none(), st.integers(1, 5)), STEPS)
def test_it_is_never_above_its_limits(
    limit: int, most: int | None, steps: list[tuple[str, int]]
) -> None:
    cache, items, forgotten = ClockCache(limit, most), [], set()
    for step, number in steps:
        if step == "admit":
            items.append(Item(number))
            cache.admit(items[-1])
        elif number < len(items) and step == "forget":
            forgotten.add(number)
            cache.forget(items[number])
        elif number < len(items):
            items[number].used = True
        inside = [item for item in items if item.held]
        assert cache.bytes == sum(item.charge for item in inside) <= limit
        assert len(cache) == len(inside)
        assert most is None or len(cache) <= most
        for at, item in enumerate(items):
            assert item.evicted <= 1
            assert item.held == (not item.evicted and at not in forgotten)


def test_what_was_used_gets_a_second_chance() -> None:
    cache = ClockCache(3)
    items = [Item(1) for _ in range(3)]
    for item in items:
        cache.admit(item)
    items[0].used = True
    cache.admit(Item(1))
    assert [item.evicted for item in items] == [0, 1, 0]
    assert not items[0].used
    cache.admit(Item(1))
    assert [item.evicted for item in items] == [0, 1, 1]
    cache.admit(Item(1))
    assert items[0].evicted == 0, "the hand set it behind those that were there"
    cache.admit(Item(1))
    assert cache.evictions == 4
    assert items[0].evicted == 1


def test_the_oldest_goes_first_and_the_newest_where_all_others_were_used() -> None:
    for used, expected in ((False, [1, 0, 0, 0]), (True, [0, 0, 0, 1])):
        cache = ClockCache(30)
        items = [*(Item(10, used) for _ in range(3)), Item(10)]
        for item in items:
            cache.admit(item)
        assert [item.evicted for item in items] == expected
        assert not any(item.used for item in items)


def test_what_is_too_large_goes_itself() -> None:
    cache = ClockCache(10)
    small, large = Item(10), Item(11)
    cache.admit(small)
    cache.admit(large)
    assert (small.evicted, large.evicted, large.held) == (0, 1, False)
    assert (cache.bytes, len(cache), cache.evictions) == (10, 1, 0)


def test_what_is_forgotten_is_not_told_and_costs_nothing() -> None:
    cache = ClockCache(10)
    items = [Item(1) for _ in range(10)]
    for item in items:
        cache.admit(item)
    for item in items[:9]:
        cache.forget(item)
        cache.forget(item)
    assert (cache.bytes, len(cache)) == (1, 1)
    assert sum(item.evicted for item in items) == 0
    assert len(cache._ring) == 1, "places of what is forgotten are not kept"


def test_what_is_forgotten_before_it_comes_is_not_admitted() -> None:
    cache, item = ClockCache(10), Item(1)
    cache.forget(item)
    cache.admit(item)
    assert (cache.bytes, len(cache), item.evicted, item.held) == (0, 0, 0, False)


def test_two_that_miss_the_same_block_leave_nothing_of_a_dropped_table() -> None:
    with lsm.DB("db", create_if_missing=True, storage=SimulatedStorage()) as db:
        db.put(b"key", b"value")
        db.flush()
        tables = db._store.tables
        (placed,) = db._store.view.version.tables()  # type: ignore[union-attr]
        opened = tables.opened(placed.file)
        both = threading.Barrier(2)
        read = opened.reader.block

        class Meeting:
            """The table's reader, from which two read a block at the same time."""

            def __getattr__(self, name: str) -> Any:
                return getattr(reader, name)

            def block(self, handle: Handle) -> Any:
                block = read(handle)
                both.wait(PATIENCE)
                return block

        reader, opened.reader = opened.reader, Meeting()  # type: ignore[assignment]
        with Crew() as crew:
            for _ in range(2):
                crew.start(db.get, b"key")
        tables.drop(placed.number)
        assert (len(tables.blocks), tables.blocks.bytes) == (0, 0)


def filled(charges: Iterable[int] = (9, 9, 4, 4, 2)) -> tuple[ClockCache, list[Item]]:
    """A cache whose limits the next admission passes, and what it has admitted."""
    cache, items = ClockCache(28, 5), [Item(charge) for charge in charges]
    for number, item in enumerate(items):
        cache.admit(item)
        item.used = number in (0, 3)
    return cache, items


def check_settled(cache: ClockCache, items: list[Item]) -> None:
    """With the next admission the limits hold, and nothing is where it cannot be evicted."""
    items.append(Item(1))
    cache.admit(items[-1])
    inside = list(cache._ring)
    assert cache.bytes == sum(item.charge for item in inside) <= 28
    assert len(cache) == len(inside) <= 5
    for item in items:
        assert (item in inside) == bool(item.held)
        assert item.evicted or item.forgotten or item.held is not False
        assert not (item.held and item.evicted)


def changes(cache: ClockCache, items: list[Item]) -> dict[str, Callable[[], None]]:
    """What can be done with it."""

    def admit(charge: int) -> None:
        items.append(Item(charge))
        cache.admit(items[-1])

    def forget(item: Item) -> None:
        item.forgotten = True
        cache.forget(item)

    return {
        "small": lambda: admit(2),
        "large": lambda: admit(25),
        "too large": lambda: admit(29),
        "forget": lambda: forget(items[1]),
        "forget the next": lambda: forget(items[2]),
    }


CHANGES = list(changes(ClockCache(0), []))


@pytest.mark.parametrize("change", CHANGES)
def test_after_an_interruption_at_any_point_its_limits_hold_again(change: str) -> None:
    for number in range(points(changes(*filled())[change])):
        cache, items = filled()
        outcome = interrupted_at(number, changes(cache, items)[change])
        assert isinstance(outcome.raised, KeyboardInterrupt)
        check_settled(cache, items)


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
@pytest.mark.parametrize("nested", CHANGES)
@pytest.mark.parametrize("change", CHANGES)
def test_whoever_interrupts_a_change_may_change_it_too(
    change: str, nested: str, kind: Kind
) -> None:
    for number in range(points(changes(*filled())[change], kind)):
        cache, items = filled()
        do = changes(cache, items)
        outcome = interrupted_at(number, do[change], call=do[nested], kind=kind)
        assert outcome.raised is None
        check_settled(cache, items)


def test_clearing_that_was_interrupted_is_done_when_it_is_tried_again() -> None:
    for number in range(points(filled()[0].clear)):
        cache, items = filled()
        interrupted_at(number, cache.clear)
        cache.clear()
        assert (len(cache), cache.bytes) == (0, 0)
        assert not any(item.held for item in items)


def test_a_limit_of_items_holds_without_bytes() -> None:
    cache = ClockCache(1 << 40, 2)
    items = [Item(1) for _ in range(5)]
    for item in items:
        cache.admit(item)
    assert [item.evicted for item in items] == [1, 1, 1, 0, 0]


def test_threads_do_not_upset_its_accounts(rng: random.Random) -> None:
    cache = ClockCache(500, 40)
    kept: list[Item] = []
    lock = threading.Lock()

    def work(seed: int) -> None:
        mine, rng = [], random.Random(seed)
        for _ in range(1500):
            item = Item(rng.randrange(1, 50))
            mine.append(item)
            cache.admit(item)
            rng.choice(mine).used = True
            if rng.random() < 0.3:
                cache.forget(rng.choice(mine))
        with lock:
            kept.extend(mine)

    with Crew() as crew:
        for _ in range(3):
            crew.start(work, rng.random())
    assert cache.bytes == sum(item.charge for item in kept if item.held) <= 500
    assert len(cache) == sum(bool(item.held) for item in kept) <= 40
