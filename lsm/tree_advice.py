"""Advice for the filters of an open database: what there is, and what would be best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from policies import placement
from policies.sections import Section

if TYPE_CHECKING:
    from lsm.drift import TableDrift, TreeDrift
    from policies.rule import BudgetRule

_MIB = 1 << 20


@attrs.frozen(kw_only=True)
class LevelAdvice:
    """One level: its filters now, and those that the budget would give it.

    ``reads`` are the blocks that a lookup reads in vain there. Tables are ``moved`` if they carry
    what was written for another level.
    """

    level: int
    tables: int
    keys: int
    moved: int
    drifted: int
    policies_now: dict[str, int] = attrs.field(hash=False)
    policies_then: dict[str, int] = attrs.field(hash=False)
    bits_per_key_now: float
    bits_per_key_then: float
    reads_now: float
    reads_then: float


@attrs.frozen(kw_only=True)
class TreeAdvice:
    """What the filters of all levels are and would best be, within a budget, and what that costs.

    Bits are those of the filters as stored, ``reads`` the blocks that a lookup reads in vain,
    ``floor`` the fewest that the budget allows any filters, ``time_ns`` what it takes to ask the
    filters and to read these blocks. Refiltering would copy ``refilter_tables``, in all of
    ``refilter_bytes``.
    """

    rule: BudgetRule
    levels: Sequence[LevelAdvice]
    keys: int
    budget_bits: float
    bits_now: float
    bits_then: float
    reads_now: float
    reads_then: float
    time_ns_now: float
    time_ns_then: float
    floor: float
    refilter_tables: int
    refilter_bytes: int

    @classmethod
    def of(cls, tree: TreeDrift, rule: BudgetRule) -> TreeAdvice:
        """The advice that follows from the drift of a tree by a rule."""
        law, tables = tree.law, tree.tables
        now, then = [each.now for each in tables], [each.then for each in tables]
        runs: dict[object, int] = {}
        for table in tables:
            run = table.level or -table.number
            runs[run] = runs.get(run, 0) + table.keys
        drifted = tree.drifted
        return cls(
            rule=rule,
            levels=tuple(
                _level(level, [each for each in tables if each.level == level])
                for level in sorted({each.level for each in tables})
            ),
            keys=law.keys,
            budget_bits=law.budget,
            bits_now=sum(each.now.bits_per_key * each.keys for each in tables),
            bits_then=sum(each.then.bits_per_key * each.keys for each in tables),
            reads_now=law.reads(now),
            reads_then=law.reads(then),
            time_ns_now=law.time_ns(now),
            time_ns_then=law.time_ns(then),
            floor=placement.floor(runs.values(), law.budget),
            refilter_tables=len(drifted),
            refilter_bytes=sum(each.size for each in drifted),
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        told = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if field.name not in ("rule", "levels")
        }
        levels = [attrs.asdict(level) for level in self.levels]
        return {"rule": self.rule.entries(), "levels": levels, **told}

    def to_toml(self) -> str:
        """The configuration that has the engine place filters so."""
        return Section("", "filters", self.rule.entries()).to_toml()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{'':>5} {'':>6} {'':>12} {'bits/key':>13} {'reads in vain':>17}"
        yield (
            f"{'level':>5} {'tables':>6} {'keys':>12} {'now':>6} {'then':>6} {'now':>8} "
            f"{'then':>8}  policies then"
        )
        for each in self.levels:
            yield (
                f"{each.level:>5} {each.tables:>6} {each.keys:>12,} {each.bits_per_key_now:>6.2f} "
                f"{each.bits_per_key_then:>6.2f} {each.reads_now:>8.2g} {each.reads_then:>8.2g}  "
                f"{_named(each.policies_then)}"
            )
        keys = max(1, self.keys)
        yield (
            f"{'all':>5} {sum(each.tables for each in self.levels):>6} {self.keys:>12,} "
            f"{self.bits_now / keys:>6.2f} {self.bits_then / keys:>6.2f} {self.reads_now:>8.2g} "
            f"{self.reads_then:>8.2g}"
        )
        yield (
            f"filters take {self.bits_now / 8 / _MIB:.2f} MiB now, and would take "
            f"{self.bits_then / 8 / _MIB:.2f} of {self.budget_bits / 8 / _MIB:.2f} MiB"
        )
        yield (
            f"a lookup takes {self.time_ns_now / 1000:.3g} us to ask them and to read in vain, and "
            f"would take {self.time_ns_then / 1000:.3g}"
        )
        moved = sum(each.moved for each in self.levels)
        yield (
            f"refiltering copies {self.refilter_tables} "
            f"{'table' if self.refilter_tables == 1 else 'tables'}, "
            f"{self.refilter_bytes / _MIB:.1f} MiB, without touching their data"
            + (f"; {moved} were moved from other levels" if moved else "")
        )


def _level(level: int, tables: Sequence[TableDrift]) -> LevelAdvice:
    keys = sum(each.keys for each in tables)
    bits_now = sum(each.now.bits_per_key * each.keys for each in tables)
    bits_then = sum(each.then.bits_per_key * each.keys for each in tables)
    return LevelAdvice(
        level=level,
        tables=len(tables),
        keys=keys,
        moved=sum(each.is_moved for each in tables),
        drifted=sum(each.is_drifted for each in tables),
        policies_now=_counted(each.now.policy for each in tables),
        policies_then=_counted(each.then.policy for each in tables),
        bits_per_key_now=bits_now / max(1, keys),
        bits_per_key_then=bits_then / max(1, keys),
        reads_now=sum(each.reads for each in tables),
        reads_then=sum(each.reads_then for each in tables),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _named(policies: dict[str, int]) -> str:
    if len(policies) == 1:
        return next(iter(policies))
    return ", ".join(f"{count} {name}" for name, count in policies.items())
