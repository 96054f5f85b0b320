"""Databases whose tables have another filter than is asked for, and what of them may not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

import lsm
import policies
from lsm.options import TIB
from policies import FilterPolicy, LevelPolicies
from tests.lsm.independent_table import parse

STILL: dict[str, Any] = {
    "level_size_base": TIB,
    "compression": None,
    "max_file_size": 2000,
    "block_size": 300,
    "level0_compact_files": 1000,
    "level0_slow_files": 1000,
    "level0_stop_files": 1000,
}
"""Options under which nothing is compacted that nobody asks for."""

BEFORE, AFTER = policies.BlockedPolicy(bits_per_key=6), policies.ClassicPolicy(bits_per_key=12)


def entries(turn: int) -> dict[bytes, bytes]:
    """Keys that every other turn has as well, with values of its own."""
    return {b"%04d" % number: b"%d " % turn * 40 for number in range(200)}


def made(path: Path, **options: Any) -> dict[bytes, bytes]:
    """Make a database with four tables on each of the levels 0, 1 and 2, one over the other.

    Those of level 0 overlap their neighbours.
    """
    given: dict[str, Any] = STILL | {"filter_policy": BEFORE} | options
    with lsm.DB(path, create_if_missing=True, **given) as db:
        for turn in range(3):
            written = list(entries(turn).items())
            for first in range(0, 200, 50):
                for key, value in written[first : first + 50 + 20 * (turn == 2)]:
                    db.put(key, value)
                db.flush()
        db.delete(b"0007")
        db.flush()
        assert counts(db) == [5, 4, 4, 0, 0, 0, 0]
        return dict(db)


def counts(db: lsm.DB) -> list[int]:
    """How many tables each level has."""
    return [level.tables for level in db.stats().levels]


def filters_of(db: lsm.DB) -> set[tuple[str, str]]:
    """The policies and states of all tables' filters."""
    return {(each.policy, each.state) for level in db.filters() for each in level.tables}


def numbers(db: lsm.DB) -> list[list[int]]:
    """The numbers of the tables, level by level."""
    return [[each.file_number for each in level.tables] for level in db.filters()]


@attrs.frozen
class Data:
    """The bytes of all tables' data blocks, level by level, in the order that readers go."""

    levels: list[list[bytes]]

    @classmethod
    def of(cls, path: Path, db: lsm.DB) -> Data:
        return cls([[data_of(path, number) for number in level] for level in numbers(db)])


def data_of(path: Path, number: int) -> bytes:
    """The bytes of a table's data blocks."""
    data = (path / f"{number:06}.ldb").read_bytes()
    return data[: parse(data).blocks[-1].end]


def reconfigure(db: lsm.DB, policy: FilterPolicy) -> None:
    """Have an open database go on as if it had been opened with this policy for all levels."""
    store, filters = db._store, LevelPolicies.uniform(policy)
    store.options = attrs.evolve(store.options, filters=filters)
    store.installer.factory = attrs.evolve(store.installer.factory, policies=filters, placing=None)


def files(path: Path) -> dict[str, bytes]:
    """All that lies in a directory."""
    return {each.name: each.read_bytes() for each in path.iterdir()}
