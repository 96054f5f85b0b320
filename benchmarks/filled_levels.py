"""Databases whose levels are filled to shape: one run on each, deepest first, each in its place.

A store that is written to gets there, too, but when and how depends on its limits and its threads.
Here every run is loaded as the tables of its level at once: with that level's filters, and over
sequence numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import lsm
import lsm.bulk
from lsm.options import LEVELS, TIB

Pair = tuple[bytes, bytes]

STILL: Mapping[str, Any] = {"level_size_base": TIB}
"""Options for ``lsm.DB`` with which no level ever counts as full."""


def dealt(pairs: Sequence[Pair], levels: int, factor: float) -> dict[int, Sequence[Pair]]:
    """A run for each level from 1 on: each has ``factor`` times as many pairs as the one above.

    The pairs should be in random order: every run then lies over the whole range of keys.
    """
    if not 1 <= levels < LEVELS:
        raise ValueError(f"{levels} levels cannot be filled; allowed are 1 to {LEVELS - 1}")
    shares = [factor**level for level in range(levels)]
    ends = [round(len(pairs) * sum(shares[: at + 1]) / sum(shares)) for at in range(levels)]
    starts = [0, *ends]
    return {at + 1: pairs[starts[at] : end] for at, end in enumerate(ends)}


def fill(db: lsm.DB, runs: Mapping[int, Sequence[Pair]]) -> None:
    """Fill an empty database: each level's pairs, in any order, become the tables of that level.

    Keys must differ within a run; where one is on two levels, the upper one has its newer value.
    Tables are about as large as the database's ``max_file_size``. Open it with
    STILL, or its own thread may compact what is full. ValueError unless it is empty, idle and in
    the end of the shape that was asked for.
    """
    store = db._store
    wrong = [level for level in runs if not 1 <= level < LEVELS]
    if wrong:
        raise ValueError(f"level {wrong[0]} cannot be filled; allowed are 1 to {LEVELS - 1}")
    if any(tables_per_level(db)) or store.last_visible:
        raise ValueError(f"{store.directory} is not empty: levels are filled in a new database")
    for level in sorted(runs, reverse=True):
        pairs = sorted(runs[level])
        for (key, _), (other, _) in pairwise(pairs):
            if key == other:
                raise ValueError(f"level {level} was to have {key!r} twice: keys must differ")
        lsm.bulk.load(db, pairs, level=level)
    check_shape(db, runs)


def check_shape(db: lsm.DB, runs: Mapping[int, Sequence[Pair]]) -> None:
    """ValueError unless just the levels of these runs have tables, with as many keys in all."""
    for level in db.filters():
        told = [table.num_entries for table in level.tables if table.num_entries is not None]
        wanted, known = len(runs.get(level.level, ())), len(told) == len(level.tables)
        if bool(level.tables) != bool(wanted) or (known and sum(told) != wanted):
            raise ValueError(
                f"level {level.level} has {len(level.tables)} tables with {sum(told)} keys, and "
                f"was to have {wanted}: the database must be opened with filled_levels.STILL"
            )


def tables_per_level(db: lsm.DB) -> list[int]:
    """How many tables each level has, from level 0 on."""
    return [level.tables for level in db.stats().levels]
