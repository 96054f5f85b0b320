"""False-positive rate against bits per key, above what no filter can go below."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import attrs

from benchmarks.advice import RATES, Numbers
from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.samples import of_kind
from benchmarks.report.labels import Box, Label
from benchmarks.report.markup import Markup, join, tag
from benchmarks.rows import Row, number

KEY = "rates"
RATE, BITS, BOUND = "false-positive rate", "bits per key", "times the lower bound"
SHORTEST_INTERVAL = 6  # in the chart's units; shorter ones lie within the mark


@attrs.frozen
class Point:
    """A subject in the chart."""

    rate: Row
    bits: Row

    @property
    def family(self) -> str:
        """The family, library or baseline that was measured."""
        return families.family(self.rate.subject)

    @property
    def at(self) -> tuple[float, float]:
        """Bits per key and rate."""
        return self.bits.value or 0.0, self.rate.value or 0.0


def points(record: Record) -> list[Point]:
    """Every subject, the fewest bits first, at one number of keys or as near to it as there is.

    It is the number for which there are the most. Rates and bits per key hardly depend on it.
    """
    rows = of_kind(record.of("filters"))
    counted = Counter(int(row.at["n"]) for row in rows if row.name == RATE and row.value)
    if not counted:
        return []
    usual = counted.most_common(1)[0][0]
    pairs: dict[str, tuple[Row | None, Row | None]] = {}
    for n in sorted(counted, key=lambda n: abs(math.log(n / usual)), reverse=True):
        found = Numbers(rows, RATES, n=n)
        pairs |= {each: (found(RATE, each), found(BITS, each)) for each in found.subjects(RATE)}
    both = [
        Point(rate, bits)
        for rate, bits in pairs.values()
        if rate and bits and rate.value and bits.value
    ]
    return sorted(both, key=lambda point: (families.order(point.family), point.at))


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = points(record)
    if not found:
        why = "No false-positive rates were measured: the part “filters” was not run."
        return figures.nothing(KEY, "Rate against size", why)
    best = min(found, key=_over_bound)
    bound = next(
        (row for row in record.rows if row.name == BOUND and row.subject == best.rate.subject
         and row.at == best.rate.at), None,
    )  # fmt: skip
    name = families.short_names(point.rate.subject for point in found)[best.rate.subject]
    over = number(_over_bound(best))
    headline = (
        f"{name} comes closest to what is possible: ",
        figures.told(bound, f"{over} times") if bound else f"{over} times",
        " the fewest bits for its rate",
    )
    n = Counter(int(point.rate.at["n"]) for point in found).most_common(1)[0][0]
    caption = (
        f"Share of absent keys that a filter lets through, against the bits per key it takes as "
        f"stored; {n:,} keys, or as near to that as was measured. Further down and further left "
        "is better. Lines are the policies here, hollow marks other libraries; a bar is the 95 % "
        "interval where it is longer than its mark."
    )
    legend = figures.legend(point.family for point in found)
    return figures.figure(KEY, headline, caption, lambda width: draw(found, width), legend=legend)


def draw(found: Sequence[Point], width: float) -> Markup:
    """The chart in one of the two widths."""
    wide = width == svg.WIDE
    height = 520.0 if wide else 430.0
    left, right, top, bottom = (64.0, width - 110, 34.0, height - 46) if wide else (
        56.0, width - 70, 34.0, height - 46)  # fmt: skip
    across = svg.Scale(0, _most(found) * 1.03, left, right)
    lowest = min(point.at[1] for point in found)
    down = svg.Scale(lowest / 2, 0.5, bottom, top, log=True)
    label = f"False-positive rate against bits per key of {len(found)} filters, and the lower bound"
    return svg.drawing(
        width, height, label,
        _impossible(across, down),
        svg.x_axis(across, bottom, top, "bits per key", figures.plain, 12 if wide else 6),
        svg.y_axis(down, left, right, "absent keys let through", figures.percent),
        _words(across, down),
        [_line(found, name, across, down) for name in dict.fromkeys(_families(found))],
        [_mark(point, across, down, 4.6 if wide else 3.8) for point in found],
        _names(found, across, down, Box(left, top, width, bottom)),
    )  # fmt: skip


def _most(found: Sequence[Point]) -> float:
    """The most bits of those that come in several sizes; what is beyond lies on the edge."""
    several = Counter(point.family for point in found)
    lines = [point.at[0] for point in found if several[point.family] > 1]
    return max(lines or [point.at[0] for point in found])


def _over_bound(point: Point) -> float:
    bits, rate = point.at
    return bits / math.log2(1 / rate) if rate < 1 else math.inf


def _families(found: Sequence[Point]) -> list[str]:
    return [point.family for point in found]


def _impossible(across: svg.Scale, down: svg.Scale) -> Markup:
    """The area below the bound: at b bits a key the rate is at least 2 to the -b."""
    last = min(across.high, -math.log2(down.low))
    count = 60
    curve = [(across(bits), down(2.0**-bits)) for bits in
             (1 + (last - 1) * step / count for step in range(count + 1))]  # fmt: skip
    area = [(across(0), down(down.high)), *curve, (across(0), down(down.low))]
    return join([
        tag("path", d=svg.path(area, closed=True), class_="impossible"),
        svg.polyline(curve, "bound"),
    ])  # fmt: skip


def _words(across: svg.Scale, down: svg.Scale) -> Markup:
    x, y = across.start, down.start
    return join([
        svg.text(x + 12, y - 32, "no filter can be here:", kind="what within"),
        svg.text(x + 12, y - 14, "bits < log2(1 / rate)", kind="what within"),
    ])  # fmt: skip


def _line(found: Sequence[Point], name: str, across: svg.Scale, down: svg.Scale) -> Markup:
    places = [(across(point.at[0]), down(point.at[1])) for point in found if point.family == name]
    if len(places) < 2 or families.is_peer(name):
        return Markup()
    return svg.polyline(places, f"line {families.colour(name)}", name)


def _mark(point: Point, across: svg.Scale, down: svg.Scale, size: float) -> Markup:
    x, y = across(point.at[0]), down(point.at[1])
    drawn = [svg.shape(families.mark_of(point.family), x, y, size)]
    if point.rate.interval:
        low, high = (down(max(each, down.low)) for each in point.rate.interval)
        if low - high > max(SHORTEST_INTERVAL, 2.4 * size):
            drawn.insert(0, svg.line(x, low, x, high, "whisker"))
    kind = "mark hollow" if families.is_peer(point.family) else "mark"
    return figures.mark(point.rate, drawn, point.family, point.bits, kind=kind)


def _names(found: Sequence[Point], across: svg.Scale, down: svg.Scale, within: Box) -> Markup:
    """The name of each line at its end."""
    ends = {point.family: point for point in found if not families.is_peer(point.family)}
    places = [(across(point.at[0]), down(point.at[1])) for point in found]
    labels = [
        (Label(_called(point, across), across(point.at[0]), down(point.at[1])), name)
        for name, point in ends.items()
    ]
    lines = [
        [
            (across(point.at[0]), down(point.at[1]))
            for point in found
            if point.family == name and not families.is_peer(name)
        ]
        for name in ends
    ]
    x, y = within.left, within.bottom
    lines += [[(x, y - below), (x + 140, y - below)] for below in (16, 26, 36)]  # the words there
    lines += [
        [(across(point.at[0]), down(max(each, down.low))) for each in point.rate.interval]
        for point in found
        if point.rate.interval
    ]
    return figures.labelled(labels, places, within, lines)


def _called(point: Point, across: svg.Scale) -> str:
    """Its family, and its bits where they lie beyond the edge."""
    bits = point.at[0]
    return point.family if bits <= across.high else f"{point.family} {number(bits)} →"
