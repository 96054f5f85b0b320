"""Ranges in which there is nothing: what iterators read for them, with filters and without.

Keys are numbers of eight bytes, drawn evenly, on five levels. Ranges begin anywhere, or right
behind a key that is there, as those do that look for neighbours: for these a filter that is made
of keys' beginnings has most to say wrong. And a store of many tenants is asked for those it lacks.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

import lsm
import policies
from benchmarks.errors import WrongAnswersError
from benchmarks.filled_levels import STILL, Pair, dealt, fill
from benchmarks.levels.budget import PART
from benchmarks.levels.data import BLOCK_BYTES
from benchmarks.levels.settings import USUAL, Settings
from benchmarks.levels.shown import Shown
from benchmarks.rows import AS_EXPECTED, UNEXPECTED, Row, Target, judged, number
from benchmarks.statistics import MARKED
from benchmarks.timing import interleaved, loop
from filters.grafite import RECORD as GRAFITE
from lsm.options import GIB
from policies import FilterPolicy

GROUP = "Ranges"
BLOCKS, TIME, BITS = "blocks read per empty range", "time of an empty range", "bits per key"
FLASH = "time of an empty range, flash, 100 us a block"
RANDOM, BEHIND_A_KEY, TENANT = "anywhere", "behind a key", "absent tenant"
FLASH_US = 100.0

LENGTHS = (32, 1024)
KEY_BYTES, VALUE_BYTES = 8, 100
TENANT_KEYS = 50
# What filters are to leave of the blocks that are read, and of the time on flash.
OF_THE_BLOCKS, OF_THE_TIME = 0.05, 0.1

Bounds = tuple[bytes, bytes]


@attrs.frozen
class Filters:
    """The filters of a store, by name."""

    name: str
    policy: FilterPolicy = attrs.field(repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict, hash=False)


NONE = Filters("no filters for ranges", policies.BlockedPolicy(bits_per_key=10))
OF_NUMBERS = (
    NONE,
    Filters("grafite, 1 % of 1024", policies.GrafitePolicy(fpr=0.01, range_length=1024)),
    Filters("grafite, 14 bits", policies.GrafitePolicy(bits_per_key=14)),
    Filters("surf, 8 bits of keys", policies.SurfPolicy(suffix_bits=8, suffix="real")),
    Filters("surf, 24 bits of keys", policies.SurfPolicy(suffix_bits=24, suffix="real")),
    Filters("6 bytes, blocked", policies.BlockedPolicy(bits_per_key=10), {"filter_prefix": 6}),
)
OF_TENANTS = (
    NONE,
    Filters(
        "up to a colon, blocked", policies.BlockedPolicy(bits_per_key=10),
        {"filter_prefix_until": ":"},
    ),
    Filters(
        "up to a colon alone, blocked", policies.BlockedPolicy(bits_per_key=10),
        {"filter_prefix_until": ":", "filter_whole_keys": False},
    ),
    Filters("surf, 8 bits of keys", policies.SurfPolicy(suffix_bits=8, suffix="real")),
)  # fmt: skip

# Who is held to what, of what is read and taken without filters.
HELD = {
    (BLOCKS, "grafite, 1 % of 1024"): OF_THE_BLOCKS,
    (BLOCKS, "up to a colon, blocked"): OF_THE_BLOCKS,
    (FLASH, "up to a colon, blocked"): OF_THE_TIME,
}


class Ranges:
    """Stores of numbers and of tenants, filled anew for each kind of filters."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.path = directory / "ranges"

    def rows(self) -> Iterator[Row]:
        """All that is measured; without filters for ranges first."""
        for all_filters, pairs, asked in (
            (OF_NUMBERS, self._numbers, self._of_numbers),
            (OF_TENANTS, self._tenants, self._of_tenants),
        ):
            without: dict[str, Row] = {}
            for filters in all_filters:
                for row in self._rows_of(filters, pairs, asked):
                    key = f"{row.name} {row.at}"
                    without.setdefault(key, row)
                    yield _beside(row, without[key])

    @cached_property
    def _numbers(self) -> Mapping[int, Sequence[Pair]]:
        rng = random.Random(self.settings.seed)
        found = {rng.randbytes(KEY_BYTES) for _ in range(self.settings.range_keys)}
        return _on_levels(sorted(found), rng)

    @cached_property
    def _tenants(self) -> Mapping[int, Sequence[Pair]]:
        rng = random.Random(self.settings.seed)
        tenants = range(0, 2 * self.settings.range_keys // TENANT_KEYS, 2)
        keys = [
            _tenant(each) + b"%012d" % rng.randrange(10**12)
            for each in tenants
            for _ in range(TENANT_KEYS)
        ]
        return _on_levels(sorted(set(keys)), rng)

    @cached_property
    def _of_numbers(self) -> Mapping[tuple[str, int], Sequence[Bounds]]:
        rng = random.Random(self.settings.seed + 1)
        keys = [key for run in self._numbers.values() for key, _ in run]
        found = {}
        for length in LENGTHS:
            starts = {
                RANDOM: [rng.randrange(2**64 - 2 * length) for _ in range(self.settings.ranges)],
                BEHIND_A_KEY: [
                    min(int.from_bytes(rng.choice(keys), "big") + 1, 2**64 - 2 * length)
                    for _ in range(self.settings.ranges)
                ],
            }
            for name, numbers in starts.items():
                found[name, length] = [
                    (start.to_bytes(8, "big"), (start + length).to_bytes(8, "big"))
                    for start in numbers
                ]
        return found

    @cached_property
    def _of_tenants(self) -> Mapping[tuple[str, int], Sequence[Bounds]]:
        rng = random.Random(self.settings.seed + 1)
        most = self.settings.range_keys // TENANT_KEYS
        absent = [_tenant(2 * rng.randrange(most) + 1) for _ in range(self.settings.ranges)]
        return {(TENANT, 0): [(each, each[:-1] + b";") for each in absent]}

    def _rows_of(
        self,
        filters: Filters,
        pairs: Mapping[int, Sequence[Pair]],
        asked: Mapping[tuple[str, int], Sequence[Bounds]],
    ) -> Iterator[Row]:
        try:
            with self._filled(filters, pairs) as db:
                told = db.stats().levels
                keys = sum(map(len, pairs.values()))
                size = sum(level.filter_bytes for level in told)
                kind = TENANT if (TENANT, 0) in asked else "numbers"
                row = _row(filters, BITS, keys=kind)
                yield attrs.evolve(row, unit="bits", value=8 * size / keys)
            with self._opened(filters, lru_cache_size=0, load_filters="open") as db:
                for (name, length), bounds in asked.items():
                    yield from self._asked_for(db, filters, name, length, bounds)
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def _asked_for(
        self, db: lsm.DB, filters: Filters, name: str, length: int, bounds: Sequence[Bounds]
    ) -> Iterator[Row]:
        """The blocks that are read for these ranges, none of which is in memory, and the time."""

        def first(each: Bounds) -> object:
            return next(db.iterator(start=each[0], stop=each[1]), None)

        before = db.stats().block_cache.misses
        found = sum(first(each) is not None for each in bounds)
        blocks = db.stats().block_cache.misses - before
        if found > len(bounds) // 100:
            raise WrongAnswersError(f"{found} of {len(bounds)} ranges were not empty")
        at = {"ranges": name} | ({"length": length} if length else {})
        row = attrs.evolve(_row(filters, BLOCKS, **at), unit="blocks", value=blocks / len(bounds))
        yield _expected(row, filters, length, blocks, len(bounds))
        timed = bounds[: self.settings.timed // 5]
        (taken,) = interleaved([loop("subject(key)", timed, first)], self.settings.repeats)
        microseconds = [each / 1000 for each in taken]
        row = attrs.evolve(_row(filters, TIME, **at), unit="us", value=min(microseconds))
        yield attrs.evolve(row, repeats=microseconds)
        on_flash = min(microseconds) + FLASH_US * blocks / len(bounds)
        yield attrs.evolve(_row(filters, FLASH, **at), unit="us", value=on_flash)

    def _filled(self, filters: Filters, pairs: Mapping[int, Sequence[Pair]]) -> lsm.DB:
        db = self._opened(filters, create_if_missing=True)
        fill(db, pairs)
        return db

    def _opened(self, filters: Filters, **more: Any) -> lsm.DB:
        options = {
            **STILL, "block_size": BLOCK_BYTES, "compression": None, "max_file_size": GIB,
            "filter_cache_size": GIB,
        }  # fmt: skip
        return lsm.DB(
            self.path, filter_policy=filters.policy, **{**options, **filters.options, **more}
        )


def _on_levels(keys: Sequence[bytes], rng: random.Random) -> dict[int, Sequence[Pair]]:
    """The keys in random order on five levels, each of which reaches over all of them."""
    inner = list(keys[USUAL.levels : -USUAL.levels])
    rng.shuffle(inner)
    value = b"v" * VALUE_BYTES
    runs = dealt([(key, value) for key in inner], USUAL.levels, USUAL.growth)
    ends = [*keys[: USUAL.levels], *keys[-USUAL.levels :]]
    return {
        level: [*run, (ends[level - 1], value), (ends[-level], value)]
        for level, run in runs.items()
    }


def _tenant(number: int) -> bytes:
    return b"tenant-%07d:" % number


def _expected(row: Row, filters: Filters, length: int, blocks: int, ranges: int) -> Row:
    """Beside what the family's theory says, where it does: a bound for each level."""
    policy = filters.policy
    if not isinstance(policy, policies.GrafitePolicy):
        return row
    bits = policy.bits_per_key
    if bits is None:
        bound = length / policy.range_length * (policy.fpr or 0.0)
    else:
        bound = length / 2 ** (bits - 2)
    expected = USUAL.levels * min(1.0, bound)
    sigmas = (blocks - expected * ranges) / math.sqrt(max(1.0, expected * ranges))
    verdict = UNEXPECTED if sigmas > MARKED else AS_EXPECTED
    note = f"at most {expected:.4g} by the theory of {GRAFITE.name}"
    return attrs.evolve(row, expected=expected, sigmas=sigmas, verdict=verdict, note=note)


def _beside(row: Row, without: Row) -> Row:
    """The row, and how many times what is read or taken without filters it is."""
    if row.name == BITS or row.value is None or not without.value:
        return row
    row = attrs.evolve(row, peer=NONE.name, ratio=row.value / without.value)
    limit = HELD.get((row.name, row.subject))
    if limit is None:
        return row
    wording = f"{row.subject}, {row.name}: at most {limit:g} x without"
    verdict = row.verdict
    row = judged(attrs.evolve(row, target=Target(limit, wording)))
    return attrs.evolve(row, verdict=verdict) if verdict == UNEXPECTED else row


def _table(rows: Sequence[Row]) -> list[list[str]]:
    heads = [
        "ranges",
        "filters",
        "bits/key",
        "blocks",
        "x without",
        "us",
        "us on flash",
        "x without",
    ]
    cells = {(row.name, row.subject, _place(row)): row for row in rows}

    def value_of(name: str, row: Row, place: str = "") -> str:
        found = cells.get((name, row.subject, place or _place(row)))
        return "-" if found is None else number(found.value)

    table = [heads]
    for row in rows:
        if row.name == BLOCKS:
            flash = cells.get((FLASH, row.subject, _place(row)))
            kind = TENANT if TENANT in row.at.values() else "numbers"
            bits, time = value_of(BITS, row, kind), value_of(TIME, row)
            line = [_place(row), row.subject, bits, number(row.value), number(row.ratio), time]
            table.append([*line, value_of(FLASH, row), number(flash.ratio if flash else None)])
    return table


def _place(row: Row) -> str:
    if "keys" in row.at:
        return str(row.at["keys"])
    return ", ".join(str(value) for value in row.at.values())


def _row(filters: Filters, name: str, **at: Any) -> Row:
    return Row(part=PART, group=GROUP, name=name, subject=filters.name, at=at)


SHOWN = Shown(
    GROUP, "Ranges in which there is nothing: blocks read of five levels, and microseconds", _table
)
lines, documented = SHOWN.lines, SHOWN.documented
