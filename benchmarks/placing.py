"""The chart of ``docs/placement.md``: what memory for filters buys in time, by who places it.

``python -m benchmarks.placing`` draws it anew. Nothing of it is measured but what asking a filter
takes: rates and bits are those of the families' own sizing, and a block takes what it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

import policies
from benchmarks.choosing import style
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.markup import Markup, join, tag
from filters import advice
from policies import placement
from policies.cost_models import Option, models_of, option_of
from policies.placement import Run

TARGET = Path(__file__).parent.parent / "docs" / "placement.svg"

KEYS = (20_000, 80_000, 320_000, 1_280_000, 5_120_000)
BITS = tuple(range(2, 21))
READS_US = (1.0, 100.0, 10_000.0)
# Who places by reads alone takes a block for so dear that asking filters counts for nothing.
_READS_ALONE_NS = 1e9
# Pebble's fingerprints on its last five levels.
PEBBLE_BITS = (16, 12, 10, 8, 4)

UNIFORM, MONKEY, PEBBLE, OURS, FLOOR = (
    "blocked on all levels", "Monkey, classic", "Pebble's table", "a budget", "floor",
)  # fmt: skip
# Whose colour each has, and how its line is broken, for whoever does not tell colours apart.
LOOKS: Mapping[str, tuple[str, str | None]] = {
    UNIFORM: ("blocked", "7 4"),
    MONKEY: ("classic", "2 4"),
    PEBBLE: ("binary-fuse", None),
    OURS: ("bumped-ribbon", None),
    FLOOR: ("", "4 4"),
}

WIDTH, HEIGHT = 980.0, 430.0
LEFT, GAP, TOP, BOTTOM = 58.0, 66.0, 86.0, 370.0
MARK = 6.0


@attrs.frozen
class Spent:
    """Filters for all levels: their bits per key, and what a lookup of an absent key takes."""

    bits_per_key: float
    us: float


Curves = dict[str, list[Spent]]


def curves(read_us: float) -> Curves:
    """For each who places filters, what a lookup takes in ever more memory; Pebble has one size."""
    return {
        UNIFORM: [_of(_uniform(bits), read_us, bits) for bits in BITS],
        MONKEY: [_of(_monkey(bits), read_us, bits) for bits in BITS],
        PEBBLE: [_of(_pebble(), read_us)],
        OURS: [_of(_ours(bits, read_us), read_us, bits) for bits in BITS],
        FLOOR: [Spent(bits, placement.floor(KEYS, bits * sum(KEYS)) * read_us) for bits in BITS],
    }


def _of(options: Sequence[Option], read_us: float, bits: float | None = None) -> Spent:
    """What these filters come to, in the bits that were allowed, or those that they take."""
    taken = sum(n * each.bits_per_key for n, each in zip(KEYS, options, strict=True))
    time_ns = math.fsum(each.probe_ns + each.fpr * read_us * 1000 for each in options)
    return Spent(taken / sum(KEYS) if bits is None else bits, time_ns / 1000)


def _uniform(bits: int) -> list[Option]:
    # Larger ones are there to be seen.
    policy = advice.silently(policies.create, "blocked", bits_per_key=bits)
    return [option for n in KEYS if (option := option_of(policy, n))]


def _monkey(bits: int) -> Sequence[Option]:
    runs = [Run(n) for n in KEYS]
    allowed = bits * sum(KEYS)
    models = models_of(["classic"])
    return placement.place(runs, allowed, models=models, read_ns=_READS_ALONE_NS).options


def _ours(bits: int, read_us: float) -> Sequence[Option]:
    runs = [Run(n) for n in KEYS]
    return placement.place(runs, bits * sum(KEYS), read_ns=1000 * read_us).options


def _pebble() -> list[Option]:
    """Binary fuse with fingerprints of so many bits: slots and time are those of eight."""
    bytes_each = policies.create("binary-fuse", fingerprint_bits=8)
    found = [option for n in KEYS if (option := option_of(bytes_each, n))]
    return [
        attrs.evolve(option, bits_per_key=option.bits_per_key * bits / 8, fpr=2.0**-bits)
        for option, bits in zip(found, PEBBLE_BITS, strict=True)
    ]


def drawing() -> str:
    """The SVG document of the chart."""
    found = {read_us: curves(read_us) for read_us in READS_US}
    width = (WIDTH - LEFT - 16 - GAP * (len(found) - 1)) / len(found)
    panels = [
        _panel(curve, read_us, LEFT + at * (width + GAP), width)
        for at, (read_us, curve) in enumerate(found.items())
    ]
    picture = svg.drawing(
        WIDTH,
        HEIGHT,
        "Microseconds of a lookup of an absent key against bits per key of all filters, where a "
        "block takes 1, 100 and 10,000 microseconds",
        tag("desc", description(found)),
        style(*_rules()),
        tag("rect", x=0, y=0, width=WIDTH, height=HEIGHT, class_="paper"),
        _legend(),
        panels,
    )
    return picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def description(found: Mapping[float, Curves]) -> str:
    """The chart in words: what a lookup takes at ten bits a key."""
    told = []
    for read_us, curve in found.items():
        each = [f"{name} {_us(_at_ten(curve[name]))}" for name in (UNIFORM, MONKEY, OURS, FLOOR)]
        pebble = curve[PEBBLE][0]
        each.append(f"{PEBBLE}, with {pebble.bits_per_key:.1f} bits, {_us(pebble.us)}")
        told.append(f"At {figures.plain(read_us)} us a block and 10 bits a key: {'; '.join(each)}.")
    return " ".join(told)


def table() -> list[str]:
    """The rows of the page's table: the same at ten bits a key."""
    found = [curves(read_us) for read_us in READS_US]
    bits = {PEBBLE: found[0][PEBBLE][0].bits_per_key}
    return [
        f"| {name} | {bits.get(name, 10.0):.1f} | "
        + " | ".join(f"{_at_ten(curve[name]):.3g}" for curve in found)
        + " |"
        for name in LOOKS
    ]


def _at_ten(points: Sequence[Spent]) -> float:
    return min(points, key=lambda each: abs(each.bits_per_key - 10)).us


def _us(value: float) -> str:
    return f"{value:.3g} us"


def _panel(curve: Curves, read_us: float, left: float, width: float) -> Markup:
    across = svg.Scale(BITS[0], BITS[-1], left, left + width)
    down = svg.scale(_values(curve), BOTTOM, TOP, log=True)
    lines = [_line(name, points, across, down) for name, points in curve.items()]
    return tag(
        "g",
        svg.text(left, TOP - 32, f"{figures.plain(read_us)} us a block", kind="head"),
        svg.x_axis(across, BOTTOM, TOP, "bits per key", figures.plain, 6),
        tag("g", *_y_axis(down, left, left + width)),
        lines,
    )


def _y_axis(down: svg.Scale, left: float, right: float) -> Iterable[Markup]:
    for tick in down.ticks(6):
        yield svg.line(left, down(tick), right, down(tick), "grid")
        yield svg.text(left - 8, down(tick) + 4, figures.plain(tick), anchor="end")
    yield svg.text(left - 50, TOP - 12, "us a lookup", kind="what")


def _values(curve: Curves) -> list[float]:
    """What is drawn: a floor far below all others would press them together."""
    least = min(each.us for name in (UNIFORM, MONKEY, OURS) for each in curve[name])
    return [max(each.us, least / 10) for points in curve.values() for each in points]


def _line(name: str, points: Sequence[Spent], across: svg.Scale, down: svg.Scale) -> Markup:
    shown = [each for each in points if down.low <= each.us]
    places = [(across(each.bits_per_key), down(each.us)) for each in shown]
    told = ", ".join(f"{each.bits_per_key:.3g} bits {_us(each.us)}" for each in shown)
    return tag("g", tag("title", f"{name}: {told}"), _drawn(name, places), class_=_class(name))


def _drawn(name: str, places: Sequence[tuple[float, float]]) -> Markup:
    if len(places) == 1:
        return svg.shape(families.mark_of(LOOKS[name][0]), *places[0], MARK)
    dashes = LOOKS[name][1]
    return tag("path", d=svg.path(places), class_="line", stroke_dasharray=dashes)


def _class(name: str) -> str:
    of = LOOKS[name][0]
    return f"mark {families.colour(of)}" if of else "mark floor"


def _legend() -> Markup:
    drawn, x = [], LEFT
    for name in LOOKS:
        places = [(x + 14, 20.0)] if name == PEBBLE else [(x, 20.0), (x + 28, 20.0)]
        drawn.append(tag("g", _drawn(name, places), class_=_class(name)))
        drawn.append(svg.text(x + 36, 24.5, name))
        x += 36 + svg.text_width(name) + 34
    return join(drawn)


def _rules() -> tuple[str, ...]:
    return (
        ".line { fill: none; stroke: var(--c); stroke-width: 2.2; }",
        ".floor { --c: var(--ink); } .floor .line { stroke-width: 1.2; }",
        ".head { font-weight: 600; fill: var(--ink); }",
    )


def main() -> None:
    """Write the chart to its file."""
    TARGET.write_text(drawing())
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
