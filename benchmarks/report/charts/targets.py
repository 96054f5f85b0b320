"""The kernel's targets: how much of each limit was used."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.record import Record
from benchmarks.report import svg
from benchmarks.report.charts import figures
from benchmarks.report.markup import Child, Markup, join, tag
from benchmarks.rows import MET, Row, number

KEY = "targets"
BAR, LINE, HEAD = 12.0, 26.0, 36.0
MOST = 1.5  # times the limit; longer bars are cut off


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    rows = [row for row in record.of("kernels") if row.target is not None]
    judged = [row for row in rows if used(row) is not None]
    if not judged:
        why = (
            "No row was held to a target: the part “kernels” was not run, or not at the size that "
            "its targets are stated for."
        )
        return figures.nothing(KEY, "Targets of the compiled kernel", why)
    met = sum(row.verdict == MET for row in judged)
    headline = f"The compiled kernel meets {met} of {len(judged)} targets"
    unmeasured = len(rows) - len(judged)
    caption = (
        "The length of a bar is the share of the limit that was used: those that reach past the "
        "line missed their target. Beside each stands its ratio and the limit, in times the peer."
        + (f" Not measured: {unmeasured}; the tables say why." if unmeasured else "")
    )
    return figures.figure(KEY, headline, caption, lambda width: draw(judged, width))


def used(row: Row) -> float | None:
    """How much of the limit a row uses: above 1 it missed."""
    if row.target is None:
        return None
    value = row.value if row.target.absolute else row.ratio
    if not value:
        return None
    return row.target.limit / value if row.target.at_least else value / row.target.limit


def draw(rows: Sequence[Row], width: float) -> Markup:
    """The chart in one of the two widths: names stand left of the bars, or above them."""
    wide = width == svg.WIDE
    left, right = (366.0, width - 210.0) if wide else (4.0, width - 8.0)
    top = 34.0
    longest = max(1.1, min(MOST, max(used(row) or 0 for row in rows)) * 1.04)
    across = svg.Scale(0, longest, left, right)
    drawn: list[Child] = []
    y, group = top, ""
    for row in rows:
        if row.group != group:
            group = row.group
            y += HEAD
            x, anchor, room = (left - 14, "end", left - 14) if wide else (left, "start", width)
            words = svg.shortened(group, room)
            drawn.append(svg.text(x, y - 9, words, anchor=anchor, kind="panel"))
        drawn.append(_beside(row, across, y) if wide else _above(row, across, y))
        y += LINE if wide else _height(row, width)
    one = across(1)
    label = f"How much of its limit each of {len(rows)} targets uses"
    return svg.drawing(
        width, y + 10, label,
        svg.line(one, top - 6, one, y, "one") if wide else None,
        drawn,
        svg.text(one, top - 14, "limit", anchor="middle", kind="what"),
    )  # fmt: skip


def _beside(row: Row, across: svg.Scale, y: float) -> Markup:
    """A bar with its name at the left and its ratio at the right."""
    at = y + (LINE - BAR) / 2
    name = svg.shortened(_name(row), across.start - 14)
    drawn = [
        _bar(row, across, at),
        svg.text(across.start - 14, at + BAR - 1, name, anchor="end"),
        tag("text", _told(row), x=across.end + 16, y=at + BAR - 1),
    ]
    return figures.mark(row, drawn, row.subject, kind="mark bullet")


def _above(row: Row, across: svg.Scale, y: float) -> Markup:
    """A bar below its name and its ratio, which share a line if there is room for both."""
    width = across.end - across.start
    height = _height(row, svg.NARROW)
    at = y + height - BAR - 10
    drawn = [
        svg.text(across.start, y + 17, svg.shortened(_name(row), width)),
        tag("text", _told(row), x=across.end, y=at - 7, text_anchor="end"),
        _bar(row, across, at),
        svg.line(across(1), at - 4, across(1), at + BAR + 4, "limit"),
    ]
    return figures.mark(row, drawn, row.subject, kind="mark bullet")


def _height(row: Row, width: float) -> float:
    """What a bar takes with what stands above it."""
    together = svg.text_width(f"{_name(row)} {_ratio(row)} {row.verdict}")
    return LINE + 20 + (0 if together < width - 20 else 17)


def _bar(row: Row, across: svg.Scale, y: float) -> Markup:
    kind = "met" if row.verdict == MET else "missed"
    return svg.rectangle(across.start, y, across(used(row) or 0) - across.start, BAR, kind)


def _name(row: Row) -> str:
    return row.name + (f", {row.at['column']}" if "column" in row.at else "")


def _told(row: Row) -> Markup:
    strong = None if row.verdict == MET else "strong"
    return join([_ratio(row), " · ", tag("tspan", row.verdict, class_=strong)])


def _ratio(row: Row) -> str:
    assert row.target is not None
    value = row.value if row.target.absolute else row.ratio
    unit = f" {row.unit}" if row.target.absolute else " x"
    sign = "≥" if row.target.at_least else "≤"
    return f"{number(value)}{unit}, limit {sign} {row.target.limit:g}"
