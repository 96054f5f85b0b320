"""``python -m benchmarks filters``: what each filter costs and saves, on which keys.

Who takes part: every policy that is installed, plug-ins included, the filters of other libraries,
and what one has without a filter: a ``set``, a ``sorted array`` (a sorted list of the keys and
``bisect``), and ``no filter``. Who cannot take part has a row that says why.

Everybody gets the same keys in the same order. A filter is built, written to its file as it would
be stored (a policy's in its block, LevelDB's and RocksDB's as they stand in a table) and opened
again; what comes out is asked. Every key is asked first, in every form: one that is denied makes
the row "failed", and nothing is timed. Then:

- **Rates and sizes.** Absent keys are of the same kind as the keys, and it is checked that none of
  them is a key. The rate has its 95 % interval, and the number of standard errors between it and
  what the filter predicts, or what a library was asked for; more than four are marked. Keys of
  ``integers`` and ``composite`` show which hashes are weak. Bits per key are those of the file; the
  lower bound is log2(1/rate) of the rate that was measured.
- **Speed.** Nanoseconds of processor time per key, the best of five repeats, in which all questions
  to one filter take turns. The keys that are asked are a random choice of all, and copies of them;
  "in order" they lie one behind the other in memory, shuffled each is a cache miss. Who is slow is
  asked for fewer keys. A build that takes more than two seconds is timed once. Beside single keys
  stands *an empty compiled call*, ``gc.is_tracked(key)`` in a loop over the same keys, beside lists
  and buffers *a random cache line*: a load from as much memory as the filter takes, in small pages,
  prefetched 128 loads before. bytes objects keep the hash that ``set`` looks them up by; all others
  hash a key each time.
- **Opening.** The file is dropped from the system's cache, where that can be asked for, and the
  processor's caches are overwritten: then, on the wall clock, it is opened and asked for 1000 keys.
  The median of five.
- **Memory.** The peak of a build above the list of keys, from 100,000 keys on and over the first
  kind of keys only: in a process of its own, since a peak belongs to a process and memory that was
  given back leaves no trace when it is taken again.

The sweep builds the same families in other sizes, and has rows on rates and sizes only.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from benchmarks.errors import UnavailableError
from benchmarks.filters import contenders, settings, tables
from benchmarks.filters.bench import PART, Bench, row
from benchmarks.filters.contenders import Contender, unadvised
from benchmarks.filters.memory import peak_while_building
from benchmarks.filters.opening import cold_open
from benchmarks.filters.rates import rates_and_sizes
from benchmarks.filters.settings import Settings
from benchmarks.filters.speed import timings
from benchmarks.parts import Part, Size, Unit
from benchmarks.rows import Row

# What a unit takes: at all, per key, per absent key, and in a process for the peak.
AT_ALL, PER_KEY, PER_ABSENT = 0.2, 1e-6, 2e-7
PROCESS, PROCESS_PER_KEY = 0.2, 5e-7
SWEPT_PER_KEY = 4e-7


class FiltersPart(Part):
    """Every filter there is, over many kinds and numbers of keys."""

    name = PART
    help = "every policy and peer: rates, sizes, speed, opening, memory"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which keys and which policies."""
        settings.add_arguments(parser)

    def settings(self, size: Size, options: argparse.Namespace) -> Settings:
        """As much as a size says, or what the options ask for."""
        return settings.chosen(size, options)

    def units(self, settings: Settings) -> list[Unit]:
        """A unit for everybody over each set of keys, and one for each size of the sweep."""
        units = [
            _unit(settings, each, kind, count, whole=True)
            for kind, count in settings.sets
            for each in contenders.measured(settings)
        ]
        known = {unit.key for unit in units}
        swept = (
            _unit(settings, each, settings.sweep_kind, settings.sweep_keys, whole=False)
            for each in contenders.swept(settings)
        )
        return [*units, *(unit for unit in swept if unit.key not in known)]

    def bench(self, settings: Settings, directory: Path) -> AbstractContextManager[Bench]:
        """Keys, made when they are asked for."""
        return nullcontext(Bench(settings, directory))

    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        """A table for each set of keys."""
        yield from tables.lines(rows)

    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        """A table for the largest set of keys."""
        yield from tables.summary(rows)


def _unit(settings: Settings, who: Contender, kind: str, count: int, *, whole: bool) -> Unit:
    measure = partial(measured, who=who, kind=kind, count=count, whole=whole)
    return Unit(row(who, kind, count), measure, _seconds(settings, kind, count, whole))


def measured(bench: Bench, *, who: Contender, kind: str, count: int, whole: bool) -> Iterator[Row]:
    """The rows on one contender over one set of keys; only rates and sizes unless ``whole``."""
    with unadvised():
        _check_count(who, count, bench.settings)
        built = bench.built(who, kind, count)
        yield from rates_and_sizes(built, bench.settings)
        if whole:
            yield from timings(built, bench.settings)
            yield cold_open(built, bench)
            if _has_peak(bench.settings, kind, count):
                yield peak_while_building(built, bench)


def _check_count(who: Contender, count: int, settings: Settings) -> None:
    """UnavailableError where somebody would take too long over so many keys."""
    subject = who.make()
    if subject.slow and count > settings.slow_keys:
        raise UnavailableError(
            f"it is written in Python, and at {count:,} keys would take longer than all others "
            f"together: in this size of run it is measured up to {settings.slow_keys:,}"
        )
    if subject.most_keys is not None and count > subject.most_keys:
        raise UnavailableError(
            f"at {count:,} keys it would take minutes: it is measured up to {subject.most_keys:,}"
        )


def _has_peak(settings: Settings, kind: str, count: int) -> bool:
    return kind == settings.sweep_kind and count >= settings.memory_from


def _seconds(settings: Settings, kind: str, count: int, whole: bool) -> float:
    absent = settings.absent * PER_ABSENT
    if not whole:
        return absent / 2 + count * SWEPT_PER_KEY
    seconds = AT_ALL + absent + count * PER_KEY
    if _has_peak(settings, kind, count):
        seconds += PROCESS + count * PROCESS_PER_KEY
    return seconds
