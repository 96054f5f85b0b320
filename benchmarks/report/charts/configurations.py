"""What was counted of each configuration of levels: the rows that two charts draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from benchmarks.advice import TIME
from benchmarks.levels import budget
from benchmarks.levels.budget import ABSENT, ALL, BITS, MEMORY, READS
from benchmarks.record import Record
from benchmarks.rows import FAILED, Row


@attrs.frozen
class Configuration:
    """One of them: blocks read for an absent key, in all and by level, its memory and times."""

    name: str
    reads: Row
    by_level: Sequence[Row]
    bits: Row | None
    times: Sequence[Row]

    @property
    def blocks(self) -> float:
        """Blocks read for an absent key."""
        return self.reads.value or 0.0

    @property
    def size(self) -> float | None:
        """Bits per key of all filters."""
        return self.bits.value if self.bits else None


def configurations(record: Record) -> list[Configuration]:
    """All that were counted, the fewest reads first."""
    usual = budget.usual(record.of("levels"))
    rows = [row for row in usual if row.value is not None and row.verdict != FAILED]
    found = list(_found(rows))
    return sorted(found, key=lambda each: (each.blocks, each.size or 0.0, each.name))


def best(record: Record, found: Sequence[Configuration]) -> list[Configuration]:
    """Those of them to use, for ascending budgets of memory."""
    by_name = {each.name: each for each in found}
    subjects = (choice.subject for choice in budget.frontier(record.of("levels")))
    return [by_name[subject] for subject in subjects if subject in by_name]


def _found(rows: Sequence[Row]) -> Iterator[Configuration]:
    for name in dict.fromkeys(row.subject for row in rows):
        own = [row for row in rows if row.subject == name]
        reads = [row for row in own if row.group == READS and row.name == ABSENT]
        whole = [row for row in reads if row.at.get("level") == ALL]
        if not whole:
            continue
        levels = [row for row in reads if row.at.get("level") != ALL]
        memory = (row for row in own if row.group == MEMORY and row.name == BITS)
        bits = next((row for row in memory if row.at.get("level") == ALL), None)
        times = [row for row in own if row.group == TIME and row.name == ABSENT]
        in_order = sorted(levels, key=lambda row: str(row.at.get("level")))
        yield Configuration(name, whole[0], in_order, bits, times)
