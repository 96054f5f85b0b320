"""The chart of what memory buys: right by the law, drawn whole, and in the documents as it is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import placing, tables
from benchmarks.levels import live_table, table
from benchmarks.levels.budget import LIVE
from benchmarks.levels.data import ABSENT
from benchmarks.placing import FLOOR, MONKEY, OURS, PEBBLE, READS_US, UNIFORM, Spent
from benchmarks.rows import Row
from filters import advice, sizing
from tests.benchmarks.example_record import example_record

DOCS = Path(__file__).parents[2] / "docs"
SVG = "{http://www.w3.org/2000/svg}"


def times(points: Sequence[Spent]) -> list[float]:
    return [each.us for each in points]


def is_warned_of(bits: float) -> bool:
    try:
        advice.strictly(sizing.bits_per_key, "blocked", bits_per_key=bits)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("read_us", READS_US)
def test_who_places_better_takes_less_time_in_the_same_memory(read_us: float) -> None:
    found = placing.curves(read_us)
    for name in (UNIFORM, MONKEY, OURS, FLOOR):
        assert [each.bits_per_key for each in found[name]] == list(placing.BITS)
        assert all(one >= two * 0.999 for one, two in pairwise(times(found[name]))), name
    columns = (times(found[name]) for name in (FLOOR, OURS, MONKEY, UNIFORM))
    wise = 0.0
    for bits, floor, ours, monkey, uniform in zip(placing.BITS, *columns, strict=True):
        # A budget takes no filter of a size that its family warns of, where blocks cost next to
        # nothing and there is memory for it.
        wise = wise if is_warned_of(bits) else uniform
        assert floor < ours < 1.02 * min(monkey, wise)
    (pebble,) = found[PEBBLE]
    assert 4 < pebble.bits_per_key < 8
    beside = [each.us for each in found[OURS] if each.bits_per_key >= pebble.bits_per_key]
    assert pebble.us > beside[0]


def test_on_a_disk_a_budget_is_near_the_floor() -> None:
    found = placing.curves(10_000.0)
    for ours, floor in zip(found[OURS], found[FLOOR], strict=True):
        assert ours.us < 1.25 * floor.us or ours.bits_per_key > 13


def test_the_chart_is_drawn_anew_when_what_it_shows_changes() -> None:
    assert placing.TARGET.read_text() == placing.drawing(), "run: python -m benchmarks.placing"
    assert f"]({placing.TARGET.name})" in (DOCS / "placement.md").read_text()


def test_every_line_is_drawn_in_every_panel_and_told_in_words() -> None:
    drawing = ElementTree.fromstring(placing.drawing())
    titles = [each.text or "" for each in drawing.iter(f"{SVG}title")]
    for name in placing.LOOKS:
        assert sum(title.startswith(f"{name}: ") for title in titles) == len(READS_US), name
    words = [each.text for each in drawing.iter(f"{SVG}text")]
    assert {*placing.LOOKS, "1 us a block", "100 us a block", "10,000 us a block"} <= set(words)
    (told,) = drawing.iter(f"{SVG}desc")
    for name in placing.LOOKS:
        assert (told.text or "").count(name) == len(READS_US)
    assert drawing.attrib["role"] == "img"
    assert "1, 100 and 10,000 microseconds" in drawing.attrib["aria-label"]
    looks = list(placing.LOOKS.values())
    assert len(set(looks)) == len(looks)


def test_it_lies_within_its_frame_and_has_a_dark_side() -> None:
    text = placing.drawing()
    assert "prefers-color-scheme: dark" in text
    for each in ElementTree.fromstring(text).iter(f"{SVG}path"):
        numbers = each.attrib["d"].replace("M", " ").replace("L", " ").replace("Z", "").split()
        assert all(0 <= float(x) <= placing.WIDTH for x in numbers[::2])
        assert all(0 <= float(y) <= placing.HEIGHT for y in numbers[1::2])


def test_the_page_has_the_rows_of_the_table() -> None:
    page = (DOCS / "placement.md").read_text()
    lines = placing.table()
    assert len(lines) == len(placing.LOOKS)
    assert all(line in page for line in lines)


def test_documents_say_what_a_record_has_or_how_to_get_it() -> None:
    older = example_record().of("levels")
    for lines in (live_table.documented, table.documented_steep):
        assert "python -m benchmarks levels --full" in tables.measured(lines, older)
    assert "| more above, fewer below |" in tables.measured(table.documented, older)
    newer = [
        Row(part="levels", group=LIVE, name=ABSENT, subject="budget", unit="blocks", value=0.0123,
            expected=0.0122, at={"shape": "T = 4", "lookups": "even"}),
        *older,
    ]  # fmt: skip
    text = tables.measured(live_table.documented, newer)
    assert "| T = 4 | bits/key |" in text
    assert "| 0.0123 | 0.0122 |" in text
