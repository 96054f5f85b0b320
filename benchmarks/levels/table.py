"""The levels' rows as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.levels.budget import (
    ALL,
    BITS,
    BYTES,
    FLOOR,
    MEMORY,
    READS,
    TIME,
    frontier,
    steep,
    usual,
)
from benchmarks.levels.data import ABSENT, PRESENT
from benchmarks.levels.outcome import STORAGES
from benchmarks.levels.settings import STEEP, USUAL
from benchmarks.rows import UNEXPECTED, Row, number
from benchmarks.text import aligned, markdown

LABEL = 46
MARK = "!"


class Table:
    """The rows by what they are of."""

    def __init__(self, rows: Sequence[Row]):
        self._rows = {
            (row.group, row.name, row.subject, *row.at.values()): row
            for row in rows
            if row.value is not None
        }
        self.rows = list(self._rows.values())
        self.subjects = list(dict.fromkeys(row.subject for row in rows if row.value is not None))
        self.levels = [
            str(level)
            for level in dict.fromkeys(row.at.get("level") for row in rows)
            if level not in (None, ALL)
        ]
        self.missing = [row for row in rows if row.value is None]

    @property
    def has_floor(self) -> bool:
        """Whether reads were set beside the fewest possible; older records have none of that."""
        return any(row.name == FLOOR for row in self.rows)

    def row(self, group: str, name: str, subject: str, at: str = ALL) -> Row | None:
        """A row, or None."""
        return self._rows.get((group, name, subject, at))

    def cell(self, group: str, name: str, subject: str, at: str = ALL) -> str:
        """A row's number, marked where it was not expected."""
        row = self.row(group, name, subject, at)
        if row is None:
            return "-"
        return number(row.value) + (MARK if row.verdict == UNEXPECTED else "")

    def expected(self, name: str, subject: str) -> str:
        """How many blocks were predicted for a row of reads, if any."""
        row = self.row(READS, name, subject)
        return number(row.expected) if row and row.expected is not None else "-"


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Everything: configurations, levels, what to use for a memory, and what was not measured."""
    table, other = Table(usual(rows)), Table(steep(rows))
    if table.subjects:
        yield from _configurations(table)
        yield from _levels(table)
        yield from _budgets(rows)
    if other.subjects:
        yield from _figures(other, STEEP.growth)
    for row in (*table.missing, *other.missing):
        yield f"  {row.subject}: {row.verdict}: {row.reason}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each configuration, and what to use for a memory."""
    table, other = Table(usual(rows)), Table(steep(rows))
    if table.subjects:
        yield from _figures(table)
        yield from _budgets(rows)
    if other.subjects:
        yield from _figures(other, STEEP.growth)


def documented(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each configuration, as ``docs/benchmarks.md`` has it."""
    yield from _documented(Table(usual(rows)))


def documented_steep(rows: Sequence[Row]) -> Iterator[str]:
    """The same of levels that grow by more."""
    yield from _documented(Table(steep(rows)))


def _documented(table: Table) -> Iterator[str]:
    heads = ["", "bytes", "bits/key", "predicted", "absent", "present"]
    heads += [f"us, {storage.split(',')[0]}" for storage in STORAGES]
    if table.has_floor:
        heads += [FLOOR]
    yield from markdown([heads, *_numbers(table)])


def _configurations(table: Table) -> Iterator[str]:
    yield from _figures(table)
    yield ""
    yield "What their levels carry"
    for subject in table.subjects:
        row = table.row(MEMORY, BYTES, subject)
        yield f"  {subject[:LABEL]:<{LABEL}} {row.note if row else ''}".rstrip()


def _figures(table: Table, growth: int = USUAL.growth) -> Iterator[str]:
    floor = ["floor"] if table.has_floor else []
    times = [f"us {storage.split(',')[0]}" for storage in STORAGES]
    yield ""
    yield (
        f"Which filter on which level, each with {growth} x the keys of the one above: memory of "
        "all filters, blocks read per lookup, and its time"
    )
    lines = [
        [
            "",
            "",
            "",
            "absent,",
            "absent,",
            "present,",
            *("absent," for _ in STORAGES),
            *("" for _ in floor),
        ],
        [
            "",
            "bytes",
            "bits/key",
            "predicted",
            "blocks",
            "blocks",
            *times,
            *(f"x {word}" for word in floor),
        ],
    ]
    yield from aligned([*lines, *_numbers(table)])
    yield "  in memory: measured; flash and disk: the same, and 100 us or 10 ms for each block read"
    if any(row.verdict == UNEXPECTED for row in table.rows):
        yield f"  {MARK}: neither chance nor what one filter differs from the next explains it"


def _numbers(table: Table) -> Iterator[list[str]]:
    """The numbers of each configuration, its name first."""
    for subject in table.subjects:
        yield [
            subject,
            table.cell(MEMORY, BYTES, subject),
            table.cell(MEMORY, BITS, subject),
            table.expected(ABSENT, subject),
            table.cell(READS, ABSENT, subject),
            table.cell(READS, PRESENT, subject),
            *(table.cell(TIME, ABSENT, subject, storage) for storage in STORAGES),
            *([table.cell(READS, FLOOR, subject)] if table.has_floor else []),
        ]


def _levels(table: Table) -> Iterator[str]:
    for name in (ABSENT, PRESENT):
        yield ""
        yield f"Blocks read per lookup of {'an' if name == ABSENT else 'a'} {name}, by level"
        heads = (f"level {level}" for level in table.levels)
        lines = [["", *heads, "all", "predicted", "us memory"]]
        for subject in table.subjects:
            cells = (table.cell(READS, name, subject, level) for level in (*table.levels, ALL))
            time = table.cell(TIME, name, subject, "memory")
            lines.append([subject, *cells, table.expected(name, subject), time])
        yield from aligned(lines)


def _budgets(rows: Sequence[Row]) -> Iterator[str]:
    yield ""
    yield "What to use for a memory: the fewest blocks read for an absent key, for every budget"
    for each in frontier(rows):
        yield (
            f"  from {number(each.bits_per_key):>5} bits a key ({each.bytes:>11,.0f} bytes) on: "
            f"{number(each.blocks):>8} blocks, {each.subject}"
        )
