"""The ways to read that are measured, each with the answers that are right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import attrs

from benchmarks.engine.data import RANGE_ENTRIES, Data
from benchmarks.errors import WrongAnswersError
from benchmarks.timing import Sample, fresh_answers, fresh_loop, interleaved

if TYPE_CHECKING:
    from benchmarks.engine.bench import Store


@attrs.frozen
class Read:
    """A loop: ``body`` for each ``key`` of ``keys``, with what ``subject`` takes from a store.

    ``expected`` are the values of ``body`` in order; ``count`` is how many things the time of one
    loop is divided by.
    """

    name: str
    body: str
    subject: Callable[[Store], Any]
    keys: Callable[[Data, Store], Iterable[Any]]
    expected: Callable[[Data], Iterable[Any]]
    count: Callable[[Data], int]


def checked(read: Read, store: Store, data: Data) -> None:
    """WrongAnswersError unless all answers are right."""
    answers = fresh_answers(read.body)(read.keys(data, store), read.subject(store))
    expected = list(read.expected(data))
    if answers != expected:
        wrong = sum(one != other for one, other in zip(answers, expected, strict=False))
        wrong += abs(len(answers) - len(expected))
        raise WrongAnswersError(
            f"{store.engine.name} answers wrongly {wrong} of {len(expected)} times: {read.name}"
        )


def measure(
    read: Read, stores: Iterable[Store], data: Data, repeats: int
) -> dict[str, list[float]]:
    """Nanoseconds for each thing in each repeat, by engine, once all their answers were right."""
    samples = {}
    for store in stores:
        checked(read, store, data)
        samples[store.engine.name] = _sample(read, store, data)
    taken = interleaved(list(samples.values()), repeats)
    return dict(zip(samples, taken, strict=True))


def _sample(read: Read, store: Store, data: Data) -> Sample:
    loop, subject = fresh_loop(read.body), read.subject(store)
    return Sample(lambda: loop(read.keys(data, store), subject), read.count(data))


def _probes(data: Data) -> int:
    return len(data.present)


def _everything(data: Data) -> int:
    return len(data.pairs)


def _ranges(data: Data) -> int:
    return len(data.places)


def _values(data: Data) -> list[bytes]:
    return [data.values[key] for key in data.present]


ABSENT = Read(
    name="get of an absent key",
    body="subject(key)",
    subject=lambda store: store.engine.getter(store.db),
    keys=lambda data, store: data.absent,
    expected=lambda data: [None] * len(data.absent),
    count=_probes,
)
PRESENT = Read(
    name="get of a present key",
    body="subject(key)",
    subject=lambda store: store.engine.getter(store.db),
    keys=lambda data, store: data.present,
    expected=_values,
    count=_probes,
)
MANY = Read(
    name="get_many of 1000 present keys, per key",
    body="subject(key)",
    subject=lambda store: store.engine.many_getter(store.db),
    keys=lambda data, store: data.lists,
    expected=lambda data: [[data.values[key] for key in keys] for keys in data.lists],
    count=_probes,
)
SNAPSHOT = Read(
    name="get of a present key from a snapshot",
    body="subject(key)",
    subject=lambda store: store.engine.snapshot_getter(store.db),
    keys=lambda data, store: data.present,
    expected=_values,
    count=_probes,
)
FORWARDS = Read(
    name="an entry of all in order",
    body="key",
    subject=lambda store: None,
    keys=lambda data, store: store.engine.items(store.db),
    expected=lambda data: data.in_order,
    count=_everything,
)
BACKWARDS = Read(
    name="an entry of all, from the last one on",
    body="key",
    subject=lambda store: None,
    keys=lambda data, store: store.engine.items(store.db, reverse=True),
    expected=lambda data: reversed(data.in_order),
    count=_everything,
)
SEEK = Read(
    name="a seek, and the entry there",
    body="subject.seek(key) or next(subject)",  # seek returns None
    subject=lambda store: store.engine.items(store.db),
    keys=lambda data, store: data.places,
    expected=lambda data: [(key, data.values[key]) for key in data.places],
    count=_ranges,
)
PREFIX = Read(
    name=f"the first {RANGE_ENTRIES} entries with a prefix",
    body=f"list(zip(range({RANGE_ENTRIES}), subject(key)))",
    subject=lambda store: store.engine.prefix_iterator(store.db),
    keys=lambda data, store: data.prefixes,
    expected=lambda data: (list(enumerate(data.first_of[prefix])) for prefix in data.prefixes),
    count=_ranges,
)
