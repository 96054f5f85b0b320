"""What other filters would cost and save, on just the keys that a database has.

Every filter is built of every table's own keys, as the engine would build it, and thrown away: so
its bytes are those that would be stored. What a lookup would read is told by the same law that
places filters by a budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from lsm import drift, kernels
from lsm.disk.filter_blocks import PREFIXED_PREFIX, ROCKSDB_KEY, WINDOWS_KEY, WindowReader
from lsm.drift import TreeDrift
from lsm.refiltering import RefilterProgress
from lsm.table_factory import DeeperLevels, TableFactory
from policies import LevelPolicies, RocksDBPolicy, claims, open_block
from policies.cost_models import NO_FILTER, Option, probe_ns_of
from policies.prefixes import Prefixes
from policies.rule import BudgetRule

if TYPE_CHECKING:
    from lsm.disk.filter_blocks import FilterPlan
    from lsm.disk.written_filter import FilterWriter, WrittenFilter
    from lsm.state import State
    from lsm.version import PlacedTable

# What is read of a table before any filter is told of it.
_AT_ONCE = 1 << 20
# An entry of the index of partitions has a key, a handle and some lengths.
_INDEX_ENTRY_BYTES, _TRAILER_BYTES = 12, 5


@attrs.frozen
class Candidate:
    """A choice of filters for all levels, under the name by which it is told of."""

    name: str
    filters: LevelPolicies


@attrs.frozen(kw_only=True)
class Outcome:
    """What a choice of filters comes to.

    ``bits`` are those of all filters as stored, ``reads`` the blocks that a lookup of an absent key
    reads in vain, ``time_ns`` what a lookup takes to ask filters and for such blocks, and
    ``build_seconds`` what it took to build them here. ``policies`` are counted by tables.
    """

    name: str
    policies: dict[str, int] = attrs.field(hash=False)
    keys: int
    bits: float
    reads: float
    time_ns: float
    build_seconds: float | None = None
    failed: int = 0
    """The tables whose filter could not be built."""

    @property
    def bits_per_key(self) -> float:
        """What they take for each key."""
        return self.bits / max(1, self.keys)

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return attrs.asdict(self) | {"bits_per_key": self.bits_per_key}


def compare(
    state: State,
    candidates: Sequence[Candidate],
    rule: BudgetRule,
    progress: Callable[[RefilterProgress], object] = bool,
) -> list[Outcome]:
    """What the filters of an open database come to as they are, then with none, then by each.

    ``rule`` says what a block costs and who asks. ``progress`` is called after each table; what it
    raises ends the comparison.
    """
    tree = drift.find(state, rule)
    placed = list(state.opened_view().version.tables())
    trials = [_Trial.of(state, candidate) for candidate in candidates]
    total, done = sum(table.size for table in placed), 0
    for index, table in enumerate(placed):
        _try_all(state, trials, index, table)
        done += table.size
        progress(
            RefilterProgress(
                tables=index + 1, total_tables=len(placed), bytes=done, total_bytes=total
            )
        )
    now = [table.now for table in tree.tables]
    return [
        _outcome("as it is", tree, now),
        _outcome("no filters", tree, [NO_FILTER] * len(placed)),
        *(trial.outcome(tree) for trial in trials),
    ]


@attrs.define(eq=False)
class _Trial:
    """A candidate, and the filters that came of it until now."""

    candidate: Candidate
    factory: TableFactory
    placed: TreeDrift | None
    """What its budget gives each table, if it has one."""
    options: list[Option] = attrs.field(factory=list)
    seconds: float = 0.0
    failed: int = 0

    @classmethod
    def of(cls, state: State, candidate: Candidate) -> _Trial:
        """The trial of a candidate on an open database."""
        factory = TableFactory.of(
            state.storage,
            state.directory,
            state.comparator,
            state.options,
            candidate.filters,
            lambda: 0,  # nothing is written
        )
        rule = candidate.filters.rule
        return cls(candidate, factory, None if rule is None else drift.find(state, rule))

    def plan(self, state: State, index: int, table: PlacedTable) -> FilterPlan:
        """Which filter a table would get."""
        deeper = DeeperLevels(state.opened_view().version, table.level)
        plan = self.factory.plan(table.level, deeper, "compaction")
        rule = self.candidate.filters.rule
        if rule is None or self.placed is None:
            return plan
        policy = rule.policy_of(self.placed.tables[index].then)
        return attrs.evolve(plan, policy=policy, law=None)

    def take(self, plan: FilterPlan, written: WrittenFilter, keys: int, seconds: float) -> None:
        """Take in what a table would get."""
        self.seconds += seconds
        self.failed += written.state == "failed"
        self.options.append(_option(plan, written, keys))

    def outcome(self, tree: TreeDrift) -> Outcome:
        """What all of it comes to."""
        found = _outcome(self.candidate.name, tree, self.options)
        return attrs.evolve(found, build_seconds=self.seconds, failed=self.failed)


def _try_all(state: State, trials: Iterable[_Trial], index: int, table: PlacedTable) -> None:
    """Build every candidate's filter of one table, which is read once."""
    opened = state.tables.opened(table.file)
    keys = kernels.of(state.comparator).TableKeys(opened, state.comparator, True)
    plans = [trial.plan(state, index, table) for trial in trials]
    writers: list[FilterWriter] = [plan.writer() for plan in plans]
    seconds = [0.0] * len(plans)
    while True:
        some, ends = keys.take(_AT_ONCE)
        if not ends:
            break
        for place, writer in enumerate(writers):
            start = time.perf_counter()
            writer.add_blocks(some, ends)
            seconds[place] += time.perf_counter() - start
    for place, (trial, plan) in enumerate(zip(trials, plans, strict=True)):
        start = time.perf_counter()
        written = writers[place].finish()
        took = seconds[place] + time.perf_counter() - start
        trial.take(plan, written, keys.num_entries, took)


def _option(plan: FilterPlan, written: WrittenFilter, keys: int) -> Option:
    """A filter that was built, as the law counts with it."""
    if written.state != "built":
        return NO_FILTER
    identity = written.identity or plan.identity()
    size = sum(map(len, written.parts))
    for partition in written.partitions:
        size += sum(map(len, partition.parts)) + _TRAILER_BYTES
        size += len(partition.last) + _INDEX_ENTRY_BYTES
    fpr = _expected_fpr(written)
    return Option(
        identity.name,
        identity.decoded(),
        8 * size / max(1, keys),
        1.0 if fpr is None else fpr,
        probe_ns_of(identity.name, keys),
    )


def _expected_fpr(written: WrittenFilter) -> float | None:
    """The rate that a filter expects of itself; of partitions that of the first."""
    parts = written.partitions[0].parts if written.partitions else written.parts
    stored = b"".join(parts)
    if written.metaindex_key == WINDOWS_KEY:
        return WindowReader(stored).expected_fpr
    if written.metaindex_key == ROCKSDB_KEY and not written.partitions:
        return claims.expected_fpr(RocksDBPolicy().open(stored))
    if written.metaindex_key.startswith(PREFIXED_PREFIX):
        _, block = Prefixes.decode(stored)
        return claims.expected_fpr(open_block(block))
    return claims.expected_fpr(open_block(stored))


def _outcome(name: str, tree: TreeDrift, options: Sequence[Option]) -> Outcome:
    counted: dict[str, int] = {}
    for option in options:
        counted[option.policy] = counted.get(option.policy, 0) + 1
    each = zip(tree.tables, options, strict=True)
    return Outcome(
        name=name,
        policies=counted,
        keys=tree.law.keys,
        bits=sum(table.keys * option.bits_per_key for table, option in each),
        reads=tree.law.reads(options),
        time_ns=tree.law.time_ns(options),
    )
