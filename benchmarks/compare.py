"""``python -m benchmarks compare A B``: two records side by side, and what changed beyond noise.

A and B are records, or directories of runs. Rows are the same if their ids are. A time has changed
if the repeats of one record all lie above those of the other, and the medians differ by 5 % or
more; a share or a count of lookups, if the intervals around it do not meet; what was measured only
once, if it differs by a quarter; what was counted, by 2 %. What is different about the two runs
comes first: numbers of two machines tell little about the program.

The exit status is 0 where nothing got worse, 1 where something did, 2 for records that cannot be
read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.record import Record
from benchmarks.rows import FAILED, HIGHER, LOWER, Row, number
from benchmarks.statistics import differ

HELP = "two records side by side: what changed beyond noise"

BETTER, WORSE, OTHER, SAME, GONE, NEW = "better", "worse", "other", "same", "gone", "new"
ORDER = (WORSE, BETTER, OTHER, GONE, NEW, SAME)
SHOWN_WITHOUT_ALL = (WORSE, BETTER, OTHER)
# By what share numbers must differ that were measured only once, or counted.
MEASURED_ONCE = 0.25
COUNTED = 0.02

LINE = "  {:<7} {:>10} {:>10} {:<6} {:>8}  {}"


@attrs.frozen
class Change:
    """A row of two records, or of one of them, and what became of it."""

    kind: str
    before: Row | None
    after: Row | None

    @property
    def row(self) -> Row:
        """The newer row, or the only one there is."""
        row = self.after or self.before
        assert row is not None
        return row

    @property
    def factor(self) -> float | None:
        """How many times as much it is now."""
        if self.before is None or self.after is None:
            return None
        before, after = _middle(self.before), _middle(self.after)
        return after / before if before and after is not None else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("before", type=Path, metavar="A", help="a record, or a run's directory")
    parser.add_argument("after", type=Path, metavar="B", help="the one to compare with it")
    parser.add_argument("--only", metavar="SUBSTRING", help="only rows with this in their name")
    parser.add_argument("--all", action="store_true", help="what stayed the same, too")


def main(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print what changed; the exit status."""
    try:
        before, after = Record.read(options.before), Record.read(options.after)
    except ValueError as error:
        parser.error(str(error))
    found = [
        change
        for change in changes(before, after)
        if (options.only or "").lower() in change.row.id.lower()
    ]
    print(*differences(before, after), sep="\n")
    print(*listing(found, everything=options.all), sep="\n")
    return int(any(change.kind == WORSE for change in found))


def changes(before: Record, after: Record) -> list[Change]:
    """What became of every row, what matters most first."""
    old = {row.id: row for row in before.rows}
    new = {row.id: row for row in after.rows}
    both = [
        Change(kind_of(row, new[name]), row, new[name]) for name, row in old.items() if name in new
    ]
    gone = [Change(GONE, row, None) for name, row in old.items() if name not in new]
    come = [Change(NEW, None, row) for name, row in new.items() if name not in old]
    return sorted([*both, *gone, *come], key=lambda change: ORDER.index(change.kind))


def kind_of(before: Row, after: Row) -> str:
    """What became of a row that both records have."""
    if FAILED in (before.verdict, after.verdict) and before.verdict != after.verdict:
        return WORSE if after.verdict == FAILED else BETTER
    if before.value is None or after.value is None:
        return SAME if before.value is after.value else OTHER
    if not _changed(before, after):
        return SAME
    up = (_middle(after) or 0) > (_middle(before) or 0)
    if after.better not in (LOWER, HIGHER):
        return OTHER
    return WORSE if up == (after.better == LOWER) else BETTER


def differences(before: Record, after: Record) -> Iterator[str]:
    """What is different about the two runs."""
    for name, record in (("A", before), ("B", after)):
        head = record.head
        yield (
            f"{name}: {head['date']}, {head['command']}, {head['size']}, "
            f"{head['machine']['processor']}, load {head['machine']['load_average']}, "
            f"{head['kernel']['name']} kernel"
        )
    for part in ("machine", "kernel", "versions", "settings"):
        one, other = before.head.get(part, {}), after.head.get(part, {})
        for key in dict.fromkeys([*one, *other]):
            if key != "load_average" and one.get(key) != other.get(key):
                yield f"  {part}, {key}: {one.get(key)} in A, {other.get(key)} in B"


def listing(found: list[Change], *, everything: bool = False) -> Iterator[str]:
    """A line for each change, and how many there are of each kind."""
    shown = ORDER if everything else SHOWN_WITHOUT_ALL
    if any(change.kind in shown for change in found):
        yield LINE.format("", "A", "B", "", "B / A", "").rstrip()
    for change in found:
        if change.kind in shown:
            yield LINE.format(
                change.kind,
                _shown(change.before),
                _shown(change.after),
                change.row.unit,
                "" if change.factor is None else f"{change.factor:.3f}",
                change.row.id,
            )
    counted = {kind: sum(change.kind == kind for change in found) for kind in ORDER}
    yield f"{len(found)} rows: " + ", ".join(f"{counted[kind]} {kind}" for kind in ORDER)


def _changed(before: Row, after: Row) -> bool:
    if len(before.repeats) > 1 and len(after.repeats) > 1:
        return differ(before.repeats, after.repeats)
    if before.interval and after.interval:
        return before.interval[1] < after.interval[0] or after.interval[1] < before.interval[0]
    assert before.value is not None
    assert after.value is not None
    low, high = sorted((abs(before.value), abs(after.value)))
    once = bool(before.repeats or after.repeats)
    return high > low * (1 + (MEASURED_ONCE if once else COUNTED))


def _middle(row: Row) -> float | None:
    return row.median if len(row.repeats) > 1 else row.value


def _shown(row: Row | None) -> str:
    if row is None:
        return "-"
    return row.verdict if row.value is None else number(_middle(row))
