"""What new tables take over of the heat of those before them, and how heat fades."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from lsm import heat
from lsm.comparator import CustomComparator
from lsm.disk.keys import PUT, pack, rank_of
from lsm.heat import Heat
from lsm.kernels import TableFile
from lsm.version import PlacedTable, Version
from tests.effort import by_effort
from tests.lsm.placing import random_version, table, version
from tests.lsm.simulated import SimulatedStorage

KEYS = 10_000


def key(number: int) -> bytes:
    return b"%05d" % number


def heat_of(*, is_kept: bool = False) -> Heat:
    return Heat(SimulatedStorage(), "db", is_kept=is_kept)


def asked(placed: PlacedTable, missed: int) -> PlacedTable:
    placed.file.missed = missed
    return placed


def counts(tables: Iterable[PlacedTable]) -> list[int]:
    return [each.file.missed for each in tables]


class Index:
    """An open table as far as it tells where keys lie: of all numbers between two, 10 a block."""

    def __init__(self, first: int, last: int):
        self.first = first
        self.block_count = (last - first) // 10 + 1

    def block_for(self, low: bytes, rank: int) -> int:
        return min(max(0, (int(low) - self.first) // 10), self.block_count)


def cut(
    numbers: Iterable[int], level: int, borders: Sequence[int], *, opened: bool = False
) -> list[PlacedTable]:
    """Tables side by side of all keys, from each border up to the next."""
    found = []
    for number, (first, end) in zip(numbers, itertools.pairwise(borders), strict=False):
        made = table(number, key(first), key(end - 1), level=level, size=100 * (end - first))
        if opened:
            made.file.opened = Index(first, end - 1)  # type: ignore[assignment]
        found.append(made)
    return found


def random_borders(rng: random.Random, count: int) -> list[int]:
    return [0, *sorted(rng.sample(range(1, KEYS), count - 1)), KEYS]


def even_borders(count: int, shift: int) -> list[int]:
    """Tables of one size, but for the first and the last: as compactions cut them."""
    size = KEYS // count
    return sorted({0, *range(shift % size or size, KEYS, size), KEYS})


# ---- Compacting


def test_a_table_takes_over_from_those_of_its_own_level_by_the_parts_of_them_that_it_has() -> None:
    below = cut([1, 2], 2, [0, 4000, 8000], opened=True)
    above = asked(table(3, key(100), key(7900), level=1, size=1), 10**6)
    asked(below[0], 1000)
    asked(below[1], 200)
    after = cut([4, 5, 6], 2, [0, 1000, 5000, 8000])
    heat_of().inherit(version([], [above], below), version([], [], after))
    assert counts(after) == [pytest.approx(250, abs=5), pytest.approx(800, abs=5), 150]
    assert sum(counts(after)) == 1200


def test_of_closed_tables_the_sizes_say_how_much_is_in_each() -> None:
    below = [asked(each, 900) for each in cut([1], 2, [0, 9000])]
    after = cut([2, 3, 4], 2, [0, 3000, 8900, 9000])
    heat_of().inherit(version([], [], below), version([], [], after))
    assert sum(counts(after)) == 900
    assert counts(after)[0] > 20 * counts(after)[2] > 0


def test_what_fills_a_hole_in_a_level_takes_what_has_gone_through_it() -> None:
    """A compaction of one table leaves such a hole, and the next one from above fills it."""
    own = [*cut([1], 2, [0, 3000], opened=True), *cut([2], 2, [5000, 8000], opened=True)]
    deeper = cut([3, 4], 3, [0, 5000, 10_000], opened=True)
    for each, missed in zip([*own, *deeper], (100, 70, 10_000, 50_000), strict=True):
        asked(each, missed)
    after = cut([5, 6, 7], 2, [0, 4000, 8000, 10_000])
    before = version([], [], own, deeper)
    heat_of().inherit(before, version([], [], after, deeper))
    assert counts(after) == [
        pytest.approx(100 + 2000, rel=0.05),
        pytest.approx(2000 + 70, rel=0.05),
        pytest.approx(20_000, rel=0.05),
    ]


def test_seams_between_tables_are_no_holes(rng: random.Random) -> None:
    """However hot others are, and however often a level is cut anew."""
    others = [asked(each, 100_000) for each in cut([1], 1, [0, KEYS], opened=True)]
    others += [asked(each, 70_000) for each in cut([2, 3], 3, [0, 5000, KEYS], opened=True)]
    fresh = itertools.count(10)
    level = [asked(each, 100) for each in cut(fresh, 2, random_borders(rng, 20), opened=True)]
    for _ in range(20):
        after = cut(fresh, 2, random_borders(rng, 20), opened=True)
        run, deeper = others[:1], others[1:]
        heat_of().inherit(version([], run, level, deeper), version([], run, after, deeper))
        level = after
    # Where a seam is on the border of two blocks of another, which one in ten is, it has one block.
    seams, a_block = 20 * 20, 100_000 // 1000
    assert sum(counts(level)) <= 2000 + 2 * seams // 10 * a_block


def test_the_first_tables_of_a_level_take_what_missed_the_deepest_of_those_above() -> None:
    newer, older = table(2, key(0), key(5000)), table(1, key(0), key(9999))
    asked(newer, 300).file.opened = Index(0, 5000)  # type: ignore[assignment]
    asked(older, 400).file.opened = Index(0, 9999)  # type: ignore[assignment]
    after = cut([3, 4], 1, [0, 5000, 10000])
    heat_of().inherit(version([newer, older]), version([], after))
    assert counts(after) == [200, 200]


def test_a_flushed_table_begins_with_what_has_come_by_the_deepest_beneath_it() -> None:
    """Whatever came by there was found in none above, nor would it have been in this one."""
    below = [asked(each, 100) for each in cut([1, 2, 3, 4], 3, range(0, 10_000, 2000))]
    deepest = [asked(each, 60) for each in cut([5], 4, [0, 6000], opened=True)]
    deepest[0].file.found = 90
    flushed = table(9, key(2000), key(7999))
    before = version([], [], [], below, deepest)
    heat_of().inherit(before, version([flushed], [], [], below, deepest))
    assert flushed.file.missed == 200
    assert flushed.file.found == 0
    assert counts(below) == [100] * 4
    elsewhere = table(10, key(8500), key(9999))
    heat_of().inherit(before, version([flushed, elsewhere], [], [], below, deepest))
    assert elsewhere.file.missed == 0


def test_every_table_of_level_0_is_a_run_of_its_own() -> None:
    older = [asked(table(number, key(0), key(99)), missed) for number, missed in ((1, 7), (2, 10))]
    older[0].file.found = 3
    flushed = table(3, key(0), key(99))
    heat_of().inherit(version(older), version([*older, flushed]))
    assert flushed.file.missed == 10


def test_any_number_of_runs_is_asked() -> None:
    """Each has a little more of the range than those before it."""
    tables = [
        asked(table(number, key(5000 - number), key(5000 + number)), 1000)
        for number in range(1, 2001)
    ]
    flushed = table(3000, key(0), key(9999))
    heat_of().inherit(version(tables), version([*tables, flushed]))
    assert flushed.file.missed == 1000


def test_a_moved_table_keeps_its_count() -> None:
    moved = asked(table(1, key(0), key(10), level=1), 77)
    again = PlacedTable(2, moved.file, *(getattr(moved, name) for name in BOUNDS))
    heat_of().inherit(version([], [moved]), version([], [], [again]))
    assert again.file.missed == 77


BOUNDS = ("smallest", "largest", "low", "high", "first", "last")


def test_a_table_written_anew_between_the_same_bounds_takes_the_count(rng: random.Random) -> None:
    before = random_version(rng)
    fresh = itertools.count(2000)
    for each in before.tables():
        each.file.missed, each.file.found = rng.randrange(1000), rng.randrange(1000)
    anew = [
        [
            PlacedTable(level, TableFile(next(fresh), 50), *(getattr(each, n) for n in BOUNDS))
            for each in tables
        ]
        for level, tables in enumerate(before.levels)
    ]
    after = Version([before.levels[0], *anew[1:]])
    heat_of().inherit(before, after)
    for one, other in zip(before.tables(), after.tables(), strict=True):
        assert (one.file.missed, one.file.found) == (other.file.missed, other.file.found)


def test_of_versions_of_one_key_in_two_tables_each_goes_its_own_way() -> None:
    """Neighbours that share a user key do not overlap, and hand each other nothing."""

    def pair(one: int, other: int) -> list[PlacedTable]:
        return [
            table(one, b"a", b"k", level=1, oldest=6),
            table(other, b"k", b"z", level=1, newest=5),
        ]

    before, after = pair(1, 2), pair(3, 4)
    asked(before[0], 1000)
    heat_of().inherit(version([], before), version([], after))
    assert counts(after) == [1000, 0]


@pytest.mark.parametrize("turn", range(by_effort(60, 300, 5000)))
def test_compactions_lose_and_invent_nothing(turn: int, rng: random.Random) -> None:
    """On random levels: whatever is rewritten, an own level's heat is conserved to the unit.

    What comes beside it is for holes, and comes from others that have seen it.
    """
    before = random_version(rng, keys=rng.choice((13, 30)))
    level, alone = rng.randrange(1, 7), rng.random() < 0.5
    for each in before.tables():
        if each.level == level or not alone:
            each.file.missed = rng.choice((0, rng.randrange(10), rng.randrange(20_000)))
            each.file.found = rng.choice((0, rng.randrange(20_000)))
        if rng.random() < 0.5:
            each.file.opened = Index(int(each.low), int(each.high))  # type: ignore[assignment]
    own = before.levels[level]
    low, high = sorted(rng.choices(range(30), k=2))
    replaced = [each for each in own if int(each.low) <= high and low <= int(each.high)]
    low = min([low, *(int(each.low) for each in replaced)])
    high = max([high, *(int(each.high) for each in replaced)])
    borders = sorted({low, *rng.choices(range(low, high + 1), k=rng.randrange(4)), high + 1})
    new = [
        table(9000 + at, b"%02d" % first, b"%02d" % (end - 1), level=level, newest=2000, oldest=0)
        for at, (first, end) in enumerate(itertools.pairwise(borders))
    ]
    rest = [each for each in own if each not in replaced]
    new = [each for each in new if not any(meets(each, other) for other in rest)]
    after = Version([[*rest, *new] if at == level else t for at, t in enumerate(before.levels)])
    after.check_order()
    cold = [each for each in new if not is_warm(before, each)]
    elsewhere = sum(each.file.missed + each.file.found for each in before.tables())
    elsewhere -= sum(each.file.missed + each.file.found for each in own)
    heat_of().inherit(before, after)

    assert all(min(each.file.missed, each.file.found) >= 0 for each in after.tables())
    assert counts(cold) == [0] * len(cold)
    reached = [each for each in replaced if any(meets(each, other) for other in new)]
    assert sum(each.file.found for each in new) == sum(each.file.found for each in reached)
    handed_over = sum(counts(reached))
    assert handed_over <= sum(counts(new)) <= handed_over + elsewhere


def meets(one: PlacedTable, other: PlacedTable) -> bool:
    return not (one.last < other.first or other.last < one.first)


def is_warm(version: Version, placed: PlacedTable) -> bool:
    asked = (each for each in version.tables() if each.file.missed or each.file.found)
    return any(meets(each, placed) for each in asked)


# ---- Again and again


def hot(first: int, end: int) -> float:
    """What a lookup asks between two keys: a fifth of the keys has nine tenths of them."""
    return 0.1 * (end - first) / KEYS + 0.9 * max(0, min(end, 4000) - max(first, 2000)) / 2000


def compacted(
    rng: random.Random, borders: Callable[[int], list[int]], rounds: int, *, opened: bool
) -> tuple[list[int], list[float]]:
    """A level that is rewritten so often while nobody asks: the counts, and what was asked."""
    fresh = itertools.count(1)
    cuts = borders(0)
    level = cut(fresh, 2, cuts, opened=opened)
    for each, (first, end) in zip(level, itertools.pairwise(cuts), strict=True):
        each.file.missed = round(1_000_000 * hot(first, end))
    start = sum(counts(level))
    for turn in range(1, rounds):
        cuts = borders(turn)
        after = cut(fresh, 2, cuts, opened=opened)
        heat_of().inherit(version([], [], level), version([], [], after))
        level = after
        assert sum(counts(level)) == start, "to the unit"
    return counts(level), [1_000_000 * hot(*pair) for pair in itertools.pairwise(cuts)]


def misplaced(found: Sequence[int], true: Sequence[float]) -> float:
    """Which share of all heat is at the wrong tables."""
    wrong = [abs(one - other) for one, other in zip(found, true, strict=True)]
    return sum(wrong) / 2 / sum(true)


@pytest.mark.parametrize("opened", [True, False])
def test_a_level_that_is_cut_in_the_same_way_again_keeps_every_count(
    opened: bool, rng: random.Random
) -> None:
    borders = random_borders(rng, 20)
    found, true = compacted(rng, lambda turn: borders, 50, opened=opened)
    assert found == list(map(round, true))


def test_what_is_rewritten_at_other_borders_stays_in_its_range(rng: random.Random) -> None:
    """Its edges blur each time, until lookups come again.

    Of 40 tables 8 have nine tenths of the heat. Indexes tell where keys lie; sizes alone tell half
    as well, and tables of any size are worse than those of one.
    """

    def even(turn: int) -> list[int]:
        return even_borders(40, rng.randrange(250))

    def uneven(turn: int) -> list[int]:
        return random_borders(rng, 40)

    assert misplaced(*compacted(rng, even, 2, opened=True)) < 0.08
    assert misplaced(*compacted(rng, even, 2, opened=False)) < 0.1
    assert misplaced(*compacted(rng, even, 21, opened=True)) < 0.25
    assert misplaced(*compacted(rng, uneven, 2, opened=True)) < 0.3
    assert misplaced(*compacted(rng, uneven, 2, opened=False)) < 0.4


def test_two_ways_to_cut_a_level_in_turn_converge(rng: random.Random) -> None:
    ways = [random_borders(rng, 12), random_borders(rng, 15)]
    found = [
        compacted(rng, lambda turn: ways[turn % 2], rounds, opened=True)[0]
        for rounds in (3, 5, 201, 203)
    ]
    assert misplaced(found[2], found[3]) < misplaced(found[0], found[1]) / 4


# ---- Fading


def test_counts_are_halved_together_when_they_speak_of_enough_lookups() -> None:
    tables = [asked(each, 1 << 18) for each in cut(range(1, 9), 1, range(0, 9000, 1000))]
    heat_of().inherit(version([], tables), version([], tables))
    assert counts(tables) == [1 << 18] * 8, "2^21 lookups are remembered"
    tables[0].file.missed += 8
    tables[1].file.missed = 0
    tables[2].file.missed = 1 << 19
    heat_of().inherit(version([], tables), version([], tables))
    assert counts(tables) == [(1 << 17) + 4, 0, 1 << 18, *[1 << 17] * 5]
    tables[0].file.found = (1 << 21) - sum(counts(tables)) + 8
    heat_of().inherit(version([], tables), version([], tables))
    assert counts(tables) == [(1 << 16) + 2, 0, 1 << 17, *[1 << 16] * 5]
    tables[3].file.missed = 1 << 40
    heat_of().inherit(version([], tables), version([], tables))
    assert 1 << 20 <= sum(counts(tables)) <= 1 << 21
    assert sum(counts(tables)) == tables[3].file.missed


def test_more_tables_remember_more() -> None:
    tables = cut(range(1, 3001), 1, range(3001))
    for each in tables:
        each.file.missed = 2048
    heat_of().inherit(version([], tables), version([], tables))
    assert set(counts(tables)) == {2048}
    tables[0].file.missed += 1
    heat_of().inherit(version([], tables), version([], tables))
    assert set(counts(tables)) == {1024}


def test_a_comparator_that_raises_costs_heat_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = False

    def compare(one: bytes, other: bytes) -> int:
        if failing:
            raise ZeroDivisionError("from the comparator")
        return (one > other) - (one < other)

    order = CustomComparator("fickle", compare)
    ends = [pack(name, rank_of(1, PUT)) for name in (b"a", b"z")]
    before, after = (PlacedTable.at(1, TableFile(n, 9), *ends, order) for n in (1, 2))
    asked(before, 10)
    versions = version([], [before]), version([], [after])
    failing = True
    heat_of().inherit(*versions)
    assert "db/lsm-heat: new tables begin without heat: ZeroDivisionError" in caplog.text
    assert after.file.missed == 0
    failing = False
    heat_of().inherit(*versions)
    assert after.file.missed == 10


def test_nothing_is_compared_where_nobody_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(heat, "_own_level")
    before, after = (cut([number], 1, [0, 10]) for number in (1, 2))
    heat_of().inherit(version([], before), version([], after))
    assert counts(after) == [0]
