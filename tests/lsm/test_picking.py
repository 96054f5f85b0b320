"""What is compacted next: nothing that would put an older version above a newer one."""

from __future__ import annotations

import random

from lsm import picking
from lsm.comparator import BYTEWISE
from lsm.options import LEVELS, Options
from lsm.picking import Plan
from lsm.version import PlacedTable, Version
from tests.lsm.placing import numbers, random_version, table, version

OPTIONS = Options(max_file_size=1024, level_size_base=1024, level_size_ratio=2)


def touch(one: PlacedTable, other: PlacedTable) -> bool:
    return not (one.high < other.low or other.high < one.low)


def check(plan: Plan, version: Version) -> None:
    """Nothing stays behind that has a version of a key that goes."""
    level, upper, lower = plan.level, numbers(plan.upper), numbers(plan.lower)
    assert upper
    assert plan.top == min(each.level for each in plan.upper)
    assert {each.level for each in plan.upper} == set(range(plan.top, level + 1))
    assert [each.level for each in plan.inputs] == sorted(each.level for each in plan.inputs)
    there = {number for each in version.levels for number in numbers(each)}
    assert set(numbers(plan.inputs)) <= there
    assert set(lower) <= set(numbers(version.levels[level + 1]))
    for goes in plan.upper:
        # An older table of level 0 may not stay; at other levels none that shares a key.
        for stays in (each for below in version.levels[goes.level : level + 1] for each in below):
            assert stays.number in upper or not touch(goes, stays), f"{goes} goes, and it stays"
        for met in version.levels[level + 1]:
            assert met.number in lower or not touch(goes, met), "it would overlap what it joins"
    low = min(each.low for each in plan.inputs)
    high = max(each.high for each in plan.inputs)
    for met in version.levels[level + 1]:
        if met.number not in lower:
            for each in plan.lower:
                assert met.high != each.low, "versions of one key on both sides of the output"
                assert met.low != each.high, "versions of one key on both sides of the output"
    if level + 2 < LEVELS:
        beneath = version.overlapping(level + 2, low, high)
        assert numbers(plan.grandparents) == numbers(beneath)
    else:
        assert not plan.grandparents
    assert plan.inputs == [*plan.upper, *plan.lower]
    assert plan.pointer == max(plan.upper, key=lambda each: (each.high, each.number)).largest or (
        max(each.high for each in plan.upper) == plan.pointer[:-8]
    )


def test_all_that_overlaps_comes_along(rng: random.Random) -> None:
    levels = set()
    for _ in range(600):
        version = random_version(rng)
        plan = picking.pick(version, OPTIONS, {}, BYTEWISE)
        due = picking.due(version, OPTIONS)
        assert (plan is not None) == bool(due)
        if plan is not None:
            assert plan.level == due[0]
            level = plan.level
            levels.add(level)
            check(plan, version)
    assert len(levels) > 3


def test_ranges_are_compacted_from_the_left_with_all_that_overlaps(rng: random.Random) -> None:
    deepest = 0
    for _ in range(600):
        version = random_version(rng)
        level = rng.randrange(LEVELS - 1)
        low, high = sorted(b"%02d" % rng.randrange(30) for _ in "ab")
        plan = picking.pick_range(version, level, low, high, OPTIONS)
        found = version.overlapping(level, low, high)
        assert (plan is None) == (not found)
        if plan is not None:
            check(plan, version)
            assert found[0].number in numbers(plan.upper)
            assert plan.top == level
            deepest = max(deepest, plan.level - level)
    assert deepest > 1


def test_levels_are_merged_at_once_as_long_as_they_are_small() -> None:
    options = Options(max_file_size=1024)
    limit = picking.AT_ONCE_FACTOR * options.max_file_size
    top = [table(1, b"a", b"c"), table(2, b"b", b"d")]
    upper = [table(3, b"a", b"b", level=1), table(4, b"x", b"y", level=1)]
    lower = [table(5, b"c", b"e", level=2), table(6, b"y", b"z", level=2)]

    def found(*levels: list[PlacedTable]) -> tuple[int, int, list[int]]:
        plan = picking.pick_range(version(*levels), 0, b"a", b"z", options)
        assert plan is not None
        return plan.top, plan.level, numbers(plan.inputs)

    assert found(top, upper) == (0, 0, [2, 1, 3])
    assert found(top, [], lower) == (0, 0, [2, 1])  # below, they are moved
    assert found(top, upper, lower) == (0, 1, [2, 1, 3, 5])
    others = sum(each.size for each in (*top, upper[0], lower[0]))
    for more, deepest in ((0, 2), (1, 1)):
        last = [table(7, b"d", b"f", level=3, size=limit - others + more)]
        assert found(top, upper, lower, last)[1] == deepest


def test_inputs_are_widened_only_where_that_is_free(rng: random.Random) -> None:
    widened = 0
    for _ in range(1500):
        version = random_version(rng)
        level = rng.randrange(LEVELS - 1)
        if not version.levels[level]:
            continue
        first = rng.choice(version.levels[level])
        plan = picking.expanded(version, level, [first], OPTIONS)
        least = picking._clean_cut(version, level, [first])
        assert set(numbers(least)) <= set(numbers(plan.upper))
        assert numbers(plan.lower) == numbers(picking._lower_inputs(version, level, least))
        if len(plan.upper) > len(least):
            widened += 1
            assert plan.lower
            size = sum(each.size for each in plan.inputs)
            assert size < picking.WIDENING_FACTOR * OPTIONS.max_file_size
    assert widened > 5


def test_widening_stops_at_its_limit() -> None:
    upper = [table(1, b"a", b"c", level=1), table(2, b"d", b"f", level=1)]
    lower = [table(3, b"a", b"g", level=2)]
    limit = picking.WIDENING_FACTOR * OPTIONS.max_file_size
    for size, expected in ((limit - 201, [1, 2]), (limit - 200, [1])):
        lower[0].file.size = size
        made = version([], upper, lower)
        assert numbers(picking.expanded(made, 1, [upper[0]], OPTIONS).upper) == expected


def test_widening_draws_in_no_more_of_the_next_level() -> None:
    upper = [table(1, b"a", b"c", level=1), table(2, b"d", b"k", level=1)]
    lower = [table(3, b"a", b"e", level=2), table(4, b"h", b"z", level=2)]
    plan = picking.expanded(version([], upper, lower), 1, [upper[0]], OPTIONS)
    assert (numbers(plan.upper), numbers(plan.lower)) == ([1], [3])


def test_versions_of_one_key_go_together() -> None:
    cut = [table(1, b"a", b"k", level=1), table(2, b"k", b"k", level=1), table(3, b"k", b"p")]
    made = version([], [*cut, table(4, b"q", b"z")])
    for first in made.levels[1][:3]:
        assert numbers(picking.expanded(made, 1, [first], OPTIONS).upper) == [1, 2, 3]
    assert numbers(picking.expanded(made, 1, [made.levels[1][3]], OPTIONS).upper) == [4]


def test_level_0_goes_down_from_its_oldest_table() -> None:
    made = version([table(9, b"a", b"b"), table(3, b"x", b"y"), table(5, b"m", b"n")] * 1)
    options = Options(level0_compact_files=3)
    plan = picking.pick(made, options, {}, BYTEWISE)
    assert plan is not None
    assert numbers(plan.upper) == [3]
    assert picking.pick(made, Options(level0_compact_files=4), {}, BYTEWISE) is None


def test_the_pointer_goes_round() -> None:
    keys = [b"a", b"c", b"e", b"g"]
    tables = [table(at, key, key, level=1, size=1000) for at, key in enumerate(keys)]
    made, pointers, picked = version([], tables), {}, []
    for _ in range(6):
        plan = picking.pick(made, OPTIONS, pointers, BYTEWISE)
        assert plan is not None
        picked += numbers(plan.upper)
        pointers[1] = plan.pointer
    assert picked == [0, 1, 2, 3, 0, 1]


def test_a_range_is_done_in_pieces_of_some_tables() -> None:
    size = picking.PIECE_FACTOR * OPTIONS.max_file_size // 3 + 1
    tables = [table(at, b"%d" % at, b"%d" % at, level=1, size=size) for at in range(9)]
    made = version([], tables)
    plan = picking.pick_range(made, 1, b"2", None, OPTIONS)
    assert plan is not None
    assert numbers(plan.upper) == [2, 3, 4]
    plan = picking.pick_range(version(tables), 0, b"2", b"4", OPTIONS)
    assert plan is not None
    assert numbers(plan.upper) == [4, 3, 2]


def test_one_table_is_moved_unless_too_much_lies_beneath() -> None:
    first = table(1, b"a", b"c", level=1, size=5000)
    limit = picking.GRANDPARENT_FACTOR * OPTIONS.max_file_size
    for levels, expected in (
        ([[], [first]], True),
        ([[], [first], [table(2, b"b", b"b")]], False),
        ([[], [first], [], [table(2, b"b", b"b", size=limit)]], True),
        ([[], [first], [], [table(2, b"b", b"b", size=limit + 1)]], False),
        ([[first, table(2, b"b", b"d")]], False),
    ):
        level = 0 if levels[0] else 1
        plan = picking.expanded(version(*levels), level, [first], OPTIONS)
        assert plan.is_move(OPTIONS) == expected


def test_levels_are_full_by_count_and_by_size() -> None:
    made = version([table(1, b"a", b"b")] * 2, [table(2, b"a", b"b", size=1536)])
    assert picking.score(made, 0, OPTIONS) == 0.5
    assert picking.score(made, 1, OPTIONS) == 1.5
    assert picking.due(made, OPTIONS) == [1]
    deep = version(*[[]] * (LEVELS - 1), [table(1, b"a", b"b", size=1 << 60)])
    assert picking.score(deep, LEVELS - 1, OPTIONS) == 0
    assert picking.pick(deep, OPTIONS, {}, BYTEWISE) is None
