"""Nanoseconds for an absent key against the filter's bytes, in a batch and one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from benchmarks.advice import RATES, SPEED, Numbers
from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.samples import of_kind, shown_whole, sizes
from benchmarks.report.labels import spread
from benchmarks.report.markup import Child, Markup, join, tag
from benchmarks.rows import Row

KEY = "speed"
PANELS = (
    ("in a batch, the fastest form offered", ("buffer, miss", "list of 4096, miss")),
    # Keys in random order would mostly tell what fetching the keys themselves takes.
    ("one at a time", ("one key, miss, in order",)),
)


@attrs.frozen
class Point:
    """A subject at one number of keys."""

    time: Row
    bits: Row

    @property
    def bytes(self) -> float:
        """How large the filter is."""
        return (self.bits.value or 0.0) * float(self.time.at["n"]) / 8

    @property
    def nanoseconds(self) -> float:
        """What a key takes."""
        return self.time.value or 0.0


@attrs.frozen
class Panel:
    """One of the charts side by side."""

    title: str
    lines: Mapping[str, Sequence[Point]]

    @property
    def points(self) -> list[Point]:
        """The points of all lines."""
        return [point for line in self.lines.values() for point in line]

    @property
    def floor(self) -> list[tuple[float, float, Row]]:
        """What the machine takes for a filter of a size, by the loop the rows were held against."""
        lowest: dict[str, dict[float, tuple[float, Row]]] = {}
        for point in self.points:
            if point.time.peer_repeats:
                took = min(point.time.peer_repeats)
                by_size = lowest.setdefault(str(point.time.at["n"]), {})
                by_size[point.bytes] = (took, point.time)
        found = []
        for by_size in lowest.values():
            middle = sorted(by_size)[len(by_size) // 2]
            found.append((middle, *by_size[middle]))
        return sorted(found, key=lambda each: each[0])


def panels(record: Record) -> list[Panel]:
    """Both, over random keys; without those for which nothing was timed."""
    rows = of_kind(record.of("filters"))
    found = []
    for title, names in PANELS:
        lines: dict[str, list[Point]] = {}
        for n in sizes(row for row in rows if row.group == SPEED):
            times, rates = Numbers(rows, SPEED, n=n), Numbers(rows, RATES, n=n)
            for subject in dict.fromkeys(each for name in names for each in times.subjects(name)):
                time = next((row for name in names if (row := times(name, subject))), None)
                bits = rates("bits per key", subject)
                if time and bits and time.value and bits.value:
                    lines.setdefault(subject, []).append(Point(time, bits))
        if lines:
            found.append(Panel(title, lines))
    return found


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = panels(record)
    if not found:
        why = "No probes were timed: the part “filters” was not run, or without its speed rows."
        return figures.nothing(KEY, "Speed against size", why)
    caches = (record.head.get("machine") or {}).get("cache_bytes") or {}
    names = families.short_names(subject for panel in found for subject in panel.lines)
    legend = figures.legend(families.family(subject) for panel in found for subject in panel.lines)
    caption = (
        "Time for an absent key against the size of the filter, both logarithmic; each line runs "
        "through the numbers of keys that were measured. Lower is better. The dashed line is the "
        "machine's own cost: a random cache line for a batch, an empty compiled call for one "
        "key. Past a cache's edge a filter no longer fits into it. What is far slower than all "
        "others lies on the upper edge."
    )
    return figures.figure(
        KEY,
        _headline(found, names),
        caption,
        lambda width: draw(found, names, caches, width),
        legend=legend,
    )


def draw(
    found: Sequence[Panel], names: Mapping[str, str], caches: Mapping[str, int], width: float
) -> Markup:
    """The panels side by side, or one below the other, on the same scales."""
    wide = width == svg.WIDE
    left, room, gap = (54.0, 148.0, 60.0) if wide else (46.0, 148.0, 64.0)
    high = 400.0 if wide else 330.0
    points = [point for panel in found for point in panel.points]
    floors = [took * 0.75 for panel in found for _, took, _ in panel.floor]
    each = (width - len(found) * (left + room)) / len(found) if wide else width - left - room
    times = [point.nanoseconds for point in points]
    drawn = []
    for at, panel in enumerate(found):
        x, y = (at * (left + each + room), 56.0) if wide else (0.0, 56 + at * (high + gap + 46))
        across = svg.scale((point.bytes for point in points), x + left, x + left + each, log=True)
        down = svg.scale([*shown_whole(times), *floors], y + high, y, log=True, room=0.05)
        drawn.append(_panel(panel, names, caches, across, down, x, room))
    height = high + 110 if wide else len(found) * (high + gap + 46) + 4
    label = f"Nanoseconds for an absent key against the filter's bytes, {len(names)} filters"
    return svg.drawing(width, height, label, drawn)


def _panel(
    panel: Panel,
    names: Mapping[str, str],
    caches: Mapping[str, int],
    across: svg.Scale,
    down: svg.Scale,
    x: float,
    room: float,
) -> Markup:
    top, bottom = down.end, down.start
    axis = svg.y_axis(down, across.start, across.end, "", figures.plain)
    ends = [(subject, line[-1]) for subject, line in panel.lines.items()]
    return tag(
        "g",
        svg.text(x, top - 34, panel.title, kind="panel"),
        svg.x_axis(across, bottom, top, "size of the filter", figures.in_bytes, 4),
        axis,
        svg.text(x, top - 14, "ns a key", kind="what"),
        [_edge(name, size, across, top, bottom) for name, size in caches.items()],
        _floor(panel, across, down),
        [_line(subject, line, across, down) for subject, line in panel.lines.items()],
        _names(ends, names, across, down),
    )


def _headline(found: Sequence[Panel], names: Mapping[str, str]) -> Child:
    """Who is fastest where the filters are largest."""
    told: list[Child] = []
    most = max(int(point.time.at["n"]) for panel in found for point in panel.points)
    for panel, how in zip(found, ("in a batch", "one at a time"), strict=False):
        largest = [point for point in panel.points if point.time.at["n"] == most]
        if largest:
            best = min(largest, key=lambda point: point.nanoseconds)
            name = names[best.time.subject]
            told += [f"{', ' if told else ''}{name} {how} with ", figures.told(best.time)]
    return [f"Fastest among {most:,} keys: ", *told]


def _edge(name: str, size: int, across: svg.Scale, top: float, bottom: float) -> Markup | None:
    """The line beyond which a filter is larger than a cache."""
    if not across.low < size < across.high:
        return None
    x = across(size)
    words = svg.text(x, top - 4, name, anchor="middle", kind="what")
    return join([svg.line(x, top, x, bottom, "edge"), words])


def _floor(panel: Panel, across: svg.Scale, down: svg.Scale) -> Markup | None:
    floor = panel.floor
    if not floor:
        return None
    places = [(across(size), down(took)) for size, took, _ in floor]
    row = floor[-1][2]
    x, y = places[0]
    drawn = [svg.polyline(places, "floor"), svg.text(x, y + 17, row.peer, kind="what")]
    return tag("g", drawn, class_="floors", data_row=row.id)


def _line(subject: str, line: Sequence[Point], across: svg.Scale, down: svg.Scale) -> Markup:
    name = families.family(subject)
    places = [(across(point.bytes), down(point.nanoseconds)) for point in line]
    peer = families.is_peer(name)
    kind = "mark hollow" if peer else "mark"
    marks = [
        figures.mark(
            point.time, svg.shape(families.mark_of(name), x, y, 3.8), name, point.bits, kind=kind
        )
        for point, (x, y) in zip(line, places, strict=True)
    ]
    style = f"line {'thin ' if peer else ''}{families.colour(name)}"
    return join([svg.polyline(places, style, name) if len(places) > 1 else None, marks])


def _names(
    ends: Sequence[tuple[str, Point]], names: Mapping[str, str], across: svg.Scale, down: svg.Scale
) -> Markup:
    """Names in a column at the right, each with a line from the end of its own."""
    at = spread([down(point.nanoseconds) for _, point in ends], 15.5, down.end - 6, down.start + 6)
    drawn = []
    for (subject, point), y in zip(ends, at, strict=True):
        x = across.end + 16
        name = families.family(subject)
        leader = svg.line(across(point.bytes) + 6, down(point.nanoseconds), x - 3, y, "leader")
        beyond = f" {point.nanoseconds:,.0f} ↑" if point.nanoseconds > down.high else ""
        words = svg.text(x, y + 4, names[subject] + beyond)
        drawn.append(
            tag("g", leader, words, class_=f"name {families.colour(name)}", data_family=name)
        )
    return join(drawn)
