"""Refiltering: tables whose filters are written anew, their data blocks copied as they are."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import attrs

from lsm.jobs import Claim
from policies.cost_models import NO_FILTER

if TYPE_CHECKING:
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.drift import TableDrift, TreeDrift
    from lsm.table_factory import DeeperLevels, TableFactory
    from lsm.version import PlacedTable, Version
    from policies.cost_models import Option


@attrs.frozen(kw_only=True)
class RefilterProgress:
    """How far ``refilter()`` has come: of so many tables and bytes of them."""

    tables: int
    total_tables: int
    bytes: int
    total_bytes: int


@attrs.frozen
class Skipped:
    """A table that kept its filter, and why."""

    level: int
    number: int
    reason: str


@attrs.frozen(kw_only=True)
class RefilterReport:
    """What ``refilter()`` has done, or would do with ``dry_run``.

    ``tables`` were given another filter, the most useful first; ``left`` is how many drifted ones
    were not asked for, as beyond ``max_bytes``. ``reads`` are the blocks that a lookup of an absent
    key is expected to read in vain.
    """

    dry_run: bool
    tables: tuple[TableDrift, ...]
    skipped: tuple[Skipped, ...]
    left: int
    bytes: int
    filter_bytes_before: int
    filter_bytes_after: int
    reads_before: float
    reads_after: float
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.tables:
            yield f"{'level':>5} {'table':>7} {'keys':>10} {'now':>28} {'then':>28}  why"
        for table in self.tables:
            yield (
                f"{table.level:>5} {table.number:>7} {table.keys:>10,} {_shown(table.now):>28} "
                f"{_shown(table.then):>28}  {table.reason}"
            )
        for each in self.skipped:
            yield f"{each.level:>5} {each.number:>7} stays as it is: {each.reason}"
        did = "was" if len(self.tables) == 1 else "were"
        verb = "would be" if self.dry_run else did
        mib = 1 << 20
        yield (
            f"{len(self.tables)} {'table' if len(self.tables) == 1 else 'tables'} of "
            f"{self.bytes / mib:.1f} MiB {verb} given another filter"
            + (f", {self.left} more have drifted" if self.left else "")
        )
        yield (
            f"filters: {self.filter_bytes_before / mib:.2f} MiB before, "
            f"{self.filter_bytes_after / mib:.2f} MiB after"
        )
        yield f"blocks read in vain: {self.reads_before:.3g} before, {self.reads_after:.3g} after"


def within(tables: Iterable[TableDrift], max_bytes: int | None) -> list[TableDrift]:
    """The tables that come first, up to so many bytes of them, and the first in any case.

    Those of level 0, which are next to each other, go together.
    """
    taken: list[TableDrift] = []
    total = 0
    for _, together in groupby(tables, key=lambda each: each.level and each.number):
        group = list(together)
        total += sum(table.size for table in group)
        if taken and max_bytes is not None and total > max_bytes:
            break
        taken += group
    return taken


def report(
    before: TreeDrift,
    tables: Sequence[TableDrift],
    skipped: Sequence[Skipped],
    asked: int,
    after: TreeDrift | None,
    start: float,
) -> RefilterReport:
    """What was done to these tables, of so many that have drifted; without ``after``, would be."""
    numbers = {table.number for table in tables}
    taken = sum(each.now.bits_per_key * each.keys for each in before.tables)
    if after is None:
        changed = [(each.number in numbers, each) for each in before.tables]
        then = sum((e.then if new else e.now).bits_per_key * e.keys for new, e in changed)
        reads = sum(each.reads_then if new else each.reads for new, each in changed)
    else:
        then = sum(each.now.bits_per_key * each.keys for each in after.tables)
        reads = sum(each.reads for each in after.tables)
    return RefilterReport(
        dry_run=after is None,
        tables=tuple(tables),
        skipped=tuple(skipped),
        left=asked - len(tables) - len(skipped),
        bytes=sum(table.size for table in tables),
        filter_bytes_before=round(taken / 8),
        filter_bytes_after=round(then / 8),
        reads_before=sum(each.reads for each in before.tables),
        reads_after=reads,
        seconds=time.perf_counter() - start,
    )


def _shown(option: Option) -> str:
    if option.policy == NO_FILTER.policy:
        return option.policy
    return f"{option.policy} {option.bits_per_key:.1f} {100 * option.fpr:.2g}%"


@attrs.define(eq=False)
class Refiltering:
    """What somebody has asked to be refiltered, and how far that has come.

    ``remaining`` are the tables that are still to be done, by their numbers; ``hopeless`` those
    that could not be. Once it is withdrawn nobody goes on with it; an ``error`` ends it.
    """

    drift: TreeDrift
    remaining: dict[int, TableDrift]
    bytes_per_second: int | None = None
    done: list[TableDrift] = attrs.field(factory=list)
    skipped: list[Skipped] = attrs.field(factory=list)
    hopeless: set[int] = attrs.field(factory=set)
    installs: int = 0
    wait_until: float = 0.0
    is_withdrawn: bool = False
    error: Exception | None = None

    @classmethod
    def of(
        cls, drift: TreeDrift, tables: Iterable[TableDrift], bytes_per_second: int | None = None
    ) -> Refiltering:
        """The request for these tables, in their order."""
        return cls(drift, {table.number: table for table in tables}, bytes_per_second)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done."""
        return not self.remaining or self.error is not None

    @property
    def done_bytes(self) -> int:
        """The size of the tables that are done with."""
        return sum(table.size for table in self.done)

    def plan_for(
        self, factory: TableFactory, table: PlacedTable, deeper: DeeperLevels
    ) -> FilterPlan:
        """Which filter a table gets: the one that it was found to lack."""
        plan = factory.plan(table.level, deeper, "compaction")
        rule = self.drift.rule
        if rule is None or factory.placing is None:
            return plan
        policy = factory.placing.rule.policy_of(self._then(table))
        told = {
            "budget": str(rule.budget),
            "price": float(f"{self.drift.law.price:.4g}"),
            "refiltered": True,
        }
        placement = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return attrs.evolve(plan, policy=policy, law=None, placement=placement)

    def finish(self, tables: Sequence[PlacedTable]) -> None:
        """Count tables as done, which were installed together."""
        self.installs += 1
        for table in tables:
            wanted = self.remaining.pop(table.number, None)
            if wanted is not None:
                self.done.append(wanted)

    def give_up(self, tables: Iterable[PlacedTable], reason: str) -> None:
        """Leave tables as they are, for good."""
        numbers = [table.number for table in tables]
        self.hopeless.update(numbers)
        self._skip(numbers, reason)

    def leave(self, numbers: Iterable[int]) -> None:
        """Leave it to others what they have taken."""
        self._skip(numbers, "it was merged, moved or written anew since")

    def _skip(self, numbers: Iterable[int], reason: str) -> None:
        for number in numbers:
            wanted = self.remaining.pop(number, None)
            if wanted is not None:
                self.skipped.append(Skipped(wanted.level, number, reason))

    def next_plan(
        self, version: Version, claims: Collection[Claim], may_renumber: bool
    ) -> RefilterPlan | None:
        """The first tables that are still where they were, and that nobody has claimed.

        Which of level 0 is newer is told by the numbers, so that all of them get new ones, and only
        while no other table is on its way there.
        """
        placed = {table.number: table for table in version.tables()}
        for number, wanted in self.remaining.copy().items():
            table = placed.get(number)
            if table is None or table.level != wanted.level:
                continue
            tables = version.levels[0] if table.level == 0 else (table,)
            plan = RefilterPlan(self, table.level, tuple(tables))
            if (table.level or may_renumber) and plan.claim.is_free(claims):
                return plan
        return None

    def _then(self, table: PlacedTable) -> Option:
        """The filter that the budget gives a table; like another one's where it came since then."""
        of_level = [each for each in self.drift.tables if each.level == table.level]
        return next((each for each in of_level if each.number == table.number), of_level[0]).then


@attrs.frozen(eq=False)
class RefilterPlan:
    """Tables of one level that are written anew at once: one, or all of level 0."""

    request: Refiltering
    level: int
    tables: tuple[PlacedTable, ...]

    @property
    def claim(self) -> Claim:
        """What it has for itself while it runs."""
        return Claim.in_place(
            self.level,
            frozenset(table.number for table in self.tables),
            min(table.low for table in self.tables),
            max(table.high for table in self.tables),
        )
