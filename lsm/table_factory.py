"""New tables of one database: how they are built, whatever their level, and read back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Literal, Self

import attrs

from lsm import kernels
from lsm.disk import filenames
from lsm.disk.compression import KINDS
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.errors import IOError
from lsm.kernels import TableFile
from lsm.kernels.python.survivors import overlap
from lsm.placing import Placing, Prospect
from lsm.tables import open_table
from policies.layouts import DEFAULT_PARTITION_BLOCKS

if TYPE_CHECKING:
    from lsm.comparator import Comparator, OrderedKey
    from lsm.disk.keys import Entry
    from lsm.kernels.python import Table
    from lsm.kernels.python.survivors import Ranges
    from lsm.options import Options
    from lsm.storage import Storage, WritableFile
    from lsm.version import Version
    from policies import LevelPolicies

Reason = Literal["flush", "compaction", "bulk"]
"""Why a table is written, as filter policies are told."""


@attrs.frozen
class Output:
    """A table that was written, and its file's number."""

    number: int
    table: WrittenTable


class DeeperLevels:
    """The key ranges of the tables on all levels deeper than one.

    ``ranges`` has the lowest and the highest keys of each level that has tables; None where nobody
    knows the levels, which may hold older versions of any key.
    """

    def __init__(self, version: Version, level: int):
        self.ranges: Ranges | None = [
            ([table.low for table in tables], [table.high for table in tables])
            for tables in version.levels[level + 1 :]
            if tables
        ]

    @classmethod
    def unknown(cls) -> Self:
        """Levels of which nothing is known."""
        self = cls.__new__(cls)
        self.ranges = None
        return self

    def overlap(self, low: OrderedKey, high: OrderedKey) -> bool:
        """Whether the range of any table there overlaps this one, bounds included."""
        return self.ranges is None or overlap(self.ranges, low, high)


@attrs.frozen(kw_only=True)
class TableFactory:
    """Makes the tables of one directory; ``new_number`` gives each file its number."""

    storage: Storage
    directory: str
    format: TableFormat
    policies: LevelPolicies
    max_file_size: int
    new_number: Callable[[], int]
    placing: Placing | None = None

    @classmethod
    def of(
        cls,
        storage: Storage,
        directory: str,
        comparator: Comparator,
        options: Options,
        policies: LevelPolicies,
        new_number: Callable[[], int],
    ) -> Self:
        """The factory of a database opened with these options; ``policies`` have its seed."""
        return cls(
            storage=storage,
            directory=directory,
            format=TableFormat(
                comparator=comparator,
                block_size=options.block_size,
                block_restart_interval=options.block_restart_interval,
                compression=KINDS[options.compression],
                table_body=kernels.of(comparator).TableBody,
            ),
            policies=policies,
            max_file_size=options.max_file_size,
            new_number=new_number,
            placing=_placing_of(policies, storage, directory, comparator, options.block_size),
        )

    def prospect(
        self, version: Version, level: int, leaving: Collection[int] = (), *, joins: bool = False
    ) -> Prospect | None:
        """What places filters on a level of a version, if a budget does; see ``Placing``."""
        if self.placing is None:
            return None
        return self.placing.prospect(version, level, leaving, joins=joins)

    def plan(
        self, level: int, deeper: DeeperLevels, reason: Reason, law: Prospect | None = None
    ) -> FilterPlan:
        """Which filters tables of a level get; by a budget without a ``law``, each for itself."""
        wrap = self.format.comparator.wrap

        def none_below(first: bytes, last: bytes) -> bool:
            if wrap is None:
                return not deeper.overlap(first, last)
            return not deeper.overlap(wrap(first), wrap(last))

        if law is None and self.placing is not None:
            law = self.placing.alone(level)
        return FilterPlan(
            level=level,
            policy=self.policies[level],
            layout=self.policies.layout(level),
            partition_blocks=self.policies.partition_blocks(level) or DEFAULT_PARTITION_BLOCKS,
            prefixes=self.policies.prefixes(level),
            reason=reason,
            none_below=none_below,
            unless_last=self.policies.optimize_filters_for_hits,
            law=law,
        )

    def builder(self, number: int, plan: FilterPlan) -> TableBuilder:
        """The builder of a table whose file has this number."""
        return TableBuilder(self.create(number), self.format, plan)

    def create(self, number: int) -> WritableFile:
        """The file of a new table."""
        return self.storage.create(self._path(number))

    def remove(self, number: int) -> None:
        """Remove the file of a table that came to nothing."""
        self.storage.remove(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self.directory}/{filenames.table_name(number)}"

    def write(
        self,
        number: int,
        level: int,
        entries: list[Entry],
        deeper: DeeperLevels,
        reason: Reason = "flush",
    ) -> Output:
        """One table of all these entries, however large."""
        builder = self.builder(number, self.plan(level, deeper, reason))
        try:
            builder.add(self.unwrapped(entries))
            return Output(number, builder.finish())
        except BaseException:
            with contextlib.suppress(IOError):  # such as that there is no room for what is left
                builder.abandon()
            raise

    def unwrapped(self, entries: list[Entry]) -> list[Entry]:
        """The entries with the user's bytes for keys, as a builder takes them."""
        comparator = self.format.comparator
        if comparator.wrap is None:
            return entries
        unwrap = comparator.unwrap
        return [(unwrap(key), rank, value) for key, rank, value in entries]

    def entries(self, file: TableFile) -> Iterator[list[Entry]]:
        """All entries of a table of the directory in order, in pieces of bounded memory."""
        return self.open(file).pieces()

    def open(self, file: TableFile) -> Table:
        """A table of the directory, read anew and cached by nobody."""
        return open_table(self.storage, self.directory, file, self.format.comparator)


def _placing_of(
    policies: LevelPolicies,
    storage: Storage,
    directory: str,
    comparator: Comparator,
    block_size: int,
) -> Placing | None:
    """What places the filters of a directory, where a budget does."""
    if policies.rule is None:
        return None
    return Placing(policies.rule, storage, directory, comparator, block_size)
