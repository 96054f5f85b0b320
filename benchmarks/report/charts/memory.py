"""What a budget of memory buys: bits per key against blocks read, and the best for each budget."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.configurations import Configuration, best, configurations
from benchmarks.report.labels import Box, Label
from benchmarks.report.markup import Markup, tag
from benchmarks.rows import Row, number

KEY = "memory"
USUAL_BUDGET = 10.3  # ten bits a key, as filters of ten bits come to
FLASH_MICROSECONDS, DISK_MILLISECONDS = 100.0, 10.0  # for a block


def figure(record: Record) -> Markup:
    """The chart and the table of the best, or why there is none."""
    found = [each for each in configurations(record) if each.size is not None and each.blocks > 0]
    if not found:
        why = "No reads were counted: the part “levels” was not run."
        return figures.nothing(KEY, "Memory against reads", why)
    chosen = best(record, found)
    if not chosen:
        why = "The bytes of the filters were not measured, so there is no memory to tell."
        return figures.nothing(KEY, "Memory against reads", why)
    within = [each for each in chosen if (each.size or 0) <= USUAL_BUDGET] or chosen[:1]
    one = within[-1]
    assert one.bits is not None
    headline = (
        "What memory buys: ",
        figures.told(one.bits, f"{number(one.size)} bits a key"),
        " bring an absent key down to ",
        figures.told(one.reads, f"{number(one.blocks)} blocks"),
        f", with “{one.name}”",
    )
    caption = (
        "Each mark is a configuration; further down and further left is better. The stairs are "
        "the fewest reads that a budget buys: go right to your bits per key, then down to the "
        "stairs; the last name before it is what to use. On the right, what those reads alone "
        "take where a block takes 100 µs (flash) or 10 ms (disk)."
    )
    return figures.figure(
        KEY, headline, caption, lambda width: draw(found, chosen, width), more=_table(chosen)
    )


def draw(found: Sequence[Configuration], chosen: Sequence[Configuration], width: float) -> Markup:
    """The chart in one of the two widths."""
    wide = width == svg.WIDE
    height = 470.0 if wide else 420.0
    left, right, top, bottom = 62.0, width - (150.0 if wide else 62.0), 40.0, height - 46
    across = svg.scale([0.0, *(each.size or 0.0 for each in found)], left, right)
    across = svg.Scale(min(0.0, across.low / 3), across.high, left, right)
    down = svg.scale(
        (each.blocks for each in found), bottom, top, log=True, room=0.06 if wide else 0.12
    )
    stairs = svg.steps([_place(each, across, down) for each in chosen])
    stairs.append((right, stairs[-1][1]))
    labels = [
        (Label(each.name, *_place(each, across, down)), "")
        for each in (*chosen, *(other for other in found if other not in chosen))
    ]
    if not wide:
        labels = labels[: len(chosen)]
    places = [_place(each, across, down) for each in found]
    label = f"Blocks read for an absent key against bits per key, {len(found)} configurations"
    most = 10 if wide else 6
    return svg.drawing(
        width, height, label,
        svg.x_axis(across, bottom, top, "bits per key, all levels", figures.plain, most),
        svg.y_axis(down, left, right, "blocks read for an absent key", figures.plain),
        _times(down, right, wide),
        svg.polyline(stairs, "stairs"),
        [_mark(each, across, down, each in chosen) for each in found],
        figures.labelled(labels, places, Box(left - 14, top, right, bottom), [stairs]),
    )  # fmt: skip


def _place(each: Configuration, across: svg.Scale, down: svg.Scale) -> tuple[float, float]:
    return across(each.size or 0.0), down(each.blocks)


def _mark(each: Configuration, across: svg.Scale, down: svg.Scale, chosen: bool) -> Markup:
    assert each.bits is not None
    drawn = svg.shape("circle", *_place(each, across, down), 5.5 if chosen else 4.2)
    kind = "mark plain best" if chosen else "mark plain hollow"
    return figures.mark(each.reads, drawn, families.family(each.name), each.bits, kind=kind)


def _times(down: svg.Scale, right: float, wide: bool) -> Markup:
    """What the reads take, beside their axis."""
    columns = [("flash", FLASH_MICROSECONDS * 1e3, right + 10)]
    if wide:
        columns.append(("disk", DISK_MILLISECONDS * 1e6, right + 84))
    return tag(
        "g",
        [
            (
                svg.text(x, down.end - 14, name, kind="what"),
                [
                    svg.text(x, down(tick) + 4, _duration(tick * nanoseconds), kind="what")
                    for tick in down.ticks(7)
                ],
            )
            for name, nanoseconds, x in columns
        ],
        aria_hidden="true",
    )


def _duration(nanoseconds: float) -> str:
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= factor * 0.999:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def _table(chosen: Sequence[Configuration]) -> Markup:
    """The configurations of the stairs, with their times."""
    storages = list(
        dict.fromkeys(str(row.at.get("storage")) for each in chosen for row in each.times)
    )
    heads = ["from bits a key", "use", "blocks read", *(f"time: {name}" for name in storages)]
    lines = []
    for each in chosen:
        times = {str(row.at.get("storage")): row for row in each.times}
        cells = [_cell(each.bits), tag("th", each.name, scope="row"), _cell(each.reads)]
        cells += [_cell(times.get(name)) for name in storages]
        lines.append(tag("tr", cells))
    heading = tag("tr", [tag("th", words, scope="col") for words in heads])
    table = tag("table", tag("thead", heading), tag("tbody", lines))
    return tag("div", table, class_="scroll budget")


def _cell(row: Row | None) -> Markup:
    if row is None:
        return tag("td", "-")
    words = _duration((row.value or 0) * 1e3) if row.unit == "us" else number(row.value)
    return tag("td", figures.told(row, words))
