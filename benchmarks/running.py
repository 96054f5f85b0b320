"""Running units one after the other: with progress, kept as they are done, and stopped at will."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from benchmarks.journal import Journal
from benchmarks.parts import Part, Unit
from benchmarks.progress import Progress
from benchmarks.rows import Row


@attrs.frozen
class Work:
    """A unit, the part it belongs to and that part's settings."""

    part: Part
    settings: Any
    unit: Unit


def all_work(parts: Iterable[Part], settings: Mapping[str, Any]) -> list[Work]:
    """Everything there is to measure."""
    return [
        Work(part, settings[part.name], unit)
        for part in parts
        for unit in part.units(settings[part.name])
    ]


def chosen(work: Sequence[Work], only: str | None) -> list[Work]:
    """What has ``only`` in its name, in any case; ValueError names all if nothing has."""
    wanted = [each for each in work if (only or "").lower() in each.unit.key.lower()]
    if not wanted:
        names = "\n".join(f"  {each.unit.key}" for each in work)
        raise ValueError(f"nothing to measure has {only!r} in its name; there are\n{names}")
    return wanted


def expected_seconds(work: Iterable[Work], journal: Journal | None = None) -> float:
    """About how long what is not done yet takes."""
    done = journal.done if journal else {}
    return sum(each.unit.seconds for each in work if each.unit.key not in done)


def run(work: Sequence[Work], journal: Journal) -> list[Row]:
    """Measure what the journal does not have yet; all rows, in order.

    A part's bench is made when its first unit is due, and closed behind its last one.
    """
    left = [each for each in work if each.unit.key not in journal.done]
    label = "measured" if not journal.done else "of what was left"
    with Progress(label, expected_seconds(left)) as progress:
        for part, units in groupby(left, key=lambda each: each.part):
            _run_part(part, list(units), journal, progress)
    return [row for each in work for row in journal.done[each.unit.key]]


def _run_part(part: Part, work: Sequence[Work], journal: Journal, progress: Progress) -> None:
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix=f"lsm-{part.name}-"))
        bench = stack.enter_context(part.bench(work[0].settings, Path(directory)))
        for each in work:
            progress.on(each.unit.key)
            start = time.perf_counter()
            rows = each.unit.run(bench)
            journal.add(each.unit.key, rows, round(time.perf_counter() - start, 2))
            progress.advance(each.unit.seconds)
