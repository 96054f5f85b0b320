"""Which tables make up a database: their order, who overlaps whom, how deep a flush may go."""

from __future__ import annotations

import itertools
import random

import pytest

from lsm.comparator import BYTEWISE, CustomComparator
from lsm.errors import CorruptionError
from lsm.options import LEVELS
from lsm.table_factory import DeeperLevels
from lsm.version import OverlapError, PlacedTable, Version
from tests.lsm.placing import numbers, random_version, table, version


def reversed_order(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def meets(placed: PlacedTable, low: bytes | None, high: bytes | None) -> bool:
    return (low is None or placed.high >= low) and (high is None or placed.low <= high)


def overlapping(version: Version, level: int, low: bytes | None, high: bytes | None) -> list[int]:
    """The naive way."""
    found = [each for each in version.levels[level] if meets(each, low, high)]
    if level == 0:
        while found:
            wide = low and min([low, *(each.low for each in found)])
            wider = high and max([high, *(each.high for each in found)])
            more = [each for each in version.levels[0] if meets(each, wide, wider)]
            if more == found:
                break
            low, high, found = wide, wider, more
    return numbers(found)


def some_bounds(rng: random.Random) -> tuple[bytes | None, bytes | None]:
    low, high = sorted(b"%02d" % rng.randrange(30) for _ in "ab")
    return rng.choice((low, low, None)), rng.choice((high, high, None))


def test_overlapping_tables_are_found(rng: random.Random) -> None:
    for _ in range(400):
        version, (low, high) = random_version(rng), some_bounds(rng)
        for level in range(LEVELS):
            found = numbers(version.overlapping(level, low, high))
            assert found == overlapping(version, level, low, high)


def test_level_0_has_the_newest_first_and_the_others_ascend(rng: random.Random) -> None:
    newest = [table(3, b"a", b"z"), table(12, b"a", b"z"), table(7, b"a", b"z")]
    below = [table(9, b"m", b"p"), table(4, b"a", b"c"), table(5, b"x", b"z")]
    made = version(newest, below)
    assert [numbers(tables) for tables in made.levels[:3]] == [[12, 7, 3], [4, 9, 5], []]
    assert numbers(list(made.tables())) == [12, 7, 3, 4, 9, 5]
    ((sorted_tables, highs),) = made.sorted_levels
    assert (numbers(sorted_tables), highs) == ([4, 9, 5], [b"c", b"p", b"z"])
    assert (made.size(0), made.size(1), made.size(2)) == (300, 300, 0)


def test_versions_of_a_key_lie_in_their_order() -> None:
    """Else a lookup would find an older one first, or none."""
    cut = [
        table(1, b"a", b"k", oldest=9),
        table(2, b"k", b"k", newest=8, oldest=5),
        table(3, b"k", b"k", newest=4, oldest=4),
        table(4, b"k", b"p", newest=3),
    ]
    for tables in itertools.permutations(cut):
        made = version([], tables)
        assert numbers(made.levels[1]) == [1, 2, 3, 4]
        made.check_order()


def test_tables_that_overlap_are_told() -> None:
    version([table(1, b"a", b"m"), table(2, b"c", b"z")]).check_order()
    version([], [table(1, b"a", b"m")], [table(2, b"c", b"z")]).check_order()
    version([], [table(1, b"a", b"b", oldest=4), table(2, b"b", b"z", newest=4)]).check_order()
    for one, other in (
        (table(1, b"a", b"m"), table(2, b"m", b"z")),
        (table(1, b"a", b"m"), table(2, b"c", b"d")),
        (table(1, b"a", b"m"), table(2, b"a", b"m")),
    ):
        with pytest.raises(OverlapError, match=r"tables . and . of level 0 overlap.*'m' @ 1"):
            version([], [], [other, one]).check_order()


def test_a_table_does_not_end_before_it_begins() -> None:
    for comparator in (BYTEWISE, CustomComparator("reversed", reversed_order)):
        low, high = (b"a", b"b") if comparator is BYTEWISE else (b"b", b"a")
        table(7, low, high, comparator=comparator)
        table(7, low, low, newest=3, oldest=3, comparator=comparator)
        with pytest.raises(CorruptionError, match="table 7 of level 0 would begin"):
            table(7, high, low, comparator=comparator)
        with pytest.raises(CorruptionError, match="table 7 of level 0.* @ 3 and end before.* @ 4"):
            table(7, low, low, newest=3, oldest=4, comparator=comparator)


def test_other_orders_are_followed() -> None:
    order = CustomComparator("reversed", reversed_order)
    tables = [table(n, key, key, comparator=order) for n, key in ((1, b"a"), (2, b"c"), (3, b"b"))]
    made = version([], tables)
    assert numbers(made.levels[1]) == [2, 3, 1]
    assert order.wrap is not None
    assert numbers(made.overlapping(1, order.wrap(b"c"), order.wrap(b"b"))) == [2, 3]


def test_a_flush_never_goes_beside_or_behind_an_older_table(rng: random.Random) -> None:
    depths = set()
    for _ in range(1000):
        version = random_version(rng)
        low, high = sorted(b"%02d" % rng.randrange(30) for _ in "ab")
        deepest, limit = rng.randrange(LEVELS - 1), rng.choice((0, 1000, 1 << 30))
        level = version.level_for_flush(low, high, deepest, limit)
        depths.add(level)
        assert 0 <= level <= deepest
        for above in range(level + 1) if level else ():
            assert not overlapping(version, above, low, high), "an older table is found first"
        if level:
            beneath = version.overlapping(level + 1, low, high) if level + 1 < LEVELS else []
            assert sum(each.size for each in beneath) <= limit
    assert len(depths) > 3


def test_a_flush_goes_as_deep_as_it_may() -> None:
    assert version().level_for_flush(b"a", b"b", 2, 1000) == 2
    assert version([table(1, b"c", b"d")]).level_for_flush(b"a", b"b", 2, 1000) == 2
    assert version([table(1, b"b", b"d")]).level_for_flush(b"a", b"b", 2, 1000) == 0
    assert version([], [table(1, b"b", b"d")]).level_for_flush(b"a", b"b", 2, 1000) == 0
    assert version([], [], [table(1, b"b", b"d")]).level_for_flush(b"a", b"b", 2, 1000) == 1
    heavy = version([], [], [], [table(1, b"a", b"b", size=1001)])
    assert heavy.level_for_flush(b"a", b"b", 2, 1000) == 1
    assert heavy.level_for_flush(b"a", b"b", 2, 1001) == 2


def test_what_lies_below_is_known(rng: random.Random) -> None:
    for _ in range(200):
        version = random_version(rng)
        low, high = sorted(b"%02d" % rng.randrange(30) for _ in "ab")
        for level in range(LEVELS):
            below = [overlapping(version, deeper, low, high) for deeper in range(level + 1, LEVELS)]
            assert DeeperLevels(version, level).overlap(low, high) == any(below)


def test_a_placed_table_knows_its_file() -> None:
    placed = table(7, b"a", b"b", size=5)
    assert (placed.number, placed.size, placed.low, placed.high) == (7, 5, b"a", b"b")
    with pytest.raises(AttributeError):
        placed.number = 8  # type: ignore[misc]
