"""Engines beside plyvel: how many times as long each takes, question by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.samples import sizes
from benchmarks.report.markup import Child, Markup, join, tag
from benchmarks.rows import Row, number

KEY = "engines"
OURS = "lsm, blocked"
LINE, HEAD = 25.0, 34.0
WIDEST = 100.0  # times plyvel; what is beyond lies on the edge


@attrs.frozen
class Question:
    """A line of the chart: what was asked, and by n the rows of the engines."""

    group: str
    name: str
    rows: Mapping[int, Sequence[Row]]


def questions(record: Record) -> list[Question]:
    """Everything with a ratio to plyvel, in the order it was measured."""
    rows = [
        row for row in record.of("engine") if row.ratio and row.ratio > 0 and _is_an_engines(row)
    ]
    asked = dict.fromkeys((row.group, row.name) for row in rows)
    return [
        Question(group, name, {
            n: [row for row in rows if (row.group, row.name, row.at["n"]) == (group, name, n)]
            for n in sizes(rows)
        })
        for group, name in asked
    ]  # fmt: skip


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = questions(record)
    if not found:
        why = (
            "No engine was held against plyvel: the part “engine” was not run, or plyvel is not "
            "installed."
        )
        return figures.nothing(KEY, "Engines beside plyvel", why)
    engines = dict.fromkeys(
        row.subject for each in found for rows in each.rows.values() for row in rows
    )
    peers = {row.peer for each in found for rows in each.rows.values() for row in rows if row.peer}
    peer = "plyvel" if not peers else ", ".join(sorted(peers))
    caption = (
        f"How many times as much each engine takes as {peer}, on a logarithmic scale: left of the "
        "line at 1 is less, right of it more; what is beyond 100 times lies on the edge."
        + _missing(record)
    )
    legend = figures.legend(engines)
    return figures.figure(
        KEY, _headline(found), caption, lambda width: draw(found, width), legend=legend
    )


def draw(found: Sequence[Question], width: float) -> Markup:
    """A column for each number of keys, or one below the other."""
    wide = width == svg.WIDE
    numbers = sorted({n for each in found for n, rows in each.rows.items() if rows})
    left = 296.0 if wide else 6.0
    line = LINE if wide else LINE + 15
    groups = len(dict.fromkeys(each.group for each in found))
    high = len(found) * line + groups * HEAD
    gap = 34.0
    each = (width - left - 16 - gap * (len(numbers) - 1)) / len(numbers) if wide else width - 22
    ratios = [row.ratio or 1.0 for q in found for rows in q.rows.values() for row in rows]
    top = 60.0
    drawn = []
    for at, n in enumerate(numbers):
        x = left + at * (each + gap) if wide else left + 4
        y = top if wide else top + at * (high + 124)
        kept = [min(max(ratio, 1 / WIDEST), WIDEST) for ratio in (*ratios, 1.0)]
        across = svg.scale(kept, x, x + each, log=True, room=0.05)
        drawn.append(_column(found, n, across, y, y + high, line, names=0 if wide and at else left))
    height = top + (high + 46 if wide else len(numbers) * (high + 124) - 74)
    label = f"Ratios to plyvel of {len(found)} questions at {len(numbers)} numbers of keys"
    return svg.drawing(width, height, label, drawn)


def _column(
    found: Sequence[Question],
    n: int,
    across: svg.Scale,
    top: float,
    bottom: float,
    line: float,
    *,
    names: float,
) -> Markup:
    wide = line == LINE
    drawn: list[Child] = [
        svg.text(across.start, top - 36, f"{n:,} keys", kind="panel"),
        svg.x_axis(across, bottom, top, "times plyvel", _times, 6),
        svg.line(across(1), top - 8, across(1), bottom, "one"),
        svg.text(across(1), top - 14, "plyvel", anchor="middle", kind="what"),
    ]
    x, anchor = (names - 14, "end") if wide else (across.start, "start")
    room = names - 14 if wide else across.end - across.start
    y, group = top, ""
    for question in found:
        if question.group != group:
            group = question.group
            y += HEAD
            if names:
                words = svg.shortened(group, room)
                drawn.append(svg.text(x, y - 10, words, anchor=anchor, kind="panel"))
        if names:
            words = svg.shortened(question.name, room)
            below = line / 2 + 4 if wide else 14
            drawn.append(svg.text(x, y + below, words, anchor=anchor))
        drawn.append(_dots(question.rows.get(n, ()), across, y + (line / 2 if wide else 27)))
        y += line
    return join(drawn)


def _dots(rows: Sequence[Row], across: svg.Scale, y: float) -> Markup:
    places = [across(row.ratio or 1.0) for row in rows]
    if not places:
        return svg.text(across.start, y + 4, "not measured", kind="what")
    marks = []
    for row, x in zip(rows, places, strict=True):
        name = families.family(row.subject)
        marks.append(figures.mark(row, svg.shape(families.mark_of(name), x, y, 5), name))
    span = svg.line(min(*places, across(1)), y, max(*places, across(1)), y, "span")
    return tag("g", span, reversed(marks))


def _missing(record: Record) -> str:
    """Which engines were not measured, and where."""
    rows = [row for row in record.of("engine") if row.value is None and _is_an_engines(row)]
    measured = {(row.subject, row.at["n"]) for row in record.of("engine") if row.value is not None}
    found = dict.fromkeys(
        f"{row.subject} at {row.at['n']:,}"
        for row in rows
        if (row.subject, row.at["n"]) not in measured
    )
    return f" Not measured: {'; '.join(found)} keys; the tables say why." if found else ""


def _is_an_engines(row: Row) -> bool:
    return "n" in row.at and "beside" not in row.at


def _headline(found: Sequence[Question]) -> Child:
    most = max(n for each in found for n, rows in each.rows.items() if rows)
    ours = [row for each in found for row in each.rows.get(most, ()) if row.subject == OURS]
    if not ours:
        return "Engines beside plyvel"
    less = [row for row in ours if (row.ratio or 0) <= 1]
    best = min(ours, key=lambda row: row.ratio or 0)
    worst = max(ours, key=lambda row: row.ratio or 0)
    return (
        f"{OURS} takes no more than plyvel for {len(less)} of {len(ours)} questions; from ",
        figures.told(best, f"{number(best.ratio)} times"),
        " to ",
        figures.told(worst, f"{number(worst.ratio)} times"),
        " as much",
    )


def _times(ratio: float) -> str:
    return f"{ratio:.10g} x"
