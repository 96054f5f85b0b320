"""How the rows are shown: to a terminal, and as the tables in ``docs/engine-speed.md``.

A terminal gets a table for each group, the same numbers as multiples of plyvel's, and the targets.
The page is for users: it has the numbers and the ratios, and no targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import attrs

from benchmarks import text
from benchmarks.engine.case import HELD
from benchmarks.engine.cases import COMPACTED, FILLED, GROUPS, RANGES
from benchmarks.engine.cases_of_writing import SUSTAINED, WRITING
from benchmarks.engine.engines import ALL, ONE_OF_OURS, PLYVEL
from benchmarks.engine.ours import OURS, PLUG_IN
from benchmarks.rows import Row, number

_WHAT = {group.title: group.what for group in GROUPS}
_SHORT = {group.title: group.short for group in GROUPS}
PEERS = ALL[len(OURS) :]
GROWING = (COMPACTED.title, FILLED.title, RANGES.title)
FEWEST_SIZES = 3
# What a summary has: the rows of these groups with these beginnings.
_FIRST = (
    (WRITING, "put in a batch"),
    (SUSTAINED, "put in a batch, until idle"),
    (COMPACTED, "get of an absent key"),
    (COMPACTED, "get of a present key"),
    (FILLED, "get of"),
    (RANGES, "an entry of all in order"),
)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Every size, every group; then how the sizes differ, and the targets."""
    measured = [row for row in rows if row.group != HELD.title]
    for keys, members in groupby(measured, key=lambda row: row.at.get("n", 0)):
        yield ""
        yield f"{keys:,} entries: random keys of 16 bytes with values of 100"
        for title, group in text.by_group(list(members)):
            yield from _group(title, group)
    yield from _growth(measured)
    yield from _held(held(rows))


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


def _growth(rows: Sequence[Row]) -> Iterator[str]:
    """Reading, at every size as a multiple of what it takes at the smallest one, if there are many.

    What grows should be levels and cache misses, which the engines have in common.
    """
    found = [
        row for row in rows if row.value and row.group in GROWING and row.subject in ONE_OF_OURS
    ]
    sizes = sorted({int(row.at["n"]) for row in found})
    if len(sizes) < FEWEST_SIZES:
        return
    times = {(row.group, row.name, row.subject, row.at["n"]): row.value or 0.0 for row in found}
    asked = dict.fromkeys(key[:3] for key in times)
    table = [("what grows, times the smallest size", "of", *(f"{size:,}" for size in sizes))]
    for key in asked:
        taken = [times.get((*key, size)) for size in sizes]
        if None not in taken:
            grown = (number((each or 0.0) / (taken[0] or 1.0)) for each in taken)
            table.append((f"{key[0].lower()}: {key[1]}", key[2], *grown))
    yield ""
    yield "Growth"
    yield from text.aligned(table)


def held(rows: Sequence[Row]) -> list[Row]:
    """The rows of ours beside one peer each, whose ratios are held to targets."""
    return [row for row in rows if row.group == HELD.title]


def _held(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each peer of each question: both times, the ratio, must, aim, and the verdict."""
    if not rows:
        return
    yield ""
    yield HELD.title
    yield f"  {HELD.what}"
    table = [("", "", "ours", "beside", "", "ratio", "must", "aim", "")]
    for (name, keys), members in groupby(rows, key=_question):
        for at, row in enumerate(members):
            assert row.target is not None
            theirs = number(min(row.peer_repeats)) if row.peer_repeats else ""
            first = (f"{name}, {row.unit}", f"{keys:,}") if at == 0 else ("", "")
            ratio, aim = number(row.ratio), number(row.aim)
            beside = str(row.at.get("beside", ""))
            cells = (number(row.value), beside, theirs, ratio, str(row.target), aim, standing(row))
            table.append((*first, *cells))
    yield from text.aligned(table)
    yield from dict.fromkeys(f"  {row.verdict}: {row.reason}" for row in rows if row.reason)


def standing(row: Row) -> str:
    """The verdict on a target, and whether the aim is reached, too."""
    return f"{row.verdict}, and the aim" if row.reaches_aim else row.verdict


def _question(row: Row) -> tuple[str, int]:
    return row.name, int(row.at["n"])


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
    engines = (*ALL, PLUG_IN)
    yield f"| what | {' | '.join(engines)} |"
    yield f"|------|{'-----:|' * len(engines)}"
    some = [row for row in rows if row.at.get("n") == keys and row.group != HELD.title]
    for (group, name), members in groupby(some, key=lambda row: (row.group, row.name)):
        found = {row.subject: row for row in members}
        cells = (
            f"{group.lower()}: {name}, {next(iter(found.values())).unit}",
            *(_cell(found.get(engine)) for engine in engines),
        )
        yield f"| {' | '.join(cells)} |"


def markdown_beside(rows: Sequence[Row]) -> Iterator[str]:
    """What ours is held to as a table for users: our number, and how many times each peer's."""
    yield f"| what | keys | ours | {' | '.join(f'x {peer}' for peer in PEERS)} |"
    yield f"|------|-----:|-----:|{'-----:|' * len(PEERS)}"
    for (name, keys), members in groupby(held(rows), key=_question):
        ours = next(members)
        beside = _measured_with(ours, rows)
        ratios = (_times(ours.value, beside.get(peer)) for peer in PEERS)
        mine = f"{number(ours.value)} {ours.unit}"
        yield f"| {name} | {keys:,} | {mine} | {' | '.join(ratios)} |"


def _measured_with(held: Row, rows: Sequence[Row]) -> dict[str, float | None]:
    """By engine, what was measured together with the number that is held to a target.

    Groups have rows of one name, and the rows of targets no group: the number itself tells them.
    """
    alike = [
        row
        for row in rows
        if row.group != HELD.title and row.at["n"] == held.at["n"] and _is_named(held, row)
    ]
    groups = {row.group for row in alike if (row.subject, row.value) == (held.subject, held.value)}
    return {row.subject: row.value for row in alike if row.group in groups}


def _is_named(held: Row, row: Row) -> bool:
    short = _SHORT.get(row.group)
    return held.name == (f"{row.name}, {short}" if short else row.name)


def _times(ours: float | None, theirs: float | None) -> str:
    return number(ours / theirs) if ours is not None and theirs else ""


def _cell(row: Row | None) -> str:
    if row is None or row.value is None:
        return "" if row is None else row.verdict
    return number(row.value) + (f" ({row.ratio:.2f})" if row.ratio is not None else "")
