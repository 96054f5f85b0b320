"""What the report's charts are drawn with, and what each of them shows of a record."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import attrs
import pytest

from benchmarks.levels import budget
from benchmarks.record import Record
from benchmarks.report import families, svg
from benchmarks.report.charts import (
    building,
    engines,
    memory,
    rates,
    reads,
    speed,
    standing,
    targets,
)
from benchmarks.report.charts.configurations import configurations
from benchmarks.report.labels import HEIGHT, Box, Label, placed, spread
from benchmarks.report.markup import Markup, escape, tag
from benchmarks.rows import FAILED, Row, Target
from tests.benchmarks.example_record import HEAD, PEERS, SUBJECTS, example_record

CHARTS = {
    "rates": rates.figure,
    "speed": speed.figure,
    "reads": reads.figure,
    "memory": memory.figure,
    "building": building.figure,
    "standing": standing.figure,
    "engines": engines.figure,
    "targets": targets.figure,
}
EMPTY = Record(HEAD, [], {})


@pytest.fixture(scope="module")
def record() -> Record:
    return example_record()


def parsed(markup: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(markup)


def drawings(markup: Markup) -> list[ElementTree.Element]:
    return [each for each in parsed(markup) if each.tag == "svg"]


def marked(drawing: ElementTree.Element) -> set[str]:
    """The rows that a drawing leads to."""
    return {each.attrib["data-row"] for each in drawing.iter() if "data-row" in each.attrib}


def both_widths(markup: Markup) -> list[set[str]]:
    return [marked(drawing) for drawing in drawings(markup)]


def test_text_is_never_markup() -> None:
    hostile = """</title><script>alert("1")</script>' &amp;"""
    made = tag("p", hostile, tag("b", hostile), [None, hostile], title=hostile, data_row=hostile)
    found = ElementTree.fromstring(made)
    assert "".join(found.itertext()) == 3 * hostile
    assert found.attrib == {"title": hostile, "data-row": hostile}
    assert made.count("<") == 4
    assert escape(escape(hostile)) == escape(hostile)


def test_numbers_in_attributes_are_short_and_none_is_left_out() -> None:
    assert tag("line", x1=1.25, x2=3.0, y1=None, class_="axis") == (
        '<line x1="1.2" x2="3" class="axis"/>'
    )


@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_round_within_and_not_too_many(log: bool, rng: random.Random) -> None:
    for _ in range(300):
        low = 10 ** rng.uniform(-6, 3) if log else rng.uniform(-50, 50)
        high = low * 10 ** rng.uniform(1, 7) if log else low + 10 ** rng.uniform(-4, 6)
        most = rng.randint(4, 12)
        found = svg.Scale(low, high, 0, 1, log).ticks(most)
        assert 1 <= len(found) <= most + 1, (low, high, most, found)
        nearly = 1e-6 * (low if log else high - low)
        assert all(low - nearly <= tick <= high + 1e-6 * abs(high) for tick in found)
        assert found == sorted(set(found))
        if log:
            assert all(f"{tick:e}"[:8] in ("1.000000", "2.000000", "3.000000", "5.000000")
                       for tick in found)  # fmt: skip
        else:
            steps = {f"{after - before:.3e}"[:5] for before, after in pairwise(found)}
            assert len(steps) <= 1
            assert steps <= {"1.000", "2.000", "5.000"}


def test_a_scale_puts_its_ends_at_its_ends_and_keeps_the_order(rng: random.Random) -> None:
    for log in (False, True):
        values = sorted(rng.uniform(0.1, 1000) for _ in range(20))
        made = svg.scale(values, 300, 20, log=log)
        places = [made(value) for value in values]
        assert places == sorted(places, reverse=True)
        assert all(20 < place < 300 for place in places)
        assert made(made.low) == pytest.approx(300)
        assert made(made.high) == pytest.approx(20)
        assert made(1e9) == pytest.approx(20)


def test_a_scale_of_one_number_has_room_around_it() -> None:
    assert svg.scale([5], 0, 100)(5) == pytest.approx(50)
    assert svg.scale([5], 0, 100, log=True)(5) == pytest.approx(50)


def test_spread_places_keep_their_order_and_distance(rng: random.Random) -> None:
    for _ in range(200):
        places = [rng.uniform(0, 100) for _ in range(rng.randint(1, 20))]
        found = spread(places, 10, -100, 200)
        order = sorted(range(len(places)), key=lambda each: places[each])
        moved = [found[each] for each in order]
        assert all(after - before >= 10 - 1e-9 for before, after in pairwise(moved))
        assert moved[0] - 5 >= -100 - 1e-9
        assert moved[-1] + 5 <= 200 + 1e-9
    assert spread([0, 50, 100], 10, -20, 120) == [0, 50, 100]


def test_labels_cover_neither_each_other_nor_marks(rng: random.Random) -> None:
    for _ in range(20):
        marks = [
            (120.0 * (each % 4) + rng.uniform(40, 90), 50.0 * (each // 4) + rng.uniform(20, 50))
            for each in range(12)
        ]
        labels = [Label(f"name {each}", *place) for each, place in enumerate(marks)]
        found = list(placed(labels, marks, Box(0, 0, 520, 220)))
        for at, one in enumerate(found):
            assert one.box.shared(Box(0, 0, 520, 220)) == pytest.approx(one.box.area)
            assert not any(one.box.shared(other.box) > 0 for other in found[at + 1 :])
            assert not any(one.box.left < x < one.box.right and one.box.top < y < one.box.bottom
                           for x, y in marks)  # fmt: skip


def test_a_label_avoids_a_line() -> None:
    line = [(0.0, 50.0), (300.0, 50.0)]
    (free,) = placed([Label("name", 100, 50)], [(100, 50)], Box(0, 0, 300, 100))
    (moved,) = placed([Label("name", 100, 50)], [(100, 50)], Box(0, 0, 300, 100), [line])
    assert free.box.top < 50 < free.box.bottom
    assert moved.box.bottom <= 50 or moved.box.top >= 50
    assert abs(moved.y - 50) < 4 * HEIGHT


def test_stairs_stay_at_a_height_until_the_next_place() -> None:
    assert svg.steps([(0, 9), (2, 5), (3, 1)]) == [(0, 9), (2, 9), (2, 5), (3, 5), (3, 1)]


def test_short_names_tell_apart_what_a_chart_shows() -> None:
    assert families.short_names(["blocked bits_per_key=10", "classic bits_per_key=10"]) == {
        "blocked bits_per_key=10": "blocked",
        "classic bits_per_key=10": "classic",
    }
    several = ["blocked bits_per_key=10", "blocked bits_per_key=16", "rbloom fpr=0.01",
               "rbloom fpr=0.1", "rbloom fpr=none"]  # fmt: skip
    assert list(families.short_names(several).values()) == [
        "blocked 10", "blocked 16", "rbloom 1 %", "rbloom 10 %", "rbloom none",
    ]  # fmt: skip
    assert families.family("pybloomfilter fpr=0.01") == "pybloomfiltermmap3"
    assert families.family("") == ""


@pytest.mark.parametrize("name", CHARTS)
def test_a_part_that_was_not_run_is_told_in_words(name: str) -> None:
    made = CHARTS[name](EMPTY)
    assert not drawings(made)
    assert "not run" in made
    assert parsed(made).attrib["id"] == name


@pytest.mark.parametrize("name", CHARTS)
def test_both_widths_are_pictures_with_words_and_the_same_rows(name: str, record: Record) -> None:
    made = CHARTS[name](record)
    wide, narrow = drawings(made)
    for drawing, kind in ((wide, "wide"), (narrow, "narrow")):
        assert drawing.attrib["class"] == kind
        assert drawing.attrib["role"] == "img"
        assert len(drawing.attrib["aria-label"]) > 20
        assert drawing[0].tag == "title"
    assert marked(wide) == marked(narrow)
    assert marked(wide) <= {row.id for row in record.rows}
    assert parsed(made)[0].tag == "h2"


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_drawn_outside_of_the_picture(name: str, record: Record) -> None:
    for drawing in drawings(CHARTS[name](record)):
        _, _, width, height = map(float, drawing.attrib["viewBox"].split())
        for x, y, reach in corners(drawing):
            assert -1 <= x <= width + 1
            assert -10 <= x + reach <= width + 10
            assert -1 <= y <= height + 1


def corners(drawing: ElementTree.Element) -> Iterator[tuple[float, float, float]]:
    """Places of what is drawn, and how far it reaches from there, to the right or the left."""
    for each in drawing.iter():
        given = each.attrib
        if each.tag == "text":
            words = "".join(each.itertext())
            share = {"middle": 0.5, "end": -1.0}.get(given.get("text-anchor", ""), 1.0)
            yield float(given["x"]), float(given["y"]), share * len(words) * 6.2
        elif each.tag == "circle":
            yield float(given["cx"]), float(given["cy"]), 0
        elif each.tag == "rect":
            yield float(given["x"]), float(given["y"]), float(given["width"])
        elif each.tag == "path":
            for x, y in re.findall(r"(-?[0-9.]+) (-?[0-9.]+)", given["d"]):
                yield float(x), float(y), 0


def rows_of(record: Record, name: str, **at: object) -> list[Row]:
    return [
        row for row in record.rows
        if row.name == name and row.value and all(row.at.get(key) == at[key] for key in at)
    ]  # fmt: skip


def test_rates_shows_every_subject_of_the_sweep_and_its_bits(record: Record) -> None:
    found = rows_of(record, rates.RATE, keys="random")
    nearest = {
        row.subject: row for row in found if row.at["n"] == 100_000
    } | {row.subject: row for row in found if row.at["n"] == 200_000}  # fmt: skip
    expected = {row.id for row in nearest.values()}
    assert len(expected) > 60
    assert {row.at["n"] for row in nearest.values()} == {100_000, 200_000}
    made = rates.figure(record)
    assert both_widths(made) == [expected, expected]
    wanted = next(each for each in expected if "blocked bits_per_key=10/" in each)
    (point,) = (each for each in drawings(made)[0].iter("g") if each.get("data-row") == wanted)
    assert point.attrib["data-also"].startswith("filters/Rates and sizes/bits per key/blocked bits")
    title = point.findtext("title") or ""
    assert "false-positive rate, 0." in title
    assert "expected 0." in title


def test_rates_are_drawn_where_they_lie(record: Record) -> None:
    found = rates.points(record)
    (wide, _) = drawings(rates.figure(record))
    places = {}
    for mark in wide.iter("g"):
        for circle in mark.findall("circle"):
            places[mark.attrib["data-row"]] = (
                float(circle.attrib["cx"]),
                float(circle.attrib["cy"]),
            )
    blocked = [point for point in found if point.family == "blocked"]
    assert len(blocked) == 9
    drawn = [places[point.rate.id] for point in blocked]
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)
    assert [y for _, y in drawn] == sorted(y for _, y in drawn)
    one, other = blocked[0], blocked[-1]
    slope = (drawn[-1][0] - drawn[0][0]) / (other.at[0] - one.at[0])
    middle = blocked[4]
    assert drawn[4][0] == pytest.approx(drawn[0][0] + slope * (middle.at[0] - one.at[0]), abs=0.2)


def test_the_bound_is_drawn_where_two_to_the_power_of_the_bits_lies(record: Record) -> None:
    for drawing in drawings(rates.figure(record)):
        (curve,) = (each for each in drawing.iter("path") if each.get("class") == "bound")
        places = [
            tuple(map(float, each))
            for each in re.findall(r"([0-9.]+) ([0-9.]+)", curve.attrib["d"])
        ]
        # Bits to the right, the logarithm of the rate downwards: a straight line from 1 and 1/2.
        labels = {each.text: each for each in drawing.iter("text")}
        per_bit = (float(labels["20"].attrib["x"]) - float(labels["10"].attrib["x"])) / 10
        start = float(labels["10"].attrib["x"]) - 10 * per_bit
        decade = float(labels["0.1 %"].attrib["y"]) - float(labels["1 %"].attrib["y"])
        for x, y in (places[0], places[30], places[-1]):
            bits = (x - start) / per_bit
            rate = 10 ** (-2 - (y - float(labels["1 %"].attrib["y"]) + 4) / decade)
            assert rate == pytest.approx(2**-bits, rel=0.03)


def test_no_filter_lies_in_the_area_that_is_said_to_be_impossible(record: Record) -> None:
    assert all(2.0 ** -point.at[0] <= point.at[1] for point in rates.points(record))


def test_a_rate_of_nothing_does_not_stop_the_chart(record: Record) -> None:
    rows = [attrs.evolve(row, value=0.0, interval=(0.0, 1e-6))
            if row.name == rates.RATE and row.subject.startswith("binary-fuse") else row
            for row in record.rows]  # fmt: skip
    made = rates.figure(attrs.evolve(record, rows=rows))
    assert "binary-fuse" not in made
    assert "cuckoo" in made


def test_speed_shows_batches_and_single_probes_at_every_size(record: Record) -> None:
    panels = speed.panels(record)
    in_batches = sum(batch > 0 for *_, batch in PEERS)
    ours = len(SUBJECTS)
    assert [len(panel.lines) for panel in panels] == [ours + in_batches, ours + len(PEERS)]
    expected = {point.time.id for panel in panels for point in panel.points}
    for n in (10_000, 100_000, 1_000_000):
        asked = rows_of(record, "one key, miss, in order", keys="random", n=n)
        sized = {row.subject for row in rows_of(record, "bits per key", keys="random", n=n)}
        assert {row.id for row in asked if row.subject in sized} <= expected
    assert both_widths(speed.figure(record)) == [expected, expected]
    batches = {point.time.subject: point.time.name for point in panels[0].points}
    assert batches["blocked bits_per_key=10"] == "buffer, miss"
    assert batches["fastbloom_rs fpr=0.01"] == "list of 4096, miss"


def test_speed_marks_the_caches_edges_and_the_machines_own_cost(record: Record) -> None:
    made = speed.figure(record)
    wide, _ = drawings(made)
    words = [each.text for each in wide.iter("text")]
    assert words.count("L1") == words.count("L2") == 2
    assert "L3" not in words, "no filter is as large"
    assert "a random cache line" in words
    assert "an empty compiled call" in words
    point = speed.panels(record)[0].points[0]
    assert point.bytes == pytest.approx((point.bits.value or 0) * float(point.time.at["n"]) / 8)


def test_what_is_far_slower_stands_at_the_edge_with_its_number(record: Record) -> None:
    made = speed.figure(record)
    assert re.search(r"pyprobables 5,\d\d\d ↑", made)
    assert not re.search(r"fastbloom_rs \d+ ↑", made)


def test_reads_are_sorted_and_every_level_has_its_block(record: Record) -> None:
    found = configurations(record)
    assert [each.blocks for each in found] == sorted(each.blocks for each in found)
    expected = {row.id for each in found for row in (each.reads, *each.by_level)}
    assert both_widths(reads.figure(record)) == [expected, expected]
    wide, _ = drawings(reads.figure(record))
    predicted = [each for each in wide.iter("line") if each.attrib["class"] == "predicted"]
    cut = [each for each in wide.iter("path") if each.attrib.get("class") == "gap"]
    assert len(predicted) + len(cut) == len(found) == 11
    assert len(cut) == 3


def test_blocks_of_a_bar_are_as_long_as_their_reads(record: Record) -> None:
    wide, _ = drawings(reads.figure(record))
    widths = {}
    for mark in wide.iter("g"):
        for block in mark.findall("rect"):
            widths[mark.attrib["data-row"]] = float(block.attrib["width"])
    configuration = next(each for each in configurations(record) if each.name == "blocked 10")
    longest = max(configuration.by_level, key=lambda row: row.value or 0)
    for row in configuration.by_level:
        share = (row.value or 0) / (longest.value or 1)
        assert widths[row.id] == pytest.approx(share * widths[longest.id], abs=0.2)


def test_memory_shows_every_configuration_and_the_best_in_a_table(record: Record) -> None:
    made = memory.figure(record)
    found = configurations(record)
    assert both_widths(made) == 2 * [{each.reads.id for each in found}]
    names = [each.text for each in parsed(made).iter("th") if each.attrib["scope"] == "row"]
    assert names == [each.subject for each in budget.frontier(record.of("levels"))]
    assert "more above, fewer below" in names
    assert "blocked 10" not in names


def test_building_pairs_what_was_built_with_what_was_asked(record: Record) -> None:
    pairs = building.pairs(record)
    assert {build.at["n"] for build, _ in pairs} == {1_000_000}
    assert all(build.subject == probe.subject and build.at == probe.at for build, probe in pairs)
    assert len(pairs) == len(SUBJECTS) + len(PEERS)  # of them pyprobables is missing, and set there
    expected = {build.id for build, _ in pairs}
    assert both_widths(building.figure(record)) == [expected, expected]


def test_engines_shows_every_ratio_at_every_size(record: Record) -> None:
    expected = {row.id for row in record.of("engine") if row.ratio and "beside" not in row.at}
    assert len(expected) == 12 * (4 + 3)
    made = engines.figure(record)
    assert both_widths(made) == [expected, expected]
    assert "Not measured: lmdb at 1,000,000 keys" in made


def test_standing_shows_every_ratio_that_is_held_to_a_target(record: Record) -> None:
    judged = [row for row in record.of("engine") if row.target and row.ratio]
    made = standing.figure(record)
    assert both_widths(made) == 2 * [{row.id for row in judged}]
    met = sum(row.verdict == "met" for row in judged)
    assert 0 < met < len(judged) == 24
    assert f"meets {met} of 24 targets" in made
    assert "Not measured: 12;" in made
    wide, _ = drawings(made)
    limits = [each for each in wide.iter("line") if each.attrib["class"] == "limit"]
    assert len(limits) == len(judged)


def test_a_mark_lies_right_of_its_tick_if_and_only_if_the_target_is_met(record: Record) -> None:
    rows = {row.id: row for row in record.of("engine")}
    for drawing in drawings(standing.figure(record)):
        marks = [each for each in drawing.iter("g") if "data-row" in each.attrib]
        assert marks
        for mark in marks:
            row = rows[mark.attrib["data-row"]]
            bar = mark.find("rect")
            tick = next(each for each in mark.findall("line") if each.attrib["class"] == "limit")
            assert bar is not None
            assert bar.attrib["class"] == ("met" if row.verdict == "met" else "missed")
            at, left = float(tick.attrib["x1"]), float(bar.attrib["x"])
            right = left + float(bar.attrib["width"])
            assert (abs(at - left) < abs(at - right)) == (row.verdict == "met"), row.id


def test_what_is_furthest_ahead_of_the_best_comes_first(record: Record) -> None:
    found = standing.questions(record)
    closest = [max(row.ratio or 0 for row in each.rows) for each in found]
    assert closest == sorted(closest)
    ahead = sum(ratio < 1 for ratio in closest)
    assert f"takes less than every other engine in {ahead} of 12 questions" in standing.figure(
        record
    )


def test_what_is_no_ratio_of_times_is_told_in_the_tables_only(record: Record) -> None:
    row = standing.questions(record)[0].rows[0]
    gain = attrs.evolve(row, target=Target(1.0, "at least one thread's", at_least=True))
    alone = attrs.evolve(row, at={"n": 5}, target=Target(5.0, "at most 5 us", absolute=True))
    made = standing.figure(attrs.evolve(record, rows=[gain, alone]))
    assert "Nothing of the engine was held to a target" in made


def test_targets_shows_every_row_that_was_judged(record: Record) -> None:
    expected = {row.id for row in record.of("kernels") if row.target and row.ratio}
    made = targets.figure(record)
    assert both_widths(made) == [expected, expected]
    missed = sum(row.verdict == "MISSED" for row in record.of("kernels"))
    words = ["".join(each.itertext()) for each in drawings(made)[0].iter("text")]
    assert sum("MISSED" in each for each in words) == missed == 2
    assert f"meets {len(expected) - missed} of {len(expected)} targets" in made
    assert "Not measured: 1;" in made


def test_a_bar_reaches_past_the_line_if_and_only_if_its_target_was_missed(record: Record) -> None:
    for row in record.of("kernels"):
        share = targets.used(row)
        if share is not None:
            assert (share > 1) == (row.verdict == "MISSED"), row.id


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_stands_with_what_little_there_is(name: str, record: Record) -> None:
    """One row of each name, in turn without each group: no chart fails, whatever is missing."""
    few: dict[tuple[str, str, str], Row] = {}
    for row in record.rows:
        few.setdefault((row.part, row.group, row.name), row)
    for gone in {None, *(row.group for row in record.rows)}:
        rows = [row for row in few.values() if row.group != gone]
        parsed(CHARTS[name](attrs.evolve(record, rows=rows)))
    failed = [attrs.evolve(row, value=None, ratio=None, verdict=FAILED) for row in record.rows]
    parsed(CHARTS[name](attrs.evolve(record, rows=failed)))
    zeros = [attrs.evolve(row, value=0.0, interval=None) for row in record.rows]
    parsed(CHARTS[name](attrs.evolve(record, rows=zeros)))
