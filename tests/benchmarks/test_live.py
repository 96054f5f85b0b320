"""Live stores are loaded, asked in three ways, and set beside floors, bounds and predictions.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from benchmarks.filled_levels import fill, tables_per_level
from benchmarks.levels import LevelsPart, by_budget, floors, live_rows, live_table, outcome
from benchmarks.levels.bench import Bench, opened
from benchmarks.levels.budget import FLOOR, LIVE, OVER, READS, TIME, choices
from benchmarks.levels.by_hand import BY_HAND, MONKEY, PEBBLE, PEBBLE_LITERALLY, fingerprints
from benchmarks.levels.configurations import BUDGET, Configuration, all_configurations
from benchmarks.levels.data import ABSENT, KEY_BYTES, Data
from benchmarks.levels.live import LIVE_SHAPES, Carried, LiveShape, LiveStore, carried
from benchmarks.levels.live_rows import (
    BEST,
    BITS,
    OTHER_BUDGETS,
    OVER_BEST,
    OVER_RANGES,
    REFILTERED,
    WARMED,
    WHILE_LOADED,
    Filters,
    _loaded,
    _reads,
)
from benchmarks.levels.lookups import EVEN, HOT, RANGES, ZIPF, Lookups, all_lookups
from benchmarks.levels.prediction import FILE_NAME
from benchmarks.levels.settings import STEEP, USUAL, Settings
from benchmarks.rows import AS_EXPECTED, FAILED, INFORMATION, MET, MISSED, UNEXPECTED, Row
from filters import sizing
from lsm.options import LEVELS
from policies import LevelPolicies, placement
from policies.cost_models import option_of

TINY = Settings(
    keys=3000, absent=3000, present=1000, timed=20, repeats=1, live_keys=8000, live_absent=2000
)
PART = LevelsPart()
STEEP_GROWTH = {"growth": STEEP.growth}


@pytest.fixture
def settings(test_seed: int) -> Settings:
    return attrs.evolve(TINY, seed=test_seed)


@pytest.fixture
def asked(test_seed: int) -> dict[str, Lookups]:
    return {each.name: each for each in all_lookups(test_seed)}


def place(share: float) -> bytes:
    """The key at a share of the key space."""
    return min(int(share * 2**64), 2**64 - 1).to_bytes(8, "big") + bytes(KEY_BYTES - 8)


def tables_of(*keys: int, level: int = 1, fpr: float = 0.01) -> list[Carried]:
    """Runs over the whole key space, the first of them on this level."""
    return [
        Carried(level + at, place(0), place(1), count, count, fpr) for at, count in enumerate(keys)
    ]


# -- Where lookups fall --------------------------------------------------------------------


def test_keys_fall_where_the_shares_say(asked: dict[str, Lookups], rng: random.Random) -> None:
    count = 20_000
    for lookups in asked.values():
        keys = lookups.keys(count, rng, KEY_BYTES)
        assert {len(key) for key in keys} == {KEY_BYTES}
        assert len(set(keys)) == count
        for _ in range(20):
            low, high = sorted(place(rng.random()) for _ in range(2))
            share = lookups.share(low, high)
            found = sum(low <= key < high for key in keys) / count
            assert found == pytest.approx(share, abs=5 * math.sqrt(0.25 / count))


def test_shares_add_up_and_are_as_skewed_as_they_are_called(asked: dict[str, Lookups]) -> None:
    assert list(asked) == [EVEN, ZIPF, HOT]
    for lookups in asked.values():
        assert math.fsum(lookups.shares) == pytest.approx(1)
        assert lookups.share(place(0), place(1)) == pytest.approx(1)
        parts = [lookups.share(place(at / 7), place((at + 1) / 7)) for at in range(7)]
        assert math.fsum(parts) == pytest.approx(1)
    assert asked[EVEN].share(place(0.2), place(0.5)) == pytest.approx(0.3, abs=1e-6)
    ordered = sorted(asked[ZIPF].shares, reverse=True)
    assert ordered[0] / ordered[99] == pytest.approx(100**0.99)
    hot = sorted(asked[HOT].shares, reverse=True)
    assert math.fsum(hot[: RANGES // 100]) == pytest.approx(0.9)
    assert hot[RANGES // 100] == hot[-1]


def test_the_seed_decides_where_it_is_hot() -> None:
    assert all_lookups(1) == all_lookups(1)
    assert all_lookups(1)[2] != all_lookups(2)[2]


# -- Floors --------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [(1000, 4000, 16_000), (10, 10_000), (5000, 5000, 5000)])
@pytest.mark.parametrize("bits_per_key", [0.5, 3.0, 10.0])
def test_where_all_runs_are_asked_alike_the_floor_is_that_of_the_law(
    keys: tuple[int, ...], bits_per_key: float, asked: dict[str, Lookups]
) -> None:
    bits = bits_per_key * sum(keys)
    found = floors.floor(tables_of(*keys), asked[EVEN], bits)
    assert found == pytest.approx(placement.floor(keys, bits), rel=1e-4)
    assert floors.floor_of_runs(tables_of(*keys), bits) == placement.floor(keys, bits)


def test_tables_of_a_level_are_one_run_and_those_of_level_0_one_each() -> None:
    halves = [Carried(2, place(at / 2), place((at + 1) / 2), 500, 0, 0.1) for at in (0, 1)]
    newest = [*tables_of(40, level=0), *tables_of(60, level=0)]
    found = floors.floor_of_runs([*newest, *halves], 11_000.0)
    assert found == placement.floor([40, 60, 1000], 11_000.0)
    # Who passes through a hole asks nothing.
    even = all_lookups(1)[0]
    assert floors.floor(halves[:1], even, 5000.0) == pytest.approx(0.5 * 2**-10, rel=1e-4)


def test_no_rates_read_less_than_the_floor(asked: dict[str, Lookups], rng: random.Random) -> None:
    for lookups in asked.values():
        ends = sorted(place(rng.random()) for _ in range(9))
        tables = [
            Carried(1, low, high, rng.randrange(1, 5000), 0, 1.0) for low, high in pairwise(ends)
        ]
        shares = [lookups.share(table.low, table.high) for table in tables]
        for _ in range(200):
            rates = [2.0 ** -rng.uniform(0, 20) for _ in tables]
            bits = sum(
                -table.keys * math.log2(rate) for table, rate in zip(tables, rates, strict=True)
            )
            reads = sum(share * rate for share, rate in zip(shares, rates, strict=True))
            assert floors.floor(tables, lookups, bits) <= reads * (1 + 1e-9)


def test_the_best_placement_lies_above_the_floor_and_near_it(asked: dict[str, Lookups]) -> None:
    tables = tables_of(200_000, 800_000, 3_200_000)
    bits = 10.0 * 4_200_000
    floor = floors.floor(tables, asked[EVEN], bits)
    assert floor < floors.best_placement(tables, asked[EVEN], bits) < 1.1 * floor


# -- By hand -------------------------------------------------------------------------------


def test_fingerprints_that_fuse_does_not_have_are_others_of_the_same_rate() -> None:
    for bits in (4, 8, 10, 12, 16):
        option = option_of(fingerprints(bits), 100_000)
        assert option
        assert option.fpr == pytest.approx(2.0**-bits, rel=0.02)
        assert (option.policy == "binary-fuse") == (bits in (8, 16))


def test_pebbles_sizes_end_on_the_deepest_level() -> None:
    tables = tables_of(10, 100, 1000)
    chosen = BY_HAND[PEBBLE](tables)
    rates = [
        sizing.fpr(chosen[level].name, n=10**6, **params(chosen, level)) for level in (1, 2, 3)
    ]
    assert rates == pytest.approx([2.0**-10, 2.0**-8, 2.0**-4], rel=0.05)
    literal = BY_HAND[PEBBLE_LITERALLY](tables)
    assert [literal[level].name for level in (0, 1, 2)] == ["binary-fuse"] * 3
    assert params(literal, 3) == {"fpr": 2.0**-12}


def params(chosen: LevelPolicies, level: int) -> dict[str, Any]:
    return dict(chosen[level].params())


def test_monkey_takes_ten_bits_and_more_of_them_above() -> None:
    tables = [*tables_of(5000, level=0), *tables_of(5000, level=0), *tables_of(20_000, 80_000)]
    chosen = BY_HAND[MONKEY](tables)
    taken = 0.0
    rates = []
    for table in tables:
        option = option_of(chosen[table.level], table.keys)
        assert option
        assert option.policy == "classic"
        taken += option.bits_per_key * table.keys
        rates.append(option.fpr)
    assert taken / sum(table.keys for table in tables) == pytest.approx(10, rel=0.02)
    assert rates == sorted(rates)
    assert rates[-1] > 5 * rates[0]


# -- Filled levels under a budget ----------------------------------------------------------


def budgets(settings: Settings) -> list[Configuration]:
    return [each for each in all_configurations(settings) if each.name.startswith("budget")]


@pytest.mark.parametrize("refiltered", [False, True])
def test_what_is_expected_of_levels_is_what_the_engine_gives_them(
    refiltered: bool, settings: Settings, tmp_path: Path
) -> None:
    """About: what a filter takes beyond its bits may tip the choice of the next one."""
    shapes = {each.shape for each in budgets(settings)}
    assert shapes == {USUAL, STEEP}
    for number, each in enumerate(budgets(settings)):
        if each.is_refiltered != refiltered:
            continue
        data = Data(attrs.evolve(settings, keys=60_000), each.shape)
        chosen = each.choose(data.counts)
        assert chosen.rule is not None
        expected = by_budget.expected(
            chosen.rule, data.counts, each.table_bytes, is_refiltered=refiltered
        )
        with opened(tmp_path / str(number), chosen, each.table_bytes) as db:
            fill(db, data.runs)
            if refiltered:
                db.refilter()
            made = {
                level.level: math.fsum(
                    (table.num_keys or 0)
                    * sizing.fpr(table.policy, n=table.num_keys or 0, **table.params)
                    for table in level.tables
                )
                / data.counts[level.level]
                for level in db.filters()
                if level.tables
            }
        assert list(made) == list(expected)
        told = math.fsum(rate.fpr for rate in expected.values())
        assert told == pytest.approx(math.fsum(made.values()), rel=0.25)
        deepest = max(made)
        assert expected[deepest].fpr == pytest.approx(made[deepest], rel=0.25)


def test_rows_of_a_budget_tell_the_floor_and_their_shape(
    settings: Settings, tmp_path: Path
) -> None:
    bench = Bench(settings, tmp_path)
    units = [each for each in PART.units(settings) if each.row.subject.startswith("budget")]
    assert len(units) == 6
    usual, steep = [each for each in units if each.row.subject == f"budget {BUDGET}"]
    assert (usual.row.at, steep.row.at) == ({}, STEEP_GROWTH)
    rows, others = usual.run(bench), steep.run(bench)
    assert {row.verdict for row in (*rows, *others)} <= {INFORMATION, AS_EXPECTED, UNEXPECTED}
    assert not {row.id for row in rows} & {row.id for row in others}
    assert {row.at.get("growth") for row in others} == {STEEP.growth}
    [reads] = [
        row
        for row in rows
        if (row.name, row.at) == (ABSENT, {"level": "all"}) and row.group == READS
    ]
    [floor] = [row for row in rows if row.name == FLOOR]
    counts = bench.data.counts
    wanted = placement.floor(counts.values(), 10 * sum(counts.values()))
    assert (reads.value or 0) / wanted == pytest.approx(floor.value)
    assert [each.subject for each in choices([*rows, *others])] == [f"budget {BUDGET}"]
    text = list(PART.text([*rows, *others]))
    assert sum(f"budget {BUDGET}" in line and "e" in line for line in text) >= 2
    assert any("with 10 x the keys" in line for line in text)


def test_a_budget_has_a_bound_once_enough_is_counted(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome, "ENOUGH_LOOKUPS", 100)
    bench = Bench(settings, tmp_path)
    units = [each for each in PART.units(settings) if each.row.subject.startswith("budget")]
    limits = set()
    for each in units:
        (row,) = (row for row in each.run(bench) if row.name == FLOOR)
        if each.row.subject == f"budget {BUDGET}":
            assert row.target is None
            continue
        assert row.target
        assert row.verdict == (MET if (row.value or 0) <= row.target.limit else MISSED)
        limits.add(row.target.limit)
    assert limits == {1.10, 1.15}


# -- Live stores ---------------------------------------------------------------------------


def rows_of_a_store(settings: Settings, tmp_path: Path, shape: str) -> list[Row]:
    (unit,) = (each for each in PART.units(settings) if each.row.subject == shape)
    return unit.run(Bench(settings, tmp_path))


@pytest.mark.parametrize("shape", [each.name for each in LIVE_SHAPES])
def test_every_row_of_a_live_store_is_there(shape: str, settings: Settings, tmp_path: Path) -> None:
    rows = rows_of_a_store(settings, tmp_path, shape)
    assert {row.verdict for row in rows} <= {INFORMATION, AS_EXPECTED, UNEXPECTED}, rows
    assert len({row.id for row in rows}) == len(rows)
    assert {(row.part, row.group, row.at["shape"]) for row in rows} == {("levels", LIVE, shape)}
    budget = f"budget {BUDGET}"
    others = [f"budget {each}{REFILTERED}" for each in OTHER_BUDGETS]
    subjects = [budget, budget + REFILTERED, budget + WARMED, *others, *BY_HAND]
    assert list(dict.fromkeys(row.subject for row in rows)) == subjects
    for subject in subjects:
        own = [row for row in rows if row.subject == subject]
        for name in (ABSENT, FLOOR, OVER_RANGES, BEST, OVER_BEST):
            asked = [row.at["lookups"] for row in own if row.name == name]
            assert asked == [EVEN, ZIPF, HOT], (subject, name)
        assert any(row.name == BITS and (row.value or 0) > 3 for row in own)
        assert any(row.name == OVER for row in own) == subject.startswith("budget")
    assert [row.subject for row in rows if row.name == WHILE_LOADED] == [budget]
    assert not list(tmp_path.glob("live*"))
    expected = [json.loads(line) for line in (tmp_path / FILE_NAME).read_text().splitlines()]
    told = {
        (each["subject"], lookups): reads
        for each in expected
        for lookups, reads in each["blocks read per lookup"].items()
    }
    for row in rows:
        if row.name == ABSENT:
            assert row.expected == pytest.approx(told[row.subject, str(row.at["lookups"])])
    lines = list(PART.text(rows))
    for subject in subjects:
        assert any(line.startswith(f"  {subject}  ") for line in lines), subject
    assert any(line.startswith(f"| {shape} |") for line in live_table.documented(rows))


def test_a_store_has_the_runs_that_were_asked_for(settings: Settings, tmp_path: Path) -> None:
    shape = LIVE_SHAPES[-1]
    store = LiveStore(tmp_path, shape, settings.live_keys, settings.seed)
    selected = LevelPolicies.by_budget(BUDGET, LEVELS)
    seen = store.load(selected)
    assert max(seen) > 5
    with store.opened(selected) as db:
        assert tables_per_level(db)[0] >= shape.level0_runs
        store.check(db)
        tables = carried(db)
    assert sum(table.keys for table in tables) >= settings.live_keys
    assert all(table.low <= table.high and table.filter_bytes for table in tables)


def test_a_wrong_answer_costs_a_store_its_rows(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsm.DB, "get", lambda self, key: b"another value")
    (row,) = rows_of_a_store(settings, tmp_path, "T = 10")
    assert row.verdict == FAILED
    assert "absent keys were found" in row.reason
    assert not list(tmp_path.glob("live*"))


def test_a_lost_value_is_found(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsm.DB, "get", lambda self, key: None)
    (row,) = rows_of_a_store(settings, tmp_path, "T = 10")
    assert row.verdict == FAILED
    assert "has not the value that was written" in row.reason


def rows_for(done: str, lookups: Lookups, counted: int, count: int = 1_000_000) -> dict[str, Row]:
    selected = LevelPolicies.by_budget(BUDGET, LEVELS)
    filters = Filters(f"budget {BUDGET}", selected, done, is_by_budget=True)
    tables = tables_of(100_000, 900_000, fpr=0.001)
    shape = LiveShape("a shape", {})
    return {row.name: row for row in _reads(shape, filters, tables, lookups, counted, count)}


def test_lookups_are_repeated_with_other_keys_where_few_blocks_are_read(
    asked: dict[str, Lookups], rng: random.Random
) -> None:
    assert [live_rows._turns(reads, 10**6) for reads in (0.1, 0.0025, 0.001, 1e-6, 0)] == [
        *(1, 1, 3, live_rows.MOST_TURNS, live_rows.MOST_TURNS)
    ]
    assert live_rows._turns(1e-6, 10_000) == 1
    keys = asked[HOT].keys(100, rng, KEY_BYTES)
    turns = [live_rows._others(keys, turn) for turn in range(3)]
    assert turns[0] == keys
    assert len({key for turn in turns for key in turn}) >= 299
    assert all(key[:-1] == other[:-1] for key, other in zip(keys, turns[2], strict=True))


def test_bounds_are_for_what_they_say(asked: dict[str, Lookups]) -> None:
    floor = placement.floor([100_000, 900_000], 10_000_000)
    for done, limit in (("", 1.5), (REFILTERED, 1.15), (WARMED, 1.15)):
        for times, verdict in ((limit * 0.99, MET), (limit * 1.01, MISSED)):
            found = rows_for(done, asked[EVEN], round(times * floor * 1e6))
            assert found[FLOOR].verdict == verdict
            assert found[FLOOR].value == pytest.approx(times, rel=0.001)
    found = rows_for(WARMED, asked[HOT], 1)
    assert found[OVER_BEST].verdict == MET
    assert found[FLOOR].target is None
    best = found[BEST].value or 0.0
    assert rows_for(WARMED, asked[HOT], round(1.2e6 * best))[OVER_BEST].verdict == MISSED
    assert rows_for(REFILTERED, asked[HOT], 10**6)[OVER_BEST].target is None
    few = rows_for("", asked[EVEN], 10, 999_999)
    assert all(row.target is None for row in few.values())
    other = Filters("budget 16 bits/key", LevelPolicies.by_budget("16 bits/key"), REFILTERED, True)
    rows = _reads(LiveShape("", {}), other, tables_of(10**6), asked[EVEN], 900, 10**6)
    assert all(row.target is None for row in rows)


def test_a_count_that_is_far_from_what_was_predicted_is_marked(asked: dict[str, Lookups]) -> None:
    predicted = 2000
    for counted, verdict in (
        (predicted, AS_EXPECTED),
        (predicted + 90, AS_EXPECTED),
        (predicted + 250, UNEXPECTED),
        (predicted - 250, UNEXPECTED),
    ):
        assert rows_for("", asked[EVEN], counted)[ABSENT].verdict == verdict


def test_a_load_that_goes_over_its_budget_is_marked() -> None:
    large = attrs.evolve(TINY, live_keys=5_000_000)
    shape = LiveShape("a shape", {})
    for worst, verdict in ((12.4, MET), (12.6, MISSED)):
        (row,) = _loaded(shape, [1.0, worst, 9.0], large)
        assert (row.value, row.verdict) == (pytest.approx(worst / 10), verdict)
    (row,) = _loaded(shape, [20.0], TINY)
    assert row.verdict == INFORMATION


def test_the_text_marks_what_missed_and_tells_what_failed(asked: dict[str, Lookups]) -> None:
    rows: Sequence[Row] = [*rows_for("", asked[EVEN], 10**5).values()]
    lines = list(live_table.lines(rows))
    assert any("*" in line and "!" in line for line in lines)
    assert "  !: far from what was predicted; *: misses its bound" in lines
    broken = Row(part="levels", group=LIVE, name="", subject="T = 4", verdict=FAILED, reason="lost")
    assert list(live_table.lines([broken])) == ["  T = 4: failed: lost"]
    assert list(live_table.lines([])) == []
    assert TIME not in {row.group for row in rows}
