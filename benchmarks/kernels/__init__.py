"""``python -m benchmarks kernels``: the compiled kernel beside its peers, each row with its target.

Every number is nanoseconds of processor time per key (where two threads run, of the wall clock),
the best of several repeats in which ours and the peer's take turns, in one process, on one
processor, without garbage collection. A repeat that is over in less than 20 ms is several passes,
of which it is the mean; where a row's two best repeats differ by more than 2 %, there are up to
three times as many. Keys are random, 16 bytes, and ``bytes`` unless a buffer is spoken of. Nothing
is timed before it has answered "maybe" to all of its keys and to about as many absent keys as it
should. The targets are in ``benchmarks/kernels/targets.py``.

An *empty compiled call*, the peer of the rows by buffer, is ``gc.is_tracked(key)`` in a ``for``
loop over the same keys: a function in C of one argument (METH_O), which looks at one flag of the
key's type and returns ``False``. The cost of the loop is part of it, and what counts is the best of
the whole run, since it is one number.

A *random cache line*, the peer of the rows on a large filter, is a loop in C over as much memory
(``floor.c``): addresses from two multiplications, each prefetched 128 turns before eight bytes of
it are loaded. That memory has pages of the filter's kind: beside a filter in the kernel's own
memory huge ones, asked for through ``madvise``; beside a view of bytes small ones, which cost half
as much again. Both figures are among the rows of information, for who wants to compare across.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import attrs

from benchmarks import text
from benchmarks.kernels.bench import PART, Bench, Case, Settings
from benchmarks.kernels.rows_of_information import information
from benchmarks.kernels.rows_with_targets import with_targets
from benchmarks.parts import Part, Size, Unit
from benchmarks.peers import BY_NAME
from benchmarks.rows import Row

# The default is what the targets are stated for.
DEFAULT = Settings()
QUICK = Settings(
    keys=100_000,
    fuse_keys=3_000_000,
    large_bytes=1 << 26,
    large_keys=1_000_000,
    python_keys=20_000,
    at_least_seconds=0.005,
    patience=1,
    judged=False,
)

# What the rows of a heading take at the default, where it is more than a moment. Making keys and
# filters falls to the first rows that need them.
SECONDS = {
    "One key at a time, in order": 1.5,
    "Building binary fuse": 12.0,
    "Two threads, one blocked filter": 3.0,
}
MOMENT = 0.7


class KernelsPart(Part):
    """The table of what the compiled kernel is to reach."""

    name = PART
    help = "the compiled kernel beside its peers, each row with its target"

    def settings(self, size: Size, options: argparse.Namespace) -> Settings:
        """Quick, or what the targets are stated for."""
        return attrs.evolve(QUICK if size is Size.QUICK else DEFAULT, seed=options.seed)

    def units(self, settings: Settings) -> list[Unit]:
        """A unit for each row."""
        return [unit(case, settings) for case in all_cases(settings)]

    def bench(self, settings: Settings, directory: Path) -> AbstractContextManager[Bench]:
        """Keys and filters, made when they are asked for."""
        return nullcontext(Bench(settings))

    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        """The rows under their headings."""
        groups = {case.group.title: case.group for case in _every_size()}
        for title, members in text.by_group(rows):
            group = groups.get(title)
            yield ""
            yield title
            if group:
                yield f"  {group.what}"
            if group and group.columns:
                yield from text.grid(members, lambda row: row.name, _column)
            else:
                yield from text.listing(members)

    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        """What has a target, beside the other libraries."""
        beside = [row for row in rows if row.peer in BY_NAME and row.group in _with_targets()]
        if beside:
            yield ""
            yield "The compiled kernel beside the fastest peers: best ns per key"
            yield from text.listing(beside, _short)


def all_cases(settings: Settings) -> list[Case]:
    """Every row there is: those with targets, and those for information.

    Over fewer keys than the targets are stated for, nothing is held to them.
    """
    cases = [*with_targets(settings), *information(settings)]
    return cases if settings.judged else [attrs.evolve(case, target=None) for case in cases]


def unit(case: Case, settings: Settings) -> Unit:
    """The unit that measures a case."""
    seconds = SECONDS.get(case.group.title, MOMENT) * settings.keys / DEFAULT.keys
    return Unit(case.row, partial(_measured, case), seconds)


def _measured(case: Case, bench: Bench) -> list[Row]:
    return case.rows(bench)


def _every_size() -> Iterator[Case]:
    for settings in (DEFAULT, QUICK):
        yield from all_cases(settings)


def _with_targets() -> set[str]:
    return {case.group.title for case in with_targets(DEFAULT)}


def _short(row: Row) -> str:
    return f"{row.group.removesuffix(', in order')}: {row.name}"


def _column(row: Row) -> str:
    return str(row.at["column"])
