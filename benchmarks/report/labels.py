"""Where the names of marks stand, so that they cover neither each other nor other marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import attrs

from benchmarks.report.svg import TEXT, text_width

HEIGHT = TEXT * 1.1
LINE = 3.0  # half of what a line covers
# Where a label is tried, as steps right and down of the mark, the best first; what is further away
# costs more than what is near.
PLACES = (
    (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1),
    (1, -2), (1, 2), (-1, -2), (-1, 2), (0, -2), (0, 2), (1, -3), (1, 3), (-1, -3), (-1, 3),
    (1, -4), (1, 4), (-1, -4), (-1, 4),
)  # fmt: skip


@attrs.frozen
class Box:
    """The place that something covers."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)

    @property
    def area(self) -> float:
        """How much it covers."""
        return (self.right - self.left) * (self.bottom - self.top)


@attrs.frozen
class Label:
    """Words that belong to a mark at x and y."""

    words: str
    x: float
    y: float


@attrs.frozen
class Placed:
    """A label where it stands: its left end and its baseline; ``far``: with a line to the mark."""

    label: Label
    x: float
    y: float
    box: Box
    far: bool

    @property
    def nearest(self) -> tuple[float, float]:
        """Where a line from the mark meets it."""
        x = min(max(self.label.x, self.box.left), self.box.right)
        return x, min(max(self.label.y, self.box.top), self.box.bottom)


def placed(
    labels: Sequence[Label],
    marks: Iterable[tuple[float, float]],
    within: Box,
    lines: Iterable[Sequence[tuple[float, float]]] = (),
    radius: float = 6,
) -> Iterator[Placed]:
    """Each where it covers the least of marks, lines and other labels, one after the other."""
    taken = [Box(x - radius, y - radius, x + radius, y + radius) for x, y in marks]
    taken += [box for points in lines for box in _along(points)]
    for label in labels:
        choices = [_at(label, place, radius) for place in PLACES]
        costs = [
            sum(choice.box.shared(other) for other in taken)
            + 20 * (choice.box.area - choice.box.shared(within))
            + 3 * cost
            for cost, choice in enumerate(choices)
        ]
        best = choices[costs.index(min(costs))]
        taken.append(best.box)
        yield best


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in the same order, ``gap`` apart where there is room, near where they were."""
    order = sorted(range(len(places)), key=lambda each: places[each])
    if len(places) * gap > high - low:
        gap = (high - low) / max(1, len(places))
    # Neighbours that are too near become one cluster, which lies around its middle.
    clusters: list[list[int]] = []
    for each in order:
        clusters.append([each])
        while len(clusters) > 1 and _start(clusters[-1], places, gap, low, high) < (
            _start(clusters[-2], places, gap, low, high) + gap * len(clusters[-2])
        ):
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    found = list(places)
    for cluster in clusters:
        start = _start(cluster, places, gap, low, high)
        for at, each in enumerate(cluster):
            found[each] = start + (at + 0.5) * gap
    return found


def _along(points: Sequence[tuple[float, float]]) -> Iterator[Box]:
    """Small boxes that cover a line."""
    for (x1, y1), (x2, y2) in pairwise(points):
        count = max(1, round(math.hypot(x2 - x1, y2 - y1) / (2 * LINE)))
        for step in range(count + 1):
            x, y = x1 + (x2 - x1) * step / count, y1 + (y2 - y1) * step / count
            yield Box(x - LINE, y - LINE, x + LINE, y + LINE)


def _start(
    cluster: Sequence[int], places: Sequence[float], gap: float, low: float, high: float
) -> float:
    middle = sum(places[each] for each in cluster) / len(cluster)
    return min(max(middle - gap * len(cluster) / 2, low), high - gap * len(cluster))


def _at(label: Label, place: tuple[int, int], radius: float) -> Placed:
    right, down = place
    width = text_width(label.words)
    aside = radius + 4 if abs(down) < 2 else radius + 10
    if right > 0:
        left = label.x + aside
    elif right < 0:
        left = label.x - aside - width
    else:
        left = label.x - width / 2
    middle = label.y + down * (HEIGHT if right else HEIGHT / 2 + radius)
    if not right and abs(down) > 1:
        middle = label.y + down * HEIGHT
    box = Box(left, middle - HEIGHT / 2, left + width, middle + HEIGHT / 2)
    return Placed(label, left, middle + TEXT * 0.35, box, abs(down) > 1)
