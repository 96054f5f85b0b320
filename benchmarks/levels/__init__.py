"""``python -m benchmarks levels``: which filter on which level, for which memory.

Five levels, each with four times as many keys as the one above, are filled in one database for each
configuration: the same keys, looked up in the same order. A run is one table, written as a
compaction into its level would write it, so every level carries the filter that is configured for
it. In a live store that need not be so: a table that moves down without being merged keeps the
filter of the level it was written for, and ``db.filters()`` shows it among the ``drifted`` ones.
Level 0 is empty. Blocks are not compressed, and have 4 KiB.

Before a database is even filled, what lookups will read is predicted and written to a file: from
what the configuration says and how many keys each level is to have, and not from any filter that
was built. A key that is nowhere comes to every level, for all runs reach over all of it, and reads
a block there as often as ``filters.sizing`` expects of the level's filter, or always where there is
none. A key on a level reads one block there, and on each level above as an absent key does.

Then keys are looked up with ``db.get``, every answer is checked, and ``db.stats()`` tells how many
blocks each level was asked for, from cache or from storage. Intervals hold 95 %: Wilson's for a
level; for all levels together these, added up as independent ones (MOVER). ``sigmas`` are the
distance from the prediction in standard errors, or, where few reads are expected and counts are
lopsided, as many errors as would be as unlikely. They count two kinds of chance: that of so many
lookups, and that of one filter among its kind, since a blocked filter of some hundred keys easily
has a rate a tenth above or below what is typical. A row is UNEXPECTED where the blocks that were
read in vain are more than four standard errors away, and more than 15 % too: what is closer than
that would not change a choice. LevelDB's filters have sizes at which they are worse than their
typical rate; with one of these a row may well be marked.

Time is the processor's, for keys that were looked up before, with all blocks in memory: the best of
five repeats or more, in which absent and present keys take turns. Configurations come one after the
other, each with a database of its own, so what disturbs the machine for long hits them differently.
What a lookup takes from flash or disk is that time, and 100 us or 10 ms for each block it reads:
this is arithmetic on two measured numbers, and not measured itself.

A few configurations are measured on four levels, too, each with ten times as many keys as the one
above. Among these are budgets. They come to a level that is filled before those above it, of which
nothing is known then: so they are measured as filled and refiltered, with a table for each level
and with tables of 2 MiB. Their prediction asks the engine's law, of the keys that are planned.

Live stores are loaded, and not filled: with random keys, a fifth of which are overwritten, in three
shapes of trees. Lookups of absent keys come evenly, by Zipf's law or mostly in a hot range, and all
filters are compared on one and the same tree, from the lookups that fall within the bounds of each
of its tables. Half a million keys and more are loaded with the engine's own sizes; of fewer keys
memtables, tables and levels are smaller, so that there are some levels of them, and what filters
take besides their bits weighs more.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from benchmarks.levels import cold, little_memory, live_table, ranges, table
from benchmarks.levels import settings as given
from benchmarks.levels.bench import Bench
from benchmarks.levels.budget import LIVE, PART, READS
from benchmarks.levels.configurations import Configuration, all_configurations
from benchmarks.levels.live import LIVE_SHAPES, LiveShape
from benchmarks.levels.lookups import ZIPF
from benchmarks.levels.outcome import rows_of
from benchmarks.levels.settings import Settings
from benchmarks.parts import Part, Size, Unit
from benchmarks.rows import Row

# What a configuration takes: to write a key, to look one up, and to time it once.
PER_KEY, PER_LOOKUP = 3e-6, 4.5e-6
# What all filters of a live store take together.
PER_LIVE_KEY, PER_LIVE_LOOKUP = 12e-6, 30e-6
# What all layouts with all memories take, and all filters for all ranges.
PER_LITTLE_LOOKUP, PER_RANGE_KEY, PER_RANGE = 200e-6, 60e-6, 2e-3


class LevelsPart(Part):
    """Which filter at which level, for which memory."""

    name = PART
    help = "which filter on which level, for which memory"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The user's own configurations, and how many keys."""
        given.add_arguments(parser)

    def settings(self, size: Size, options: argparse.Namespace) -> Settings:
        """How much is measured; ValueError for a wrong option."""
        return given.settings_of(size, options)

    def units(self, settings: Settings) -> list[Unit]:
        """A unit for each configuration of filled levels, and for each shape of a live store."""
        filled = [unit(each, settings) for each in all_configurations(settings)]
        live = [live_unit(each, settings) for each in LIVE_SHAPES]
        others = little_unit(settings), ranges_unit(settings), cold_unit(settings)
        return [*filled, *live, *others]

    def bench(self, settings: Settings, directory: Path) -> AbstractContextManager[Bench]:
        """The data, made when it is asked for, and a place for databases."""
        return nullcontext(Bench(settings, directory))

    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        """Configurations, levels, and what to use for a memory."""
        yield from table.lines(rows)
        yield from self._others(rows)

    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        """A line for each configuration."""
        yield from table.summary(rows)
        yield from self._others(rows)

    def _others(self, rows: Sequence[Row]) -> Iterator[str]:
        yield from live_table.lines(rows)
        yield from little_memory.lines(rows)
        yield from ranges.lines(rows)
        yield from cold.lines(rows)


def unit(configuration: Configuration, settings: Settings) -> Unit:
    """The unit that measures a configuration."""
    lookups = settings.absent + settings.present + 2 * settings.repeats * settings.timed
    seconds = PER_KEY * settings.keys + PER_LOOKUP * lookups
    row = Row(part=PART, group=READS, name="", subject=configuration.name, at=configuration.at)
    return Unit(row, partial(_measured, configuration), seconds)


def live_unit(shape: LiveShape, settings: Settings) -> Unit:
    """The unit that measures all filters on one live store."""
    seconds = PER_LIVE_KEY * settings.live_keys + PER_LIVE_LOOKUP * settings.live_absent
    row = Row(part=PART, group=LIVE, name="", subject=shape.name)
    return Unit(row, partial(_live, shape), seconds)


def little_unit(settings: Settings) -> Unit:
    """The unit that measures layouts with less memory than filters take."""
    seconds = PER_KEY * settings.little_keys + PER_LITTLE_LOOKUP * settings.little_lookups
    row = Row(part=PART, group=little_memory.GROUP, name="", subject=ZIPF)
    return Unit(row, _with_little_memory, seconds)


def ranges_unit(settings: Settings) -> Unit:
    """The unit that measures ranges in which there is nothing."""
    seconds = PER_RANGE_KEY * settings.range_keys + PER_RANGE * settings.ranges
    row = Row(part=PART, group=ranges.GROUP, name="", subject="empty")
    return Unit(row, _of_ranges, seconds)


def cold_unit(settings: Settings) -> Unit:
    """The unit that measures stores that were opened just now."""
    row = Row(part=PART, group=cold.GROUP, name="", subject="lookups")
    return Unit(row, _opened_just_now, PER_KEY * settings.keys + settings.repeats)


def _opened_just_now(bench: Bench) -> Iterator[Row]:
    yield from cold.ColdOpen(bench.settings, bench.directory, bench.data).rows()


def _with_little_memory(bench: Bench) -> Iterator[Row]:
    yield from little_memory.LittleMemory(bench.settings, bench.directory).rows()


def _of_ranges(bench: Bench) -> Iterator[Row]:
    yield from ranges.Ranges(bench.settings, bench.directory).rows()


def _live(shape: LiveShape, bench: Bench) -> Iterator[Row]:
    yield from bench.live.measured(shape)


def _measured(configuration: Configuration, bench: Bench) -> Iterator[Row]:
    yield from rows_of(bench.measured(configuration), bench.data_of(configuration.shape))
