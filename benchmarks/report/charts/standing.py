"""Where the engine stands: how many times as long as ours each peer takes, and how much it must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import figures
from benchmarks.report.markup import Child, Markup, tag
from benchmarks.rows import MET, Row

KEY = "standing"
TITLE = "The engine's targets"
LANE, ROOM, NAME = 10.0, 10.0, 18.0  # of a peer, between questions, of a name above its lanes
THICK = 3.0
WIDEST = 100.0  # times ours; what is beyond lies on the edge


@attrs.frozen
class Question:
    """What was asked among how many keys: ours beside each peer."""

    name: str
    n: int
    rows: Sequence[Row]

    @property
    def closest(self) -> float:
        """Ours as a multiple of the fastest of the others."""
        return max(row.ratio or 0.0 for row in self.rows)

    @property
    def met(self) -> int:
        """How many of its targets ours meets."""
        return sum(row.verdict == MET for row in self.rows)


def questions(record: Record) -> list[Question]:
    """All that are judged beside peers, that first in which ours is furthest ahead of the best."""
    rows = record.of("engine")
    engines = {row.subject for row in rows}  # ours in other circumstances is none
    found = (row for row in rows if _is_drawn(row) and row.at["beside"] in engines)
    by_name = groupby(found, key=lambda row: (row.name, int(row.at.get("n", 0))))
    made = [Question(name, n, list(members)) for (name, n), members in by_name]
    return sorted(made, key=lambda question: question.closest)


def _is_drawn(row: Row) -> bool:
    """Whether its ratio is one of times; what is to be at least something is told in the tables."""
    target = row.target
    times = target is not None and not target.absolute and not target.at_least
    return times and "beside" in row.at and bool(row.ratio) and (row.ratio or 0) > 0


def figure(record: Record) -> Markup:
    """The chart, or why there is none."""
    found = questions(record)
    if not found:
        why = (
            "Nothing of the engine was held to a target: the part “engine” was not run, or not "
            "with the numbers of keys that its targets are stated for, or without its peers."
        )
        return figures.nothing(KEY, TITLE, why)
    judged = [row for question in found for row in question.rows]
    met, ahead = sum(row.verdict == MET for row in judged), _ahead(found)
    ours = ", ".join(dict.fromkeys(row.subject for row in judged))
    headline = (
        f"{ours} takes less than every other engine in {ahead} of {len(found)} questions, and "
        f"meets {met} of {len(judged)} targets"
    )
    unmeasured = sum(
        row.target is not None and "beside" in row.at and row.ratio is None
        for row in record.of("engine")
    )
    caption = (
        f"How many times as much as ours each engine takes, of {_most(found):,} keys where no "
        "other number is told, on a logarithmic scale: right of the line at 1 ours takes less. "
        "The upright tick is how far right an engine must lie for ours to meet its target, the "
        "faint one the aim; the bar between mark and tick is what there is to spare, or what is "
        "missing. What is furthest ahead of the best of the others comes first."
        + (f" Not measured: {unmeasured}; the tables say why." if unmeasured else "")
    )
    legend = figures.legend(str(row.at["beside"]) for row in judged)
    return figures.figure(KEY, headline, caption, lambda width: draw(found, width), legend=legend)


def _most(found: Sequence[Question]) -> int:
    return max(question.n for question in found)


def _ahead(found: Sequence[Question]) -> int:
    return sum(question.closest < 1 for question in found)


def draw(found: Sequence[Question], width: float) -> Markup:
    """The chart in one of the two widths: names stand left of the lanes, or above them."""
    wide = width == svg.WIDE
    left, right = (346.0, width - 176.0) if wide else (16.0, width - 14.0)
    factors = [factor for each in found for row in each.rows for factor in _factors(row)]
    kept = [min(max(factor, 1 / WIDEST), WIDEST) for factor in (*factors, 1.0)]
    across = svg.scale(kept, left, right, log=True, room=0.04)
    top, most = 44.0, _most(found)
    y = top
    drawn: list[Child] = []
    for question in found:
        drawn.append(_question(question, most, across, y, width))
        y += _height(question, wide)
    label = f"Each engine as a multiple of ours, in {len(found)} questions"
    return svg.drawing(
        width, y + 46, label,
        svg.x_axis(across, y, top - 6, "times ours", lambda tick: f"{tick:.10g} x", 7),
        svg.line(across(1), top - 10, across(1), y, "one"),
        svg.text(across(1), top - 16, "ours", anchor="middle", kind="what"),
        drawn,
    )  # fmt: skip


def _factors(row: Row) -> Iterator[float]:
    """The peer's place, and those of its ticks: how many times as much as ours."""
    assert row.target is not None
    for ratio in (row.ratio, row.target.limit, row.aim):
        if ratio:
            yield 1 / ratio


def _height(question: Question, wide: bool) -> float:
    return len(question.rows) * LANE + ROOM + (0 if wide else 2 * NAME)


def _question(question: Question, most: int, across: svg.Scale, y: float, width: float) -> Markup:
    wide = width == svg.WIDE
    high = _height(question, wide)
    name = question.name + (f", {question.n:,} keys" if question.n != most else "")
    told = f"{figures.shown(question.rows[0])} · {question.met} of {len(question.rows)} met"
    middle, below = y + high / 2 + 4, y + NAME - 3
    words = (
        (svg.text(across.start - 14, middle, svg.shortened(name, across.start - 14), anchor="end"),
         svg.text(width, middle, told, anchor="end"))
        if wide
        else (svg.text(across.start, below, svg.shortened(name, width - across.start)),
              svg.text(across.start, below + NAME, told, kind="what"))
    )  # fmt: skip
    first = y + (ROOM / 2 if wide else 2 * NAME)
    lanes = [_lane(row, across, first + (at + 0.5) * LANE) for at, row in enumerate(question.rows)]
    return tag("g", words, lanes)


def _lane(row: Row, across: svg.Scale, y: float) -> Markup:
    """A peer's mark, its ticks, and the bar between."""
    assert row.target is not None
    assert row.ratio is not None
    peer = families.family(str(row.at["beside"]))
    place, limit = across(1 / row.ratio), across(1 / row.target.limit)
    kind = "met" if row.verdict == MET else "missed"
    low, high = sorted((place, limit))
    aim = across(1 / row.aim) if row.aim else None
    drawn = [
        svg.rectangle(low, y - THICK / 2, high - low, THICK, kind),
        svg.line(aim, y - 4, aim, y + 4, "span") if aim is not None else None,
        svg.line(limit, y - 4.5, limit, y + 4.5, "limit"),
        svg.shape(families.mark_of(peer), place, y, 4),
    ]
    return figures.mark(row, drawn, peer)
