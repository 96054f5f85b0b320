"""Running a compaction: merging input tables into output tables.

Nothing here knows the database: a job says all that is needed, so that any thread can run it, or
any process that can read and write the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import attrs

from lsm.disk.keys import Entry, rank_of
from lsm.errors import IOError
from lsm.kernels.python import merge
from lsm.table_factory import DeeperLevels, Output, TableFactory

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.table_builder import TableBuilder
    from lsm.kernels import TableFile


class StoppedError(Exception):
    """The job was told to stop; its outputs are not complete."""


@attrs.frozen(kw_only=True)
class Job:
    """One compaction.

    ``runs`` are tables in order, newer runs and older ones alike. ``deeper`` are the levels below
    the output's, ``grandparents`` the upper bounds and sizes of the tables on the first of these.
    Versions that are superseded for every snapshot from ``oldest_snapshot`` on are left out.
    """

    factory: TableFactory
    level: int
    runs: Sequence[Sequence[TableFile]]
    deeper: DeeperLevels
    grandparents: Sequence[tuple[OrderedKey, int]]
    overlap_limit: int
    oldest_snapshot: int
    should_stop: Callable[[], bool]


def run(job: Job) -> list[Output]:
    """Merge the inputs and write them anew; raises StoppedError when told to stop.

    After an error the outputs that were written are of no use; whoever called removes them.
    """
    writer = _Writer(job)
    entries = job.factory.entries
    try:
        for window in merge.ascending(
            chain.from_iterable(map(entries, tables)) for tables in job.runs
        ):
            if job.should_stop():
                raise StoppedError
            writer.add(_survivors(job, window))
        return writer.finish()
    except BaseException:
        with contextlib.suppress(IOError):
            writer.abandon()
        raise


def _survivors(job: Job, window: list[Entry]) -> list[Entry]:
    """The entries that a snapshot, taken or to come, may still see."""
    horizon = rank_of(job.oldest_snapshot)
    survivors, last, is_superseded = [], None, False
    for entry in window:
        key, rank, _ = entry
        if key == last:
            if is_superseded:
                continue
        else:
            last, is_superseded = key, False
        if rank >= horizon:  # every snapshot sees this one or a newer one, and none an older one
            is_superseded = True
            if not rank & 1 and not job.deeper.overlap(key, key):
                continue  # a tombstone with nothing left to hide
        survivors.append(entry)
    return survivors


class _Writer:
    """Writes the outputs of a job; each ends at its size limit, or its limit of grandparents."""

    def __init__(self, job: Job):
        self._job = job
        self._outputs: list[Output] = []
        self._builder: TableBuilder | None = None
        self._number = 0
        self._grandparent = 0
        self._overlap = 0
        self._last: OrderedKey = None

    def add(self, entries: list[Entry]) -> None:
        """Add the entries of one window, which begins with a new user key."""
        factory = self._job.factory
        ordered, entries = entries, factory.unwrapped(entries)
        at = 0
        while at < len(entries):
            if self._builder is not None and self._should_cut(ordered[at][0]):
                self._finish_table()
            if self._builder is None:
                self._number = factory.new_number()
                self._builder = factory.builder(
                    self._number, self._job.level, self._job.deeper, "compaction"
                )
            at = self._builder.add_block(entries, at)
            self._last = ordered[at - 1][0]

    def finish(self) -> list[Output]:
        """All outputs, the last one finished."""
        self._finish_table()
        return self._outputs

    def abandon(self) -> None:
        """Close the file of the table that is being built, which the caller removes."""
        if self._builder is not None:
            self._builder.abandon()

    def _should_cut(self, key: OrderedKey) -> bool:
        """Whether the table should end before this key; never between versions of one."""
        job, builder = self._job, self._builder
        assert builder is not None
        while (
            self._grandparent < len(job.grandparents)
            and job.grandparents[self._grandparent][0] < key
        ):
            self._overlap += job.grandparents[self._grandparent][1]
            self._grandparent += 1
        if self._last == key:
            return False
        return builder.size >= job.factory.max_file_size or self._overlap > job.overlap_limit

    def _finish_table(self) -> None:
        if self._builder is not None:
            self._outputs.append(Output(self._number, self._builder.finish()))
            self._builder = None
            self._overlap = 0
