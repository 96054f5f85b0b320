"""Stores with little memory and ranges without keys: what is counted, and beside what it stands.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from benchmarks.levels import LevelsPart, cold, little_memory, ranges
from benchmarks.levels.data import Data
from benchmarks.levels.settings import Settings
from benchmarks.rows import AS_EXPECTED, MET, MISSED, UNEXPECTED, Row

TINY = Settings(
    little_keys=4000, little_lookups=1500, range_keys=3000, ranges=200, timed=50, repeats=1
)


@pytest.fixture
def settings(test_seed: int) -> Settings:
    return attrs.evolve(TINY, seed=test_seed)


def of_subject(rows: Sequence[Row], subject: str, name: str) -> dict[str, float]:
    return {
        str(dict(row.at)): row.value or 0.0
        for row in rows
        if (row.subject, row.name) == (subject, name)
    }


def test_with_little_memory_all_is_counted(settings: Settings, tmp_path: Path) -> None:
    rows = list(little_memory.LittleMemory(settings, tmp_path).rows())
    assert list(tmp_path.iterdir()) == []
    assert {row.subject for row in rows} == {each.name for each in little_memory.LAYOUTS}
    whole, parts = little_memory.WHOLE.name, little_memory.PARTITIONED.name
    share = "{'share': %s}"
    all_there = of_subject(rows, whole, little_memory.FILTER_BYTES)
    assert set(all_there) == {share % each for each in little_memory.SHARES}
    assert all_there[share % 1.0] == 0, "what fits is read once"
    assert all_there[share % 0.1] == 0, "what could never stay is not read"
    (size,) = of_subject(rows, whole, little_memory.RESIDENT).values()
    assert size * 8 / settings.little_keys == pytest.approx(little_memory.BITS, rel=0.2)
    (more,) = of_subject(rows, parts, little_memory.RESIDENT).values()
    assert more > size
    told = of_subject(rows, whole, little_memory.BYTES)
    assert told[share % 1.0] < 500
    assert told[share % 0.1] == 4096, "a block for each key that is not there"
    text = "\n".join(little_memory.lines(rows))
    assert all(each.name in text for each in little_memory.LAYOUTS)
    assert "\n".join(little_memory.documented(rows)).count("\n") == 1 + len(little_memory.LAYOUTS)


def test_ranges_without_keys_are_counted_beside_theory(settings: Settings, tmp_path: Path) -> None:
    rows = list(ranges.Ranges(settings, tmp_path).rows())
    assert list(tmp_path.iterdir()) == []
    blocks = [row for row in rows if row.name == ranges.BLOCKS]
    none = [row for row in blocks if row.subject == ranges.NONE.name]
    assert all(4 < (row.value or 0) < 6 for row in none), "a block of each level"
    assert all(row.ratio == 1 for row in none)
    of_grafite = [row for row in blocks if row.subject.startswith("grafite")]
    assert len(of_grafite) == 2 * 2 * len(ranges.LENGTHS)
    assert all(row.expected and row.verdict != UNEXPECTED for row in of_grafite)
    assert {row.verdict for row in of_grafite} <= {AS_EXPECTED, MET, MISSED}
    tenants = [row for row in blocks if ranges.TENANT in row.at.values()]
    assert [row.subject for row in tenants] == [each.name for each in ranges.OF_TENANTS]
    assert all((row.ratio or 0) < 0.1 for row in tenants[1:])
    behind = [
        row for row in blocks
        if row.subject.startswith("surf") and ranges.BEHIND_A_KEY in row.at.values()
    ]  # fmt: skip
    assert all((row.value or 0) > 0.5 for row in behind), "its keys end before the range does"
    text = "\n".join(ranges.lines(rows))
    assert all(each.name in text for each in (*ranges.OF_NUMBERS, *ranges.OF_TENANTS))
    assert "\n".join(ranges.documented(rows)).count("\n") == 1 + len(blocks)


def test_stores_are_opened_in_every_mode(settings: Settings, tmp_path: Path) -> None:
    settings = attrs.evolve(settings, keys=3000, absent=500, present=10, repeats=2)
    rows = list(cold.ColdOpen(settings, tmp_path, Data(settings)).rows())
    assert list(tmp_path.iterdir()) == []
    assert {(row.subject, row.name) for row in rows} == {
        (mode.name, name) for mode in cold.MODES for name in (cold.OPENING, cold.FIRST, cold.SECOND)
    }
    assert all(len(row.repeats) == 2 for row in rows)
    text = "\n".join(cold.lines(rows))
    assert all(each.name in text for each in cold.MODES)
    assert "\n".join(cold.documented(rows)).count("\n") == 1 + len(cold.MODES)


def test_all_are_units_of_the_levels(settings: Settings) -> None:
    units = LevelsPart().units(settings)
    last = [each.row.group for each in units][-3:]
    assert last == [little_memory.GROUP, ranges.GROUP, cold.GROUP]
    assert all(each.seconds > 0 for each in units)


def test_nothing_is_shown_where_nothing_was_measured() -> None:
    for module in (little_memory, ranges, cold):
        assert list(module.lines([])) == []
