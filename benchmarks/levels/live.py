"""A store at work: random keys are loaded and in part overwritten, and lookups come in between.

Nothing is placed by hand: how many tables lie on which level, and what each has been through, is
the engine's doing. Which filters they have is looked at as a reader would, table by table.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

import lsm
import policies
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.filled_levels import tables_per_level
from benchmarks.levels.data import KEY_BYTES
from benchmarks.levels.lookups import Lookups
from lsm.attempt import HEAT_NAME
from lsm.options import GIB, KIB
from policies import LevelPolicies
from policies.cost_models import NO_FILTER, option_of

VALUE_BYTES = 100
OVERWRITTEN_SHARE = 0.2
_BATCH = 1000
_LOOKS = 50
_RUNS_OF_ALL = 200
_PRESENT = 1000
_POOL_BYTES = 1 << 16

# What was read once stays in memory, as in the stores whose levels are filled.
CACHES: Mapping[str, Any] = {
    "lru_cache_size": 16 * GIB,
    "filter_cache_size": 16 * GIB,
    "table_cache_size": 16 * GIB,
}
# A store of few keys has as many levels as a large one where all sizes are smaller.
FEW_KEYS = 500_000
SMALL: Mapping[str, Any] = {
    "write_buffer_size": 128 * KIB,
    "max_file_size": 128 * KIB,
    "level_size_base": 256 * KIB,
}


@attrs.frozen
class LiveShape:
    """A kind of tree: the options that lead to it, and how many runs level 0 has in the end."""

    name: str
    options: Mapping[str, Any] = attrs.field(hash=False)
    level0_runs: int = 0


LIVE_SHAPES = (
    LiveShape("T = 4", {"level_size_ratio": 4}),
    LiveShape("T = 10", {"level_size_ratio": 10}),
    LiveShape(
        "many level-0 runs",
        {"level0_compact_files": 20, "level0_slow_files": 40, "level0_stop_files": 60},
        level0_runs=12,
    ),
)


@attrs.frozen
class Carried:
    """A table with its filter: where it is, and the rate that its policy says such a one has."""

    level: int
    low: bytes
    high: bytes
    keys: int
    filter_bytes: int
    fpr: float


class LiveStore:
    """One store, loaded once, and opened as often as its filters are to follow something else."""

    def __init__(self, directory: Path, shape: LiveShape, keys: int, seed: int):
        self.path = directory / "live"
        self.shape = shape
        self.count = keys
        self._rng = random.Random(seed)
        self._pool = self._rng.randbytes(_POOL_BYTES + VALUE_BYTES)

    @cached_property
    def _keys(self) -> bytes:
        return self._rng.randbytes(KEY_BYTES * self.count)

    def load(self, filters: LevelPolicies) -> list[float]:
        """Load all keys and overwrite some of them; the bits per key of filters meanwhile."""
        shutil.rmtree(self.path, ignore_errors=True)
        with self._opened(filters, create_if_missing=True) as db:
            places = range(self.count)
            again = self._rng.sample(places, round(OVERWRITTEN_SHARE * self.count))
            seen = [*self._put(db, places), *self._put(db, again)]
            self._settle(db)
            while tables_per_level(db)[0] < self.shape.level0_runs:
                for _ in range(self.shape.level0_runs - tables_per_level(db)[0]):
                    seen += self._put(db, self._rng.sample(places, self._run_keys))
                    db.flush()
                self._settle(db)
            return seen

    @contextmanager
    def opened(self, filters: LevelPolicies) -> Iterator[lsm.DB]:
        """The store with these filters configured, and what lookups have asked forgotten."""
        (self.path / HEAT_NAME).unlink(missing_ok=True)
        with self._opened(filters) as db:
            db.wait_until_idle()
            yield db

    def check(self, db: lsm.DB) -> None:
        """WrongAnswersError unless keys that were written have their values."""
        for place in self._rng.sample(range(self.count), min(_PRESENT, self.count)):
            key = self._key(place)
            if db.get(key) != self._value(key):
                raise WrongAnswersError(f"{key!r} has not the value that was written")

    def remove(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def _run_keys(self) -> int:
        """So many keys are a run of level 0 that is not quite a memtable's."""
        return max(1, self.count // _RUNS_OF_ALL)

    @staticmethod
    def _settle(db: lsm.DB) -> None:
        db.flush()
        db.wait_until_idle()

    def _opened(self, filters: LevelPolicies, **more: Any) -> lsm.DB:
        small = SMALL if self.count < FEW_KEYS else {}
        options = {**small, **CACHES, **self.shape.options, **more}
        return lsm.DB(self.path, filter_policy=filters, **options)

    def _key(self, place: int) -> bytes:
        return self._keys[KEY_BYTES * place : KEY_BYTES * (place + 1)]

    def _value(self, key: bytes) -> bytes:
        start = int.from_bytes(key[-2:], "big")
        return self._pool[start : start + VALUE_BYTES]

    def _put(self, db: lsm.DB, places: Sequence[int]) -> Iterator[float]:
        """Put these keys, and look at the filters some fifty times for all of them."""
        every = max(1, self.count // _BATCH // _LOOKS)
        for number, start in enumerate(range(0, len(places), _BATCH)):
            with db.write_batch() as batch:
                for place in places[start : start + _BATCH]:
                    key = self._key(place)
                    batch.put(key, self._value(key))
            if number % every == 0:
                yield bits_per_key(db)


def bits_per_key(db: lsm.DB) -> float:
    """What all filters take for a key of any table, as stored."""
    found = [table for level in db.filters() for table in level.tables]
    keys = sum(table.num_keys or 0 for table in found)
    return 8 * sum(table.bytes for table in found) / keys if keys else 0.0


def carried(db: lsm.DB) -> list[Carried]:
    """All tables with their filters; UnavailableError if one could not be built."""
    placed = {table.number: table for table in db._store.opened_view().version.tables()}
    found = []
    for level in db.filters():
        for table in level.tables:
            if table.state not in ("built", "none"):
                raise UnavailableError(
                    f"a filter of level {level.level} is {table.state}; the log `lsm` says why"
                )
            keys = table.num_keys or 0
            made = policies.create(table.policy, **table.params)
            option = option_of(made, keys) or NO_FILTER
            at = placed[table.file_number]
            found.append(Carried(level.level, at.low, at.high, keys, table.bytes, option.fpr))
    return found


def expected_reads(tables: Sequence[Carried], lookups: Lookups) -> float:
    """The blocks that a lookup reads in vain, by the rates that such filters have."""
    return sum(lookups.share(table.low, table.high) * table.fpr for table in tables)


def counted_reads(db: lsm.DB, keys: Sequence[bytes]) -> int:
    """The blocks that looking up all of these keys reads, none of which is there."""
    before = _blocks_read(db)
    wrong = sum(value is not None for value in map(db.get, keys))
    if wrong:
        raise WrongAnswersError(f"{wrong} of {len(keys)} absent keys were found")
    return _blocks_read(db) - before


def _blocks_read(db: lsm.DB) -> int:
    return sum(each.counters.blocks_read for each in db.stats().filters)
