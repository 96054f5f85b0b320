"""How far the filters of tables are from what is asked for: drift, table by table.

A configuration that was changed reaches no table that is there, a table that is moved takes along
what suited the level above, and levels grow while the filters of their tables stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from lsm.filter_summary import FilterSummary
from lsm.placing import Placing
from lsm.tree_advice import TreeAdvice
from policies import claims
from policies.budget import Budget
from policies.cost_models import NO_FILTER, Option, option_of, probe_ns_of
from policies.rule import BudgetRule

if TYPE_CHECKING:
    from lsm.state import State
    from lsm.tree_law import TreeLaw
    from lsm.version import PlacedTable, Version

USUAL_BUDGET = "10 bits/key"
# No budget is for more; what stands around the filters of a few keys takes more than that.
_MOST_BITS = 100.0

# A tree whose lookups take no longer than it would take them, but for so much of what they spend on
# blocks in vain, is as good as placed anew; if its filters take no more than so much of the budget.
_WASTED_SHARE, _AS_FEW = 0.01, 1.01


@attrs.frozen(kw_only=True)
class TableDrift:
    """A table's filter, and the one it would be given today.

    ``reads`` and ``reads_then`` are the blocks that a lookup reads in vain of the table. The other
    filter saves it ``gain`` nanoseconds, and frees ``freed_bits``, each worth a ``price`` in
    nanoseconds; one of the two may be below 0. It is drifted where that is worth writing the table
    anew, or where the configuration asks for another policy; ``reason`` says which.
    """

    level: int
    number: int
    size: int
    keys: int
    found: FilterSummary = attrs.field(repr=False)
    now: Option
    then: Option
    layout: str
    layout_then: str
    reads: float
    reads_then: float
    gain: float
    freed_bits: float
    price: float
    is_moved: bool = False
    reason: str = ""

    @property
    def waste(self) -> float:
        """What the filter wastes of time and of bits at their price, in nanoseconds of a lookup."""
        return max(0.0, self.gain + self.price * self.freed_bits)

    @property
    def weight(self) -> float:
        """How much would change of both."""
        return abs(self.gain) + self.price * abs(self.freed_bits)

    @property
    def is_drifted(self) -> bool:
        """Whether it is to be given the other filter."""
        return bool(self.reason)


@attrs.frozen
class TreeDrift:
    """The drift of all tables, from level 0 down, and the law that it is told by.

    ``rule`` is the budget's, None where the configuration names policies.
    """

    tables: tuple[TableDrift, ...]
    law: TreeLaw
    rule: BudgetRule | None

    @property
    def drifted(self) -> list[TableDrift]:
        """The tables that are to be given another filter, the most useful first.

        Those of level 0 are together: where one is written anew, all are, to stay in their order.
        """
        found = [[table] for table in self.tables if table.level and table.is_drifted]
        newest = [table for table in self.tables if not table.level]
        if any(table.is_drifted for table in newest):
            found.append([_taken_along(table) for table in newest])
        return [table for tables in sorted(found, key=_order) for table in tables]


def _order(tables: Sequence[TableDrift]) -> tuple[float, int]:
    """First those that change most for their size, as they are to be written."""
    weight, size = sum(each.weight for each in tables), sum(each.size for each in tables)
    return -weight / max(1, size), tables[0].number


def _bits(tables: Iterable[tuple[int, Option]]) -> float:
    """What filters for so many keys take in all."""
    return math.fsum(keys * option.bits_per_key for keys, option in tables)


def _taken_along(table: TableDrift) -> TableDrift:
    if table.is_drifted:
        return table
    return attrs.evolve(table, reason="another one of level 0 is given its filter")


def find(state: State, rule: BudgetRule | None = None) -> TreeDrift:
    """The drift of an open database's tables, from its configuration or from a rule."""
    version = state.opened_view().version
    rule = state.options.filters.rule if rule is None else rule
    law = placing_for(state, rule).law(version)
    tables = [_drift(state, law, rule, *each) for each in enumerate(version.tables())]
    if rule is not None:
        tables = _worth_it(tables, law)
    return TreeDrift(tuple(tables), law, rule)


def advise(state: State, asked: Mapping[str, object]) -> TreeAdvice:
    """What would be best by the configured rule, but for what is asked otherwise."""
    rule = state.options.filters.rule
    if "budget" in asked or rule is not None:
        entries = {**(rule.entries() if rule is not None else {}), **asked}
    else:
        entries = {"budget": _budget_of(state), **asked}
    wanted = BudgetRule.of(entries)
    return TreeAdvice.of(find(state, wanted), wanted)


def _budget_of(state: State) -> str:
    """What the filters of a database take now, in words; the usual where there are none."""
    law = placing_for(state, None).law(state.opened_view().version)
    bits = sum(shape.bits or 0.0 for shape in law.shapes)
    return f"{min(bits / law.keys, _MOST_BITS):.2f} bits/key" if bits else USUAL_BUDGET


def placing_for(state: State, rule: BudgetRule | None) -> Placing:
    """What knows the tables of a database by a rule; by a usual one where there is none."""
    rule = BudgetRule(Budget.parse(USUAL_BUDGET)) if rule is None else rule
    block_size = state.options.block_size
    return Placing(rule, state.storage, state.directory, state.comparator, block_size)


def _drift(
    state: State, law: TreeLaw, rule: BudgetRule | None, index: int, placed: PlacedTable
) -> TableDrift:
    """One table's; by a rule all that differ are worth it, until they are looked at together."""
    run, keys = law.runs[index], law.shapes[index].keys
    found = FilterSummary.of(state, placed)
    if rule is None:
        then, layout, reason = _configured(state, placed, keys, found)
    else:
        then, layout = law.options[index], rule.layout
        reason = "" if _is(found, then, rule) else "its filter is not what the budget gives it"
    now = _carried(found, keys, then)
    saved = run.asked * (now.probe_ns - then.probe_ns)
    saved += run.missed * law.rule.read_ns * (now.fpr - then.fpr)
    return TableDrift(
        level=placed.level,
        number=placed.number,
        size=placed.size,
        keys=keys,
        found=found,
        now=now,
        then=then,
        layout=found.layout,
        layout_then=layout,
        reads=run.missed * now.fpr,
        reads_then=run.missed * then.fpr,
        gain=saved,
        freed_bits=keys * (now.bits_per_key - then.bits_per_key),
        price=law.price,
        is_moved=found.written_for_level not in (None, placed.level),
        reason=_moved(found, placed) or reason if reason else "",
    )


def _carried(found: FilterSummary, keys: int, then: Option) -> Option:
    """What a table carries as an option; with the rate of the other one where nobody knows it."""
    if found.state != "built":
        taken = 8 * found.bytes / max(1, keys)
        return attrs.evolve(NO_FILTER, policy=found.policy, bits_per_key=taken)
    fpr = then.fpr if found.expected_fpr is None else found.expected_fpr
    bits = 8 * found.bytes / max(1, keys)
    return Option(found.policy, found.params, bits, fpr, probe_ns_of(found.policy, keys))


def _is(found: FilterSummary, then: Option, rule: BudgetRule) -> bool:
    """Whether a table carries just this filter, or was declined it, whatever it has come to."""
    if then.policy == NO_FILTER.policy:
        return found.state == "none"
    if (found.policy, found.params) != (then.policy, dict(then.params)) or found.prefixes:
        return False
    place = found.layout, found.partition_blocks
    return found.state == "declined" or (
        found.state == "built" and place == (rule.layout, rule.partition_blocks)
    )


def _configured(
    state: State, placed: PlacedTable, keys: int, found: FilterSummary
) -> tuple[Option, str, str]:
    """The filter that the configuration names for a table, its layout, and what differs."""
    selected = state.options.filters
    policy, layout = selected[placed.level], selected.layout(placed.level)
    if selected.optimize_filters_for_hits and _is_last(state.opened_view().version, placed):
        return NO_FILTER, "table", "" if found.state == "none" else "the last level is to have none"
    identity = claims.identity(policy)
    if identity is None:
        return _carried(found, keys, NO_FILTER), found.layout, ""
    params = identity.decoded()
    then = option_of(policy, keys) or attrs.evolve(
        _carried(found, keys, NO_FILTER), policy=identity.name, params=params
    )
    if then is NO_FILTER or identity.name == NO_FILTER.policy:
        return NO_FILTER, "table", "" if found.policy == "none" else "it is to have none"
    if found.state == "declined" and found.policy == identity.name and found.params == params:
        return then, layout, ""
    if found.state != "built":
        return then, layout, f"its filter is {found.state}"
    if (found.policy, found.params, found.layout, found.partition_blocks) == (
        *(identity.name, params, layout),
        selected.partition_blocks(placed.level),
    ):
        prefixes = selected.prefixes(placed.level)
        if found.prefixes == ({} if prefixes is None else prefixes.entries()):
            return then, layout, ""
        return then, layout, f"level {placed.level} is configured to have other prefixes"
    return then, layout, f"level {placed.level} is configured to have {identity.name}"


def _is_last(version: Version, placed: PlacedTable) -> bool:
    return placed.level > 0 and not any(
        version.overlapping(level, placed.low, placed.high)
        for level in range(placed.level + 1, len(version.levels))
    )


def _moved(found: FilterSummary, placed: PlacedTable) -> str:
    if found.written_for_level is None or found.written_for_level == placed.level:
        return ""
    return f"it was written for level {found.written_for_level}, and moved"


def _worth_it(tables: list[TableDrift], law: TreeLaw) -> list[TableDrift]:
    """The same with no drift where the others are enough.

    First come those that waste something, whatever the others have: time, or bits at their price.
    With all others as they are, the budget may be unspent, or overdrawn, by a little of each. Then
    come as many as it takes, those first that change most: until lookups take nearly the time they
    would take, within the budget.
    """
    then, now = law.options, [each.now for each in tables]
    time_ns, least = law.time_ns(now), law.time_ns(then)
    bits = _bits((each.keys, each.now) for each in tables)
    enough = _WASTED_SHARE * law.rule.read_ns * law.reads(then)
    most = max(law.budget, _bits((each.keys, each.then) for each in tables))
    drifted: set[int] = set()

    def take(table: TableDrift) -> None:
        nonlocal time_ns, bits
        drifted.add(table.number)
        time_ns -= table.gain
        bits -= table.freed_bits

    others = [table for table in tables if table.is_drifted]
    wasted = math.fsum(each.waste for each in others)
    for table in sorted(others, key=lambda each: -each.waste / max(1, each.size)):
        if wasted <= enough:
            break
        wasted -= table.waste
        take(table)
    for table in sorted(others, key=lambda each: _order([each])):
        is_over, is_slow = bits > _AS_FEW * most, time_ns > least + enough
        if not (is_over or is_slow):
            break
        is_of_use = table.freed_bits > 0 if is_over else table.gain > 0
        if is_of_use and table.number not in drifted:
            take(table)
    return [each if each.number in drifted else attrs.evolve(each, reason="") for each in tables]
