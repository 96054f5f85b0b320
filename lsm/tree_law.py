"""The law of placement for a tree of tables: which filter each of them would best have.

An absent key is looked for in every table whose range has it. How many lookups that are, nobody
knows beforehand: so the law takes absent keys to lie where the keys of all tables do, and where
lookups were counted it believes the counts. Tables of a level that lie as close as each other have
one rate then, as if they were one run.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING, Any

import attrs

from lsm.options import LEVELS
from policies.placement import Run, law

if TYPE_CHECKING:
    from policies.cost_models import Option
    from policies.rule import BudgetRule

# As many lookups count as much as the supposition that they come evenly. Of so many, a table with
# a thousandth of the keys would be asked some sixteen times: no less says anything about it.
SUPPOSED_LOOKUPS = 1 << 14

# Of what the filters of a level take too much, or too little, each that comes there makes good so
# much. With more of it budgets swing, and with none they are missed where levels grow.
_REDRESS = 0.5
# By so many bits for each of its keys at most, more or less.
_MOST_MORE, _MOST_LESS = 1.0, 4.0

# So many bytes of a key tell where it lies: no fewer than a float has.
_DIGITS = 8
# Where a float of so many bytes still tells two places apart.
_LEAST_SPAN = 2.0**13
_LEAST_OF_RANKS = 0.5

# Its multiples, whole ones left out, are spread evenly, however many are taken.
_GOLDEN = (math.sqrt(5) - 1) / 2


@attrs.frozen(kw_only=True)
class Shape:
    """A table as the law sees it: its level, range and keys, and the bits that its filter takes.

    Without ``bits`` it stands for tables that are yet to be written. ``missed`` is how many lookups
    have come by in vain, as far as they were counted.
    """

    level: int
    low: Any
    high: Any
    keys: int
    bits: float | None = None
    missed: float = 0.0


class TreeLaw:
    """What a rule gives each table of a tree, and those that are about to join it.

    ``data_bytes`` is what a budget in percent is a share of. These tables may have only a ``part``
    of all keys, and of the budget. Data blocks are of about ``block_size`` bytes.
    """

    def __init__(
        self,
        rule: BudgetRule,
        shapes: Sequence[Shape],
        data_bytes: int = 0,
        part: float = 1.0,
        block_size: int = 0,
    ):
        self.rule = rule
        self.shapes = shapes
        self.keys = sum(shape.keys for shape in shapes)
        self.budget = rule.budget.bits(round(self.keys / part), data_bytes) * part
        self._map = _KeyMap(shapes)
        self._lookups = _lookups(shapes) if rule.heat else 0.0
        self.runs = [
            self._run(shape, share, shape.missed if rule.heat else 0.0)
            for shape, share in zip(shapes, self._map.shares, strict=True)
        ]
        models = rule.models()
        if block_size and data_bytes:
            models = rule.models(block_size * self.keys / part / data_bytes)
        self.law = law(self.runs, self.budget, models=models, read_ns=rule.read_ns)
        self.options = self.law.options
        self._excess = self._excess_of_levels()
        self._drawn = 0

    def run(self, shape: Shape) -> Run:
        """The run of a table that is about to join the tree."""
        missed = self._expected(shape) if self._lookups else 0.0
        return self._run(shape, self._map.share(shape.low, shape.high), missed)

    def option(self, run: Run, level: int) -> Option:
        """What a table to come gets, where others of its level may have taken too much already.

        To take a bit less is to be asked half as much. Other levels are left out of it: what a
        small one could make good is nothing to a large one.
        """
        self._drawn += 1
        share = 2.0 ** -min(max(_REDRESS * self._excess.get(level, 0.0), -_MOST_MORE), _MOST_LESS)
        asked = Run(run.keys, run.asked * share, run.missed * share)
        return self.law.option(asked, self._drawn * _GOLDEN % 1)

    def reads(self, options: Iterable[Option]) -> float:
        """The blocks that a lookup reads in vain where the tables have these filters."""
        return sum(run.missed * each.fpr for run, each in zip(self.runs, options, strict=True))

    def time_ns(self, options: Iterable[Option]) -> float:
        """What a lookup takes to ask these filters, and for the blocks it reads in vain."""
        return sum(
            run.asked * each.probe_ns + run.missed * each.fpr * self.rule.read_ns
            for run, each in zip(self.runs, options, strict=True)
        )

    @property
    def price(self) -> float:
        """What a bit is worth, in nanoseconds of a lookup."""
        return math.exp(self.law.price)

    def _run(self, shape: Shape, share: float, missed: float) -> Run:
        """The run of a table with this share of all keys in its range, which are as many lookups.

        Where lookups were counted, those that it has missed tell better.
        """
        absent, rest = self.rule.absent_share, 1 - self.rule.absent_share
        in_vain = share * (absent + rest * self._map.share_beneath(shape.level, shape.keys))
        in_vain = (missed + SUPPOSED_LOOKUPS * in_vain) / (self._lookups + SUPPOSED_LOOKUPS)
        found = rest * shape.keys / max(1, self.keys)
        return Run(shape.keys, in_vain + found, in_vain)

    def _excess_of_levels(self) -> dict[int, float]:
        """The bits for each key of a level that filters have there, and should not have."""
        bits: dict[int, float] = {}
        keys: dict[int, int] = {}
        for shape, option in zip(self.shapes, self.options, strict=True):
            if shape.bits is not None:
                over = shape.bits - shape.keys * option.bits_per_key
                bits[shape.level] = bits.get(shape.level, 0.0) + over
                keys[shape.level] = keys.get(shape.level, 0) + shape.keys
        return {level: bits[level] / keys[level] for level in bits if keys[level]}

    def _expected(self, shape: Shape) -> float:
        """How many of the counted lookups would have come by a table between these bounds.

        The level with the most tables there tells best where in the range they were.
        """
        seen: dict[int, list[float]] = {}
        for other in self.shapes:
            if other.level and not (other.high < shape.low or shape.high < other.low):
                part = self._map.part_within(other, shape)
                seen.setdefault(other.level, []).append(other.missed * part)
        if not seen:
            return self._lookups * self._map.share(shape.low, shape.high)
        finest = max(seen, key=lambda level: len(seen[level]))
        return math.fsum(seen[finest])


class _KeyMap:
    """Where the keys of a tree lie: those of each table evenly between its bounds."""

    def __init__(self, shapes: Sequence[Shape]):
        self._axis = _Axis([bound for shape in shapes for bound in (shape.low, shape.high)])
        spans = [self._axis.span(shape.low, shape.high) for shape in shapes]
        slopes: dict[float, float] = {}
        for shape, (low, high) in zip(shapes, spans, strict=True):
            steep = shape.keys / (high - low)
            slopes[low] = slopes.get(low, 0.0) + steep
            slopes[high] = slopes.get(high, 0.0) - steep
        self._places = sorted(slopes)
        self._steep = list(accumulate(slopes[place] for place in self._places))
        rises = [
            (after - place) * steep
            for (place, after), steep in zip(pairwise(self._places), self._steep, strict=False)
        ]
        self._before = [0.0, *accumulate(rises)]
        keys_of: dict[int, int] = {}
        for shape in shapes:
            keys_of[shape.level] = keys_of.get(shape.level, 0) + shape.keys
        self._total = total = sum(keys_of.values())
        self.shares = [self._between(*span) / total if total else 1.0 for span in spans]
        self._beneath = [
            sum(count for at, count in keys_of.items() if at > level) / max(1, total)
            for level in range(LEVELS)
        ]

    def share(self, low: Any, high: Any) -> float:
        """The share of all keys that lie between two bounds; 1 where there are none at all."""
        return self._between(*self._axis.span(low, high)) / self._total if self._total else 1.0

    def share_beneath(self, level: int, keys: int) -> float:
        """The share of all keys that lie deeper than a level; beneath level 0, than so many."""
        if not level and self._total:
            return max(0.0, 1 - keys / self._total)
        return self._beneath[level]

    def part_within(self, shape: Shape, other: Shape) -> float:
        """The part of one table's range that lies within another's."""
        low, high = max(shape.low, other.low), min(shape.high, other.high)
        whole = self._between(*self._axis.span(shape.low, shape.high))
        inner = self._between(*self._axis.span(low, high))
        return min(1.0, inner / whole) if whole > 0 else 1.0

    def _between(self, first: float, last: float) -> float:
        """How many keys lie between two places."""
        return max(0.0, self._up_to(last) - self._up_to(first))

    def _up_to(self, place: float) -> float:
        """How many keys lie before a place."""
        at = bisect_right(self._places, place) - 1
        if at < 0:
            return 0.0
        return self._before[at] + (place - self._places[at]) * self._steep[at]


class _Axis:
    """Keys as places on a line: bytes by what follows on what all of them begin with.

    Keys that a comparator of its own orders are where they stand among the bounds.
    """

    def __init__(self, bounds: Sequence[Any]):
        self._ranks: list[Any] = []
        self._begin = 0
        if not bounds:
            return
        if all(type(bound) is bytes for bound in bounds):
            pairs = zip(min(bounds), max(bounds), strict=False)
            self._begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        else:
            self._ranks = sorted(bounds)

    def span(self, low: Any, high: Any) -> tuple[float, float]:
        """The places of two keys, which are never the same."""
        first, last = self._place(low), self._place(high)
        return first, max(last, first + (_LEAST_OF_RANKS if self._ranks else _LEAST_SPAN))

    def _place(self, key: Any) -> float:
        if self._ranks:
            return (bisect_left(self._ranks, key) + bisect_right(self._ranks, key)) / 2
        digits = key[self._begin : self._begin + _DIGITS] if type(key) is bytes else b""
        return float(int.from_bytes(digits.ljust(_DIGITS, b"\0"), "big"))


def _lookups(shapes: Sequence[Shape]) -> float:
    """How many absent lookups the counts speak for: each of them came by all runs it could."""
    levels: dict[int, float] = {}
    for shape in shapes:
        if shape.level:
            levels[shape.level] = levels.get(shape.level, 0.0) + shape.missed
    newest = [shape.missed for shape in shapes if not shape.level]
    return max((*levels.values(), *newest), default=0.0)
