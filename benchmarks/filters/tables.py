"""The rows on filters as a terminal shows them: a line for each subject, a table for each set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from benchmarks.filters import speed
from benchmarks.rows import FAILED, NOT_MEASURED, UNEXPECTED, Row, number
from benchmarks.text import aligned, markdown

LEGEND = (
    "rate, expected: share of absent keys that pass, ! where no chance explains the difference "
    "· b/key: as stored",
    "x bound: bits over the fewest that any filter of that rate takes · build, hit, miss, list, "
    "buf: ns per key,",
    "one at a time in order and shuffled, in lists of 4096, in a buffer; h hits, m misses · % of "
    "floor: how much of",
    "the time an empty call (hit) or a random cache line (buf or list) takes · cold: us for 1000 "
    "keys after opening",
    "· peak: bytes per key while building",
)

Cell = Callable[[Row], str]
Column = tuple[str, tuple[str, ...], Cell]
Key = TypeVar("Key", bound=Hashable)


def _value(row: Row) -> str:
    return number(row.value)


def _rate(row: Row) -> str:
    return number(row.value) + (" !" if row.verdict == UNEXPECTED else "")


def _floor(row: Row) -> str:
    return f"{100 / row.ratio:.0f}%" if row.ratio else ""


# Heading, the row that is looked at, and what of it is shown.
COLUMNS: tuple[Column, ...] = (
    ("rate", ("false-positive rate",), _rate),
    ("expected", ("false-positive rate",), lambda row: number(row.expected)),
    ("b/key", ("bits per key",), _value),
    ("x bound", ("times the lower bound",), _value),
    ("build", ("build",), _value),
    ("hit", ("one key, hit, in order",), _value),
    ("miss", ("one key, miss, in order",), _value),
    ("floor", ("one key, hit, in order",), _floor),
    ("shuf.h", ("one key, hit, shuffled",), _value),
    ("shuf.m", ("one key, miss, shuffled",), _value),
    ("list h", ("list of 4096, hit",), _value),
    ("list m", ("list of 4096, miss",), _value),
    ("buf h", ("buffer, hit",), _value),
    ("buf m", ("buffer, miss",), _value),
    ("floor", ("buffer, miss", "list of 4096, miss"), _floor),
    ("cold", ("first wave after a cold open",), _value),
    ("peak", ("peak while building",), _value),
)


# What fits a screen beside other parts.
DOCUMENTED = (
    *("rate", "b/key", "x bound", "build", "hit", "miss", "shuf.m", "list m", "buf m", "cold"),
    "peak",
)
SUMMARY = ("rate", "b/key", "x bound", "build", "hit", "miss", "list m", "buf m", "cold", "peak")


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Who was measured whole over the largest set of the first kind of keys, in short."""
    where, some = _largest(rows)
    if some:
        yield ""
        yield f"Filters of {where[1]:,} keys, {where[0]}: absent keys that pass, bits, ns per key"
        yield from aligned(_cells(some, _chosen(SUMMARY)))


def documented(rows: Sequence[Row], kind: str, count: int) -> Iterator[str]:
    """Who was measured whole over so many keys of a kind, as ``docs/benchmarks.md`` has it."""
    yield from markdown(_cells(_whole(rows, (kind, count)), _chosen(DOCUMENTED)))


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """All tables, what the columns mean, and who is not in them and why."""
    shown = [row for row in rows if row.value is not None]
    complete = {(_where(row), row.subject) for row in shown if row.group == speed.GROUP}
    yield ""
    yield from LEGEND
    for where, members in _by(shown, _where):
        both = [
            (True, [row for row in members if (where, row.subject) in complete]),
            (False, [row for row in members if (where, row.subject) not in complete]),
        ]
        for measured_whole, some in both:
            if some:
                yield ""
                kind, count = where
                what = "" if measured_whole else ": rates and sizes"
                yield f"{count:,} keys, {kind}{what}"
                yield from aligned(_cells(some))
    yield from _missing(rows)


def _largest(rows: Sequence[Row]) -> tuple[tuple[str, int], list[Row]]:
    """The largest set of the first kind of keys, and the rows of who was measured whole there."""
    timed = [row for row in rows if row.group == speed.GROUP and row.value is not None]
    if not timed:
        return ("", 0), []
    kind = timed[0].at["keys"]
    where = max((_where(row) for row in timed if row.at["keys"] == kind), key=lambda each: each[1])
    return where, _whole(rows, where)


def _whole(rows: Sequence[Row], where: tuple[str, int]) -> list[Row]:
    """The rows over one set of keys of everybody who was timed there."""
    here = [row for row in rows if row.value is not None and _where(row) == where]
    subjects = {row.subject for row in here if row.group == speed.GROUP}
    return [row for row in here if row.subject in subjects]


def _chosen(heads: Sequence[str]) -> list[Column]:
    return [column for column in COLUMNS if column[0] in heads]


def _cells(rows: Sequence[Row], columns: Sequence[Column] = COLUMNS) -> list[list[str]]:
    """A line for each subject under the headings; columns that would be empty are left out."""
    body = []
    for subject, members in _by(rows, lambda row: row.subject):
        found = {row.name: row for row in members}
        cells = [subject]
        for _, names, shown in columns:
            row = next((found[name] for name in names if name in found), None)
            cells.append(shown(row) if row else "")
        body.append(cells)
    heads = ["", *(head for head, _, _ in columns)]
    kept = [at for at in range(len(heads)) if at == 0 or any(cells[at] for cells in body)]
    return [[line[at] for at in kept] for line in (heads, *body)]


def _missing(rows: Sequence[Row]) -> Iterator[str]:
    """Each reason once, and where it holds."""
    without = [row for row in rows if row.verdict in (FAILED, NOT_MEASURED)]
    if without:
        yield ""
    for (verdict, reason), members in _by(without, lambda row: (row.verdict, row.reason)):
        subjects = ", ".join(dict.fromkeys(row.subject for row in members))
        yield f"  {verdict}: {subjects}: {reason}"


def _where(row: Row) -> tuple[str, int]:
    return str(row.at["keys"]), int(row.at["n"])


def _by(rows: Sequence[Row], key: Callable[[Row], Key]) -> Iterator[tuple[Key, list[Row]]]:
    """Rows that belong together, in the order in which each first of them comes."""
    order = {each: at for at, each in enumerate(dict.fromkeys(map(key, rows)))}
    ranked = sorted(rows, key=lambda row: order[key(row)])
    for each, members in groupby(ranked, key=key):
        yield each, list(members)
