"""The commands that measure: one part of the benchmark, or all of them.

A run has a directory. While it goes on its rows are kept there, so that ``--resume`` can go on with
it after it was stopped; in the end there are the record and the report.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import Any

from benchmarks import machine, report
from benchmarks.advice import advice
from benchmarks.journal import JOURNAL_NAME, Journal
from benchmarks.parts import Part, Size
from benchmarks.record import RECORD_NAME, Record, head
from benchmarks.rows import FAILED, MISSED, UNEXPECTED, VERDICTS, counts, number
from benchmarks.running import Work, all_work, chosen, expected_seconds, run
from benchmarks.text import duration

RUNS = Path("build/benchmarks")
STOPPED = 130


def add_arguments(parser: argparse.ArgumentParser, parts: Sequence[Part]) -> None:
    """The options of all measuring commands, and those of these parts."""
    sizes = parser.add_mutually_exclusive_group()
    for size, told in ((Size.QUICK, "under a minute for all"), (Size.FULL, "says how long first")):
        sizes.add_argument(
            f"--{size}", dest="size", action="store_const", const=size, default=Size.DEFAULT,
            help=told,
        )  # fmt: skip
    parser.add_argument("--only", metavar="SUBSTRING", help="only what has this in its name")
    parser.add_argument("--seed", type=int, default=1, help="of keys and data (1)")
    parser.add_argument(
        "--directory", type=Path, metavar="DIR",
        help=f"where record and report go (a new one in {RUNS})",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true",
        help="go on with the run that was stopped there, or with the last one that was",
    )  # fmt: skip
    parser.add_argument("--date", help="for the record, in place of the clock's; ISO 8601")
    for part in parts:
        part.add_arguments(parser)


def main(options: argparse.Namespace, parser: argparse.ArgumentParser, parts: list[Part]) -> int:
    """Measure, print, record, report; the exit status."""
    try:
        settings = {part.name: part.settings(options.size, options) for part in parts}
        work = chosen(all_work(parts, settings), options.only)
        journal = _journal(options, settings)
    except ValueError as error:
        parser.error(str(error))
    left = expected_seconds(work, journal)
    print(_headline(journal, work, left), flush=True)
    try:
        rows = run(work, journal)
    except KeyboardInterrupt:
        print(_stopped(journal, work), file=sys.stderr)
        return STOPPED
    summary = {
        **counts(rows),
        "seconds": round(journal.seconds, 1),
        "load_average": machine.load_average(),
    }
    record = Record(journal.head, rows, summary)
    directory = journal.path.parent
    record.write(directory / RECORD_NAME)
    journal.remove()
    page = report.write(record, directory)
    print(*shown(record, parts), sep="\n")
    print(*ending(record), sep="\n")
    print(f"record: {directory / RECORD_NAME}\nreport: {page}")
    return int(any(row.verdict == FAILED for row in rows))


def shown(record: Record, parts: Sequence[Part]) -> Iterator[str]:
    """The tables of one part; of several parts a screenful each, and what to choose."""
    if len(parts) == 1:
        yield from parts[0].text(record.rows)
        return
    for part in parts:
        yield from part.summary(record.of(part.name))
    for each in advice(record):
        yield from (
            "",
            each.question,
            *wrap(each.answer, 99, initial_indent="  ", subsequent_indent="  "),
        )


def ending(record: Record) -> list[str]:
    """What to look at first, and how many rows came to what."""
    lines = [""]
    for row in record.rows:
        if row.verdict == MISSED and row.target:
            value = row.value if row.target.absolute else row.ratio
            lines.append(f"MISSED: {row.id}: {number(value)}; {row.target.wording}")
        elif row.verdict == UNEXPECTED:
            lines.append(f"UNEXPECTED: {row.id}: {row.note or number(row.value)}")
        elif row.verdict == FAILED:
            lines.append(f"FAILED: {row.id}: {row.reason}")
    missing = {row.reason: None for row in record.rows if row.value is None and row.reason}
    told = [f"{record.summary[each]} {each}" for each in VERDICTS if record.summary[each]]
    lines += [f"not measured: {reason}" for reason in missing if "installed" in reason]
    lines.append(f"{len(record.rows)} rows: {', '.join(told)}; {record.summary['seconds']:.0f} s")
    return lines


def _journal(options: argparse.Namespace, settings: Mapping[str, Any]) -> Journal:
    """A new journal in a new directory, or one to go on with."""
    date = options.date or datetime.now(UTC).isoformat(timespec="seconds")
    about = head(options.command, options.size, settings, date)
    directory = options.directory
    if options.resume:
        directory = directory or _last_stopped()
        if not (directory / JOURNAL_NAME).exists():
            raise ValueError(f"--resume: no run was stopped in {directory}")
        return Journal.found(directory / JOURNAL_NAME, about)
    directory = directory or _new_directory()
    for name in (JOURNAL_NAME, RECORD_NAME):
        if (directory / name).exists():
            more = " --resume goes on with it;" if name == JOURNAL_NAME else ""
            raise ValueError(
                f"--directory: {directory / name} is there already;{more} choose another directory"
            )
    directory.mkdir(parents=True, exist_ok=True)
    return Journal.begun(directory / JOURNAL_NAME, about)


def _new_directory() -> Path:
    """One named after the time; a second run in the same second gets a number behind it."""
    name = time.strftime("%Y-%m-%d-%H%M%S")
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(RUNS / each for each in names if not (RUNS / each).exists())


def _last_stopped() -> Path:
    found = sorted(RUNS.glob(f"*/{JOURNAL_NAME}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise ValueError(f"--resume: no run in {RUNS} was stopped; name one with --directory")
    return found[-1].parent


def _headline(journal: Journal, work: Sequence[Work], left: float) -> str:
    here, kernel = journal.head["machine"], journal.head["kernel"]
    done = f"{len(journal.done)} of {len(work)} units are done; " if journal.done else ""
    processors = f"{here['processors_allowed']} of {here['processors']} processors"
    return (
        f"{here['processor']}, {processors}, load {here['load_average']}; {kernel['name']} kernel "
        f"({kernel['reason']}), {kernel['engine']} engine\n{done}this takes about {duration(left)}"
    )


def _stopped(journal: Journal, work: Sequence[Work]) -> str:
    directory = journal.path.parent
    return (
        f"\nstopped; {len(journal.done)} of {len(work)} units are kept. The same command with "
        f"--resume --directory {directory} goes on"
    )
