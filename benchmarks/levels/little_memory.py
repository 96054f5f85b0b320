"""One large table and less memory than its filters take: what absent keys read, layout by layout.

Lookups come by Zipf's law. What is not in memory is read: filters, whole or a partition at a time,
and blocks where a filter lets a key through or is not worth loading. All are counted in bytes.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

import lsm
import lsm.bulk
import policies
from benchmarks.errors import WrongAnswersError
from benchmarks.filled_levels import STILL
from benchmarks.levels.budget import PART
from benchmarks.levels.data import BLOCK_BYTES, COPIES, KEY_BYTES
from benchmarks.levels.lookups import ZIPF, all_lookups
from benchmarks.levels.settings import ENOUGH_LOOKUPS, Settings
from benchmarks.levels.shown import Shown
from benchmarks.rows import Row, Target, judged, number
from benchmarks.timing import interleaved, loop
from lsm.options import GIB

GROUP = "Little memory"
FILTER_BYTES, BYTES = "bytes of filters per lookup", "bytes per lookup"
RESIDENT, FIRST, TIME = "bytes in memory", "first lookup", "time of a lookup"
FALSE = "blocks read in vain"

BITS = 10
LEVEL = 1
# Of the memory that one filter for all keys takes.
SHARES = (1.0, 0.5, 0.25, 0.1)

# What partitions are to come to, beside one filter: of the bytes that it would be read in by each
# lookup that finds it pushed out, of the blocks that it lets keys through to, of its time.
OF_THE_BYTES, OF_FALSE_READS, OF_THE_TIME = 0.1, 1.02, 1.15


@attrs.frozen
class Layout:
    """How filters lie in the table."""

    name: str
    options: Mapping[str, Any] = attrs.field(hash=False)


WHOLE = Layout("one filter", {})
PARTITIONED = Layout("a filter for 128 blocks", {"filter_layout": "partitioned"})
BY_BLOCK = Layout(
    "a filter for each block", {"filter_layout": "partitioned", "filter_partition_blocks": 1}
)
LAYOUTS = (WHOLE, PARTITIONED, BY_BLOCK)


@attrs.frozen(kw_only=True)
class Figures:
    """What was measured of a layout.

    ``stored`` are the bytes of its filters in the file, ``resident`` in memory; ``read`` are the
    bytes of filters and of blocks that a lookup reads, by the share of memory.
    """

    layout: Layout
    stored: int
    resident: int
    false: int
    nanoseconds: Sequence[float]
    first_ns: float
    read: Mapping[float, tuple[float, float]]


class LittleMemory:
    """A store of one table, opened with each layout and each memory in turn."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.path = directory / "little-memory"
        self._rng = random.Random(settings.seed)
        zipf = next(each for each in all_lookups(settings.seed) if each.name == ZIPF)
        self._asked = zipf.keys(settings.little_lookups, self._rng, KEY_BYTES)
        # What a filter lets through is counted where it is the same for all: evenly, and of more.
        self._even = [self._rng.randbytes(KEY_BYTES) for _ in range(4 * settings.little_lookups)]

    def rows(self) -> Iterator[Row]:
        """All that is measured, one filter first."""
        try:
            self._load()
            whole: Figures | None = None
            for layout in LAYOUTS:
                figures = self._figures(layout, whole)
                whole = whole or figures
                yield from self._rows_of(figures, whole)
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def _load(self) -> None:
        keys = sorted({self._rng.randbytes(KEY_BYTES) for _ in range(self.settings.little_keys)})
        with self._opened(WHOLE, create_if_missing=True) as db:
            lsm.bulk.load(db, ((key, key * COPIES) for key in keys), level=LEVEL)

    def _opened(self, layout: Layout, **more: Any) -> lsm.DB:
        policy = policies.BlockedPolicy(bits_per_key=BITS)
        options = {
            **STILL,
            "block_size": BLOCK_BYTES,
            "compression": None,
            "max_file_size": GIB,
            "lru_cache_size": GIB,
        }
        return lsm.DB(self.path, filter_policy=policy, **{**options, **layout.options, **more})

    def _figures(self, layout: Layout, whole: Figures | None) -> Figures:
        timed, repeats = self.settings.timed, self.settings.repeats
        with self._opened(layout) as db:
            db.refilter()
            stored = sum(level.filter_bytes for level in db.stats().levels)
        with self._opened(layout) as db:
            ((first_ns,),) = interleaved([loop("subject(key)", self._asked[:1], db.get)], 1)
        with self._opened(layout, filter_cache_size=GIB, load_filters="open") as db:
            resident = db.stats().filter_cache.bytes
            false, _ = self._asked_for(db, self._even)
            self._asked_for(db, self._asked)
            sample = loop("subject(key)", self._asked[:timed], db.get)
            (taken,) = interleaved([sample], repeats, at_most=3 * repeats)
        memory = resident if whole is None else whole.resident
        return Figures(
            layout=layout,
            stored=stored,
            resident=resident,
            false=false,
            nanoseconds=taken,
            first_ns=first_ns,
            read={share: self._read_with(layout, round(share * memory)) for share in SHARES},
        )

    def _read_with(self, layout: Layout, limit: int) -> tuple[float, float]:
        """The bytes of filters and of blocks that a lookup reads, once memory is full."""
        with self._opened(layout, filter_cache_size=limit, lru_cache_size=0) as db:
            self._asked_for(db, self._asked)
            blocks, filters = self._asked_for(db, self._asked)
        return filters / len(self._asked), blocks * BLOCK_BYTES / len(self._asked)

    def _asked_for(self, db: lsm.DB, keys: Sequence[bytes]) -> tuple[int, int]:
        """The blocks and the bytes of filters that looking up all of these keys reads."""
        blocks, filters = _blocks_read(db), db._store.tables.filters.bytes_read
        if any(value is not None for value in map(db.get, keys)):
            raise WrongAnswersError("an absent key was found")
        return _blocks_read(db) - blocks, db._store.tables.filters.bytes_read - filters

    def _rows_of(self, figures: Figures, whole: Figures) -> Iterator[Row]:
        layout, lookups = figures.layout, len(self._asked)
        is_judged = layout is PARTITIONED and lookups >= ENOUGH_LOOKUPS
        note = f"{figures.stored} in the file"
        row = attrs.evolve(_row(layout, RESIDENT), unit="bytes", note=note)
        yield attrs.evolve(row, value=figures.resident)
        row = attrs.evolve(
            _row(layout, FALSE), unit="blocks", value=figures.false / len(self._even)
        )
        yield _held(row, figures.false, whole.false, OF_FALSE_READS, is_judged=is_judged)
        taken = [each / 1000 for each in figures.nanoseconds]
        row = attrs.evolve(_row(layout, TIME), unit="us", value=min(taken), repeats=taken)
        slower = min(figures.nanoseconds), min(whole.nanoseconds)
        yield _held(row, *slower, OF_THE_TIME, is_judged=is_judged)
        yield attrs.evolve(_row(layout, FIRST), unit="us", value=figures.first_ns / 1000)
        for share, (filters, blocks) in figures.read.items():
            row = attrs.evolve(_row(layout, FILTER_BYTES, share), unit="bytes", value=filters)
            is_least = is_judged and share == min(SHARES)
            yield _held(row, filters, whole.stored, OF_THE_BYTES, is_judged=is_least)
            row = _row(layout, BYTES, share)
            yield attrs.evolve(row, unit="bytes", value=filters + blocks)


def _table(rows: Sequence[Row]) -> list[list[str]]:
    cells = {(row.subject, row.name, row.at.get("share")): number(row.value) for row in rows}
    heads = ["", "in memory", "us", "first, us", "read in vain"]
    heads += [f"filters, {share:.0%}" for share in SHARES]
    heads += [f"all, {share:.0%}" for share in SHARES]
    table = [heads]
    for subject in dict.fromkeys(row.subject for row in rows):
        line = [subject]
        line += [cells.get((subject, name, None), "-") for name in (RESIDENT, TIME, FIRST, FALSE)]
        for name in (FILTER_BYTES, BYTES):
            line += [cells.get((subject, name, share), "-") for share in SHARES]
        table.append(line)
    return table


def _held(row: Row, ours: float, whole: float, limit: float, *, is_judged: bool) -> Row:
    """The row, and how many times what one filter comes to it is; held to a bound if judged."""
    row = attrs.evolve(row, peer=WHOLE.name, ratio=ours / whole if whole else None)
    if not is_judged:
        return row
    wording = f"{row.subject}, {row.name}: at most {limit:g} x those of {WHOLE.name}"
    return judged(attrs.evolve(row, target=Target(limit, wording)))


def _row(layout: Layout, name: str, share: float | None = None) -> Row:
    at = {} if share is None else {"share": share}
    return Row(part=PART, group=GROUP, name=name, subject=layout.name, at=at)


def _blocks_read(db: lsm.DB) -> int:
    return sum(each.counters.blocks_read for each in db.stats().filters)


SHOWN = Shown(
    GROUP, "Less memory than filters take: absent keys by Zipf's law, bytes read per lookup", _table
)
lines, documented = SHOWN.lines, SHOWN.documented
