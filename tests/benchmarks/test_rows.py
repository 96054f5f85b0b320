"""A row says what was measured and holds it against its target; chance is reckoned with."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import statistics, text
from benchmarks.rows import (
    FAILED,
    INFORMATION,
    MET,
    MISSED,
    NOT_MEASURED,
    VERDICTS,
    Row,
    Target,
    counts,
    judged,
    number,
    timed,
)

ROW = Row(part="p", group="A heading", name="a name", subject="blocked", at={"n": 5}, unit="ns")


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (Target(0.95, "at most"), 0.9499, True),
        (Target(0.95, "at most"), 0.95, True),
        (Target(0.95, "at most"), 0.9501, False),
        (Target(1.7, "at least", at_least=True), 1.7, True),
        (Target(1.7, "at least", at_least=True), 1.69, False),
        (Target(1.7, "at least", at_least=True), 1.9, True),
    ],
)
def test_a_target_is_met_up_to_its_limit(target: Target, value: float, met: bool) -> None:
    assert target.is_met(value) is met


def test_the_best_repeats_are_compared_with_the_target() -> None:
    row = timed(attrs.evolve(ROW, target=Target(2, "")), [9, 4, 5], [3, 2])
    assert (row.value, row.ratio, row.verdict) == (4, 2, MET)
    assert (row.median, row.spread) == (5, (4, 9))
    row = timed(attrs.evolve(ROW, target=Target(2, "")), [9, 4.1, 5], [3, 2])
    assert row.verdict == MISSED


def test_medians_count_where_they_are_to() -> None:
    row = timed(ROW, [9, 4, 5], [1, 2, 100], counts="median")
    assert (row.value, row.ratio, row.verdict) == (5, 2.5, INFORMATION)


def test_an_absolute_target_needs_no_peer_and_any_other_does() -> None:
    alone, ratio = Target(5, "", absolute=True), Target(5, "")
    assert timed(attrs.evolve(ROW, target=alone), [5.0]).verdict == MET
    assert timed(attrs.evolve(ROW, target=alone), [5.1], [99]).verdict == MISSED
    assert timed(attrs.evolve(ROW, target=ratio), [5.0]).verdict == NOT_MEASURED
    assert judged(ROW) is ROW


def test_an_aim_is_of_what_the_target_is_of() -> None:
    def reached(target: Target, aim: float | None, ours: float, peer: float) -> bool:
        row = attrs.evolve(ROW, target=target, aim=aim)
        return timed(row, [ours], [peer]).reaches_aim

    ratio = Target(5, "")
    assert reached(ratio, 3, 3, 1)
    assert not reached(ratio, 3, 3.1, 1)
    assert not reached(ratio, None, 1, 1)
    assert reached(Target(5, "", absolute=True), 3, 3, 99)
    assert reached(Target(1, "", at_least=True), 2, 1, 2)
    assert not reached(Target(1, "", at_least=True), 2, 1, 1.9)
    assert not attrs.evolve(ROW, target=ratio, aim=3).reaches_aim


def test_an_id_tells_rows_apart() -> None:
    assert ROW.id == "p/A heading/a name/blocked/n=5"
    others = [
        attrs.evolve(ROW, **{field: "other"}) for field in ("part", "group", "name", "subject")
    ]
    others += [attrs.evolve(ROW, at={"n": 6}), attrs.evolve(ROW, at={"n": 5, "keys": "x"})]
    assert len({ROW.id, *(row.id for row in others)}) == 7
    assert attrs.evolve(ROW, value=1, verdict=FAILED, note="x").id == ROW.id


def test_numbers_that_are_none_are_refused() -> None:
    for value in (math.inf, math.nan):
        with pytest.raises(ValueError, match="finite"):
            attrs.evolve(ROW, value=value)


@given(
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    repeats=st.lists(st.floats(0, 1e9), max_size=4),
    peer_repeats=st.lists(st.floats(0, 1e9), max_size=4),
    interval=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    target=st.none() | st.builds(Target, st.floats(0, 10), st.text(), st.booleans()),
    aim=st.none() | st.floats(0, 10),
    better=st.sampled_from(["lower", "higher", ""]),
    words=st.lists(st.text(), min_size=4, max_size=4),
    at=st.dictionaries(st.text(min_size=1), st.integers() | st.text()),
)
def test_a_row_survives_the_record(words: list[str], **members: Any) -> None:
    subject, peer, reason, note = words
    row = attrs.evolve(ROW, subject=subject, peer=peer, reason=reason, note=note, **members)
    stored = json.loads(json.dumps(row.as_dict()))
    assert Row.from_dict(stored) == row
    assert stored["id"] == row.id
    if row.repeats:
        assert stored["best"] == min(row.repeats)


@pytest.mark.parametrize(
    "members", [{}, {"part": "p"}, {**ROW.as_dict(), "repeats": 5}, {**ROW.as_dict(), "target": {}}]
)
def test_what_is_no_row_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a row"):
        Row.from_dict(members)


def test_verdicts_are_counted() -> None:
    rows = [attrs.evolve(ROW, verdict=verdict) for verdict in (MET, MET, FAILED)]
    assert counts(rows) == {each: {MET: 2, FAILED: 1}.get(each, 0) for each in VERDICTS}


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (0, "0"), (1234.5, "1,234"), (99.96, "100"), (0.5, "0.5"), (1.2e-5, "1.20e-05")],
)
def test_numbers_have_three_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_wilsons_interval_covers_the_rate_as_often_as_it_says(rng: random.Random) -> None:
    rate, trials, covered = 0.01, 2000, 0
    for _ in range(400):
        hits = sum(rng.random() < rate for _ in range(trials))
        low, high = statistics.wilson(hits, trials)
        covered += low <= rate <= high
    assert 360 <= covered <= 395


def test_wilsons_interval_at_its_ends() -> None:
    low, high = statistics.wilson(0, 1000)
    assert low == 0
    assert 0.003 < high < 0.005
    assert statistics.wilson(1000, 1000) == (pytest.approx(1 - high), 1.0)
    assert statistics.wilson(0, 0) == (0, 1)


def test_sigmas_count_standard_errors() -> None:
    assert statistics.sigmas(100, 10_000, 0.01) == 0
    assert statistics.sigmas(150, 10_000, 0.01) == pytest.approx(50 / math.sqrt(99))
    assert statistics.sigmas(50, 10_000, 0.01) < -statistics.MARKED
    assert statistics.sigmas(2, 1000, 1e-6) < statistics.MARKED
    assert statistics.sigmas(1000, 1000, 0.0) > statistics.MARKED


def test_only_what_is_beyond_noise_differs() -> None:
    assert statistics.differ([10, 11], [12, 13])
    assert not statistics.differ([10, 12], [11, 13])
    assert not statistics.differ([10, 10.1], [10.2, 10.3])
    assert statistics.differ([1e-9], [5.0])


def test_a_listing_shows_every_number_or_why_there_is_none() -> None:
    rows = [
        timed(attrs.evolve(ROW, peer="abloom", target=Target(2, "")), [5.0], [2.0]),
        attrs.evolve(ROW, name="another", verdict=NOT_MEASURED, reason="pip install it"),
    ]
    heading, one, other = text.listing(rows)
    assert "abloom" in heading
    assert one.split() == ["a", "name", "5", "2", "ns", "2.5", "<=", "2", "MISSED"]
    assert other.split() == ["another", "not", "measured:", "pip", "install", "it"]


def test_a_grid_has_a_cell_for_each_row_and_reasons_below() -> None:
    rows = [
        attrs.evolve(ROW, name="build", value=1.5),
        attrs.evolve(ROW, name="ask", value=None, verdict=FAILED, reason="denies 1"),
        attrs.evolve(ROW, name="ask", subject="cuckoo", value=2.5),
    ]
    lines = list(text.grid(rows, lambda row: row.subject, lambda row: row.name))
    assert [line.split() for line in lines] == [
        ["build", "ask"],
        ["blocked", "1.5", "failed"],
        ["cuckoo", "-", "2.5"],
        ["failed:", "denies", "1"],
    ]


def test_a_time_is_said_in_words() -> None:
    assert text.duration(59) == "59 seconds"
    assert text.duration(600) == "10 minutes"
