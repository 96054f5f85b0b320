"""How the rows are shown: to a terminal, and as the table in ``docs/engine-speed.md``.

A terminal gets a table for each group, and the same numbers as multiples of plyvel's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import attrs

from benchmarks import text
from benchmarks.engine.cases import COMPACTED, FILLED, GROUPS, RANGES, WRITING
from benchmarks.engine.engines import ALL, PLYVEL
from benchmarks.rows import Row, number

_WHAT = {group.title: group.what for group in GROUPS}
# What a summary has: the rows of these groups with these beginnings.
_FIRST = (
    (WRITING, "put in a batch"),
    (COMPACTED, "get of an absent key"),
    (COMPACTED, "get of a present key"),
    (FILLED, "get of"),
    (RANGES, "an entry of all in order"),
)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Every size, every group."""
    for keys, members in groupby(rows, key=lambda row: row.at.get("n", 0)):
        some = list(members)
        yield ""
        yield f"{keys:,} entries: random keys of 16 bytes with values of 100"
        for title, group in text.by_group(some):
            yield from _group(title, group)
        yield from _targets(some)


def _group(title: str, rows: Sequence[Row]) -> Iterator[str]:
    yield ""
    yield title
    yield f"  {_WHAT.get(title, '')}".rstrip()
    yield from _table(rows, lambda row: row.name)
    yield from dict.fromkeys(f"  {row.subject}: {row.note}" for row in rows if row.note)


def _table(rows: Sequence[Row], label: Callable[[Row], str]) -> Iterator[str]:
    yield from text.grid(rows, lambda row: f"{label(row)}, {row.unit}", _subject)
    ratios = [attrs.evolve(row, value=row.ratio) for row in rows if row.ratio is not None]
    if ratios:
        yield f"  times {PLYVEL}'s"
        yield from text.grid(ratios, label, _subject)


def _targets(rows: Sequence[Row]) -> Iterator[str]:
    judged = [row for row in rows if row.target is not None]
    if judged:
        yield ""
        yield "Targets"
        yield from text.listing(judged, lambda row: f"{row.name}, {row.subject}")


def _subject(row: Row) -> str:
    return row.subject


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """A table of a few rows, of the largest size, and the same as multiples of plyvel's."""
    keys = max((row.at.get("n", 0) for row in rows), default=0)
    found = [row for row in rows if row.at.get("n") == keys and _is_first(row)]
    if found:
        yield ""
        yield f"The engine beside others, {keys:,} entries"
        yield from _table(found, _short)


def _short(row: Row) -> str:
    return f"{row.name}, five levels" if row.group == FILLED.title else row.name


def _is_first(row: Row) -> bool:
    return any(
        row.group == group.title and row.name.startswith(name) and "snapshot" not in row.name
        for group, name in _FIRST
    )


def markdown(rows: Sequence[Row], keys: int) -> Iterator[str]:
    """The rows of one size as a table: an engine a column, in brackets how many times plyvel's."""
    yield f"| what | {' | '.join(ALL)} | target | |"
    yield f"|------|{'-----:|' * len(ALL)}--------|---|"
    some = [row for row in rows if row.at.get("n") == keys]
    for (group, name), members in groupby(some, key=lambda row: (row.group, row.name)):
        found = {row.subject: row for row in members}
        judged = [row for row in found.values() if row.target is not None]
        cells = (
            f"{group.lower()}: {name}, {next(iter(found.values())).unit}",
            *(_cell(found.get(engine)) for engine in ALL),
            str(judged[0].target) if judged else "",
            ", ".join(dict.fromkeys(row.verdict for row in judged)),
        )
        yield f"| {' | '.join(cells)} |"


def _cell(row: Row | None) -> str:
    if row is None or row.value is None:
        return "" if row is None else row.verdict
    return number(row.value) + (f" ({row.ratio:.2f})" if row.ratio is not None else "")
