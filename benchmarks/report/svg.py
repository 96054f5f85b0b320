"""What charts are drawn with: scales, ticks, axes, marks. Functions of numbers to SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import attrs

from benchmarks.report.markup import Child, Markup, tag

# How wide a letter of the charts' text is on average, by its height; measured on what is shown.
LETTER = 0.54
TEXT = 13.0
WIDE, NARROW = 980.0, 372.0


@attrs.frozen
class Scale:
    """From numbers to places: ``low`` lies at ``start``, ``high`` at ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a number lies; what is out of range lies on the edge."""
        value = min(max(value, self.low), self.high)
        turn = math.log if self.log else float
        share = (turn(value) - turn(self.low)) / (turn(self.high) - turn(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 8) -> list[float]:
        """Round numbers within, at most about so many."""
        return (
            log_ticks(self.low, self.high, most) if self.log else ticks(self.low, self.high, most)
        )


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high."""
    rough = (high - low) / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) for each in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Powers of ten, fewer of them if need be; with 2 and 5 of each where there is room."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [
            step * 10.0**power
            for power in range(first, last + 1)
            for step in steps
            if low * (1 - 1e-9) <= step * 10.0**power <= high * (1 + 1e-9)
        ]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


def scale(
    values: Iterable[float], start: float, end: float, *, log: bool = False, room: float = 0.06
) -> Scale:
    """A scale on which all of these lie, with some room at both ends."""
    found = list(values)
    low, high = min(found), max(found)
    if log:
        more = max((high / low) ** room, 1.1)
        return Scale(low / more, high * more, start, end, log=True)
    more = (high - low) * room or 1.0
    return Scale(low - more, high + more, start, end)


def drawing(width: float, height: float, label: str, *children: Child) -> Markup:
    """A picture of this size, which its text stands for where it is not seen."""
    return tag(
        "svg",
        tag("title", label),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        class_="wide" if width == WIDE else "narrow",
        role="img",
        aria_label=label,
    )


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> Markup:
    """Words; ``anchor`` says which of their ends stands at x."""
    return tag(
        "text",
        words,
        x=x,
        y=y,
        text_anchor=None if anchor == "start" else anchor,
        class_=kind or None,
    )


def text_width(words: str, size: float = TEXT) -> float:
    """About how wide words are."""
    return len(words) * size * LETTER


def shortened(words: str, width: float) -> str:
    """Words that are about so wide at most; where they are cut off there are three dots."""
    most = int(width / (TEXT * LETTER * 0.93))  # a long line has narrow letters, too
    return words if len(words) <= most else words[: max(1, most - 1)].rstrip() + "…"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line between two points."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """A rectangle by its upper left corner, of the style of a class."""
    return tag("rect", x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=kind)


def polyline(points: Sequence[tuple[float, float]], kind: str, family: str | None = None) -> Markup:
    """A line through points."""
    return tag("path", d=path(points), class_=kind, data_family=family)


def path(points: Sequence[tuple[float, float]], *, closed: bool = False) -> str:
    """The path through points, as SVG writes it."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + ("Z" if closed else "")


def steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a staircase: it stays at a height until the next one's place."""
    found = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        found += [(x, before), (x, y)]
    return found


def x_axis(
    on: Scale, y: float, top: float, words: str, shown: Callable[[float], str], most: int = 8
) -> Markup:
    """Faint lines upwards from round numbers, which stand below, and what they are."""
    return tag(
        "g",
        [line(on(tick), y, on(tick), top, "grid") for tick in on.ticks(most)],
        line(on.start, y, on.end, y, "axis"),
        [text(on(tick), y + 18, shown(tick), anchor="middle") for tick in on.ticks(most)],
        text(on.end, y + 38, words, anchor="end", kind="what"),
        aria_hidden="true",
    )


def y_axis(
    on: Scale, x: float, right: float, words: str, shown: Callable[[float], str], most: int = 7
) -> Markup:
    """Faint lines to the right of round numbers, which stand at the left, and what they are."""
    return tag(
        "g",
        [line(x, on(tick), right, on(tick), "grid") for tick in on.ticks(most)],
        [text(x - 8, on(tick) + 4, shown(tick), anchor="end") for tick in on.ticks(most)],
        text(0, on.end - 14, words, kind="what"),
        aria_hidden="true",
    )


SHAPES = ("circle", "square", "diamond", "up", "down", "cross", "plus", "hexagon")


def shape(kind: str, x: float, y: float, size: float) -> Markup:
    """A mark of about this radius."""
    if kind == "circle":
        return tag("circle", cx=x, cy=y, r=size)
    corners = {
        "square": ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),
        "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
        "up": ((0, -1.2), (1.15, 0.85), (-1.15, 0.85)),
        "down": ((0, 1.2), (1.15, -0.85), (-1.15, -0.85)),
        "hexagon": (
            (-1.1, 0),
            (-0.55, -0.95),
            (0.55, -0.95),
            (1.1, 0),
            (0.55, 0.95),
            (-0.55, 0.95),
        ),
    }
    if kind in corners:
        points = [(x + size * dx, y + size * dy) for dx, dy in corners[kind]]
        return tag("path", d=path(points, closed=True))
    arms = ((1, 1), (1, -1)) if kind == "cross" else ((1.2, 0), (0, 1.2))
    strokes = (
        path([(x - size * dx, y - size * dy), (x + size * dx, y + size * dy)]) for dx, dy in arms
    )
    return tag("path", d="".join(strokes), class_="open")
