"""Placing filters by a budget: what each table gets when it is finished, from the tree as it is."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from lsm import table_facts
from lsm.table_facts import TableFacts
from lsm.tree_law import Shape, TreeLaw
from policies.budget import BITS_PER_KEY
from policies.containment import is_attended, let_pass
from policies.errors import cause

if TYPE_CHECKING:
    from filters import Digests
    from lsm.comparator import Comparator, OrderedKey
    from lsm.storage import Storage
    from lsm.table_factory import Output
    from lsm.version import PlacedTable, Version
    from policies import FilterPolicy
    from policies.placement import Run
    from policies.rule import BudgetRule

_log = logging.getLogger("lsm")

# The law is asked anew when tables with so large a part of all keys have joined the tree.
_FRESH_SHARE = 1 / 16


class Placing:
    """The facts of a database's tables, and the laws that follow from them.

    Facts are read when they are first asked for, and kept as long as the table is live.
    """

    def __init__(
        self,
        rule: BudgetRule,
        storage: Storage,
        directory: str,
        comparator: Comparator,
        block_size: int,
    ):
        self.rule = rule
        self.block_size = block_size
        self._storage = storage
        self._directory = directory
        self._comparator = comparator
        self._facts: dict[int, TableFacts] = {}
        self._has_warned = False

    def note(self, outputs: Iterable[Output]) -> None:
        """Know the facts of tables that were written just now."""
        for output in outputs:
            self._facts[output.number] = TableFacts.of_output(output)

    def shapes(
        self, version: Version, leaving: Collection[int] = (), level: int = 0
    ) -> list[Shape]:
        """The tables of a version as the law sees them; those that are leaving, on this level."""
        tables = list(version.tables())
        if len(self._facts) > 2 * len(tables) + 16:
            live = {table.number for table in tables}
            self._facts = {at: each for at, each in self._facts.copy().items() if at in live}
        shapes = [self._shape(table) for table in tables]
        if not leaving:
            return shapes
        # What comes to tables that lie over one another is to be counted once.
        is_asked = any(table.level == level for table in tables if table.number in leaving)
        return [
            attrs.evolve(
                shape,
                level=level,
                bits=None,
                missed=shape.missed if shape.level == level or not is_asked else 0,
            )
            if table.number in leaving
            else shape
            for table, shape in zip(tables, shapes, strict=True)
        ]

    def law(self, version: Version) -> TreeLaw:
        """The law for the tables of a version."""
        data = sum(version.size(level) for level in range(len(version.levels)))
        return TreeLaw(self.rule, self.shapes(version), data, block_size=self.block_size)

    def prospect(
        self, version: Version, level: int, leaving: Collection[int] = (), *, joins: bool
    ) -> Prospect:
        """The law for tables that are written to a level, in the place of those that leave.

        A table that ``joins`` the others takes the place of none.
        """
        data = sum(version.size(level) for level in range(len(version.levels)))
        return Prospect(self, self.shapes(version, leaving, level), level, data, joins)

    def alone(self, level: int) -> Prospect | None:
        """The law for a table of which nothing else is known; None where the budget is for all."""
        if self.rule.budget.unit != BITS_PER_KEY:
            return None
        return Prospect(self, [], level, 0, joins=True)

    def warn(self, error: BaseException) -> None:
        """Say once that tables get the usual filters."""
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%s: tables get the usual filters, for the budget cannot tell: %s",
                self._directory,
                cause(error),
            )

    def wrapped(self, key: bytes) -> OrderedKey:
        """A key as it is compared."""
        wrap = self._comparator.wrap
        return key if wrap is None else wrap(key)

    def _shape(self, table: PlacedTable) -> Shape:
        facts = self._facts.get(table.number)
        if facts is None:
            facts = table_facts.read(self._storage, self._directory, table.file, self._comparator)
            self._facts[table.number] = facts
        return Shape(
            level=table.level,
            low=table.low,
            high=table.high,
            keys=facts.keys,
            bits=8 * facts.filter_bytes,
            missed=table.file.missed,
        )


class Prospect:
    """The tree as it will be, for the tables that a job writes to a level, one after the other."""

    def __init__(
        self, placing: Placing, shapes: Sequence[Shape], level: int, data: int, joins: bool
    ):
        self._placing = placing
        self._shapes = list(shapes)
        self._level = level
        self._data = data
        self._joins = joins
        self._law: TreeLaw | None = None
        self._joined = 0

    def digests(self) -> Digests | None:
        """What digests are collected in, where any policy it may choose takes them."""
        return self._placing.rule.digests()

    def choose(self, num_keys: int, first: bytes, last: bytes) -> tuple[FilterPolicy | None, str]:
        """The policy of a table of so many keys between two, and why, as JSON.

        None where a plug-in fails to say what its filters cost, or a comparator raises.
        """
        try:
            return self._chosen(num_keys, first, last)
        except BaseException as error:
            let_pass(error, attended=is_attended())
            self._placing.warn(error)
            return None, ""

    def _chosen(self, num_keys: int, first: bytes, last: bytes) -> tuple[FilterPolicy, str]:
        low, high = self._placing.wrapped(first), self._placing.wrapped(last)
        shape = Shape(level=self._level, low=low, high=high, keys=num_keys)
        law = self._law_for(shape)
        run = law.run(shape)
        option = law.option(run, shape.level)
        policy = self._placing.rule.policy_of(option)
        if self._joins:
            taken = option.bits_per_key * num_keys
            self._shapes.append(attrs.evolve(shape, bits=taken))
            self._joined += num_keys
        return policy, _told(law, run)

    def _law_for(self, shape: Shape) -> TreeLaw:
        """The law of the tree, solved anew when a good part of it has joined since.

        Tables on level 0 come and go while those below it stay: these are placed without them.
        """
        law, joining = self._law, shape.keys if self._joins else 0
        if law is None or self._joined + joining > _FRESH_SHARE * law.keys:
            everything = [*self._shapes, shape] if joining else self._shapes
            shapes = everything if self._level == 0 else [each for each in everything if each.level]
            keys = sum(each.keys for each in everything)
            part = sum(each.keys for each in shapes) / keys if keys else 1.0
            law = self._law = TreeLaw(
                self._placing.rule, shapes, self._data, part or 1.0, self._placing.block_size
            )
            self._joined = -joining
        return law


def _told(law: TreeLaw, run: Run) -> str:
    """Why a table got its filter, as its properties have it."""
    told = {
        "budget": str(law.rule.budget),
        "price": float(f"{law.price:.4g}"),
        "asked": float(f"{run.asked:.4g}"),
        "missed": float(f"{run.missed:.4g}"),
    }
    return json.dumps(told, sort_keys=True, separators=(",", ":"))
