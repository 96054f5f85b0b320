"""Running a compaction: from input tables, options and policies to output tables.

Nothing here knows the database: a job says all that is needed, so that a thread can run it, or
whatever else can read and write the files.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from lsm.disk import filenames
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import Entry, rank_of
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.errors import IOError
from lsm.kernels.python import merge
from lsm.tables import TableFile, open_table

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.storage import Storage
    from lsm.version import Version
    from policies import LevelPolicies


class StoppedError(Exception):
    """The job was told to stop; its outputs are not complete."""


@attrs.frozen(kw_only=True)
class Workshop:
    """What it takes to write tables, for any level."""

    storage: Storage
    directory: str
    format: TableFormat
    policies: LevelPolicies
    max_file_size: int
    new_number: Callable[[], int]


@attrs.frozen(kw_only=True)
class Job:
    """One compaction.

    ``runs`` are tables in order, newer runs and older ones alike. ``beneath`` are the bounds of
    the tables on each deeper level, ``grandparents`` those of the level after the output's with
    their sizes. Versions that are superseded for every snapshot from ``oldest_snapshot`` on are
    left out.
    """

    workshop: Workshop
    level: int
    runs: Sequence[Sequence[TableFile]]
    beneath: Beneath
    grandparents: Sequence[tuple[OrderedKey, int]]
    overlap_limit: int
    oldest_snapshot: int
    should_stop: Callable[[], bool]


@attrs.frozen
class Output:
    """A table that a job has written, and its number."""

    number: int
    table: WrittenTable


class Beneath:
    """Which keys lie between the bounds of any table of the levels beneath one."""

    def __init__(self, version: Version, level: int):
        self._levels = [
            ([table.low for table in tables], [table.high for table in tables])
            for tables in version.levels[level + 1 :]
            if tables
        ]

    def has(self, low: OrderedKey, high: OrderedKey) -> bool:
        """Whether a table has keys between these, which are included."""
        for lows, highs in self._levels:
            at = bisect_left(highs, low)
            if at < len(lows) and not high < lows[at]:
                return True
        return False


def run(job: Job) -> list[Output]:
    """Merge the inputs and write them anew; raises StoppedError when told to stop.

    After an error the outputs that were written are of no use; whoever called removes them.
    """
    writer = _Writer(job)
    try:
        for window in merge.ascending(_chunks(job, tables) for tables in job.runs):
            if job.should_stop():
                raise StoppedError
            writer.add(_survivors(job, window))
        return writer.finish()
    except BaseException:
        with contextlib.suppress(IOError):
            writer.abandon()
        raise


def write_table(
    workshop: Workshop,
    number: int,
    level: int,
    entries: list[Entry],
    beneath: Beneath,
    reason: Literal["flush", "compaction", "bulk"] = "flush",
) -> Output:
    """One table of all these entries, however large."""
    builder = _new_builder(workshop, number, level, beneath, reason)
    try:
        at, entries = 0, _unwrapped(workshop, entries)
        while at < len(entries):
            at = builder.add_block(entries, at)
        return Output(number, builder.finish())
    except BaseException:
        with contextlib.suppress(IOError):  # such as that there is no room for what is left
            builder.abandon()
        raise


def _chunks(job: Job, tables: Iterable[TableFile]) -> Iterator[list[Entry]]:
    workshop = job.workshop
    for file in tables:
        table = open_table(workshop.storage, workshop.directory, file, workshop.format.comparator)
        yield from table.pieces()


def _survivors(job: Job, window: list[Entry]) -> list[Entry]:
    """The entries that somebody may still see."""
    horizon = rank_of(job.oldest_snapshot)
    kept, last, settled = [], None, False
    for entry in window:
        key, rank, _ = entry
        if key == last:
            if settled:
                continue
        else:
            last, settled = key, False
        if rank >= horizon:  # all that is older is hidden behind this one, for everybody
            settled = True
            if not rank & 1 and not job.beneath.has(key, key):
                continue  # a tombstone with nothing left to hide
        kept.append(entry)
    return kept


class _Writer:
    """Writes the outputs of a job, cut where they are large enough or overlap too much below."""

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
        ordered, entries = entries, _unwrapped(self._job.workshop, entries)
        at = 0
        while at < len(entries):
            if self._builder is not None and self._should_cut(ordered[at][0]):
                self._finish_table()
            if self._builder is None:
                self._number = self._job.workshop.new_number()
                self._builder = _new_builder(
                    self._job.workshop,
                    self._number,
                    self._job.level,
                    self._job.beneath,
                    "compaction",
                )
            at = self._builder.add_block(entries, at)
            self._last = ordered[at - 1][0]

    def finish(self) -> list[Output]:
        """All outputs, the last one finished."""
        self._finish_table()
        return self._outputs

    def abandon(self) -> None:
        """Close the open table."""
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
        return builder.size >= job.workshop.max_file_size or self._overlap > job.overlap_limit

    def _finish_table(self) -> None:
        if self._builder is not None:
            self._outputs.append(Output(self._number, self._builder.finish()))
            self._builder = None
            self._overlap = 0


def _new_builder(
    workshop: Workshop,
    number: int,
    level: int,
    beneath: Beneath,
    reason: Literal["flush", "compaction", "bulk"],
) -> TableBuilder:
    wrap = workshop.format.comparator.wrap

    def none_below(first: bytes, last: bytes) -> bool:
        if wrap is None:
            return not beneath.has(first, last)
        return not beneath.has(wrap(first), wrap(last))

    plan = FilterPlan(
        level=level,
        policy=workshop.policies[level],
        layout=workshop.policies.layout(level),
        reason=reason,
        none_below=none_below,
        unless_last=workshop.policies.optimize_filters_for_hits,
    )
    path = f"{workshop.directory}/{filenames.table_name(number)}"
    return TableBuilder(workshop.storage.create(path), workshop.format, plan)


def _unwrapped(workshop: Workshop, entries: list[Entry]) -> list[Entry]:
    """The entries with the user's bytes for keys."""
    if workshop.format.comparator.wrap is None:
        return entries
    unwrap = workshop.format.comparator.unwrap
    return [(unwrap(key), rank, value) for key, rank, value in entries]
