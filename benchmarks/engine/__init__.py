"""``python -m benchmarks engine``: the engine beside plyvel, rocksdict and lmdb.

All engines run in one process over the same data: so many random keys of 16 bytes with values of
100, written in batches of 1000 in random order, 10 bits of filter a key, 256 MiB for blocks and
Snappy; all else is as each engine comes. Ours runs twice, with ``blocked`` filters, its default,
and with LevelDB's own. LMDB has none of that: no filters, no compression, one tree in a mapped
file; it is there as the fastest reader that Python has. Every answer is compared with the right
one before anything is timed; an engine that is wrong once is shown as failed, and not timed any
more.

Lookups and ranges come after ``compact_range()``, closing and opening, and a lookup in every block
that is not timed. They are nanoseconds of processor time of the thread that asks, the best of
five repeats in which the engines take turns, on one processor, without garbage collection.
Everything else is the wall clock's, with the garbage collector as Python has it. What is written
counts until the last call returns, with all that background threads make the writer wait. Loading,
merging and replaying everything is done twice, or more often where there are few keys, and once
where there are ten million; memory is measured once. Among ten million keys iterations are timed
once, too, of ours only ``blocked`` takes part, memory is that after a million lookups, the blocks
do not fit into the cache, and one load serves all rows.

Loading until idle counts until nothing is left to be flushed or compacted, besides the longest
that one batch of a thousand took. Ours has ``wait_until_idle()``; of RocksDB four properties are
asked, whether a flush or a compaction runs or is pending. LevelDB cannot be asked: it is idle when
level 0 has fewer tables than it merges, and its files, its statistics and the processor time of its
thread, which does not wait for the disk either, have not changed for 0.2 s; these do not count. A
commit of LMDB leaves nothing to do but to have the system write it, which the others do with every
table: ``env.sync()`` counts. What a load takes of memory at most is watched from outside, every
two milliseconds, in a process that does nothing else.

On five filled levels every engine has the same entries, in five runs over the whole range of keys,
one on each of the levels 1 to 5. Ours writes them in their places; plyvel opens a copy of what ours
has written with LevelDB's filters, and is kept from merging what it reads (LevelDB moves a table
down after some hundred lookups went through it in vain, which would leave two levels within a
second); RocksDB takes them in as tables. That nothing has moved is checked after every row.

Where nothing is compressed, everything lies on one level, put there in the same way; LMDB, which
compresses nothing, is asked in the same database as before. The filters in Python are those of a
plug-in on the same five levels: Bloom filters of ten bits a key whose every probe is a call of
``key_may_match``. Lookups in four threads count by the wall clock, on all processors, from the
moment at which all have started, without garbage collection; every thread asks for other keys.
Where four writers and four readers work at the same time, and one of each before them, they do so
for half a second on a copy of what was merged: writers put what is there already, one by one, so
that the right answers stay the same.

In the rows of lookups while everything is merged, ``compact_range()`` runs in a second thread, and
each ``get`` of the first is timed by itself until that is over, three times on a copy of what was
loaded and then left alone until nothing was to be done. With nothing going on the same is asked,
for as long, while the second thread sleeps. Memory is what a process of its
own has come to have (``RssAnon``) from before opening to after one pass over all keys; what is
mapped of tables is told besides.

The ratio of a row is to plyvel's number. Ours is held to targets beside each peer with a million
keys, for some questions with 20,000, and each of these has a row of its own in the group Targets:
our number, the peer's in the same run, the ratio, what it must be and what is aimed for. Some are
held against ours in other circumstances: one thread, one of each, idle. With ten million keys
loading is held to its targets, too.
``targets.py`` has all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import attrs

from benchmarks.engine import shown
from benchmarks.engine.benches import Benches
from benchmarks.engine.case import PART, Case
from benchmarks.engine.cases import all_cases
from benchmarks.engine.settings import DEFAULT, FEWEST_KEYS, FULL, MOST_KEYS, QUICK, Scale, Settings
from benchmarks.parts import Part, Size, Unit
from benchmarks.rows import Row

SIZES = {Size.QUICK: QUICK, Size.DEFAULT: DEFAULT, Size.FULL: FULL}


class EnginePart(Part):
    """The engine beside others."""

    name = PART
    help = "the engine beside plyvel, rocksdict and lmdb"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """How many keys the databases have."""
        parser.add_argument(
            "--entries", type=int, action="append", metavar="N",
            help="how many the engines' databases have, in place of this size's; repeatable",
        )  # fmt: skip

    def settings(self, size: Size, options: argparse.Namespace) -> Settings:
        """Those of the size, with the numbers of keys that were asked for."""
        settings = attrs.evolve(SIZES[size], seed=options.seed)
        for keys in options.entries or ():
            if not FEWEST_KEYS <= keys <= MOST_KEYS:
                raise ValueError(
                    f"--entries is out of range: {keys:,}; allowed are {FEWEST_KEYS:,} to "
                    f"{MOST_KEYS:,}"
                )
        sizes = tuple(sorted(set(options.entries or settings.sizes)))
        return attrs.evolve(settings, sizes=sizes)

    def units(self, settings: Settings) -> list[Unit]:
        """A unit for what all engines do in turn."""
        scales = [settings.scale(keys) for keys in settings.sizes]
        return [unit(case, scale) for scale in scales for case in all_cases(scale)]

    def bench(self, settings: Settings, directory: Path) -> AbstractContextManager[Benches]:
        """The databases, made when they are asked for."""
        return Benches(settings, directory)

    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        """A table for every group."""
        return shown.lines(rows)

    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        """What most programs do most of the time, with the most keys."""
        return shown.summary(rows)


def unit(case: Case, scale: Scale) -> Unit:
    """The unit that measures a case."""
    return Unit(case.row(scale.keys), partial(_measured, case, scale.keys), case.seconds(scale))


def _measured(case: Case, keys: int, benches: Benches) -> list[Row]:
    return list(case.rows(benches.of(keys)))
