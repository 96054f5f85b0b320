"""The chart of ``docs/choosing.md``: what each family takes for one percent, in bits and in time.

``python -m benchmarks.choosing`` draws it anew, from the same figures as ``policies.recommend``;
``python -m benchmarks.tables`` writes the table below it.
"""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.labels import Box, Label
from benchmarks.report.markup import Markup, tag
from filters import sizing
from filters.costs import Cost
from filters.families import FAMILIES
from policies.recommendation import Recommendation, recommend

TARGET = Path(__file__).parent.parent / "docs" / "choosing.svg"
STYLE = Path(__file__).parent / "report" / "style.css"

KEYS, RATE, LOOKUPS = 1_000_000, 0.01, 10
WIDTH, HEIGHT = 820.0, 470.0
MARK = 6.0


@attrs.frozen
class Sizes(svg.Scale):
    """Bits per key, where few are many times as interesting as many."""

    def ticks(self, most: int = 8) -> list[float]:
        """Sizes that people name."""
        return [each for each in (7, 8, 9, 10, 12, 15, 20, 30, 40) if self.low <= each <= self.high]


def choices() -> dict[str, Recommendation]:
    """Every family, as it is recommended to who needs what it can do."""
    found: dict[str, Recommendation] = {}
    for needs in ({}, {"deletes": True}, {"grows": True}):
        for each in recommend(KEYS, fpr=RATE, lookups=LOOKUPS, **needs):
            found.setdefault(each.family, each)
    return found


def drawing() -> str:
    """The SVG document of the chart."""
    found = choices()
    left, right, top, bottom = 62.0, WIDTH - 24, 40.0, HEIGHT - 50
    bound = sizing.lower_bound(RATE)
    sizes = svg.scale(
        [bound, *(each.bits_per_key for each in found.values())], left, right, log=True
    )
    across = Sizes(sizes.low, sizes.high, left, right, log=True)
    taken = {name: _cost(name).of(LOOKUPS) for name in found}
    down = svg.scale(taken.values(), bottom, top, room=0.12)
    places = [(across(each.bits_per_key), down(taken[name])) for name, each in found.items()]
    labels = [(Label(name, x, y), name) for name, (x, y) in zip(found, places, strict=True)]
    picture = svg.drawing(
        WIDTH,
        HEIGHT,
        f"Bits per key and time per key of {len(found)} families at {100 * RATE:g} percent",
        style(),
        tag("rect", x=0, y=0, width=WIDTH, height=HEIGHT, class_="paper"),
        svg.x_axis(across, bottom, top, "bits per key", figures.plain),
        svg.y_axis(down, left, right, f"building and {LOOKUPS} lookups, ns a key", figures.plain),
        svg.line(across(bound), bottom, across(bound), top, "bound"),
        svg.text(across(bound) + 6, top + 4, "no filter takes fewer bits"),
        [_mark(name, place) for name, place in zip(found, places, strict=True)],
        figures.labelled(labels, places, Box(left, top, WIDTH, bottom)),
    )
    return picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def table() -> list[str]:
    """The rows of the page's table: what every family takes for one percent of a million keys."""
    return [
        f"| `{name}` | {each.bits_per_key:.2f} | {100 * each.expected_fpr:.2g} % | "
        f"{_cost(name).build:.3g} | {_cost(name).probe:.3g} |"
        for name, each in choices().items()
    ]


def _cost(name: str) -> Cost:
    cost = FAMILIES[name].cost
    assert cost is not None  # or it would not be recommended
    return cost


def _mark(name: str, place: tuple[float, float]) -> Markup:
    mark = svg.shape(families.mark_of(name), *place, MARK)
    return tag("g", mark, class_=f"mark {families.colour(name)}")


def style(*more: str) -> Markup:
    """The report's colours, light and dark, and what little of its style a chart alone takes."""
    whole = STYLE.read_text()
    light, dark = re.findall(r":root \{\n(.*?)\n *\}", whole, re.DOTALL)[:2]
    names = re.findall(r"^\.f-.*$", whole, re.MULTILINE)
    rules = (
        f":root {{ {_flat(light)} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_flat(dark)} }} }}",
        *names,
        "text { font: 13px system-ui, sans-serif; fill: var(--soft); }",
        ".paper { fill: var(--paper); } .grid { stroke: var(--grid); }",
        ".axis, .leader { stroke: var(--rule); }",
        ".bound { stroke: var(--ink); stroke-dasharray: 4 4; }",
        ".mark { fill: var(--c); }",
        ".mark .open { fill: none; stroke: var(--c); stroke-width: 2.5; }",
        ".name text { fill: var(--t); font-weight: 600; }",
        *more,
    )
    return tag("style", Markup("\n".join(rules)))


def _flat(block: str) -> str:
    return " ".join(block.split())


def main() -> None:
    """Write the chart to its file."""
    TARGET.write_text(drawing())
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
