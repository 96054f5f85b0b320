"""Blocks read for an absent key, by level: what was counted, and what had been predicted."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.charts.configurations import Configuration, configurations
from benchmarks.report.markup import Markup, join, tag
from benchmarks.rows import number

KEY = "reads"
BAR = 17.0
# Bars this many times as long as the next shorter one would leave no room for the others.
OUT_OF_PROPORTION = 2.5


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = configurations(record)
    if not found:
        why = "No reads were counted: the part “levels” was not run."
        return figures.nothing(KEY, "Reads by level", why)
    fewest, most = found[0], found[-1]
    headline = (
        "An absent key costs ",
        figures.told(most.reads, f"{number(most.blocks)} blocks"),
        f" with “{most.name}”, and ",
        figures.told(fewest.reads, f"{number(fewest.blocks)}"),
        f" with “{fewest.name}”",
    )
    caption = (
        "Data blocks read in a lookup of a key that is nowhere, by the level they were read on, "
        "the fewest first. The upright tick is what had been predicted before the lookups. Bars "
        "that would dwarf the others are cut off; their numbers stand beside them."
    )
    legend = tag(
        "p",
        [
            tag("span", tag("i", class_=f"level-{_shade(level)}"), f"level {level}")
            for level in _levels(found)
        ],
        class_="legend levels",
    )
    return figures.figure(KEY, headline, caption, lambda width: draw(found, width), legend=legend)


def draw(found: Sequence[Configuration], width: float) -> Markup:
    """The chart in one of the two widths: names stand left of the bars, or above them."""
    wide = width == svg.WIDE
    left, right = (248.0, width - 180.0) if wide else (2.0, width - 98.0)
    each = 30.0 if wide else 48.0
    top, height = 30.0, 30.0 + each * len(found) + 46
    limit = _limit([configuration.blocks for configuration in found])
    across = svg.Scale(0, limit * 1.02, left, right)
    bars = []
    for at, configuration in enumerate(found):
        y = top + at * each
        bars.append(_bar(configuration, across, limit, y + (6 if wide else 22)))
        if wide:
            bars.append(
                svg.text(
                    left - 12, y + 19, svg.shortened(configuration.name, left - 16), anchor="end"
                )
            )
        else:
            bars.append(svg.text(left, y + 15, configuration.name))
    label = f"Blocks read for an absent key by level, {len(found)} configurations"
    bottom = height - 46
    most = 8 if wide else 4
    axis = svg.x_axis(across, bottom, top, "blocks read for an absent key", figures.plain, most)
    return svg.drawing(width, height, label, axis, bars)


def _bar(configuration: Configuration, across: svg.Scale, limit: float, y: float) -> Markup:
    drawn, before = [], 0.0
    for row in configuration.by_level:
        after = before + (row.value or 0.0)
        x = across(before)
        block = svg.rectangle(
            x, y, across(after) - x, BAR, f"level-{_shade(str(row.at.get('level')))}"
        )
        drawn.append(
            figures.mark(row, block, families.family(configuration.name), kind="mark block")
        )
        before = after
    if not configuration.by_level:
        block = svg.rectangle(
            across(0), y, across(configuration.blocks) - across(0), BAR, "level-5"
        )
        drawn.append(
            figures.mark(
                configuration.reads, block, families.family(configuration.name), kind="mark block"
            )
        )
    cut, end = configuration.blocks > limit, across(configuration.blocks)
    if cut:
        zigzag = [(end - 26, y - 2), (end - 20, y + BAR / 2), (end - 26, y + BAR + 2)]
        drawn.append(svg.polyline([*zigzag], "gap"))
    expected = configuration.reads.expected
    if expected is not None and not cut:
        x = across(expected)
        drawn.append(svg.line(x, y - 4, x, y + BAR + 4, "predicted"))
        end = max(end, x)
    words = number(configuration.blocks)
    predicted = f" (predicted {number(expected)})" if expected is not None else ""
    if across.start < 100:  # there is no room beside the bars, only for the number
        predicted = f" ({number(expected)})" if expected is not None else ""
    name = tag(
        "text", tag("tspan", words, class_="strong"), predicted, x=end + 9, y=y + BAR - 4,
    )  # fmt: skip
    drawn.append(
        figures.mark(
            configuration.reads, name, families.family(configuration.name), kind="mark words"
        )
    )
    return join(drawn)


def _limit(blocks: Sequence[float]) -> float:
    """The longest bar that is shown whole."""
    found = sorted(each for each in blocks if each > 0)
    for shorter, longer in zip(
        found[len(found) // 2 :], found[len(found) // 2 + 1 :], strict=False
    ):
        if longer > OUT_OF_PROPORTION * shorter:
            return shorter * 1.1
    return found[-1] if found else 1.0


def _levels(found: Sequence[Configuration]) -> list[str]:
    return sorted({str(row.at.get("level")) for each in found for row in each.by_level})


def _shade(level: str) -> int:
    return min(int(level), 6) if level.isdigit() else 6
