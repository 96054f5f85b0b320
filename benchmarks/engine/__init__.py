"""``python -m benchmarks engine``: the engine beside plyvel, each row with its target.

Both engines run in one process over the same data: N random keys of 16 bytes with values of 100,
written in batches of 1000 in random order, 10 bits of filter a key, 256 MiB for blocks. Ours runs
twice, with ``blocked`` filters, its default, and with LevelDB's own. Every answer is compared with
the right one before anything is timed.

Lookups and ranges come after ``compact_range()``, closing and opening, and one pass over all keys
that is not timed. They are nanoseconds of processor time of the thread that asks, the best of
several repeats in which the engines take turns, on one processor, without garbage collection.
Everything else is the wall clock's, with the garbage collector as Python has it. What is written
counts until the last call returns, with all that background threads make the writer wait. Loading
is the best of two, and what has one number was measured once.

In the rows of lookups while everything is merged, ``compact_range()`` runs in a second thread, and
each ``get`` of the first is timed by itself until that is over. LevelDB's filters take no part in
these. Memory is what a process of its own has come to have (``RssAnon``) from before opening to
after one pass over all keys; what is mapped of the tables is told besides.

``--json PATH`` writes a record, an object with these members:

=============  ====================================================================================
``schema``     1; a record with other members or meanings has another number
``command``    ``"engine"``
``date``       what ``--date`` says, or the time in UTC; ISO 8601
``machine``    as in the record of ``python -m benchmarks kernels``
``kernel``     of the filters: ``name``, ``default`` and ``reason``
``versions``   of ``python``, ``lsm-filters`` and every library that takes part; null: not there
``settings``   ``keys``, ``repeats``, ``seed``, ``batch`` (puts in one), ``probes`` (keys that are
               looked up), ``ranges``, ``replays`` (of the whole log), ``puts``, ``sync_puts`` and
               ``quick``
``rows``       one object for each row, see below
``summary``    how many rows came to each verdict, ``seconds`` for all, ``load_average`` at the end
=============  ====================================================================================

A row has ``group``, ``name``, ``unit``, ``verdict`` (``met``, ``MISSED``, ``information``,
``failed`` or ``not measured``), ``reason`` (for the last two), ``note``, ``ours`` and ``peer``
(null, or ``engine``, ``best`` and the list ``repeats``), ``ratio`` (null without a peer), and
``target`` (null, or ``limit``, ``absolute`` and ``wording``). The ratio is ours over the peer's and
at most the limit; where the target is ``absolute``, our number is at most that.

The exit status is 0 where everything was measured, targets missed or not; 1 where an engine gave
wrong answers or a row failed in another way; 2 for an option that is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import attrs

from benchmarks.bench import FAILED
from benchmarks.engine import report
from benchmarks.engine.bench import Bench
from benchmarks.engine.cases import all_cases
from benchmarks.engine.rows import Case, Row, run
from benchmarks.engine.settings import FULL, QUICK, Settings
from benchmarks.machine import load_average

HELP = "the engine beside plyvel, each row with its target"
FEWEST_KEYS, MOST_KEYS = 1000, 20_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--quick", action="store_true", help="few keys, one repeat, some seconds")
    parser.add_argument("--keys", type=int, help=f"how many are loaded ({FULL.keys})")
    parser.add_argument("--repeats", type=int, help=f"of each row ({FULL.repeats})")
    parser.add_argument("--seed", type=int, default=FULL.seed, help=f"of the keys ({FULL.seed})")
    parser.add_argument(
        "--directory", type=Path, help="where a directory for the databases is made and removed"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write a record of all repeats")
    parser.add_argument("--date", help="for the record, in place of the clock's; ISO 8601")


def main(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Measure, print, record; the exit status."""
    settings = settings_of(arguments, parser)
    if arguments.directory is not None and not arguments.directory.is_dir():
        parser.error(f"--directory: {arguments.directory} is no directory")
    date = arguments.date or datetime.now(UTC).isoformat(timespec="seconds")
    about = report.about(settings, date, quick=arguments.quick)
    started = time.monotonic()
    with Bench(settings, arguments.directory) as bench:
        rows = run_all(all_cases(), bench)
    taken = time.monotonic() - started
    summary = {**report.counts(rows), "seconds": round(taken, 1), "load_average": load_average()}
    print(report.text(about, rows, summary))
    if arguments.json:
        arguments.json.write_text(report.record(about, rows, summary))
    return int(any(row.verdict == FAILED for row in rows))


def settings_of(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> Settings:
    """The settings that the options lead to."""
    settings = attrs.evolve(QUICK if arguments.quick else FULL, seed=arguments.seed)
    if arguments.repeats is not None:
        if not 1 <= arguments.repeats <= 100:
            parser.error("--repeats must lie between 1 and 100")
        settings = attrs.evolve(settings, repeats=arguments.repeats)
    if arguments.keys is not None:
        if not FEWEST_KEYS <= arguments.keys <= MOST_KEYS:
            parser.error(f"--keys must lie between {FEWEST_KEYS} and {MOST_KEYS}")
        settings = attrs.evolve(settings, keys=arguments.keys)
    return settings


def run_all(cases: Iterable[Case], bench: Bench) -> list[Row]:
    """Run the cases, and say on stderr which one is on."""
    wanted, rows = list(cases), []
    for at, case in enumerate(wanted, start=1):
        print(f"[{at}/{len(wanted)}] {case.label}", file=sys.stderr, flush=True)
        rows.append(run(case, bench))
    return rows
