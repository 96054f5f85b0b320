"""Rows as a terminal shows them: lists with a line for each, and grids with a cell for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from benchmarks.rows import INFORMATION, NOT_MEASURED, Row, number

LABEL = 48
LINE = f"  {{:<{LABEL}}} {{:>10}} {{:>10}} {{:<4}} {{:>7}} {{:>9}}  {{}}"
CELL = 10


def duration(seconds: float) -> str:
    """A time in words."""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def by_group(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Neighbouring rows under their headings."""
    for group, members in groupby(rows, key=lambda row: row.group):
        yield group, list(members)


def listing(
    rows: Sequence[Row], label: Callable[[Row], str] = lambda row: row.name, ours: str = "ours"
) -> Iterator[str]:
    """A line for each row: its number, the peer's, their ratio and the target."""
    peers = {row.peer for row in rows if row.peer}
    peer = peers.pop() if len(peers) == 1 else "peer" if peers else ""
    yield LINE.format("", ours, peer[:CELL], "", "ratio" if peer else "", "", "").rstrip()
    for row in rows:
        if row.value is None:
            yield f"  {label(row):<{LABEL}} {row.verdict}: {row.reason}"
            continue
        yield LINE.format(
            label(row)[:LABEL],
            number(row.value),
            number(min(row.peer_repeats)) if row.peer_repeats else "",
            row.unit[:4],
            "" if row.ratio is None else f"{row.ratio:.3g}",
            str(row.target or ""),
            ", ".join(filter(None, (_verdict(row), row.reason, row.note))),
        ).rstrip()


def grid(
    rows: Sequence[Row], down: Callable[[Row], str], across: Callable[[Row], str]
) -> Iterator[str]:
    """A line for each thing ``down``, a column for each ``across``; below, why cells are empty."""
    columns = list(dict.fromkeys(across(row) for row in rows))
    cells = {(down(row), across(row)): row for row in rows}
    widths = {column: max(CELL, len(column)) for column in columns}
    heads = "".join(f" {column:>{widths[column]}}" for column in columns)
    yield f"  {'':<{LABEL}}{heads}"
    for line in dict.fromkeys(down(row) for row in rows):
        found = (cells.get((line, column)) for column in columns)
        shown = (
            f" {_cell(row):>{widths[column]}}" for row, column in zip(found, columns, strict=True)
        )
        yield f"  {line[:LABEL]:<{LABEL}}{''.join(shown)}".rstrip()
    yield from dict.fromkeys(f"  {row.verdict}: {row.reason}" for row in rows if row.reason)


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells under each other: the first of each line to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join((f"  {first:<{widths[0]}}", *cells)).rstrip()


def markdown(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The same as a table of a document; the first line has the headings."""
    heads, *body = lines
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for cells in body:
        yield f"| {' | '.join(cells)} |"


def _cell(row: Row | None) -> str:
    if row is None or row.value is None:
        return "-" if row is None or row.verdict == NOT_MEASURED else row.verdict
    return number(row.value)


def _verdict(row: Row) -> str:
    return "" if row.verdict == INFORMATION else row.verdict
