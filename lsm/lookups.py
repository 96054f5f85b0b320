"""Lookups that are watched: step by step, and as far as memory and filters tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from lsm.disk.keys import is_put, sequence_of

if TYPE_CHECKING:
    from lsm.loaded_filter import LoadedFilter
    from lsm.state import State
    from lsm.version import PlacedTable


@attrs.frozen
class LookupStep:
    """One memtable or table that a lookup searched, and with which outcome."""

    where: str
    outcome: str
    level: int | None = None
    file_number: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.outcome}"


@attrs.frozen
class Explanation:
    """The steps of a lookup of a key, in order, and whether it found a value."""

    key: bytes
    found: bool
    steps: tuple[LookupStep, ...]

    def __str__(self) -> str:
        verdict = "found" if self.found else "not found"
        return "\n".join([f"{self.key!r}: {verdict}", *(f"  {step}" for step in self.steps)])


class _Steps:
    """Takes down the steps of a lookup."""

    only_filters = False

    def __init__(self) -> None:
        self.taken: list[LookupStep] = []
        self.came_to_tables = True

    def memtable(self, number: int, rank: int | None) -> None:
        self.came_to_tables = rank is None
        name = "memtable" if number == 0 else "memtable that is being flushed"
        self.taken.append(LookupStep(name, _outcome(rank)))

    def table(
        self,
        placed: PlacedTable,
        loaded: LoadedFilter,
        said: bool | None,
        number: int | None,
        rank: int | None,
    ) -> None:
        state, policy = loaded.info.state, loaded.info.policy
        about = f"filter {policy}" if state == "built" else f"no filter ({state})"
        if said is False:
            outcome = f"{about} says no"
        elif number is None:
            outcome = f"{about}, no block"
        else:
            outcome = f"{about}{' says maybe' if said else ''}, block {number}: {_outcome(rank)}"
        where = f"level {placed.level}, table {placed.number}"
        self.taken.append(LookupStep(where, outcome, placed.level, placed.number))


class _Doubts:
    """Whether a lookup came to a block, or to a version in memory."""

    only_filters = True

    def __init__(self) -> None:
        self.has_any = False

    def memtable(self, number: int, rank: int | None) -> None:
        self.has_any |= rank is not None and is_put(rank)

    def table(
        self,
        placed: PlacedTable,
        loaded: LoadedFilter,
        said: bool | None,
        number: int | None,
        rank: int | None,
    ) -> None:
        self.has_any |= number is not None


def explain(state: State, key: bytes) -> Explanation:
    """The steps of a lookup, which changes no counters."""
    steps = _Steps()
    found = _listen(state, key, steps)
    if steps.came_to_tables and all(step.level is None for step in steps.taken):
        steps.taken.append(LookupStep("tables", "none has the key between its bounds"))
    return Explanation(key, found, tuple(steps.taken))


def might_contain(state: State, key: bytes) -> bool:
    """False if memtables and filters alone tell that the key has no value."""
    doubts = _Doubts()
    _listen(state, key, doubts)
    return doubts.has_any


def _listen(state: State, key: bytes, listener: _Steps | _Doubts) -> bool:
    """Have a listener told of a lookup as of now; whether it finds a value."""
    view, wrap = state.view, state.comparator.wrap
    if view is None:
        raise state.closed_error()
    ordered = key if wrap is None else wrap(key)
    value = state.kernel.find(view, state.tables, key, ordered, state.visible, True, listener)
    return value is not None


def _outcome(rank: int | None) -> str:
    if rank is None:
        return "has no version of it"
    kind = "value" if is_put(rank) else "tombstone"
    return f"{kind} of sequence number {sequence_of(rank)}"
