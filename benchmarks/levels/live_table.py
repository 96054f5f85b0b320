"""The rows of live stores, as a terminal and as documents show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from benchmarks.levels.budget import FLOOR, LIVE, OVER, PART
from benchmarks.levels.data import ABSENT
from benchmarks.levels.live_rows import BITS, OVER_BEST, TIME, WHILE_LOADED
from benchmarks.levels.lookups import EVEN
from benchmarks.rows import INFORMATION, MISSED, UNEXPECTED, Row, number
from benchmarks.text import aligned, markdown

MARKS = {UNEXPECTED: "!", MISSED: "*"}


class LiveTable:
    """The rows of one shape of tree."""

    def __init__(self, rows: Iterable[Row], shape: str):
        self._rows = {
            (row.subject, row.name, str(row.at.get("lookups", ""))): row
            for row in rows
            if row.at.get("shape") == shape and row.value is not None
        }
        self.subjects = list(dict.fromkeys(subject for subject, _, _ in self._rows))
        found = dict.fromkeys(lookups for _, _, lookups in self._rows if lookups)
        self.lookups = list(found)

    def lines(self, shape: str) -> list[list[str]]:
        """A line for each kind of filters, under what its numbers are."""
        heads = [shape, "bits/key", "x budget", "loading"]
        for lookups in self.lookups:
            heads += [lookups, "predicted", "x floor" if lookups == EVEN else "x best"]
        return [[*heads, f"us, {self.lookups[0]}"], *map(self._line, self.subjects)]

    def _line(self, subject: str) -> list[str]:
        cells = [
            subject,
            self._worst(subject, BITS),
            self._worst(subject, OVER),
            self._worst(subject, WHILE_LOADED),
        ]
        for lookups in self.lookups:
            row = self._rows.get((subject, ABSENT, lookups))
            beside = FLOOR if lookups == EVEN else OVER_BEST
            cells += [
                _cell(row),
                number(row.expected) if row else "-",
                _cell(self._rows.get((subject, beside, lookups))),
            ]
        return [*cells, _cell(self._rows.get((subject, TIME, self.lookups[0])))]

    def _worst(self, subject: str, name: str) -> str:
        """The largest of the numbers of a name; one store each learns from what it is asked."""
        found = [
            row for (of, called, _), row in self._rows.items() if (of, called) == (subject, name)
        ]
        return _cell(max(found, key=lambda row: row.value or 0.0, default=None))


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """All of it for a terminal, and what was not measured."""
    found = live(rows)
    for shape in shapes(found):
        yield ""
        yield f"A live store, {shape}: filters, and blocks read for an absent key"
        yield from aligned(LiveTable(found, shape).lines(shape))
    if any(row.verdict in MARKS for row in found):
        yield "  !: far from what was predicted; *: misses its bound"
    for row in found:
        if row.value is None:
            yield f"  {row.subject}: {row.verdict}: {row.reason}"


def documented(rows: Sequence[Row]) -> Iterator[str]:
    """The same as ``docs/placement.md`` has it for users, a table for each shape: no bounds."""
    found = [
        attrs.evolve(row, verdict=INFORMATION) if row.verdict == MISSED else row
        for row in live(rows)
    ]
    for shape in shapes(found):
        yield from markdown(LiveTable(found, shape).lines(shape))
        yield ""


def live(rows: Iterable[Row]) -> list[Row]:
    """The rows of live stores."""
    return [row for row in rows if (row.part, row.group) == (PART, LIVE)]


def shapes(rows: Iterable[Row]) -> list[str]:
    """The shapes of which anything was measured."""
    found = (str(row.at["shape"]) for row in rows if row.value is not None)
    return list(dict.fromkeys(found))


def _cell(row: Row | None) -> str:
    return "-" if row is None else number(row.value) + MARKS.get(row.verdict, "")
