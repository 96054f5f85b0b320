"""What a key takes to build in, against what one takes to ask for."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.advice import SPEED, Numbers
from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.samples import of_kind, shown_whole, sizes
from benchmarks.report.labels import Box, Label
from benchmarks.report.markup import Markup
from benchmarks.rows import Row, number

KEY = "building"
BUILD, PROBE = "build", "one key, miss, in order"
NOTHING_BUILT = "no filter"
Pair = tuple[Row, Row]


def pairs(record: Record) -> list[Pair]:
    """Building and asking of each subject, at the most keys that were measured."""
    rows = [row for row in of_kind(record.of("filters")) if row.group == SPEED]
    for n in reversed(sizes(rows)):
        found = Numbers(rows, SPEED, n=n)
        both = ((found(BUILD, each), found(PROBE, each)) for each in found.subjects(BUILD))
        known = [(build, probe) for build, probe in both if build and probe]
        positive = [
            each for each in known
            if each[0].value and each[1].value and each[0].subject != NOTHING_BUILT
        ]  # fmt: skip
        if positive:
            return positive
    return []


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = pairs(record)
    if not found:
        why = "Nothing was built and asked: the part “filters” was not run."
        return figures.nothing(KEY, "Building against asking", why)
    names = families.short_names(build.subject for build, _ in found)
    filters = [
        pair for pair in found if families.family(pair[0].subject) not in families.BASELINES
    ] or found
    quick = min(filters, key=lambda pair: pair[0].value or 0.0)[0]
    asked = min(filters, key=lambda pair: pair[1].value or 0.0)[1]
    n = int(quick.at["n"])
    headline = (
        f"Quickest to build is {names[quick.subject]}, ",
        figures.told(quick),
        f" a key; quickest to ask {names[asked.subject]}, ",
        figures.told(asked),
    )
    caption = (
        f"Nanoseconds to build a key into a filter of {n:,}, against those to ask it for an "
        "absent key, one at a time; both logarithmic. Further down and further left is better. "
        "Full marks are the policies here, hollow ones other libraries; what is far slower than "
        "all others lies on the upper edge."
    )
    return figures.figure(KEY, headline, caption, lambda width: draw(found, width))


def draw(found: Sequence[Pair], width: float) -> Markup:
    """The chart in one of the two widths."""
    wide = width == svg.WIDE
    height = 470.0 if wide else 420.0
    left, right, top, bottom = 62.0, width - 20, 36.0, height - 46
    across = svg.scale((build.value or 0 for build, _ in found), left, right, log=True, room=0.1)
    asked = shown_whole([probe.value or 0 for _, probe in found])
    down = svg.scale(asked, bottom, top, log=True, room=0.1)
    places = [(across(build.value or 0), down(probe.value or 0)) for build, probe in found]
    names = families.short_names(build.subject for build, _ in found)
    labels = [
        (Label(names[build.subject] + _beyond(probe, down), x, y), families.family(build.subject))
        for (build, probe), (x, y) in zip(found, places, strict=True)
    ]
    label = f"Time to build against time to ask, {len(found)} filters"
    most = 8 if wide else 5
    return svg.drawing(
        width, height, label,
        svg.x_axis(across, bottom, top, "to build, ns a key", figures.plain, most),
        svg.y_axis(down, left, right, "to ask, ns a key", figures.plain),
        [_mark(pair, place) for pair, place in zip(found, places, strict=True)],
        figures.labelled(labels, places, Box(left, top, width, bottom)),
    )  # fmt: skip


def _beyond(row: Row, scale: svg.Scale) -> str:
    value = row.value or 0.0
    return f" {number(value)} ↑" if value > scale.high else ""


def _mark(pair: Pair, place: tuple[float, float]) -> Markup:
    build, probe = pair
    name = families.family(build.subject)
    kind = "mark hollow" if families.is_peer(name) else "mark"
    return figures.mark(build, svg.shape(families.mark_of(name), *place, 5), name, probe, kind=kind)
