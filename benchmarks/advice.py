"""What the numbers of a run say to somebody who has to choose: sentences, each with its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from benchmarks.levels.budget import frontier, usual, within
from benchmarks.peers import BY_NAME as PEERS
from benchmarks.record import Record
from benchmarks.rows import FAILED, Row, number

RATES, SPEED, TIME = "Rates and sizes", "Speed", "Time per lookup"
ONE_PERCENT = 0.0105  # what is asked for as one percent comes to a little more or less
BUDGETS = (5, 8, 10, 12, 16)
TYPICAL = 1_000_000  # far more keys are further from what a table has
OVER_BUDGET = 1.02  # ten bits a key come to a little more, with headers
FLASH = "flash, 100 us a block"


@attrs.frozen
class Advice:
    """An answer in a sentence or two, and the ids of the rows it comes from."""

    question: str
    answer: str
    rows: tuple[str, ...]


def advice(record: Record) -> Iterator[Advice]:
    """What this record can answer, the most important first."""
    questions: tuple[Callable[[Record], Advice | None], ...] = (
        fastest,
        smallest,
        configuration,
        saving,
        engine,
    )
    for question in questions:
        found = question(record)
        if found is not None:
            yield found


class Numbers:
    """The rows of a part under one heading, by what they are of."""

    def __init__(self, rows: Iterable[Row], group: str, **at: Any):
        self._rows = {
            (row.name, row.subject): row
            for row in rows
            if row.group == group
            and row.value is not None
            and row.verdict != FAILED
            and all(row.at.get(name) == value for name, value in at.items())
        }

    def __call__(self, name: str, subject: str) -> Row | None:
        """The row of this name and subject, if it was measured."""
        return self._rows.get((name, subject))

    def subjects(self, name: str) -> list[str]:
        """Who has a row of this name."""
        return [subject for each, subject in self._rows if each == name]


def fastest(record: Record) -> Advice | None:
    """The quickest filter of about one percent, ours or a peer's."""
    rows = record.of("filters")
    sizes = {_count(row) for row in _random(rows) if row.group == SPEED}
    n = max((each for each in sizes if each <= TYPICAL), default=min(sizes, default=0))
    speed, rates = (Numbers(_random(rows), group, n=n) for group in (SPEED, RATES))
    asked = "one key, miss, in order"  # shuffled, fetching the keys would count for more
    found = []
    for subject in speed.subjects(asked):
        rate, taken = rates("false-positive rate", subject), speed(asked, subject)
        if rate and taken and 0 < _value(rate) <= ONE_PERCENT:
            found.append((_value(taken), subject, taken, rate))
    if not found:
        return None
    found.sort(key=lambda each: each[0])
    best, subject, taken, rate = found[0]
    answer = (
        f"{subject}: {number(best)} ns for an absent key among {n:,}, {number(100 * _value(rate))} "
        "% of them let through"
    )
    used = [taken, rate]
    batch = speed("buffer, miss", subject) or speed("list of 4096, miss", subject)
    if batch:
        answer += f"; {number(_value(batch))} ns each in a batch"
        used.append(batch)
    other = next((each for each in found if _is_peer(each[1]) != _is_peer(subject)), None)
    if other:
        whose = "other libraries" if _is_peer(other[1]) else "the policies here"
        answer += f". The fastest of {whose} is {other[1]} with {number(other[0])} ns"
        used.append(other[2])
    return _advice("What is fastest at about one percent?", answer + ".", used)


def smallest(record: Record) -> Advice | None:
    """What takes the fewest bits for a rate; who was not measured at that size, at the nearest."""
    rows = [row for row in _random(record.of("filters")) if row.group == RATES]
    sizes = Counter(_count(row) for row in rows if row.name == "false-positive rate")
    if not sizes:
        return None
    n, _ = sizes.most_common(1)[0]
    nearest: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: abs(_count(row) - n)):
        nearest.setdefault((row.name, row.subject), row)
    rates = Numbers(nearest.values(), RATES)
    told, used = [], []
    for limit, words in ((ONE_PERCENT, "1 %"), (0.00105, "0.1 %")):
        found = []
        for subject in rates.subjects("false-positive rate"):
            rate, bits = rates("false-positive rate", subject), rates("bits per key", subject)
            if rate and bits and 0 < _value(rate) <= limit and _value(bits) > 0:
                found.append((_value(bits), subject, rate, bits))
        if found:
            size, subject, rate, bits = min(found, key=lambda each: each[0])
            told.append(
                f"for {words} or less {subject}, {number(size)} bits a key at "
                f"{number(100 * _value(rate))} %"
            )
            used += [rate, bits]
    if not told:
        return None
    answer = "; ".join(told)
    return _advice(f"What is smallest, of {n:,} keys or so?", f"{_capital(answer)}.", used)


def configuration(record: Record) -> Advice | None:
    """The configuration of levels that reads least, for a memory."""
    found = frontier(record.of("levels"))
    told: dict[str, str] = {}
    used: list[Row] = []
    for budget in BUDGETS:
        best = within(found, budget * OVER_BUDGET)
        if best is not None and best.bits_per_key > 0 and best.subject not in told:
            told[best.subject] = (
                f"with {budget:g} bits a key {best.subject} ({number(best.bits_per_key)} bits) "
                f"reads {number(best.blocks)} blocks"
            )
            used += [best.bits, best.reads]
    if not told:
        return None
    question = "Which filters on which levels, for a lookup of an absent key?"
    return _advice(question, f"{_capital('; '.join(told.values()))}.", used)


def saving(record: Record) -> Advice | None:
    """What that saves in time."""
    times = Numbers(usual(record.of("levels")), TIME, storage=FLASH)
    without = times("absent key", "none")
    found = [
        row for subject in times.subjects("absent key") if (row := times("absent key", subject))
    ]
    if without is None or len(found) < 2:
        return None
    best = min(found, key=_value)
    answer = (
        f"On flash, an absent key costs {number(_value(without))} us without filters and "
        f"{number(_value(best))} us with {best.subject}."
    )
    return _advice("What does a filter save?", answer, [without, best])


def engine(record: Record) -> Advice | None:
    """How the engine does beside others."""
    rows = record.of("engine")
    found = [
        row
        for row in rows
        if row.name == "get of an absent key" and row.value is not None and "compacted" in row.group
    ]
    if not found:
        return None
    n = max(map(_count, found))
    found = sorted((row for row in found if _count(row) == n), key=_value)
    told = ", ".join(f"{row.subject} {number(_value(row))} {row.unit}" for row in found)
    return _advice(f"What does a lookup of an absent key take, of {n:,}?", f"{told}.", found)


def _advice(question: str, answer: str, rows: Iterable[Row]) -> Advice:
    return Advice(question, answer, tuple(dict.fromkeys(row.id for row in rows)))


def _random(rows: Iterable[Row]) -> list[Row]:
    """Rows over random keys, or, where there are none, over the user's own."""
    found = list(rows)
    return [row for row in found if row.at.get("keys") == "random"] or found


def _value(row: Row) -> float:
    return row.value or 0.0


def _count(row: Row) -> int:
    return int(row.at["n"])


def _is_peer(subject: str) -> bool:
    return subject.split()[0] in PEERS


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
