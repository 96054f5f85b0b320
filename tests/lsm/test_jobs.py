"""Compactions that run at once: none changes what another one reads or where it writes."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import attrs
import pytest

from lsm import jobs, picking
from lsm.comparator import BYTEWISE
from lsm.disk.keys import PUT, pack, rank_of
from lsm.jobs import Claim
from lsm.kernels import TableFile
from lsm.options import LEVELS, Options
from lsm.picking import Plan
from lsm.refiltering import Refiltering, RefilterPlan
from lsm.table_factory import DeeperLevels
from lsm.version import OverlapError, PlacedTable, Version
from tests.effort import by_effort
from tests.lsm.placing import numbers, random_version, table, version

KEYS = 30
OPTIONS = Options(
    max_file_size=4096, level_size_base=1024, level_size_ratio=2, level0_compact_files=2
)
HISTORIES = by_effort(200, 2000, 20000)
STEPS = 150


# -- Who touches whom ----------------------------------------------------------------------


def places(plan: Plan) -> set[tuple[int, int]]:
    """Every level and key where a compaction may put something, or takes it along from."""
    low, high = plan.claim.low, plan.claim.high
    levels = range(plan.top, plan.level + 1) if plan.upper else (plan.level,)
    if len(plan.inputs) == 1 and not plan.upper:  # whoever comes into its range takes it along
        return set()
    return {
        (level + 1, at) for level in levels for at in range(KEYS) if low <= b"%02d" % at <= high
    }


def any_plan(rng: random.Random, made: Version) -> Plan | None:
    level = rng.choice((0, 1, 1, 1, 2, 2, 3, 4, 5))
    if rng.random() < 0.25:
        low, high = sorted(b"%02d" % rng.randrange(KEYS) for _ in "ab")
        newest = max((each.number for each in made.tables()), default=0)
        older_than = rng.randrange(newest + 2)
        return picking.pick_in_place(made, level + 1, low, high, older_than, OPTIONS)
    if not made.levels[level]:
        return None
    if rng.random() < 0.5:
        return picking.expanded(made, level, [rng.choice(made.levels[level])], OPTIONS)
    low, high = sorted(b"%02d" % rng.randrange(KEYS) for _ in "ab")
    return picking.pick_range(made, level, low, high, OPTIONS)


def test_two_touch_where_they_share_a_table_or_a_place(rng: random.Random) -> None:
    found = set()
    for _ in range(2000):
        made = random_version(rng, KEYS)
        later = random_version(rng, KEYS) if rng.random() < 0.5 else made
        one, other = any_plan(rng, made), any_plan(rng, later)
        if one is None or other is None:
            continue
        shared = bool(set(numbers(one.inputs)) & set(numbers(other.inputs)))
        same_place = bool(places(one) & places(other))
        on_top = one.claim.top == other.claim.top == 0
        touch = one.claim.touches(other.claim)
        assert touch == (shared or same_place or on_top)
        assert touch == other.claim.touches(one.claim)
        assert one.claim.is_free([other.claim]) != touch
        found.add((shared, same_place, touch, one.level == other.level, one.top < one.level))
    assert len(found) > 8, found


def test_all_that_lies_where_a_compaction_writes_is_an_input(rng: random.Random) -> None:
    """What the rule rests on."""
    for _ in range(1000):
        made = random_version(rng, KEYS)
        plan = any_plan(rng, made)
        if plan is not None:
            claim = plan.claim
            there = made.overlapping(plan.level + 1, claim.low, claim.high)
            assert {each.number for each in there} <= claim.tables
            leaving = [each for each in made.levels[plan.level] if each.number in claim.tables]
            assert claim.upper_bytes == sum(each.size for each in leaving)


# -- Histories -----------------------------------------------------------------------------

Entry = tuple[bytes, int, bytes | None]


@attrs.define(eq=False)
class Job:
    """A compaction or a flush that has begun: what it will put where, and what it takes away.

    Some have the numbers of their outputs from the beginning.
    """

    plan: Plan | RefilterPlan | None
    level: int
    outputs: list[list[Entry]]
    numbers: list[int] = attrs.field(factory=list)

    @property
    def inputs(self) -> list[PlacedTable]:
        if isinstance(self.plan, RefilterPlan):
            return list(self.plan.tables)
        return self.plan.inputs if self.plan else []


class History:
    """A database without files, in which jobs begin and end one step at a time.

    A key's value is the sequence number it was written at; None is a tombstone.
    """

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.version = Version.empty()
        self.contents: dict[int, list[Entry]] = {}
        self.number = itertools.count(1)
        self.sequence = 0
        self.memtables: list[list[Entry]] = [[]]
        self.written: list[Entry] = []
        self.snapshots: list[int] = []
        self.compactions: list[Job] = []
        self.flush: Job | None = None
        self.most_at_once = 0
        self.deepest_flush = 0
        self.refiltered: set[int] = set()

    def step(self) -> None:
        """Do one thing of all that can be done now."""
        weighted: list[tuple[int, Callable[[], None]]] = [
            (6, self.write),
            (3, self.begin_flush),
            (3, self.end_flush),
            (6, self.begin_compaction),
            (2, self.begin_refiltering),
            (3, self.end_compaction),
            (1, self.change_snapshots),
        ]
        weights, choices = zip(*weighted, strict=True)
        self.rng.choices(choices, weights)[0]()

    def write(self) -> None:
        # Near each other, so that a memtable spans a part of the keys only.
        begin = self.rng.randrange(KEYS)
        for _ in range(self.rng.randrange(1, 5)):
            self.sequence += 1
            key = b"%02d" % min(KEYS - 1, begin + self.rng.randrange(3))
            value = None if self.rng.random() < 0.4 else b"%d" % self.sequence
            self.memtables[0].append((key, self.sequence, value))
            self.written.append((key, self.sequence, value))

    def begin_flush(self) -> None:
        if self.flush is None and self.memtables[0]:
            entries = sorted(self.memtables[0], key=lambda entry: (entry[0], -entry[1]))
            level = 0
            if not self.compactions:
                bounds = entries[0][0], entries[-1][0]
                level = self.version.level_for_flush(*bounds, 2, 10 * OPTIONS.max_file_size)
            self.deepest_flush = max(self.deepest_flush, level)
            self.memtables.insert(0, [])
            has_number = self.rng.random() < 0.5
            numbers = [next(self.number)] if has_number else []
            self.flush = Job(None, level, [entries], numbers)

    def end_flush(self) -> None:
        if self.flush is not None:
            self.install(self.flush)
            self.flush = None

    def begin_compaction(self) -> None:
        if self.flush is not None and self.flush.level:
            return
        claims = self.claims()
        choice = self.rng.random()
        if choice < 0.4:
            plan = picking.pick(self.version, OPTIONS, {}, BYTEWISE, claims)
        elif choice < 0.8:
            plan = any_plan(self.rng, self.version)
        else:
            plan = self.in_place()
        if plan is not None and plan.claim.is_free(claims):
            self.compactions.append(Job(plan, plan.level + 1, self.merged(plan)))
            self.most_at_once = max(self.most_at_once, len(self.compactions))

    def claims(self) -> list[Claim]:
        return [each.plan.claim for each in self.compactions if each.plan]

    def begin_refiltering(self) -> None:
        tables = list(self.version.tables())
        if not tables or (self.flush is not None and self.flush.level):
            return
        request: Any = Refiltering.of(None, [])  # type: ignore[arg-type]
        wanted = self.rng.sample(tables, min(len(tables), 3))
        request.remaining = {each.number: each for each in wanted}
        plan = request.next_plan(self.version, self.claims(), self.may_renumber())
        if plan is not None:
            oldest_first = sorted(plan.tables, key=lambda each: each.number)
            outputs = [self.contents[each.number] for each in oldest_first]
            numbers = [next(self.number) for _ in outputs]
            self.compactions.append(Job(plan, plan.level, outputs, numbers))
            self.refiltered.add(plan.level)

    def may_renumber(self) -> bool:
        return self.flush is None

    def in_place(self) -> Plan | None:
        """The plan to merge all tables of a level, where there are several, as they lie there."""
        levels = [at for at in range(1, LEVELS) if len(self.version.levels[at]) > 1]
        if not levels:
            return None
        older_than = max(self.contents) + 1
        level = self.rng.choice(levels)
        return picking.pick_in_place(self.version, level, None, None, older_than, OPTIONS)

    def end_compaction(self) -> None:
        if self.compactions:
            self.install(self.compactions.pop(self.rng.randrange(len(self.compactions))))

    def change_snapshots(self) -> None:
        if self.snapshots and self.rng.random() < 0.6:
            self.snapshots.remove(self.rng.choice(self.snapshots))
        else:
            self.snapshots.append(self.sequence)

    def merged(self, plan: Plan) -> list[list[Entry]]:
        """The tables that a compaction writes, in the words of the format's documentation."""
        deeper = DeeperLevels(self.version, plan.level + 1)
        horizon = min([*self.snapshots, self.sequence])
        inputs = [entry for each in plan.inputs for entry in self.contents[each.number]]
        kept: list[list[Entry]] = []
        for key, versions in itertools.groupby(sorted(inputs, key=order), lambda entry: entry[0]):
            survivors = []
            for entry in versions:
                is_last = entry[1] <= horizon
                if not (is_last and entry[2] is None and not deeper.overlap(key, key)):
                    survivors.append(entry)
                if is_last:
                    break
            if survivors:
                kept.append(survivors)
        tables: list[list[Entry]] = []
        for survivors in kept:
            if not tables or self.rng.random() < 0.3:
                tables.append([])
            tables[-1].extend(survivors)
        return tables

    def install(self, job: Job) -> None:
        levels = [list(tables) for tables in self.version.levels]
        for gone in job.inputs:
            levels[gone.level] = [each for each in levels[gone.level] if each is not gone]
        before = sum(map(len, self.version.levels))
        taken = len(job.inputs)
        assert sum(map(len, levels)) == before - taken, "somebody has taken an input away"
        for entries, reserved in zip_longest(job.outputs, job.numbers):
            number = reserved or next(self.number)
            self.contents[number] = entries
            levels[job.level].append(placed(job.level, number, entries))
        made = Version(levels)
        made.check_order()
        self.version = made
        if job.plan is None:
            self.memtables.pop()
        self.check()

    def check(self) -> None:
        """Readers of every moment find what was there then."""
        for moment in {*self.snapshots, self.sequence}:
            expected: dict[bytes, bytes | None] = {}
            for key, sequence, value in self.written:
                if sequence <= moment:
                    expected[key] = value
            for at in range(KEYS):
                key = b"%02d" % at
                assert self.found(key, moment) == expected.get(key), (key, moment)

    def found(self, key: bytes, moment: int) -> bytes | None:
        runs = [sorted(each, key=order) for each in self.memtables]
        for each in self.version.levels:
            runs += [
                self.contents[table.number] for table in each if table.low <= key <= table.high
            ]
        for entries in runs:
            for other, sequence, value in entries:
                if other == key and sequence <= moment:
                    return value
        return None


def order(entry: Entry) -> tuple[bytes, int]:
    return entry[0], -entry[1]


def placed(level: int, number: int, entries: list[Entry]) -> PlacedTable:
    (first, newest, _), (last, oldest, _) = entries[0], entries[-1]
    return PlacedTable.at(
        level,
        TableFile(number, 250 * len(entries)),
        pack(first, rank_of(newest, PUT)),
        pack(last, rank_of(oldest, PUT)),
        BYTEWISE,
    )


def lived(rng: random.Random) -> History:
    history = History(rng)
    for _ in range(STEPS):
        history.step()
    while history.compactions or history.flush:
        history.end_compaction()
        history.end_flush()
    return history


def test_nothing_is_lost_and_nothing_comes_back_whoever_runs_beside_whom(
    rng: random.Random,
) -> None:
    histories = [lived(rng) for _ in range(HISTORIES)]
    assert max(each.most_at_once for each in histories) > 2
    assert max(each.deepest_flush for each in histories) == 2
    assert set.union(*(each.refiltered for each in histories)) >= {0, 1, 2, 3}


def test_the_histories_find_it_where_two_share_a_table(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touches_too_little(self: Claim, other: Claim) -> bool:
        return self.level == other.level and not (self.high < other.low or other.high < self.low)

    monkeypatch.setattr(Claim, "touches", touches_too_little)
    with pytest.raises(Exception, match=r"overlap|taken an input away|b'\d\d'"):
        deque((lived(rng) for _ in range(50)), maxlen=0)


def test_the_histories_find_it_where_a_flush_has_a_number_below_older_tables(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(History, "may_renumber", lambda self: True)
    with pytest.raises(AssertionError, match=r"b'\d\d'"):
        deque((lived(rng) for _ in range(200)), maxlen=0)


def test_the_histories_find_it_where_level_0_is_renumbered_in_part(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_plan = Refiltering.next_plan

    def part(self: Refiltering, *given: Any) -> RefilterPlan | None:
        plan = next_plan(self, *given)
        return plan and attrs.evolve(plan, tables=plan.tables[-1:])

    monkeypatch.setattr(Refiltering, "next_plan", part)
    with pytest.raises(AssertionError, match=r"b'\d\d'"):
        deque((lived(rng) for _ in range(200)), maxlen=0)


def test_the_histories_find_it_where_what_is_merged_in_place_lies_across_a_gap(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_place(level: int, tables: frozenset[int], low: Any, high: Any) -> Claim:
        return Claim(level, tables, low, high, 0, top=level + 1 if level else 0)

    monkeypatch.setattr(Claim, "in_place", in_place)
    with pytest.raises(OverlapError):
        deque((lived(rng) for _ in range(500)), maxlen=0)


def test_what_has_come_into_a_gap_waits_for_what_writes_around_it() -> None:
    """They share no table, and their outputs would overlap."""
    around = [table(1, b"a", b"c", level=1), table(2, b"x", b"z", level=1)]
    wide = picking.expanded(version([], around), 1, around, OPTIONS)
    after = version([], [around[0], table(4, b"k", b"m", level=1), around[1]])
    inside = picking.expanded(after, 1, [after.levels[1][1]], OPTIONS)
    assert not set(numbers(wide.inputs)) & set(numbers(inside.inputs))
    assert wide.claim.touches(inside.claim)
    assert inside.claim.touches(wide.claim)


def test_what_would_come_into_a_gap_waits_for_what_is_merged_in_place_around_it() -> None:
    around = [table(1, b"a", b"c", level=2), table(2, b"x", b"z", level=2)]
    made = version([], [table(3, b"k", b"m", level=1)], around)
    into = picking.expanded(made, 1, made.levels[1], OPTIONS)
    both = picking.pick_in_place(made, 2, None, None, 9, OPTIONS)
    one = picking.pick_in_place(made, 2, b"x", None, 9, OPTIONS)
    assert both is not None
    assert one is not None
    assert (numbers(both.inputs), numbers(one.inputs)) == ([1, 2], [2])
    assert both.claim.touches(into.claim)
    assert into.claim.touches(both.claim)
    assert not one.claim.touches(into.claim)


# -- What is picked beside what runs -------------------------------------------------------


def started(made: Version, count: int) -> list[list[int]]:
    """The tables of the plans that are picked one after the other, none of which ends."""
    claims: list[Claim] = []
    plans: list[list[int]] = []
    while len(plans) < count:
        plan = picking.pick(made, OPTIONS, {}, BYTEWISE, claims)
        if plan is None:
            break
        claims.append(plan.claim)
        plans.append(numbers(plan.inputs))
    return plans


def test_a_level_goes_on_with_what_lies_elsewhere() -> None:
    upper = [table(at, b"%d" % at, b"%d" % at, level=1, size=800) for at in range(4)]
    lower = [table(10, b"0", b"1", level=2), table(11, b"2", b"2", level=2)]
    # The second one touches the first below; the last is left, since the level is full no more.
    assert started(version([], upper, lower), 9) == [[0, 1, 10], [2, 11]]


def test_a_less_full_level_goes_on_where_the_fullest_waits() -> None:
    top = [table(at, b"a", b"c") for at in (1, 2, 3, 4)]
    first = [table(5, b"b", b"b", level=1, size=900), table(6, b"x", b"x", level=1, size=900)]
    second = [table(7, b"m", b"n", level=2, size=2500)]
    third = [table(8, b"m", b"m", level=3)]
    made = version(top, first, second, third)
    # Level 0 is full twice over, and stays so; level 1 has one table that does not go with it.
    assert started(made, 9) == [[4, 3, 2, 1, 5], [6], [7, 8]]


def test_none_that_touches_a_plan_that_waits_begins_before_it() -> None:
    """Else level 0 could wait for ever, for one compaction of level 1 after the other."""
    top = [table(at, b"a", b"z") for at in (1, 2, 3, 4, 5, 6, 7, 8)]
    first = [table(9, b"b", b"b", level=1, size=1500), table(10, b"x", b"x", level=1, size=1500)]
    made = version(top, first)
    running = picking.expanded(made, 1, [first[0]], OPTIONS).claim
    assert picking.pick(made, OPTIONS, {}, BYTEWISE, [running]) is None
    only_level_1 = version([], first)
    plan = picking.pick(only_level_1, OPTIONS, {}, BYTEWISE, [running])
    assert plan is not None
    assert numbers(plan.inputs) == [10]


def test_what_is_leaving_a_level_does_not_make_it_full() -> None:
    first = [table(1, b"b", b"b", level=1, size=700), table(2, b"x", b"x", level=1, size=700)]
    made = version([], first)
    running = picking.expanded(made, 1, [first[0]], OPTIONS).claim
    assert picking.due(made, OPTIONS) == [1]
    assert picking.due(made, OPTIONS, [running]) == []


def test_what_waits_leaves_its_level_as_full_as_it_is() -> None:
    """And so what it does not touch goes on."""
    first = [table(1, b"b", b"b", level=1, size=1500), table(2, b"x", b"x", level=1, size=1500)]
    made = version([], first)
    claim = picking.expanded(made, 1, [first[0]], OPTIONS).claim
    plan = picking.pick(made, OPTIONS, {}, BYTEWISE, [claim], waiting=[claim])
    assert plan is not None
    assert numbers(plan.inputs) == [2]
    only = version([], first[:1])
    assert picking.pick(only, OPTIONS, {}, BYTEWISE, waiting=[claim]) is None


def test_nothing_runs_beside_itself(rng: random.Random) -> None:
    for _ in range(300):
        made = random_version(rng, KEYS)
        plans = started(made, 50)
        tables = [number for plan in plans for number in plan]
        assert len(tables) == len(set(tables))


# -- How many ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "cores", "expected"),
    [(0, 1, 2), (0, 2, 2), (0, 5, 5), (0, 64, 8), (1, 64, 1), (3, 1, 3), (64, 1, 64)],
)
def test_as_many_jobs_as_cores_unless_it_is_said(
    asked: int, cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    anything: Any = lambda _: range(cores)  # noqa: E731
    monkeypatch.setattr(jobs.os, "sched_getaffinity", anything, raising=False)
    assert jobs.at_once(asked) == expected
    monkeypatch.delattr(jobs.os, "sched_getaffinity")
    monkeypatch.setattr(jobs.os, "cpu_count", lambda: cores)
    assert jobs.at_once(asked) == expected
