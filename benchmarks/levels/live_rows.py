"""The rows of a live store: what its filters take and let through, beside floors and predictions.

The tree is loaded once, under a budget, and all others are measured on that very tree: reopened
with what is configured by hand, and refiltered. So they are at their best, better than if they had
been there from the beginning, and what is compared is nothing but the filters.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

import lsm
from benchmarks.levels import floors
from benchmarks.levels.budget import FLOOR, LIVE, OVER, PART
from benchmarks.levels.by_hand import BY_HAND
from benchmarks.levels.configurations import BUDGET
from benchmarks.levels.data import ABSENT, KEY_BYTES
from benchmarks.levels.live import (
    FEW_KEYS,
    Carried,
    LiveShape,
    LiveStore,
    carried,
    counted_reads,
    expected_reads,
)
from benchmarks.levels.lookups import EVEN, Lookups, all_lookups
from benchmarks.levels.prediction import FILE_NAME
from benchmarks.levels.settings import ENOUGH_LOOKUPS, Settings
from benchmarks.levels.surplus import Surplus
from benchmarks.rows import AS_EXPECTED, UNEXPECTED, Row, Target, judged
from benchmarks.statistics import MARKED, wilson
from benchmarks.timing import interleaved, loop
from lsm.options import LEVELS
from policies import LevelPolicies

IDLE, REFILTERED, WARMED = "", ", refiltered", ", refiltered by heat"
BITS, WHILE_LOADED = "bits per key", "times the budget while loaded"
OVER_RANGES = "times the floor of these ranges and lookups"
BEST, OVER_BEST = "best placement", "times the best placement"
TIME = "time of a lookup"
OTHER_BUDGETS = ("5 bits/key", "8 bits/key", "16 bits/key")

# To learn where lookups fall takes fewer of them than to count what they read.
WARMING_PART = 4

# A count of so many is right to 2 %; few blocks are read where filters take many bits.
ENOUGH_BLOCKS = 2500
MOST_TURNS = 8

# Bounds: times the floor where lookups come evenly, times the best placement, times the budget.
FLOOR_IDLE, FLOOR_REFILTERED, OF_THE_BEST = 1.5, 1.15, 1.1
BUDGET_IDLE, BUDGET_WHILE_LOADED = 1.03, 1.25
# As near as a prediction is to come.
CLOSE = 0.05


@attrs.frozen
class Filters:
    """The filters of a store: the configuration, and what was done with it before lookups came."""

    name: str
    configured: LevelPolicies = attrs.field(repr=False)
    done: str = IDLE
    is_by_budget: bool = False

    @property
    def subject(self) -> str:
        """Whom rows are of."""
        return self.name + self.done


class LiveBench:
    """Questions for live stores, and a directory for one of them at a time."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.directory = directory

    @cached_property
    def lookups(self) -> tuple[Lookups, ...]:
        """Where lookups fall."""
        return all_lookups(self.settings.seed)

    @cached_property
    def asked(self) -> Mapping[str, Sequence[bytes]]:
        """The keys that are looked up and counted."""
        return self._keys(1, self.settings.live_absent)

    @cached_property
    def warming(self) -> Mapping[str, Sequence[bytes]]:
        """Others that fall the same way, from which a store learns where that is."""
        return self._keys(2, self.settings.live_absent // WARMING_PART)

    def measured(self, shape: LiveShape) -> Iterator[Row]:
        """All rows of a shape of tree."""
        settings = self.settings
        store = LiveStore(self.directory, shape, settings.live_keys, settings.seed)
        selected = LevelPolicies.by_budget(BUDGET, LEVELS)
        try:
            seen = store.load(selected)
            yield from _loaded(shape, seen, settings)
            yield from self._by_budget(store, selected)
            yield from self._by_hand(store)
        finally:
            store.remove()

    def _by_budget(self, store: LiveStore, selected: LevelPolicies) -> Iterator[Row]:
        """As the load has left it, refiltered, refiltered once lookups came, for other budgets."""
        name = f"budget {BUDGET}"
        filters = Filters(name, selected, IDLE, True)
        with store.opened(selected) as db:
            yield from self._rows(store, db, filters, self.lookups)
        with store.opened(selected) as db:
            _refilter(db)
            refiltered = attrs.evolve(filters, done=REFILTERED)
            yield from self._rows(store, db, refiltered, self.lookups)
        for lookups in self.lookups:
            with store.opened(selected) as db:
                counted_reads(db, self.warming[lookups.name])
                _refilter(db)
                warmed = attrs.evolve(filters, done=WARMED)
                yield from self._rows(store, db, warmed, [lookups])
        for budget in OTHER_BUDGETS:
            other = LevelPolicies.by_budget(budget, LEVELS)
            with store.opened(other) as db:
                _refilter(db)
                filters = Filters(f"budget {budget}", other, REFILTERED, True)
                yield from self._rows(store, db, filters, self.lookups)

    def _by_hand(self, store: LiveStore) -> Iterator[Row]:
        """What is configured by hand, for the tree as it is."""
        with store.opened(LevelPolicies.by_budget(BUDGET, LEVELS)) as db:
            tables = carried(db)
        for name, choose in BY_HAND.items():
            chosen = choose(tables)
            with store.opened(chosen) as db:
                _refilter(db)
                yield from self._rows(store, db, Filters(name, chosen), self.lookups)

    def _rows(
        self, store: LiveStore, db: lsm.DB, filters: Filters, asked: Sequence[Lookups]
    ) -> Iterator[Row]:
        """What these filters take, are predicted to do, and do."""
        tables = carried(db)
        shape = store.shape
        self._write(shape, filters, {each.name: expected_reads(tables, each) for each in asked})
        # Where a store learns from what it is asked, it is another one for other lookups.
        at = {"lookups": asked[0].name} if filters.done == WARMED else {}
        yield from _memory(shape, filters, tables, self.settings, at)
        for each in asked:
            keys = self.asked[each.name]
            turns = _turns(expected_reads(tables, each), len(keys))
            counted = sum(counted_reads(db, _others(keys, turn)) for turn in range(turns))
            yield from _reads(shape, filters, tables, each, counted, turns * len(keys))
        store.check(db)
        timed, repeats = self.settings.timed, self.settings.repeats
        samples = [loop("subject(key)", self.asked[each.name][:timed], db.get) for each in asked]
        for each, taken in zip(asked, interleaved(samples, repeats), strict=True):
            row = _row(shape, filters, TIME, lookups=each.name)
            taken = [nanoseconds / 1000 for nanoseconds in taken]
            yield attrs.evolve(row, unit="us", value=min(taken), repeats=taken)

    def _keys(self, seed: int, count: int) -> dict[str, Sequence[bytes]]:
        rng = random.Random(2 * self.settings.seed + seed)
        return {each.name: each.keys(count, rng, KEY_BYTES) for each in self.lookups}

    def _write(self, shape: LiveShape, filters: Filters, reads: Mapping[str, float]) -> None:
        """Add what is predicted to a file, before a key is looked up."""
        told = {"shape": shape.name, "subject": filters.subject, "blocks read per lookup": reads}
        with (self.directory / FILE_NAME).open("a") as file:
            file.write(json.dumps(told) + "\n")


def _turns(expected: float, count: int) -> int:
    """How often so many lookups are repeated with other keys, to count as many blocks as needed."""
    if count < ENOUGH_LOOKUPS:
        return 1
    return min(MOST_TURNS, max(1, math.ceil(ENOUGH_BLOCKS / max(1.0, expected * count))))


def _others(keys: Sequence[bytes], turn: int) -> Sequence[bytes]:
    """Keys in the same places, others at each turn."""
    if not turn:
        return keys
    last = bytes([turn])
    return [key[:-1] + last for key in keys]


def _refilter(db: lsm.DB) -> None:
    """All tables that are to be are given other filters, and what that sets off has ended."""
    db.refilter()
    db.wait_until_idle()


def _loaded(shape: LiveShape, seen: Sequence[float], settings: Settings) -> Iterator[Row]:
    """How far the filters went over their budget while the store was loaded."""
    bits = LevelPolicies.by_budget(BUDGET, LEVELS)
    assert bits.rule is not None
    filters = Filters(f"budget {BUDGET}", bits, IDLE, True)
    value = max(seen) / bits.rule.budget.bits(1)
    yield _bound(
        attrs.evolve(_row(shape, filters, WHILE_LOADED), unit="x", value=value),
        BUDGET_WHILE_LOADED,
        is_judged=settings.live_keys >= FEW_KEYS,
    )


def _memory(
    shape: LiveShape,
    filters: Filters,
    tables: Sequence[Carried],
    settings: Settings,
    at: Mapping[str, str],
) -> Iterator[Row]:
    keys = sum(table.keys for table in tables)
    taken = 8 * sum(table.filter_bytes for table in tables)
    told = ", ".join(
        f"{count} on level {level}" for level, count in sorted(_by_level(tables).items())
    )
    row = _row(shape, filters, BITS, **at)
    yield attrs.evolve(row, unit="bits", value=taken / keys, note=f"tables: {told}")
    if filters.is_by_budget:
        yield _bound(
            attrs.evolve(
                _row(shape, filters, OVER, **at), unit="x", value=taken / _bits(filters, keys)
            ),
            BUDGET_IDLE,
            is_judged=settings.live_keys >= FEW_KEYS,
        )


def _reads(
    shape: LiveShape,
    filters: Filters,
    tables: Sequence[Carried],
    lookups: Lookups,
    counted: int,
    count: int,
) -> Iterator[Row]:
    at = {"lookups": lookups.name}
    taken = 8 * sum(table.filter_bytes for table in tables)
    keys = sum(table.keys for table in tables)
    bits = _bits(filters, keys) if filters.is_by_budget else float(taken)
    reads, expected = counted / count, expected_reads(tables, lookups)
    surplus = Surplus(counted, count * expected, count * expected)
    away = abs(reads - expected) > CLOSE * expected and abs(surplus.sigmas) > MARKED
    yield attrs.evolve(
        _row(shape, filters, ABSENT, **at),
        unit="blocks",
        value=reads,
        expected=expected,
        interval=wilson(min(counted, count), count),
        sigmas=surplus.sigmas,
        verdict=UNEXPECTED if away else AS_EXPECTED,
        note=surplus.note if away else "",
    )
    floor = floors.floor_of_runs(tables, bits)
    row = attrs.evolve(_row(shape, filters, FLOOR, **at), unit="x", value=reads / floor)
    row = attrs.evolve(row, note=f"the floor is {floor:.6g} blocks")
    limit = FLOOR_IDLE if filters.done == IDLE else FLOOR_REFILTERED
    # With bits to spare reads are few, and what is saved is the time to ask larger filters.
    usual = filters.is_by_budget and filters.name == f"budget {BUDGET}"
    is_judged = usual and lookups.name == EVEN and count >= ENOUGH_LOOKUPS
    yield _bound(row, limit, is_judged=is_judged)
    floor = floors.floor(tables, lookups, bits)
    row = attrs.evolve(_row(shape, filters, OVER_RANGES, **at), unit="x", value=reads / floor)
    yield attrs.evolve(row, note=f"the floor is {floor:.6g} blocks")
    best = floors.best_placement(tables, lookups, bits)
    yield attrs.evolve(_row(shape, filters, BEST, **at), unit="blocks", value=best)
    row = attrs.evolve(_row(shape, filters, OVER_BEST, **at), unit="x", value=reads / best)
    is_judged = filters.done == WARMED and count >= ENOUGH_LOOKUPS
    yield _bound(row, OF_THE_BEST, is_judged=is_judged)


def _bits(filters: Filters, keys: int) -> float:
    rule = filters.configured.rule
    assert rule is not None
    return rule.budget.bits(keys)


def _by_level(tables: Sequence[Carried]) -> dict[int, int]:
    found: dict[int, int] = {}
    for table in tables:
        found[table.level] = found.get(table.level, 0) + 1
    return found


def _bound(row: Row, limit: float, *, is_judged: bool) -> Row:
    if not is_judged:
        return row
    wording = f"{row.subject}, {', '.join(map(str, row.at.values()))}: at most {limit:g} x"
    return judged(attrs.evolve(row, target=Target(limit, wording, absolute=True)))


def _row(shape: LiveShape, filters: Filters, name: str, **at: Any) -> Row:
    at = {"shape": shape.name, **at}
    return Row(part=PART, group=LIVE, name=name, subject=filters.subject, at=at)
