"""The compiled memtable: the readable one's answers, and memory that is there while it is read."""

from __future__ import annotations

import gc
import itertools
import random
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from filters import hashing
from lsm.comparator import BYTEWISE, CustomComparator
from lsm.disk.keys import MAX_SEQUENCE, NEWEST, PUT, Entry, rank_of
from lsm.errors import CorruptionError
from lsm.kernels.python import memtable as readable
from lsm.kernels.python.batch import decode_batch, encode_batch
from lsm.steps import run_steps
from tests.effort import by_effort, examples
from tests.lsm.interrupting import INSTRUCTIONS, interrupted_at, points
from tests.lsm.test_memtable import check_readers

native = pytest.importorskip("lsm.kernels.native.memtable")

Operations = list[tuple[bytes, bytes | None]]
Memtable = Any

SHORT_KEYS = st.sampled_from(
    [b"", b"\0", b"a", b"a\0", b"a\0\0", b"ab", b"b", b"\xff", b"\xff\xff"]
)
LONG_KEYS = st.builds(
    lambda stem, tail: stem + tail, st.sampled_from([b"x" * 7, b"x" * 16, b"x" * 40]), SHORT_KEYS
)
KEYS = st.one_of(SHORT_KEYS, LONG_KEYS)
VALUES = st.one_of(st.none(), st.binary(max_size=3))
BATCHES = st.lists(st.tuples(KEYS, VALUES), max_size=40)


@pytest.fixture(params=[readable, native], ids=["python", "native"])
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def pair() -> tuple[readable.Memtable, Memtable]:
    return readable.Memtable(BYTEWISE), native.Memtable(BYTEWISE)


def filled(memtable: Memtable, count: int, seed: int = 1, size: int = 16) -> list[Entry]:
    """Random keys, some of them again and again, in batches; the entries in order."""
    rng, entries, sequence = random.Random(seed), [], 1
    while sequence <= count:
        batch = [(b"%0*d" % (size, rng.randrange(count)), b"%d" % rng.randrange(9))]
        batch += [(b"%05d" % rng.randrange(40), None)] * rng.randrange(3)
        memtable.apply(encode_batch(sequence, batch))
        for key, value in batch:
            entries.append((key, rank_of(sequence, 0 if value is None else PUT), value or b""))
            sequence += 1
    return sorted(entries)


def flat(chunks: Iterator[list[Entry]]) -> list[Entry]:
    return list(itertools.chain.from_iterable(chunks))


# ---- Twins ----


@examples(200)
@given(batches=st.lists(BATCHES, max_size=12), looks=st.sets(st.integers(0, 11)))
def test_native_answers_as_the_readable_one(batches: list[Operations], looks: set[int]) -> None:
    """Also where some looks at the order between the batches have made several runs."""
    one, other = pair()
    sequence = 1
    for number, operations in enumerate(batches):
        one.apply(encode_batch(sequence, operations))
        other.apply(encode_batch(sequence, operations))
        sequence += len(operations)
        if number in looks:
            assert next(one.ascending(None), []) == next(other.ascending(None), [])
    assert (one.size, one.count, bool(one)) == (other.size, other.count, bool(other))
    keys = {key for operations in batches for key, _ in operations} | {b"absent", b"", b"x" * 40}
    ranks = [rank_of(number) for number in range(0, sequence, 7)]
    ranks += [rank_of(sequence - 1), rank_of(1, PUT), rank_of(1, 0), NEWEST, NEWEST - 2**70, 0, 1]
    for key in keys:
        for rank in ranks:
            assert one.find(key, rank) == other.find(key, rank)
    for start in (*keys, None):
        assert list(one.ascending(start)) == list(other.ascending(start))
        assert list(one.descending(start)) == list(other.descending(start))
    assert one.entries() == other.entries()
    assert list(one.ascending(None)) == list(other.ascending(None))


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("prepare"), BATCHES.filter(bool)),
        st.tuples(st.sampled_from(["add", "drop", "walk", "next"]), st.integers(0, 5)),
    ),
    max_size=40,
)


@examples(200)
@given(actions=ACTIONS, start=st.one_of(st.none(), KEYS))
def test_native_does_so_at_every_moment(
    actions: list[tuple[str, Any]], start: bytes | None
) -> None:
    """Batches are prepared, and added later or never, while walks go on."""
    one, other = pair()
    prepared: list[tuple[list[Entry], Any]] = []
    walks: list[tuple[Iterator[list[Entry]], Iterator[list[Entry]]]] = []
    sequence = 1
    for action, what in actions:
        if action == "prepare":
            prepared.append(
                (
                    one.prepare(encode_batch(sequence, what)),
                    other.prepare(encode_batch(sequence, what)),
                )
            )
            sequence += len(what)
        elif action == "walk":
            way = "ascending" if what % 2 else "descending"
            walks.append((getattr(one, way)(start), getattr(other, way)(start)))
        elif action == "next" and walks:
            ours, theirs = walks[what % len(walks)]
            assert next(ours, None) == next(theirs, None)
        elif action == "drop" and prepared:
            del prepared[what % len(prepared)]
        elif action == "add" and prepared:
            # In the order of their sequence numbers, as the writer does.
            ours_prepared, theirs_prepared = prepared.pop(0)
            run_steps(iter(one.steps(ours_prepared)))
            run_steps(iter(other.steps(theirs_prepared)))
            assert len(ours_prepared) == len(theirs_prepared)
            assert one.ends_with(ours_prepared)
            assert other.ends_with(theirs_prepared)
        for ours_prepared, theirs_prepared in prepared:
            assert not one.ends_with(ours_prepared)
            assert not other.ends_with(theirs_prepared)
    assert one.entries() == other.entries()
    assert one.count == other.count


@examples(100)
@given(
    records=st.lists(
        st.tuples(st.integers(0, 6), st.lists(st.tuples(SHORT_KEYS, VALUES), max_size=4)),
        max_size=12,
    ),
    at=st.integers(0, 12),
)
def test_native_keeps_what_a_forged_log_has_twice_and_backwards(
    records: list[tuple[int, Operations]], at: int
) -> None:
    one, other = pair()
    for sequence, operations in records:
        one.apply(encode_batch(sequence, operations))
        other.apply(encode_batch(sequence, operations))
        other.entries()
    entries = one.entries()
    assert other.entries() == entries
    for key in {key for key, *_ in entries}:
        for rank in (rank_of(at), NEWEST):
            seen = [entry for entry in entries if entry[0] == key and entry[1] >= rank]
            assert other.find(key, rank) == (seen[0] if seen else None)


# ---- What there can be much of ----


def test_keys_by_the_hundred_thousand(kernel: ModuleType) -> None:
    memtable = kernel.Memtable(BYTEWISE)
    count = 100_000 if kernel is native else 10_000
    keys = [b"%08d" % (number * 7919 % count) for number in range(count)]
    for first in range(0, count, 1000):
        memtable.apply(
            encode_batch(first + 1, [(key, key[::-1]) for key in keys[first : first + 1000]])
        )
        if first % 7000 == 0:
            next(memtable.descending(None))
    assert memtable.count == count
    for sequence, key in enumerate(keys, 1):
        assert memtable.find(key, NEWEST) == (key, rank_of(sequence, PUT), key[::-1])
    assert memtable.find(b"absent", NEWEST) is None
    assert [key for key, *_ in memtable.entries()] == sorted(keys)


def test_versions_of_a_key_by_the_thousand(kernel: ModuleType) -> None:
    """And another key beside it, whose versions come as often."""
    memtable = kernel.Memtable(BYTEWISE)
    for sequence in range(1, 5001):
        memtable.apply(
            encode_batch(sequence, [(b"ab"[sequence % 2 : sequence % 2 + 1], b"%d" % sequence)])
        )
    for asked in range(2, 5001, 13):
        newest = asked if asked % 2 else asked - 1
        assert memtable.find(b"b", rank_of(asked)) == (b"b", rank_of(newest, PUT), b"%d" % newest)
    assert memtable.find(b"b", rank_of(0)) is None
    assert len(memtable.entries()) == 5000


def test_long_keys_and_values_and_none_at_all(kernel: ModuleType) -> None:
    memtable = kernel.Memtable(BYTEWISE)
    long = random.Random(3).randbytes(1 << 20)
    operations: Operations = [
        (b"", b""),
        (long, long[::-1]),
        (long + b"\0", None),
        (long[:-1], b"shorter"),
        (b"\0" * 9, b"\0" * 17),
        (b"", long),
    ]
    memtable.apply(encode_batch(1, operations))
    for sequence, (key, value) in enumerate(operations[1:], 2):
        rank = rank_of(sequence, 0 if value is None else PUT)
        assert memtable.find(key, NEWEST) == (key, rank, value or b"")
    assert memtable.find(b"", rank_of(5)) == (b"", rank_of(1, PUT), b"")
    keys = [key for key, *_ in memtable.entries()]
    assert keys == [b"", b"", b"\0" * 9, *sorted([long[:-1], long, long + b"\0"])]


SECRET = bytes.fromhex("b8fe6c3923a44bbe")
"""Where a key of 32 bytes begins with these, XXH3 unseeded multiplies the next eight by zero."""


def test_native_tells_keys_of_one_hash_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "random64", lambda: 0)
    keys = [SECRET + number.to_bytes(8, "big") + bytes(16) for number in range(400)]
    assert len({xxh3_64_intdigest(key, seed=0) for key in keys}) == 1
    one, other = pair()
    for sequence, key in enumerate(keys * 2, 1):
        one.apply(encode_batch(sequence, [(key, b"%d" % sequence)]))
        other.apply(encode_batch(sequence, [(key, b"%d" % sequence)]))
    for key in keys:
        for rank in (NEWEST, rank_of(400)):
            assert one.find(key, rank) == other.find(key, rank) is not None
    assert one.entries() == other.entries()


# ---- Adding ----


def test_what_is_prepared_is_added_once(kernel: ModuleType) -> None:
    memtable = kernel.Memtable(BYTEWISE)
    prepared = memtable.prepare(encode_batch(7, [(b"a", b"1"), (b"a", None), (b"b", b"2")]))
    assert len(prepared) == 3
    assert not memtable
    assert not memtable.ends_with(prepared)
    assert memtable.find(b"a", NEWEST) is None
    assert memtable.entries() == []
    steps = iter(memtable.steps(prepared))
    run_steps(steps)
    run_steps(steps)
    assert memtable.ends_with(prepared)
    run_steps(iter(memtable.steps(prepared)[:-1]))
    assert memtable.entries() == [
        (b"a", rank_of(8, 0), b""),
        (b"a", rank_of(7, PUT), b"1"),
        (b"b", rank_of(9, PUT), b"2"),
    ]
    memtable.apply(encode_batch(10, [(b"c", b"")]))
    assert not memtable.ends_with(prepared)


def test_native_adds_once_even_if_it_is_told_to_twice() -> None:
    memtable = native.Memtable(BYTEWISE)
    prepared = memtable.prepare(encode_batch(1, [(b"a", b"1"), (b"b", b"2")]))
    for _ in range(2):
        run_steps(iter(memtable.steps(prepared)))
    assert memtable.count == len(memtable.entries()) == 2
    assert memtable.find(b"a", NEWEST) == (b"a", rank_of(1, PUT), b"1")


def test_native_adds_nothing_of_another_memtable() -> None:
    memtable, other = native.Memtable(BYTEWISE), native.Memtable(BYTEWISE)
    prepared = other.prepare(encode_batch(1, [(b"a", b"1")]))
    with pytest.raises(ValueError, match="prepared by another memtable"):
        memtable.steps(prepared)
    memtable.add(prepared)
    assert not memtable
    del other
    gc.collect()
    assert len(prepared) == 1


def test_native_has_room_for_all_that_is_prepared_at_a_time() -> None:
    memtable = native.Memtable(BYTEWISE)
    batches = [
        memtable.prepare(encode_batch(number, [(b"%d" % number, b"")])) for number in range(1, 3000)
    ]
    del batches[1::3]
    for number, prepared in enumerate(batches):
        memtable.add(prepared)
        if number % 500 == 0:
            assert len(memtable.entries()) == number + 1
    assert len(memtable.entries()) == memtable.count == len(batches)


@pytest.mark.parametrize("size", [10, 3000, 100_000, 5_000_000])
def test_native_gives_back_what_is_prepared_and_never_added(size: int) -> None:
    memtable = native.Memtable(BYTEWISE)
    for count in (0, 1, 100):
        filled(memtable, count)
        held = memtable.memory
        for _ in range(50):
            prepared = memtable.prepare(encode_batch(1000, [(b"key", bytes(size))]))
            assert memtable.memory >= held
            del prepared
        assert memtable.memory <= held + 1024  # room for one more key
    assert memtable.find(b"key", NEWEST) is None


def test_native_holds_little_more_than_what_there_is() -> None:
    memtable = native.Memtable(BYTEWISE)
    assert memtable.memory == 0
    for sequence in range(1, 20_001):
        memtable.apply(
            encode_batch(sequence, [(b"%016d" % (sequence * 7919 % 20_000), bytes(100))])
        )
        assert memtable.memory >= sequence * (16 + 100)
    memtable.entries()
    assert memtable.memory <= 20_000 * (16 + 100 + 150) + (2 << 20)


WRONG = {
    "nothing": b"",
    "half a header": bytes(11),
    "an operation too few": encode_batch(1, [(b"a", b"1")])[:8] + b"\2\0\0\0\1\1a\1b",
    "an operation too many": encode_batch(1, [])[:8] + b"\0\0\0\0\1\1a\1b",
    "an unknown kind": encode_batch(1, [])[:8] + b"\1\0\0\0\2\1a\1b",
    "a key that goes on": encode_batch(1, [])[:8] + b"\1\0\0\0\0\2a",
    "a value that goes on": encode_batch(1, [])[:8] + b"\1\0\0\0\1\1a\2b",
    "no value": encode_batch(1, [])[:8] + b"\1\0\0\0\1\1a",
    "a length that goes on": encode_batch(1, [])[:8] + b"\1\0\0\0\0\x80",
    "a length of six bytes": encode_batch(1, [])[:8] + b"\1\0\0\0\0\x81\x80\x80\x80\x80\0a",
    "a length of 35 bits": encode_batch(1, [])[:8] + b"\1\0\0\0\0\xff\xff\xff\xff\x7fa",
    "numbers beyond the last": encode_batch(MAX_SEQUENCE, [(b"a", b"")])[:8] + b"\2" + bytes(7),
    "a number beyond the last": b"\xff" * 8 + b"\1\0\0\0\0\1a",
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_batch_is_refused_whole(case: str, kernel: ModuleType) -> None:
    memtable = kernel.Memtable(BYTEWISE)
    with pytest.raises(CorruptionError):
        decode_batch(WRONG[case])
    for add in (memtable.prepare, memtable.apply):
        with pytest.raises(CorruptionError, match="write batch"):
            add(WRONG[case])
    assert memtable.memory == memtable.count == memtable.size == 0
    last = encode_batch(MAX_SEQUENCE, [(b"last", b"of all")])
    assert memtable.apply(last) == (MAX_SEQUENCE, 1)
    assert memtable.entries() == [(b"last", rank_of(MAX_SEQUENCE, PUT), b"of all")]


@examples(300)
@given(operations=BATCHES, data=st.data())
def test_native_takes_for_a_batch_what_the_readable_one_does(
    operations: Operations, data: st.DataObject
) -> None:
    record = bytearray(encode_batch(1, operations))
    for _ in range(data.draw(st.integers(0, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    found: list[Any] = []
    for memtable in pair():
        try:
            found.append((memtable.apply(bytes(record)), memtable.entries()))
        except CorruptionError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_native_refuses_orders_and_keys_that_are_not_of_bytes() -> None:
    reversed_ = CustomComparator("reversed", lambda one, other: (one < other) - (one > other))
    with pytest.raises(ValueError, match="'reversed' is not that of bytes"):
        native.Memtable(reversed_)
    memtable = native.Memtable(BYTEWISE)
    with pytest.raises(TypeError, match="a key of bytes, not str"):
        memtable.find("key", NEWEST)
    with pytest.raises(TypeError):
        memtable.ascending("key")


# ---- Readers ----


@pytest.mark.parametrize("way", ["ascending", "descending"])
def test_walks_go_on_while_entries_are_added(kernel: ModuleType, way: str) -> None:
    memtable = kernel.Memtable(BYTEWISE)
    memtable.apply(encode_batch(1, [(b"%04d" % number, b"") for number in range(0, 3000, 2)]))
    walk, seen = getattr(memtable, way)(None), []
    for sequence in range(5000, 5100):
        chunk = [key for key, *_ in next(walk, [])]
        seen += chunk if way == "ascending" else chunk[::-1]
        memtable.apply(encode_batch(sequence, [(b"%04d" % (sequence % 97 * 31), b"new")]))
    assert seen == sorted(seen, reverse=way == "descending")
    assert {b"%04d" % number for number in range(0, 3000, 2)} <= set(seen)
    assert next(walk, None) is None


def test_native_walks_outlive_what_merges_their_runs_and_the_name_of_the_memtable() -> None:
    memtable = native.Memtable(BYTEWISE)
    entries = filled(memtable, 2000)
    up, down = memtable.ascending(None), memtable.descending(None)
    first, last = next(up), next(down)
    for sequence in range(10_000, 10_200):
        memtable.apply(encode_batch(sequence, [(b"\xff%d" % sequence, b"")]))
        next(memtable.ascending(None))
    del memtable
    gc.collect()
    assert [entry for entry in first + flat(up) if entry[0] < b"\xff"] == entries
    walked = [entry for chunk in reversed([last, *down]) for entry in chunk]
    assert walked == entries


def test_native_leaves_nothing_to_the_collector(no_collector: None) -> None:
    memtable = native.Memtable(BYTEWISE)
    filled(memtable, 500)
    walk = memtable.ascending(None)
    next(walk)
    prepared = memtable.prepare(encode_batch(1, [(b"a", b"")]))
    gone = weakref.ref(memtable)
    del memtable, walk
    assert gone() is not None
    del prepared
    assert gone() is None


def test_native_is_collected_with_what_refers_to_itself() -> None:
    class Log:
        held: Any = None

    log = Log()
    memtable = native.Memtable(BYTEWISE, log)
    filled(memtable, 500)
    log.held = (
        memtable,
        memtable.prepare(encode_batch(1, [(b"a", b"")])),
        memtable.ascending(None),
    )
    gone = weakref.ref(memtable)
    del memtable, log
    gc.collect()
    assert gone() is None


class Torn:
    is_torn = False


def test_room_is_a_matter_of_size_and_of_the_log(kernel: ModuleType) -> None:
    log: Any = Torn()
    batch = encode_batch(1, [(b"key", b"v" * 500_000)])
    memtable, full = (
        kernel.Memtable(BYTEWISE, log, 500_035),
        kernel.Memtable(BYTEWISE, log, 500_034),
    )
    assert memtable.log is log
    for each in (memtable, full):
        assert each.has_room()
        each.apply(batch)
        assert each.size == 500_035
    assert memtable.has_room()
    assert not full.has_room()
    log.is_torn = True
    assert not memtable.has_room()
    memtable.log = None
    assert memtable.has_room()


@pytest.mark.parametrize("size", [0, 1, 8, 40, 100, 1000, 20_000])
def test_memory_is_bounded_whatever_the_size_of_an_entry(kernel: ModuleType, size: int) -> None:
    """Half as much again as the capacity, and one batch."""
    memtable = kernel.Memtable(BYTEWISE, None, 1 << 20)
    sequence = 1
    while memtable.has_room():
        memtable.apply(encode_batch(sequence, [(b"%08d" % sequence, bytes(size))]))
        sequence += 1
    assert memtable.memory <= 1.5 * (1 << 20)
    assert memtable.size >= 0.5 * (1 << 20) or size < 400


# ---- What comes between ----


def test_native_finalizers_that_read_and_write_come_anywhere() -> None:
    """The collector runs at every allocation that it hears of, and finalizers with it."""
    memtable = native.Memtable(BYTEWISE)
    sequences = itertools.count(1)
    added: list[tuple[bytes, int]] = []

    def write(key: bytes) -> None:
        sequence = next(sequences)
        memtable.apply(encode_batch(sequence, [(key, b"value")]))
        added.append((key, rank_of(sequence, PUT)))

    class Meddler:
        """Garbage in a cycle, whose end reads and writes."""

        def __init__(self, number: int):
            self.me, self.number = self, number

        def __del__(self) -> None:
            write(b"meddler%05d" % self.number)
            assert len(memtable.entries()) == memtable.count

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(by_effort(150, 600, 6000)):
            Meddler(number)
            write(b"key%05d" % (number * 37 % 150))
            Meddler(number)
            chunk = next(memtable.ascending(b"key"))
            assert chunk == sorted(chunk)
            Meddler(number)
            found = memtable.find(b"key00000", NEWEST)
            assert found is not None
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert [entry[:2] for entry in memtable.entries()] == sorted(added)


def test_native_batches_are_whole_wherever_adding_them_is_interrupted() -> None:
    def added(memtable: Memtable) -> None:
        run_steps(
            iter(memtable.steps(memtable.prepare(encode_batch(5, [(b"a", b"1"), (b"b", b"2")]))))
        )

    for number in range(points(lambda: added(native.Memtable(BYTEWISE)), INSTRUCTIONS)):
        memtable = native.Memtable(BYTEWISE)
        interrupted_at(number, lambda memtable=memtable: added(memtable), kind=INSTRUCTIONS)
        assert memtable.count == len(memtable.entries()) in (0, 2)
        memtable.apply(encode_batch(7, [(b"c", b"3")]))
        assert len(memtable.entries()) == memtable.count


def test_native_readers_beside_a_writer(rng: random.Random) -> None:
    check_readers(native.Memtable(BYTEWISE), by_effort(3000, 20_000, 200_000), rng)
