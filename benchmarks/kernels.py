"""``python -m benchmarks kernels``: the compiled kernel beside its peers, each row with its target.

Every number is nanoseconds of processor time per key (where two threads run, of the wall clock),
the best of several repeats in which ours and the peer's take turns, in one process, on one
processor, without garbage collection. A repeat that is over in less than 20 ms is several passes,
of which it is the mean; where a row's two best repeats differ by more than 2 %, there are up to
three times as many. Keys are random, 16 bytes, and ``bytes`` unless a buffer is spoken of. Nothing
is timed before it has answered "maybe" to all of its keys and to about as many strangers as it
should. The targets are in ``benchmarks/targets.py``.

An *empty compiled call*, the peer of the rows by buffer, is ``gc.is_tracked(key)`` in a ``for``
loop over the same keys: a function in C of one argument (METH_O), which looks at one flag of the
key's type and returns ``False``. The cost of the loop is part of it, and what counts is the best of
the whole run, since it is one number.

A *random cache line*, the peer of the rows on a large filter, is a loop in C over as much memory
(``floor.c``): addresses from two multiplications, each prefetched 128 turns before eight bytes of
it are loaded. That memory has pages of the filter's kind: beside a filter in the kernel's own
memory huge ones, asked for through ``madvise``; beside a view of bytes small ones, which cost half
as much again. Both figures are among the rows of information, for who wants to compare across.

``--json PATH`` writes a record, an object with these members:

=============  ====================================================================================
``schema``     1; a record with other members or meanings has another number
``command``    ``"kernels"``
``date``       what ``--date`` says, or the time in UTC; ISO 8601
``machine``    ``processor``, ``processors``, ``processors_allowed``, ``system``, ``architecture``,
               ``memory_bytes``, ``huge_pages`` and ``load_average`` (three numbers, at the start)
``kernel``     ``name`` (``"native"``), ``default`` and ``reason`` (``filters.KERNEL`` and why),
               ``simd`` in use and ``simd_available``
``versions``   of ``python``, ``lsm-filters`` and every library that takes part; null: not installed
``settings``   ``keys``, ``repeats``, ``seed``, ``fuse_keys``, ``large_bytes``, ``large_keys``,
               ``python_keys``, ``thread_passes``, ``at_least_seconds`` (how long a repeat runs),
               ``patience`` (up to so many times the repeats), ``quick`` and ``only`` as given
``rows``       one object for each row, see below
``summary``    how many rows came to each verdict, ``seconds`` for all, ``load_average`` at the end
=============  ====================================================================================

A row has ``group``, ``name``, ``column`` (empty outside tables), ``verdict`` (``met``, ``MISSED``,
``information``, ``failed`` or ``not measured``), ``reason`` (for the last two), ``note``, ``ours``
and ``peer`` (null, or ``best`` and the list ``repeats``, in ns per key), ``ratio`` (null without a
peer), and ``target`` (null, or ``limit``, ``at_least`` and ``wording``). The ratio is ours over the
peer's, and the other way round where the target is an ``at_least``.

The exit status is 0 where everything was measured, targets missed or not; 1 where a subject gave
wrong answers or a row failed in another way; 2 where there is no compiled kernel, or no such row.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import attrs

from benchmarks import report
from benchmarks.bench import FAILED, FULL, QUICK, Bench, Case, Row, Settings, chosen, run
from benchmarks.machine import load_average
from benchmarks.rows_of_information import information
from benchmarks.rows_with_targets import with_targets
from filters import kernels
from filters.errors import KernelUnavailableError

HELP = "the compiled kernel beside its peers, each row with its target"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--quick", action="store_true", help="a tenth of the keys, some seconds")
    parser.add_argument("--only", metavar="SUBSTRING", help="only rows whose name contains this")
    parser.add_argument("--repeats", type=int, help=f"of each row ({FULL.repeats})")
    parser.add_argument("--seed", type=int, default=FULL.seed, help=f"of the keys ({FULL.seed})")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write a record of all repeats")
    parser.add_argument("--date", help="for the record, in place of the clock's; ISO 8601")


def main(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Measure, print, record; the exit status."""
    settings = settings_of(arguments, parser)
    try:
        kernel = kernels.load("native")
    except KernelUnavailableError as error:
        print(f"There is nothing to measure: {error}.", file=sys.stderr)
        return 2
    try:
        cases = chosen(all_cases(settings), arguments.only)
    except ValueError as error:
        parser.error(str(error))
    date = arguments.date or datetime.now(UTC).isoformat(timespec="seconds")
    about = report.about(settings, date, quick=arguments.quick, only=arguments.only)
    started = time.monotonic()
    rows = run_all(cases, Bench(settings, kernel))
    taken = time.monotonic() - started
    summary = {**report.counts(rows), "seconds": round(taken, 1), "load_average": load_average()}
    print(report.text(about, rows, summary))
    if arguments.json:
        arguments.json.write_text(report.record(about, rows, summary))
    return int(any(row.verdict == FAILED for row in rows))


def settings_of(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> Settings:
    """The settings that the options lead to."""
    settings = attrs.evolve(QUICK if arguments.quick else FULL, seed=arguments.seed)
    if arguments.repeats is None:
        return settings
    if not 1 <= arguments.repeats <= 100:
        parser.error("--repeats must lie between 1 and 100")
    return attrs.evolve(settings, repeats=arguments.repeats)


def all_cases(settings: Settings) -> list[Case]:
    """Every row there is: those with targets, and those for information."""
    return [*with_targets(settings), *information(settings)]


def run_all(cases: Iterable[Case], bench: Bench) -> list[Row]:
    """Run the cases, and say on stderr which one is on."""
    wanted, rows = list(cases), []
    for number, case in enumerate(wanted, start=1):
        progress = f"[{number}/{len(wanted)}] {case.label}"
        print(f"\r{progress[:99]:<99}", end="", file=sys.stderr, flush=True)
        rows.append(run(case, bench))
    print(f"\r{'':<99}\r", end="", file=sys.stderr, flush=True)
    return rows
