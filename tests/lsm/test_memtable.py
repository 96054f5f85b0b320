"""The writes that are in no table: found by key and rank, and walked both ways."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedList

from lsm.comparator import BYTEWISE, Comparator, CustomComparator
from lsm.disk.keys import DELETE, NEWEST, PUT, Entry, rank_of
from lsm.kernels.python.batch import encode_batch
from lsm.kernels.python.memtable import Memtable
from lsm.steps import run_steps
from tests.effort import by_effort, examples
from tests.lsm.crew import Crew
from tests.lsm.interrupting import interrupted_at, points


def folded(one: bytes, other: bytes) -> int:
    return (one.lower() > other.lower()) - (one.lower() < other.lower())


FOLDED = CustomComparator("folded", folded)
COMPARATORS = {"bytewise": BYTEWISE, "folded": FOLDED}
KEYS = st.sampled_from([b"", b"a", b"A", b"b", b"B", b"aa", b"\xff"])
BATCHES = st.lists(
    st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=3))), max_size=40), max_size=12
)
Operations = list[tuple[bytes, bytes | None]]


def place(comparator: Comparator, key: bytes) -> bytes:
    return key if comparator is BYTEWISE else key.lower()


def filled(comparator: Comparator, batches: list[Operations]) -> tuple[Memtable, list[Entry]]:
    """A memtable, and its entries in order with plain keys."""
    memtable, entries, sequence = Memtable(comparator), [], 1
    for operations in batches:
        memtable.apply(encode_batch(sequence, operations))
        for key, value in operations:
            kind = DELETE if value is None else PUT
            entries.append((key, rank_of(sequence, kind), value or b""))
            sequence += 1
    return memtable, sorted(entries, key=lambda entry: (place(comparator, entry[0]), entry[1]))


def plain(comparator: Comparator, entries: list[Entry]) -> list[Entry]:
    return [(comparator.unwrap(key), rank, value) for key, rank, value in entries]


def ordered(comparator: Comparator, key: bytes) -> object:
    return key if comparator.wrap is None else comparator.wrap(key)


@pytest.mark.parametrize("order", COMPARATORS)
@examples(100)
@given(batches=BATCHES, key=KEYS, oldest=st.integers(0, 300))
def test_it_is_a_sorted_list(
    order: str, batches: list[Operations], key: bytes, oldest: int
) -> None:
    comparator = COMPARATORS[order]
    memtable, entries = filled(comparator, batches)
    assert bool(memtable) == bool(entries)
    assert memtable.count == len(entries)
    assert memtable.size == sum(len(key) + len(value) + 32 for key, _, value in entries)
    here = ordered(comparator, key)
    versions = [entry for entry in entries if place(comparator, entry[0]) == place(comparator, key)]
    for asked in (rank_of(oldest), NEWEST):
        found = memtable.find(here, asked)
        expected = next((entry for entry in versions if entry[1] >= asked), None)
        assert (found and plain(comparator, [found])[0]) == expected
    assert plain(comparator, memtable.entries()) == entries
    above = [each for each in entries if place(comparator, each[0]) >= place(comparator, key)]
    below = [each for each in entries if place(comparator, each[0]) <= place(comparator, key)]
    for start, expected in ((here, above), (None, entries)):
        chunks = list(memtable.ascending(start))
        assert plain(comparator, list(itertools.chain(*chunks))) == expected
    for start, expected in ((here, below), (None, entries)):
        chunks = list(memtable.descending(start))
        assert plain(comparator, list(itertools.chain(*chunks[::-1]))) == expected


@pytest.mark.parametrize("order", COMPARATORS)
def test_walks_go_on_while_entries_are_added(order: str) -> None:
    comparator = COMPARATORS[order]
    memtable, _ = filled(comparator, [[(b"%04d" % number, b"") for number in range(0, 1000, 2)]])
    up, down = memtable.ascending(None), memtable.descending(None)
    ascending: list[bytes] = []
    descending: list[bytes] = []
    for number in range(1001, 1100):
        ascending += [comparator.unwrap(entry[0]) for entry in next(up, [])]
        descending += [comparator.unwrap(entry[0]) for entry in next(down, [])][::-1]
        memtable.apply(encode_batch(number, [(b"%04d" % (number - 600), b"new")]))
    assert ascending == sorted(ascending)
    assert descending == sorted(descending)[::-1]
    before = {b"%04d" % number for number in range(0, 1000, 2)}
    assert before <= set(ascending)
    assert before <= set(descending)


def test_a_prepared_batch_is_not_there_until_it_is_added() -> None:
    memtable = Memtable(BYTEWISE)
    entries = memtable.prepare(encode_batch(7, [(b"a", b"1"), (b"a", None), (b"b", b"2")]))
    assert entries == [
        (b"a", rank_of(7, PUT), b"1"),
        (b"a", rank_of(8, DELETE), b""),
        (b"b", rank_of(9, PUT), b"2"),
    ]
    assert not memtable
    assert memtable.find(b"a", NEWEST) is None
    memtable.grow(entries)
    steps = iter(memtable.steps(entries))
    run_steps(steps)
    run_steps(steps)  # which are taken once only
    assert memtable.find(b"a", NEWEST) == entries[1]
    assert memtable.find(b"a", rank_of(7)) == entries[0]
    assert memtable.find(b"b", rank_of(8)) is None
    assert memtable.size == 5 + 3 * 32


def check_readers(memtable: Any, last: int, rng: random.Random) -> None:
    """Threads that read beside a writer find what was added before they look."""
    visible, writing = [0], [True]

    def write() -> None:
        for sequence in range(1, last):
            memtable.apply(encode_batch(sequence, [(b"%02d" % (sequence % 50), b"%d" % sequence)]))
            visible[0] = sequence
        writing[0] = False

    def read(seed: float) -> None:
        rng = random.Random(seed)
        while writing[0]:
            last = visible[0]
            number = rng.randrange(50)
            newest = last - (last - number) % 50
            entry = memtable.find(b"%02d" % number, rank_of(last))
            assert (entry and int(entry[2])) == (newest if newest > 0 else None)
            if rng.random() < 0.03:
                walked = [each for chunk in memtable.ascending(None) for each in chunk]
                assert walked == sorted(walked)
                assert len([each for each in walked if each[1] >= rank_of(last)]) == last

    with Crew() as crew:
        crew.start(write)
        for _ in range(2):
            crew.start(read, rng.random())


def test_readers_find_what_was_added_before_they_look(rng: random.Random) -> None:
    check_readers(Memtable(BYTEWISE), 3000, rng)


class Raises:
    """A comparator that raises at one of its calls."""

    def __init__(self) -> None:
        self.left = -1

    def __call__(self, one: bytes, other: bytes) -> int:
        self.left -= 1
        if self.left == 0:
            raise ArithmeticError("once")
        return (one > other) - (one < other)


READS: dict[str, Callable[[Memtable, object], object]] = {
    "find": lambda memtable, key: memtable.find(key, NEWEST),
    "entries": lambda memtable, _: memtable.entries(),
    "ascending": lambda memtable, key: list(memtable.ascending(key)),
    "descending": lambda memtable, key: list(memtable.descending(key)),
}


@pytest.mark.parametrize("read", READS)
def test_a_comparator_that_raises_once_costs_no_entry(read: str) -> None:
    for failing in itertools.count(1, by_effort(7, 3, 1)):
        compare = Raises()
        comparator = CustomComparator("raises", compare)
        memtable, entries = Memtable(comparator), []
        for sequence in range(1, 60):
            key = b"%02d" % (sequence * 37 % 60)
            memtable.apply(encode_batch(sequence, [(key, b"")]))
            entries.append(key)
            if sequence == 30:
                memtable.entries()
        compare.left = failing
        with contextlib.suppress(ArithmeticError):
            READS[read](memtable, ordered(comparator, b"30"))
        is_over, compare.left = compare.left > 0, -1
        assert [key for key, *_ in plain(comparator, memtable.entries())] == sorted(entries)
        assert memtable.find(ordered(comparator, entries[7]), NEWEST) is not None
        if is_over:
            return


def test_a_reader_within_another_finds_all_and_so_does_the_other() -> None:
    memtable, _ = filled(BYTEWISE, [[(b"%03d" % number, b"") for number in range(0, 300, 2)]])
    memtable.entries()
    memtable.apply(encode_batch(1000, [(b"%03d" % number, b"") for number in range(1, 300, 2)]))

    def read() -> list[Entry]:
        return [entry for chunk in memtable.ascending(b"100") for entry in chunk]

    expected = [b"%03d" % number for number in range(100, 300)]
    for number in range(0, points(memtable.entries), by_effort(29, 13, 1)):
        memtable._order = (SortedList(), 0)
        found: list[list[bytes]] = []
        outcome = interrupted_at(
            number,
            memtable.entries,
            call=lambda found=found: found.append([key for key, *_ in read()]),
        )
        assert found in ([expected], [])
        assert outcome.raised is None
        assert [key for key, *_ in outcome.result] == [b"%03d" % number for number in range(300)]
