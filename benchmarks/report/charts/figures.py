"""What all charts have in common: the frame around them, marks that tell their row, the legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.report import families, svg
from benchmarks.report.labels import Box, Label, placed
from benchmarks.report.markup import Child, Markup, join, tag
from benchmarks.rows import INFORMATION, Row, number

Draw = Callable[[float], Markup]


def figure(
    key: str,
    headline: Child,
    caption: Child,
    draw: Draw,
    *,
    legend: Child = None,
    more: Child = None,
) -> Markup:
    """A chart in both widths, under a sentence that says what to see, with how to read it."""
    return tag(
        "figure",
        tag("h2", headline),
        tag("figcaption", caption),
        legend,
        draw(svg.WIDE),
        draw(svg.NARROW),
        more,
        id=key,
    )


def nothing(key: str, title: str, why: str) -> Markup:
    """What stands where there is nothing to draw."""
    return tag("figure", tag("h2", title), tag("p", why, class_="nothing"), id=key)


def told(row: Row, words: str | None = None) -> Markup:
    """A number within a sentence, which leads to its row."""
    return tag("button", words or shown(row), type="button", class_="number", data_row=row.id)


def shown(row: Row) -> str:
    """A row's number with its unit."""
    if row.value is None:
        return row.verdict
    return with_unit(row.value, row.unit)


def with_unit(value: float, unit: str) -> str:
    """A number with its unit; shares are percents."""
    if unit == "share":
        return f"{number(100 * value)} %"
    return f"{number(value)} {unit}".rstrip()


def described(row: Row) -> str:
    """A row in words, for who points at its mark."""
    parts = [row.subject, *(f"{name} {value}" for name, value in row.at.items())]
    words = f"{', '.join(filter(None, parts))}: {row.name}, {shown(row)}"
    if row.interval:
        low, high = (with_unit(each, row.unit) for each in row.interval)
        words += f" ({low} to {high})"
    if row.expected is not None:
        words += f", expected {with_unit(row.expected, row.unit)}"
    if row.ratio is not None and row.peer:
        words += f", ratio to {row.peer} {number(row.ratio)}"
    return words + (f" - {row.verdict}" if row.verdict != INFORMATION else "")


def mark(row: Row, drawn: Child, name: str, *also: Row, kind: str = "mark") -> Markup:
    """What stands for a row in a chart, and for a second one if it has two numbers."""
    return tag(
        "g",
        tag("title", "; ".join([described(row), *(f"{one.name}, {shown(one)}" for one in also)])),
        drawn,
        class_=f"{kind} {families.colour(name)}",
        data_row=row.id,
        data_also=also[0].id if also else None,
        data_family=name,
    )


def legend(names: Iterable[str], marks: bool = True) -> Markup:
    """The families of a chart; pointing at one shows it alone, everywhere."""
    return tag(
        "p",
        [
            tag(
                "button",
                tag(
                    "svg",
                    svg.shape(families.mark_of(name) if marks else "circle", 8, 8, 5),
                    viewBox="0 0 16 16",
                    class_=f"swatch mark {families.colour(name)}",
                    aria_hidden="true",
                ),
                name,
                type="button",
                data_family=name,
                aria_pressed="false",
            )
            for name in sorted(set(names), key=families.order)
        ],
        class_="legend",
    )


def labelled(
    labels: Sequence[tuple[Label, str]],
    marks: Sequence[tuple[float, float]],
    within: Box,
    lines: Iterable[Sequence[tuple[float, float]]] = (),
) -> Markup:
    """The names of marks, where they cover nothing, with a line to the mark where they are far."""
    drawn = []
    for (_, name), at in zip(
        labels, placed([each for each, _ in labels], marks, within, lines), strict=True
    ):
        line = (at.label.x, at.label.y, *at.nearest)
        drawn.append(
            tag(
                "g",
                svg.line(*line, "leader") if at.far else None,
                svg.text(at.x, at.y, at.label.words),
                class_=f"name {families.colour(name)}",
                data_family=name or None,
            )
        )
    return join(drawn)


def plain(value: float) -> str:
    """A number on an axis."""
    return f"{value:,.10g}"


def percent(share: float) -> str:
    """A share on an axis."""
    return f"{100 * share:.10g} %"


def in_bytes(size: float) -> str:
    """A size on an axis."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.3g} B"
