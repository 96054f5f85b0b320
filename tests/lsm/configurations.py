"""Databases set up in every way there is: random options, from a seed or from hypothesis."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import attrs
from hypothesis import strategies as st

import lsm
import policies
from lsm.options import KEYS, LEVELS, Options
from policies import FilterPolicy, LevelPolicies
from policies.config import Choice
from policies.prefixes import Prefixes
from tests.lsm.odd_policies import (
    BuildingRaisesPolicy,
    DecliningPolicy,
    LosingPolicy,
    MaybePolicy,
    OpeningRaisesPolicy,
    ProbingRaisesPolicy,
    RangesLosePolicy,
    RangesRaisePolicy,
    SetPolicy,
    SlowStartPolicy,
    WrongTypesPolicy,
)
from tests.policies.cases import built_in

Choose = Callable[[Sequence[Any]], Any]
"""Picks one of what is given."""

TINY: dict[str, Any] = {
    "write_buffer_size": 500,
    "max_file_size": 1024,
    "block_size": 64,
    "level_size_base": 1024,
    "level_size_ratio": 2,
    "level0_compact_files": 2,
}
"""Options under which some hundred entries fill many tables on several levels."""

# Each begins with what is simplest, which is what hypothesis shrinks to.
ENGINE: dict[str, tuple[Any, ...]] = {
    "write_buffer_size": (4 << 20, 2000, 1, 50, 500),
    "max_file_size": (2 << 20, 1024, 1024, 5000),
    "block_size": (4096, 64, 64, 300),
    "block_restart_interval": (16, 1, 2, 7),
    "compression": ("none", "snappy", "zstd"),
    "lru_cache_size": (8 << 20, 0, 3000),
    "table_cache_size": (64 << 20, 0, 5000),
    "filter_cache_size": (64 << 20, 0, 300, "shared"),
    "pin_filters": ("none", "0", "0-1", "2+"),
    "load_filters": ("lazy", "lazy", "open"),
    "warm_filters": (False, True),
    "max_open_files": (1000, 1, 2),
    "level_size_base": (10 << 20, 1024, 1024, 8192),
    "level_size_ratio": (10, 2, 3),
    "level0_compact_files": (4, 1, 2),
    "max_background_jobs": (0, 1, 3, 8),
    "refilter_bytes_per_second": (0, 0, 1 << 30),
    "paranoid_checks": (False, True),
}

BUILT_IN: tuple[tuple[FilterPolicy, str], ...] = (
    (policies.NoFilterPolicy(), "table"),
    *((policy, layout) for policy in built_in() for layout in sorted(policy.layouts, reverse=True)),
)

ODD: tuple[tuple[FilterPolicy, str], ...] = tuple(
    (policy, "table")
    for policy in (
        SetPolicy(),
        MaybePolicy(),
        ProbingRaisesPolicy(),
        BuildingRaisesPolicy(),
        OpeningRaisesPolicy(building=True),
        DecliningPolicy(),
        WrongTypesPolicy("filter"),
        WrongTypesPolicy("answers"),
        WrongTypesPolicy("reader"),
        WrongTypesPolicy("truth"),
        LosingPolicy(),
        SlowStartPolicy(),
        RangesRaisePolicy(),
        RangesLosePolicy(),
    )
)


PARTITIONED: tuple[tuple[FilterPolicy, str, int], ...] = tuple(
    (policy, "partitioned", blocks)
    for policy in (*built_in(), SetPolicy(), ProbingRaisesPolicy(), DecliningPolicy())
    for blocks in (1, 2, 128)
)

PREFIXED: tuple[tuple[FilterPolicy, str, int | None, Prefixes], ...] = tuple(
    (policy, *place, prefixes)
    for policy in (
        policies.ClassicPolicy(),
        policies.RocksDBPolicy(),
        policies.LevelDBPolicy(),
        policies.BinaryFusePolicy(),
        SetPolicy(),
        ProbingRaisesPolicy(),
        LosingPolicy(),
    )
    for place in (("table", None), ("partitioned", 1), ("partitioned", 3))
    for prefixes in (
        Prefixes(length=1),
        Prefixes(length=2, whole_keys=False),
        Prefixes(until=b"1", whole_keys=False),
        Prefixes(until=b"\0"),
    )
)

_ALL: tuple[tuple[Any, ...], ...] = BUILT_IN + ODD + PARTITIONED + PREFIXED


@attrs.frozen(repr=False)
class Configuration:
    """All that a database is opened with, but for its comparator."""

    options: Options

    @classmethod
    def of(cls, filters: LevelPolicies | FilterPolicy | None = None, **engine: Any) -> Self:
        """These filters on all levels, these engine options, and all else at its default."""
        if isinstance(filters, FilterPolicy):
            filters = LevelPolicies.uniform(filters)
        if filters is not None:
            engine["filters"] = filters
        return cls(Options(**engine))

    def open(self, name: str | Path, scratch: Path, **arguments: Any) -> lsm.DB:
        """The database, opened with a configuration file that is written to ``scratch``."""
        file = scratch / "configuration.toml"
        file.write_text(self.options.to_toml())
        return lsm.DB(name, config=file, **arguments)

    def __repr__(self) -> str:
        """What differs from the defaults, and the filters of the levels."""
        usual, options = Options(), self.options
        parts = [
            f"{key}={getattr(options, key)!r}"
            for key in KEYS
            if getattr(options, key) != getattr(usual, key)
        ]
        levels = ", ".join(
            f"{choice.policy.name} {choice.policy.params()} {choice.layout} "
            f"{choice.partition_blocks or ''} {choice.prefixes or ''}"
            for choice in options.filters.choices
        )
        hits = " for hits" * options.filters.optimize_filters_for_hits
        return f"Configuration({' '.join(parts)}: {levels}{hits})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Hypothesis would print every field."""
        printer.text(repr(self))


def choose_configuration(choose: Choose, *, compare_bytes: bool = False) -> Configuration:
    """A configuration of what is chosen: some policies, each for some of the levels."""
    pool = [choose(_ALL) for _ in range(choose((1, 2, 4)))]
    filters = LevelPolicies(
        tuple(Choice(*choose(pool)) for _ in range(LEVELS)),
        optimize_filters_for_hits=choose((False, False, True)),
    )
    engine = {name: choose(values) for name, values in ENGINE.items()}
    return Configuration.of(filters, filters_compare_bytes=compare_bytes, **engine)


def random_configuration(rng: random.Random) -> Configuration:
    """One that the generator's seed decides."""
    return choose_configuration(rng.choice)


@st.composite
def configurations(draw: st.DrawFn, compare_bytes: bool = False) -> Configuration:
    """Any configuration; the simplest one has no filters and the default sizes."""
    return choose_configuration(
        lambda options: draw(st.sampled_from(options)), compare_bytes=compare_bytes
    )
