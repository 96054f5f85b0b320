"""The ways to read that are measured, each with the answers that are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from benchmarks.engine.data import LISTS, RANGE_ENTRIES, Data, cut
from benchmarks.engine.engine import Engine
from benchmarks.engine.settings import Scale
from benchmarks.errors import WrongAnswersError
from benchmarks.timing import Sample, fresh_answers, fresh_loop, interleaved


@attrs.frozen
class Store:
    """A database that is read. Where ``levels`` are told, just these have tables."""

    engine: Engine
    db: Any
    levels: frozenset[int] = frozenset()

    def check_levels(self) -> None:
        """WrongAnswersError if tables are on other levels than they were put on."""
        if not self.levels:
            return
        tables = self.engine.tables_per_level(self.db)
        if {level for level, count in enumerate(tables) if count} != self.levels:
            raise WrongAnswersError(
                f"{self.engine.name} was to have tables on the levels {sorted(self.levels)}, and "
                f"has {tables} from level 0 on"
            )


@attrs.frozen
class Read:
    """A loop: ``body`` for each ``key`` of ``keys``, with what ``subject`` takes from a store.

    ``expected`` are the values of ``body`` in order; ``count`` is how many things the time of one
    loop is divided by, ``repeats`` how often it is timed. Where making the keys is what is
    measured, as in an iteration, they are not ``prepared``.
    """

    name: str
    body: Callable[[Engine], str]
    subject: Callable[[Store], Any]
    keys: Callable[[Data, Store], Iterable[Any]]
    expected: Callable[[Data], Iterable[Any]]
    count: Callable[[Scale], int]
    repeats: Callable[[Scale], int] = lambda scale: scale.repeats
    prepared: bool = True

    def check(self, store: Store, data: Data) -> None:
        """WrongAnswersError unless all answers are right."""
        evaluate = fresh_answers(self.body(store.engine))
        answers = evaluate(self.keys(data, store), self.subject(store))
        expected = list(self.expected(data))
        if answers != expected:
            wrong = sum(one != other for one, other in zip(answers, expected, strict=False))
            wrong += abs(len(answers) - len(expected))
            raise WrongAnswersError(
                f"{store.engine.name} answers wrongly {wrong} of {len(expected)} times: {self.name}"
            )


def measure(
    read: Read, stores: Sequence[Store], data: Data, scale: Scale
) -> dict[str, list[float]]:
    """Nanoseconds for each thing in each repeat, by engine; their answers are known to be right."""
    samples = [_sample(read, store, data, scale) for store in stores]
    if not samples:
        return {}
    taken = interleaved(samples, read.repeats(scale))
    return {store.engine.name: each for store, each in zip(stores, taken, strict=True)}


def _sample(read: Read, store: Store, data: Data, scale: Scale) -> Sample:
    loop, subject = fresh_loop(read.body(store.engine)), read.subject(store)
    if read.prepared:
        keys = list(read.keys(data, store))
        return Sample(lambda: loop(keys, subject), read.count(scale))
    return Sample(lambda: loop(read.keys(data, store), subject), read.count(scale))


PRESENT = Read(
    name="get of a present key",
    body=lambda engine: "subject(key)",
    subject=lambda store: store.engine.getter(store.db),
    keys=lambda data, store: data.present,
    expected=lambda data: data.answers,
    count=lambda scale: scale.probes,
)
ABSENT = attrs.evolve(
    PRESENT,
    name="get of an absent key",
    keys=lambda data, store: data.absent,
    expected=lambda data: [None] * len(data.absent),
)


def many(size: int, of: Read, kind: str) -> Read:
    """Looking up what ``of`` does in lists of so many."""
    return attrs.evolve(
        of,
        name=f"get_many of {size} {kind} keys, per key",
        subject=lambda store: store.engine.many_getter(store.db),
        keys=lambda data, store: cut(list(of.keys(data, store)), size),
        expected=lambda data: cut(list(of.expected(data)), size),
    )


MANY_PRESENT = tuple(many(size, PRESENT, "present") for size in LISTS)
MANY_ABSENT = tuple(many(size, ABSENT, "absent") for size in LISTS)


def from_snapshot(of: Read) -> Read:
    """The same lookups in a snapshot."""
    return attrs.evolve(
        of,
        name=f"{of.name} from a snapshot",
        subject=lambda store: store.engine.snapshot_getter(store.db),
    )


SNAPSHOT_PRESENT, SNAPSHOT_ABSENT = from_snapshot(PRESENT), from_snapshot(ABSENT)
FORWARDS = Read(
    name="an entry of all in order",
    body=lambda engine: "key",
    subject=lambda store: None,
    keys=lambda data, store: store.engine.items(store.db),
    expected=lambda data: data.in_order,
    count=lambda scale: scale.keys,
    repeats=lambda scale: scale.passes,
    prepared=False,
)
BACKWARDS = attrs.evolve(
    FORWARDS,
    name="an entry of all, from the last one on",
    keys=lambda data, store: store.engine.items(store.db, reverse=True),
    expected=lambda data: reversed(data.in_order),
)
KEYS_FORWARDS = attrs.evolve(
    FORWARDS,
    name="a key of all in order",
    keys=lambda data, store: store.engine.keys(store.db),
    expected=lambda data: (key for key, _ in data.in_order),
)
KEYS_BACKWARDS = attrs.evolve(
    FORWARDS,
    name="a key of all, from the last one on",
    keys=lambda data, store: store.engine.keys(store.db, reverse=True),
    expected=lambda data: (key for key, _ in reversed(data.in_order)),
)
VALUES_FORWARDS = attrs.evolve(
    FORWARDS,
    name="a value of all in order",
    keys=lambda data, store: store.engine.values(store.db),
    expected=lambda data: (value for _, value in data.in_order),
)
VALUES_BACKWARDS = attrs.evolve(
    FORWARDS,
    name="a value of all, from the last one on",
    keys=lambda data, store: store.engine.values(store.db, reverse=True),
    expected=lambda data: (value for _, value in reversed(data.in_order)),
)
SEEK = Read(
    name="a seek, and the entry there",
    body=lambda engine: engine.seek_body,
    subject=lambda store: store.engine.seeker(store.db),
    keys=lambda data, store: (key for key, _ in data.places),
    expected=lambda data: data.places,
    count=lambda scale: scale.ranges,
)
PREFIX = Read(
    name=f"the first {RANGE_ENTRIES} entries with a prefix",
    body=lambda engine: f"list(zip(range({RANGE_ENTRIES}), subject(key)))",
    subject=lambda store: store.engine.prefix_iterator(store.db),
    keys=lambda data, store: data.prefixes,
    expected=lambda data: (list(enumerate(data.first_of[prefix])) for prefix in data.prefixes),
    count=lambda scale: scale.ranges,
)
