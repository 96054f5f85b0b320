"""A cursor over memtables and tables: every walk is a walk along one sorted list."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import lsm
from lsm.comparator import BYTEWISE
from lsm.disk.keys import DELETE, PUT, rank_of
from lsm.kernels.python.batch import encode_batch
from lsm.kernels.python.cursor import Cursor, Edge, Source, visible
from lsm.kernels.python.memtable import Memtable
from lsm.kernels.python.view import View
from lsm.options import Options
from lsm.tables import TableCache
from lsm.version import Version
from tests.lsm.simulated import SimulatedStorage

Item = tuple[bytes, bytes]


def memtables(
    rng: random.Random, count: int
) -> tuple[tuple[Memtable, ...], list[tuple[int, Item]]]:
    """Memtables, newest first, and all that was written with its sequence number."""
    made, written, sequence = [], [], 1
    for _ in range(count):
        memtable = Memtable(BYTEWISE)
        for _ in range(rng.choice((0, 3, 40, 300))):
            key = b"%02d" % rng.randrange(60)
            value = None if rng.random() < 0.3 else b"%d" % sequence
            memtable.apply(encode_batch(sequence, [(key, value)]))
            written.append((sequence, (key, value)))
            sequence += 1
        made.append(memtable)
    return tuple(made[::-1]), written  # type: ignore[return-value]


def some_edge(rng: random.Random) -> Edge | None:
    if rng.random() < 0.3:
        return None
    return Edge(b"%02d" % rng.randrange(60), rng.random() < 0.5)


def within(key: bytes, low: Edge | None, high: Edge | None) -> bool:
    return (low is None or key > low.key or (key == low.key and low.included)) and (
        high is None or key < high.key or (key == high.key and high.included)
    )


def test_windows_on_both_sides_are_the_list(rng: random.Random) -> None:
    """Places and steps at random; the position in the list is known at every moment."""
    for _ in range(150):
        held, written = memtables(rng, rng.randrange(1, 4))
        oldest = rng.randrange(0, len(written) + 2)
        low, high = some_edge(rng), some_edge(rng)
        state = {}
        for sequence, (key, value) in written:
            if sequence <= oldest:
                state[key] = value
        entries = sorted(
            (key, value)
            for key, value in state.items()
            if value is not None and within(key, low, high)
        )
        tables = TableCache(SimulatedStorage(), "db", Options(), BYTEWISE)
        source = Source(View(held, Version.empty()), tables, rank_of(oldest), True, low, high)
        walk(Cursor(source), entries, rng)


def walk(cursor: Cursor, entries: list[Item], rng: random.Random) -> None:
    begin = end = 0  # of the window
    for _ in range(40):
        step = rng.randrange(7)
        if step == 0:
            cursor.window = cursor.before_first()
            begin = end = 0
        elif step == 1:
            cursor.window = cursor.after_last()
            begin = end = len(entries)
        elif step == 2:
            key = b"%02d" % rng.randrange(62)
            cursor.window = cursor.place_of(key)
            begin = end = sum(each < key for each, _ in entries)
        elif step < 5:
            found = cursor.next_window(cursor.window)
            assert (found is not None) == (end < len(entries))
            if found is not None:
                cursor.window = found
                begin, end = end, end + found.end
        else:
            found = cursor.previous_window(cursor.window)
            assert (found is not None) == (begin > 0)
            if found is not None:
                cursor.window = found
                begin, end = begin - found.end, begin
        window = cursor.window
        assert window.items == entries[begin:end]
        assert window.end == len(window.items)


def test_a_window_that_was_found_and_not_gone_to_is_found_again(rng: random.Random) -> None:
    """As after an interruption between the two: the walk goes on from where the cursor stands."""
    for _ in range(30):
        held, written = memtables(rng, 2)
        tables = TableCache(SimulatedStorage(), "db", Options(), BYTEWISE)
        cursor = Cursor(Source(View(held, Version.empty()), tables, rank_of(len(written) + 1)))
        cursor.window = cursor.place_of(b"%02d" % rng.randrange(60))
        for _ in range(12):
            step = rng.choice((cursor.next_window, cursor.previous_window))
            found = step(cursor.window)
            again = step(cursor.window)
            assert (found is None) == (again is None)
            if found is not None and again is not None:
                # A walk that was begun anew may end its windows elsewhere.
                least = min(found.end, again.end)
                near = slice(least) if step == cursor.next_window else slice(-least, None)
                assert found.items[near] == again.items[near]
                cursor.window = rng.choice((found, again))


def test_what_is_visible_depends_on_the_rank() -> None:
    window = [
        (b"a", rank_of(9, PUT), b"nine"),
        (b"a", rank_of(4, DELETE), b""),
        (b"a", rank_of(2, PUT), b"two"),
        (b"b", rank_of(3, PUT), b"three"),
    ]
    expected: dict[int, list[Item]] = {
        1: [],
        2: [(b"a", b"two")],
        3: [(b"a", b"two"), (b"b", b"three")],
        4: [(b"b", b"three")],
        9: [(b"a", b"nine"), (b"b", b"three")],
    }
    for sequence, entries in expected.items():
        keys, values = visible(window, rank_of(sequence))
        assert list(zip(keys, values, strict=True)) == entries


ORDERS: dict[str, Callable[[bytes, bytes], int] | None] = {
    "bytewise": None,
    "reversed": lambda one, other: (one < other) - (one > other),
}


@pytest.mark.parametrize("order", ORDERS)
def test_iterators_over_all_levels_walk_along_one_list(order: str, rng: random.Random) -> None:
    compare = ORDERS[order]
    named = {} if compare is None else {"comparator": compare, "comparator_name": b"c"}
    with lsm.DB(
        "db",
        create_if_missing=True,
        storage=SimulatedStorage(),
        block_size=64,
        max_file_size=1024,
        write_buffer_size=3000,
        **named,
    ) as db:
        for number in range(1500):
            key = b"%03d" % rng.randrange(400)
            if rng.random() < 0.3:
                db.delete(key)
            else:
                db.put(key, b"%d" % number)
            if number == 700:
                db.compact_range()
        contents = {key: db.get(key) for key in (b"%03d" % number for number in range(400))}
        keys = sorted((key for key in contents if contents[key]), reverse=compare is not None)
        entries = [(key, contents[key]) for key in keys]
        assert list(db) == entries
        for reverse in (False, True):
            iterator, at = db.iterator(reverse=reverse), len(entries) if reverse else 0
            for _ in range(600):
                forward = (rng.random() < 0.6) != reverse
                if rng.random() < 0.1:
                    target = b"%03d" % rng.randrange(400)
                    iterator.seek(target)
                    at = sum(key > target if compare else key < target for key in keys)
                step = iterator.__next__ if forward != reverse else iterator.prev
                expected = at if forward else at - 1
                if 0 <= expected < len(entries):
                    assert step() == entries[expected]
                    at += 1 if forward else -1
                else:
                    with pytest.raises(StopIteration):
                        step()
