"""Iterators after an error: where they stood, and on from there, with no entry skipped or twice.

An error comes at any step, of storage that fails for a moment or as an interruption, and what
was tried is tried again. Where an iterator has to stand is known from a list.
"""

from __future__ import annotations

import errno
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lsm
from lsm.storage import Mapped, Storage
from tests.effort import by_effort
from tests.lsm.interrupting import interrupted_at
from tests.lsm.simulated import SimulatedStorage

Item = tuple[bytes, bytes]
KEYS = 300
ROUNDS = by_effort(1, 3, 1000)
STEPS = by_effort(120, 150, 400)


class Moody:
    """A file's bytes, of which every read asks whether it is to fail."""

    def __init__(self, data: bytes, ask: Callable[[], None]):
        self._data = data
        self._ask = ask

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, part: slice) -> bytes:
        self._ask()
        return self._data[part]

    def close(self) -> None:
        """Nothing is to be given back."""


class MoodyStorage(SimulatedStorage):
    """Storage whose next so many reads of tables go well, and the one after them fails."""

    def __init__(self) -> None:
        super().__init__()
        self.good: int | None = None
        self.error: type[BaseException] = lsm.IOError

    def map(self, path: str) -> Mapped:
        self._ask()
        mapped = super().map(path)
        return Mapped(Moody(bytes(mapped.data), self._ask))  # type: ignore[arg-type]

    def _ask(self) -> None:
        if self.good == 0:
            self.good = None
            raise self.error(errno.EMFILE, "for a moment")
        if self.good is not None:
            self.good -= 1


@pytest.fixture
def storage() -> MoodyStorage:
    return MoodyStorage()


@pytest.fixture(params=["bytewise", "reversed"])
def db(request: pytest.FixtureRequest, storage: Storage, rng: random.Random) -> Iterator[lsm.DB]:
    """A database with tables on several levels and with memtables, and hardly a cache."""
    named: dict[str, Any] = {}
    if request.param == "reversed":
        named = {"comparator": lambda a, b: (a < b) - (a > b), "comparator_name": b"reversed"}
    with lsm.DB(
        "db",
        create_if_missing=True,
        storage=storage,
        block_size=128,
        max_file_size=1024,
        write_buffer_size=4000,
        table_cache_size=4000,
        lru_cache_size=2000,
        **named,
    ) as db:
        for number in range(4 * KEYS):
            key = b"%03d" % rng.randrange(KEYS)
            if rng.random() < 0.3:
                db.delete(key)
            else:
                db.put(key, b"%d" % number)
            if number == 2 * KEYS:
                db.compact_range()
        db.wait_until_idle()
        yield db


class Walk:
    """An iterator, and the list along which it goes."""

    def __init__(self, db: lsm.DB, rng: random.Random):
        self.rng = rng
        self.reverse = rng.random() < 0.5
        start, stop = (rng.choice((None, b"%03d" % rng.randrange(KEYS))) for _ in range(2))
        bounds = {"start": start, "stop": stop, "include_start": rng.random() < 0.5}
        self.entries = list(db.iterator(**bounds))
        self.is_reversed_order = db.iterator(include_value=False) is not None and (
            (keys := list(db.iterator(include_value=False))) != sorted(keys)
        )
        self.iterator = db.iterator(reverse=self.reverse, **bounds)
        self.at = len(self.entries) if self.reverse else 0

    def step(self) -> tuple[Callable[[], object], object, int]:
        """What to try next, what comes of it, and where it leads."""
        choice = self.rng.random()
        if choice < 0.06:
            return self.iterator.seek_to_start, None, 0
        if choice < 0.12:
            return self.iterator.seek_to_stop, None, len(self.entries)
        if choice < 0.2:
            target = b"%03d" % self.rng.randrange(KEYS)
            before = sum(
                key > target if self.is_reversed_order else key < target for key, _ in self.entries
            )
            return functools.partial(self.iterator.seek, target), None, before
        is_right = self.rng.random() < 0.6
        at = self.at if is_right else self.at - 1
        named = self.iterator.prev if is_right == self.reverse else self.iterator.__next__
        if not 0 <= at < len(self.entries):
            return named, StopIteration, self.at
        return named, self.entries[at], at + is_right


class RawWalk:
    """A raw iterator, and the list along which it goes; outside of the list it is nowhere."""

    def __init__(self, db: lsm.DB, rng: random.Random):
        self.rng = rng
        self.entries = list(db)
        self.is_reversed_order = self.entries != sorted(self.entries)
        self.raw = db.raw_iterator()
        self.at = -1

    def step(self) -> tuple[Callable[[], object], object, int]:
        choice, last = self.rng.random(), len(self.entries) - 1
        if choice < 0.05:
            return self.raw.seek_to_first, None, 0
        if choice < 0.1:
            return self.raw.seek_to_last, None, last
        if choice < 0.2:
            target = b"%03d" % self.rng.randrange(KEYS)
            before = sum(
                key > target if self.is_reversed_order else key < target for key, _ in self.entries
            )
            return functools.partial(self.raw.seek, target), None, before if before <= last else -1
        is_right = self.rng.random() < 0.6
        if self.at < 0:
            return (self.raw.next if is_right else self.raw.prev), lsm.IteratorInvalidError, -1
        if is_right:
            return self.raw.next, None, self.at + 1 if self.at < last else -1
        return self.raw.prev, None, self.at - 1

    def check(self, at: int) -> None:
        """It says where it stands."""
        assert self.raw.valid() == (at >= 0)
        if at >= 0:
            assert self.raw.item() == (self.raw.key(), self.raw.value()) == self.entries[at]


def result_of(step: Callable[[], object]) -> object:
    try:
        return step()
    except (StopIteration, lsm.IteratorInvalidError) as error:
        return type(error)


@pytest.mark.parametrize("error", [lsm.IOError, MemoryError, KeyboardInterrupt])
def test_an_iterator_goes_on_where_a_read_failed(
    db: lsm.DB, storage: MoodyStorage, error: type[BaseException], rng: random.Random
) -> None:
    storage.error, failed = error, 0
    for _ in range(ROUNDS):
        walk = Walk(db, rng)
        for _ in range(STEPS):
            step, expected, then = walk.step()
            for _ in range(3):
                storage.good = rng.choice((None, 0, 1, 2, 5))
                try:
                    assert result_of(step) == expected
                except error:
                    failed += 1
                else:
                    break
            else:
                storage.good = None
                assert result_of(step) == expected
            walk.at = then
        storage.good = None
    assert failed > 10


@pytest.mark.parametrize("error", [lsm.IOError, MemoryError, KeyboardInterrupt])
def test_a_raw_iterator_stays_where_a_read_failed(
    db: lsm.DB, storage: MoodyStorage, error: type[BaseException], rng: random.Random
) -> None:
    storage.error, failed = error, 0
    for _ in range(ROUNDS):
        walk = RawWalk(db, rng)
        for _ in range(STEPS):
            step, expected, then = walk.step()
            storage.good = rng.choice((None, 0, 1, 2, 5))
            try:
                assert result_of(step) == expected
            except error:
                failed += 1
                walk.check(walk.at)
                storage.good = None
                assert result_of(step) == expected
            storage.good = None
            walk.at = then
            walk.check(then)
    assert failed > 10


def test_an_iterator_is_interrupted_anywhere_and_goes_on(db: lsm.DB, rng: random.Random) -> None:
    """Each step is taken with its item given, or it is as if it had never been tried."""
    interrupted = 0
    for _ in range(ROUNDS):
        walk = Walk(db, rng)
        for _ in range(STEPS):
            step, expected, then = walk.step()
            most = rng.choice((4, 30, 300, 3000))
            outcome = interrupted_at(rng.randrange(most), functools.partial(result_of, step))
            if outcome.raised is None:
                assert outcome.result == expected
            else:
                interrupted += 1
                assert isinstance(outcome.raised, KeyboardInterrupt)
                assert result_of(step) == expected, outcome
            walk.at = then
    assert interrupted > 10


def test_a_raw_iterator_is_interrupted_anywhere_and_says_where_it_stands(
    db: lsm.DB, rng: random.Random
) -> None:
    interrupted = 0
    for _ in range(ROUNDS):
        walk = RawWalk(db, rng)
        for _ in range(STEPS):
            step, expected, then = walk.step()
            outcome = interrupted_at(
                rng.randrange(rng.choice((4, 30, 300))), functools.partial(result_of, step)
            )
            if outcome.raised is None:
                assert outcome.result == expected
                walk.at = then
            else:
                interrupted += 1
                is_there = walk.raw.valid()
                stands = walk.entries.index(walk.raw.item()) if is_there else -1
                assert stands in (walk.at, then), outcome
                walk.at = stands
            walk.check(walk.at)
    assert interrupted > 10


@pytest.mark.parametrize("reverse", [False, True])
def test_whoever_interrupts_a_step_may_step_itself(
    db: lsm.DB, reverse: bool, rng: random.Random
) -> None:
    """A handler that takes from the iterator whose step it interrupted: each entry comes once."""
    entries = list(db)
    for _ in range(ROUNDS):
        iterator, given = db.iterator(reverse=reverse), []

        def take(iterator: Any = iterator) -> Any:
            return next(iterator, None)

        def take_too(given: list[Any] = given, take: Any = take) -> None:
            given.append(take())

        for _ in range(len(entries) + 2):
            most = rng.choice((3, 60, 600))
            outcome = interrupted_at(rng.randrange(most), take, call=take_too)
            assert outcome.raised is None
            given.append(outcome.result)
        assert sorted(each for each in given if each) == sorted(entries)


def test_whoever_interrupts_a_step_may_close_it(db: lsm.DB, rng: random.Random) -> None:
    """The step that was interrupted gives its entry or says that it is closed, and nothing else."""
    entries = list(db)
    for _ in range(30 * ROUNDS):
        iterator, raw = db.iterator(), db.raw_iterator()
        at = rng.randrange(len(entries))
        iterator.seek(entries[at][0])
        raw.seek(entries[at][0])
        for walker, step, expected in (
            (iterator, iterator.__next__, entries[at]),
            (raw, raw.next, None),
        ):
            outcome = interrupted_at(rng.randrange(rng.choice((3, 60))), step, call=walker.close)
            if outcome.where is None:
                walker.close()
            if outcome.raised is None:
                assert outcome.result == expected
            else:
                assert isinstance(outcome.raised, RuntimeError)
                assert str(outcome.raised) == "Database or iterator is closed"
            with pytest.raises(RuntimeError, match="^Database or iterator is closed$"):
                step()
