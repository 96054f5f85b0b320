"""The charts of the report: each a function of a record to a figure, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.record import Record
from benchmarks.report.charts import (
    building,
    engines,
    memory,
    rates,
    reads,
    speed,
    standing,
    targets,
)
from benchmarks.report.markup import Markup

CHARTS: tuple[Callable[[Record], Markup], ...] = (
    rates.figure,
    speed.figure,
    reads.figure,
    memory.figure,
    building.figure,
    standing.figure,
    engines.figure,
    targets.figure,
)
