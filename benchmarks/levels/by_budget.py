"""What a budget will give levels that are about to be filled, by the engine's own law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import attrs

from benchmarks.levels.data import ENTRY_BYTES, KEY_BYTES, ends
from benchmarks.levels.scatter import scatter
from filters.families import every
from lsm.tree_law import Shape as Table
from lsm.tree_law import TreeLaw
from policies.cost_models import Option
from policies.rule import BudgetRule


@attrs.frozen
class Expected:
    """The rate of a level's filters, and one standard deviation of it as a share of it."""

    fpr: float
    scatter: float


def expected(
    rule: BudgetRule, counts: Mapping[int, int], table_bytes: int, *, is_refiltered: bool
) -> dict[int, Expected]:
    """The filters of levels with so many keys, in tables of so many bytes.

    Levels are filled from the deepest up, so that each is written by what lies below it. Once they
    are refiltered, all of them are placed by the whole tree.
    """
    tables = [
        table for level in sorted(counts, reverse=True)
        for table in _tables(level, counts[level], table_bytes)
    ]  # fmt: skip
    options = TreeLaw(rule, tables).options if is_refiltered else list(_as_filled(rule, tables))
    found: dict[int, list[tuple[Table, Option]]] = {}
    for table, option in zip(tables, options, strict=True):
        found.setdefault(table.level, []).append((table, option))
    return {level: _mean(found[level]) for level in counts}


def _tables(level: int, count: int, table_bytes: int) -> Iterator[Table]:
    """The tables of a level whose keys lie evenly between its ends."""
    number = max(1, math.ceil(count * ENTRY_BYTES / table_bytes))
    first, last = ends(level)
    inner = [
        (place * (1 << 8 * KEY_BYTES) // number).to_bytes(KEY_BYTES, "big")
        for place in range(1, number)
    ]
    for at, (low, high) in enumerate(zip([first, *inner], [*inner, last], strict=True)):
        keys = count * (at + 1) // number - count * at // number
        yield Table(level=level, low=low, high=high, keys=keys)


def _as_filled(rule: BudgetRule, tables: list[Table]) -> Iterator[Option]:
    """What each gets when nothing is known but those that were written before it."""
    written: list[Table] = []
    for table in tables:
        law = TreeLaw(rule, [*written, table])
        option = law.option(law.run(table), table.level)
        written.append(attrs.evolve(table, bits=option.bits_per_key * table.keys))
        yield option


def _mean(tables: list[tuple[Table, Option]]) -> Expected:
    """The rate of all tables of a level together."""
    keys = sum(table.keys for table, _ in tables)
    fpr = math.fsum(table.keys * option.fpr for table, option in tables) / max(1, keys)
    table, option = tables[0]
    known = option.policy in every()
    one = scatter(option.policy, table.keys, **option.params) if known else 0.0
    return Expected(fpr, one / math.sqrt(len(tables)))
