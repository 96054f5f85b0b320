"""Every row of a record in tables: a table for each group, and every cell leads to its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import attrs

from benchmarks.record import Record
from benchmarks.report.charts.figures import with_unit
from benchmarks.report.markup import Child, Markup, tag
from benchmarks.rows import FAILED, MISSED, UNEXPECTED, Row, number

LOUD = (FAILED, MISSED, UNEXPECTED)
Names = tuple[str, ...]


@attrs.frozen
class Shape:
    """How a part's rows lie in a table: what a line stands for, and what a column."""

    heads: Names
    line: Callable[[Row], Names]
    column: Callable[[Row], str]


def _at(row: Row, *without: str) -> str:
    return ", ".join(str(value) for name, value in row.at.items() if name not in without)


SHAPES = {
    "filters": Shape(
        ("subject", "keys", "n"),
        lambda row: (row.subject, _at(row, "n"), _count(row)),
        lambda row: row.name,
    ),
    "engine": Shape(
        ("question", "n"), lambda row: (row.name, _count(row)), lambda row: row.subject
    ),
    "levels": Shape(
        ("configuration", "tree"),
        lambda row: (row.subject, _tree(row)),
        lambda row: ", ".join(filter(None, (row.name, _level(row)))),
    ),
}


def tables(record: Record) -> Iterator[Markup]:
    """A part's tables behind a heading that opens them."""
    for part in dict.fromkeys(row.part for row in record.rows):
        rows = record.of(part)
        groups = dict.fromkeys(row.group for row in rows)
        yield tag(
            "details",
            tag("summary", tag("h3", part), tag("span", f"{len(rows):,} rows")),
            [table([row for row in rows if row.group == group]) for group in groups],
            class_="part",
        )


def table(rows: Sequence[Row]) -> Markup:
    """The rows of one group: a grid where the part has a shape for it, else a line for each."""
    shape = None if _all_judged(rows) else SHAPES.get(rows[0].part)
    if shape is None and all("column" in row.at for row in rows):
        shape = Shape(("",), lambda row: (row.name,), lambda row: str(row.at["column"]))
    content = grid(rows, shape) if shape else listing(rows)
    return tag(
        "section",
        tag("h4", rows[0].group),
        tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=rows[0].group),
        _reasons(rows),
    )


def _all_judged(rows: Sequence[Row]) -> bool:
    """Whether there is more to say of each than fits into a grid."""
    return all(row.target is not None for row in rows)


def grid(rows: Sequence[Row], shape: Shape) -> Markup:
    """A line for each thing, a column for each circumstance, and the unit once where it is one."""
    columns = list(dict.fromkeys(map(shape.column, rows)))
    cells = {(shape.line(row), shape.column(row)): row for row in rows}
    units = {
        column: {row.unit for row in members if row.value is not None}
        for column, members in _by(rows, shape.column)
    }
    shared = {column: found.pop() for column, found in units.items() if len(found) == 1}
    heads = [_head(words) for words in shape.heads]
    heads += [_head(column, _unit(shared.get(column, ""))) for column in columns]
    lines = []
    for names in dict.fromkeys(map(shape.line, rows)):
        found = [_cell(cells.get((names, column)), column in shared) for column in columns]
        first, *others = names
        lines.append(
            tag("tr", tag("th", first, scope="row"), [tag("td", name) for name in others], found)
        )
    return _table(heads, lines)


def listing(rows: Sequence[Row]) -> Markup:
    """A line for each row."""
    shown = [name for name, words in COLUMNS.items() if any(map(words, rows))]
    coordinates = list(dict.fromkeys(name for row in rows for name in row.at))
    heads = [_head(words) for words in ("name", *coordinates, "value", *shown)]
    lines = [
        tag(
            "tr",
            tag("th", row.name, scope="row"),
            [tag("td", str(row.at.get(name, ""))) for name in coordinates],
            _cell(row, unit_is_told=False, verdict=False),
            [tag("td", COLUMNS[name](row), class_=CLASSES.get(name)) for name in shown],
            data_row=row.id,
        )
        for row in rows
    ]
    return _table(heads, lines)


def _cell(row: Row | None, unit_is_told: bool, *, verdict: bool = True) -> Markup:
    """A number that leads to its row, with a word where there is something to say about it."""
    if row is None:
        return tag("td")
    if row.value is None:
        words: Child = tag("em", row.verdict, class_="bad" if row.verdict in LOUD else None)
    else:
        value = 100 * row.value if row.unit == "share" else row.value
        words = number(value) if unit_is_told else with_unit(row.value, row.unit)
        if verdict and row.verdict in LOUD:
            words = (words, " ", _verdict(row))
    return tag("td", tag("button", words), data_row=row.id)


def _verdict(row: Row) -> str:
    return tag("em", row.verdict, class_="bad") if row.verdict in LOUD else row.verdict


def _peer(row: Row) -> str:
    theirs = number(min(row.peer_repeats)) if row.peer_repeats else ""
    return ", ".join(filter(None, (row.peer, theirs)))


# What a line of a list tells beside its number; a column that would be empty is left out.
COLUMNS: dict[str, Callable[[Row], str]] = {
    "of": lambda row: "" if row.subject in row.name else row.subject,
    "peer": _peer,
    "ratio": lambda row: "" if row.ratio is None else f"{row.ratio:.3g}",
    "target": lambda row: str(row.target or ""),
    "aim": lambda row: number(row.aim),
    "verdict": _verdict,
    "why, remarks": lambda row: "; ".join(filter(None, (row.reason, row.note))),
}
CLASSES = {"why, remarks": "remark"}


def _reasons(rows: Sequence[Row]) -> Child:
    """Why there are no numbers, once each."""
    found = dict.fromkeys((row.verdict, row.reason) for row in rows if row.reason)
    if not found:
        return None
    return tag("ul", [tag("li", f"{verdict}: {reason}") for verdict, reason in found])


def _table(heads: Sequence[Markup], lines: Sequence[Markup]) -> Markup:
    return tag("table", tag("thead", tag("tr", heads)), tag("tbody", lines))


def _head(words: str, unit: str = "") -> Markup:
    """A heading that sorts when it is clicked."""
    told = (words, tag("small", unit)) if unit else words
    return tag("th", tag("button", told, type="button"), scope="col", aria_sort="none")


def _unit(unit: str) -> str:
    return "%" if unit == "share" else unit


def _count(row: Row) -> str:
    n = row.at.get("n", "")
    return f"{n:,}" if isinstance(n, int) else str(n)


def _level(row: Row) -> str:
    if "level" in row.at:
        level = str(row.at["level"])
        return "all levels" if level == "all" else f"level {level}"
    return _at(row, "shape")


def _tree(row: Row) -> str:
    """Which tree of levels a row is of, where it is not the usual one."""
    growth = row.at.get("growth")
    return str(row.at.get("shape", "")) if growth is None else f"T = {growth}"


def _by(rows: Sequence[Row], key: Callable[[Row], str]) -> Iterator[tuple[str, list[Row]]]:
    for name, members in groupby(sorted(rows, key=key), key=key):
        yield name, list(members)
