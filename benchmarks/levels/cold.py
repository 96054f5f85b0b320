"""A store that was opened just now: what opening and the first lookups take, by when filters come.

The system has the files in memory. What is read are bytes of filters, and blocks where there is no
filter yet; checking both takes most of the time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

import lsm
import policies
from benchmarks.filled_levels import STILL, fill
from benchmarks.levels.budget import PART
from benchmarks.levels.data import BLOCK_BYTES, Data
from benchmarks.levels.settings import Settings
from benchmarks.levels.shown import Shown
from benchmarks.rows import Row, number
from lsm.options import MIB

GROUP = "Cold open"
OPENING, FIRST, SECOND = "opening", "first lookups", "the same again"
LOOKUPS = 1000
_TABLE_BYTES = 2 * MIB


@attrs.frozen
class Mode:
    """When filters come into memory."""

    name: str
    options: Mapping[str, Any] = attrs.field(hash=False)


MODES = (
    Mode("with the first lookup", {}),
    Mode("before opening ends", {"load_filters": "open"}),
    Mode("in the background, awaited", {"warm_filters": True}),
    Mode("levels 0 to 3 pinned, in little memory", {"pin_filters": "0-3", "filter_cache_size": 0}),
    Mode("never, for lack of memory", {"filter_cache_size": 0}),
    Mode("in partitions", {"filter_layout": "partitioned"}),
)


class ColdOpen:
    """Five levels of tables of usual size, opened again and again."""

    def __init__(self, settings: Settings, directory: Path, data: Data):
        self.settings = settings
        self.path = directory / "cold-open"
        self._data = data
        (absent,) = (each for each in data.questions.values() if not any(each.answers))
        self._asked = absent.keys[:LOOKUPS]

    def rows(self) -> Iterator[Row]:
        """All that is measured, mode by mode."""
        try:
            with self._opened({}, create_if_missing=True) as db:
                fill(db, self._data.runs)
            for mode in MODES:
                yield from self._rows_of(mode)
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def _rows_of(self, mode: Mode) -> Iterator[Row]:
        if "filter_layout" in mode.options:
            with self._opened(mode.options) as db:
                db.refilter()
        taken: dict[str, list[float]] = {OPENING: [], FIRST: [], SECOND: []}
        for _ in range(self.settings.repeats):
            start = time.perf_counter()
            with self._opened(mode.options) as db:
                if "warm_filters" in mode.options:
                    db.wait_until_idle()
                moments = [start, time.perf_counter()]
                for _ in (FIRST, SECOND):
                    for key in self._asked:
                        db.get(key)
                    moments.append(time.perf_counter())
            for name, (begin, end) in zip(taken, pairwise(moments), strict=True):
                taken[name].append((end - begin) * 1e6)
        for name, repeats in taken.items():
            at = {} if name == OPENING else {"lookups": len(self._asked)}
            row = Row(part=PART, group=GROUP, name=name, subject=mode.name, at=at)
            yield attrs.evolve(row, unit="us", value=min(repeats), repeats=repeats)

    def _opened(self, options: Mapping[str, Any], **more: Any) -> lsm.DB:
        policy = policies.BlockedPolicy(bits_per_key=10)
        usual = {**STILL, "block_size": BLOCK_BYTES, "compression": None}
        usual |= {"max_file_size": _TABLE_BYTES, "filter_cache_size": 64 * MIB}
        usual |= {"pin_filters": "none", "load_filters": "lazy", "warm_filters": False}
        return lsm.DB(self.path, filter_policy=policy, **{**usual, **options, **more})


def _table(rows: Sequence[Row]) -> list[list[str]]:
    cells = {(row.subject, row.name): number(row.value) for row in rows}
    names = (OPENING, FIRST, SECOND)
    table = [["filters come", "opening", f"first {LOOKUPS:,} lookups", "the same again"]]
    for subject in dict.fromkeys(row.subject for row in rows):
        table.append([subject, *(cells.get((subject, name), "-") for name in names)])
    return table


SHOWN = Shown(GROUP, "A store that was opened just now: microseconds", _table)
lines, documented = SHOWN.lines, SHOWN.documented
