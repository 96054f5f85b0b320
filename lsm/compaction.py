"""Running a compaction or a flush: runs of entries, merged and written anew.

Nothing here knows the database: a job says all that is needed, so that any thread can run it, or
any process that can read and write the files.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from lsm import kernels
from lsm.disk.keys import rank_of
from lsm.errors import IOError
from lsm.table_factory import DeeperLevels, Output, TableFactory

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.disk.table_builder import TableBuilder
    from lsm.kernels import TableFile
    from lsm.kernels.python import Memtable, Table
    from lsm.placing import Prospect


# So many tables are written while the device takes the first of them.
_MOST_UNSEALED = 4


class StoppedError(Exception):
    """The job was told to stop; its outputs are not complete."""


def never() -> bool:
    """That a job is not to stop."""
    return False


@attrs.frozen(kw_only=True)
class Job:
    """One compaction.

    ``runs`` are tables in order, newer runs and older ones alike. ``deeper`` are the levels below
    the output's, ``grandparents`` the upper bounds and sizes of the tables on the first of these.
    Versions that are superseded for every snapshot from ``oldest_snapshot`` on are left out. Where
    a budget places filters, ``law`` says which.
    """

    factory: TableFactory
    level: int
    runs: Sequence[Sequence[TableFile]]
    deeper: DeeperLevels
    grandparents: Sequence[tuple[OrderedKey, int]]
    overlap_limit: int
    oldest_snapshot: int
    should_stop: Callable[[], bool]
    law: Prospect | None = None


def run(job: Job) -> list[Output]:
    """Merge the inputs and write them anew; raises StoppedError when told to stop.

    After an error the outputs that were written are of no use; whoever called removes them.
    """
    factory = job.factory
    survivors = _kernel(factory).Survivors(
        [_tables(factory, tables) for tables in job.runs],
        factory.format.comparator,
        horizon=rank_of(job.oldest_snapshot),
        deeper=job.deeper.ranges,
        max_file_size=factory.max_file_size,
        grandparents=job.grandparents,
        overlap_limit=job.overlap_limit,
        pause=_pause(job.should_stop),
    )
    outputs = _Outputs(factory, factory.plan(job.level, job.deeper, "compaction", job.law))
    try:
        while survivors.has_more():
            outputs.write_next(survivors)
        return outputs.finish()
    except BaseException:
        outputs.abandon()
        raise


def flush(
    factory: TableFactory,
    level: int,
    memtable: Memtable,
    deeper: DeeperLevels,
    should_stop: Callable[[], bool] = never,
    law: Prospect | None = None,
) -> Output:
    """One table of all entries of a memtable, of which there are some, however large."""
    survivors = _kernel(factory).Survivors(
        [memtable], factory.format.comparator, pause=_pause(should_stop)
    )
    outputs = _Outputs(factory, factory.plan(level, deeper, "flush", law))
    try:
        outputs.write_next(survivors)
        (output,) = outputs.finish()
    except BaseException:
        outputs.abandon()
        raise
    return output


class _Outputs:
    """The tables that a job writes. The device takes some while the next ones are made."""

    def __init__(self, factory: TableFactory, plan: FilterPlan):
        self._new_builder = partial(factory.builder, plan=plan)
        self._new_number = factory.new_number
        self._written: list[Output] = []
        self._unsealed: deque[TableBuilder] = deque()

    def write_next(self, survivors: Any) -> None:
        """Write one table of the entries that come next."""
        number = self._new_number()
        builder = self._new_builder(number)
        self._unsealed.append(builder)
        while not builder.fill(survivors.write):
            pass
        self._written.append(Output(number, builder.complete()))
        if len(self._unsealed) > _MOST_UNSEALED:
            self._seal_first()

    def finish(self) -> list[Output]:
        """All of them, synced."""
        while self._unsealed:
            self._seal_first()
        return self._written

    def abandon(self) -> None:
        """Close the files that are still open; the caller removes all of them."""
        for builder in self._unsealed:
            with contextlib.suppress(IOError):  # such as that there is no room for what is left
                builder.abandon()

    def _seal_first(self) -> None:
        self._unsealed[0].seal()
        self._unsealed.popleft()


def _kernel(factory: TableFactory) -> Any:
    return kernels.of(factory.format.comparator)


def _tables(factory: TableFactory, files: Sequence[TableFile]) -> Iterator[Table]:
    """The tables, each opened when it is its turn."""
    return map(factory.open, files)


def _pause(should_stop: Callable[[], bool]) -> Callable[[], None]:
    def pause() -> None:
        if should_stop():
            raise StoppedError

    return pause
