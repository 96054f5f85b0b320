"""What a budget gives the tables of a tree: held against the law for runs, which has an oracle."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs
import pytest

import policies
from lsm.tree_law import SUPPOSED_LOOKUPS, Shape, TreeLaw
from policies import placement
from policies.budget import Budget
from policies.cost_models import Option, option_of
from policies.placement import Run
from policies.rule import BudgetRule
from tests.effort import by_effort

KEYS = 17_000
TEN = BudgetRule(Budget.parse("10 bits/key"))


def key(place: float) -> bytes:
    """A key at this part of the key space."""
    return min(int(place * 2**64), 2**64 - 1).to_bytes(8, "big")


def level(number: int, tables: int, low: float = 0.0, high: float = 1.0) -> list[Shape]:
    """A level whose tables lie side by side, evenly."""
    cuts = [low + (high - low) * at / tables for at in range(tables + 1)]
    return [
        Shape(level=number, low=key(first), high=key(last), keys=KEYS)
        for first, last in pairwise(cuts)
    ]


def tree(counts: Sequence[int]) -> list[Shape]:
    """Levels from 1 down with so many tables each."""
    return [shape for number, count in enumerate(counts, 1) for shape in level(number, count)]


def taken(law: TreeLaw) -> float:
    """The bits of all options."""
    return math.fsum(
        shape.keys * option.bits_per_key
        for shape, option in zip(law.shapes, law.options, strict=True)
    )


def of_level(law: TreeLaw, number: int) -> list[Option]:
    return [
        option
        for shape, option in zip(law.shapes, law.options, strict=True)
        if shape.level == number
    ]


@pytest.mark.parametrize("counts", [(1, 4, 16, 64), (1, 10, 100), (3, 3, 3), (7,)])
@pytest.mark.parametrize("bits", [3, 5, 8, 10, 16])
def test_full_levels_are_runs(counts: tuple[int, ...], bits: int) -> None:
    rule = BudgetRule(Budget.parse(f"{bits} bits/key"))
    law = TreeLaw(rule, tree(counts))
    runs = [Run(KEYS, 1 / count) for count in counts for _ in range(count)]
    best = placement.place(runs, bits * sum(run.keys for run in runs))
    assert law.time_ns(law.options) == pytest.approx(best.time_ns, rel=0.02)
    assert taken(law) <= 1.001 * law.budget
    assert taken(law) == pytest.approx(law.budget, rel=0.03)
    if bits <= 10:  # with more, reads take less time than asking
        assert law.reads(law.options) == pytest.approx(best.reads, rel=0.05)
        for number in range(1, len(counts) + 1):
            rates = [option.fpr for option in of_level(law, number)]
            assert max(rates) <= 1.05 * min(rates)


def test_tables_side_by_side_are_one_run_wherever_they_are() -> None:
    parts = [(at / 12, (at + 1) / 12) for at in range(12)]
    spread = [level(1 + at % 4, 1, *part)[0] for at, part in enumerate(parts)]
    rates = [option.fpr for option in TreeLaw(TEN, spread).options]
    together = TreeLaw(TEN, level(3, 12))
    assert max(rates) <= 1.05 * min(rates)
    assert together.options[0].fpr == pytest.approx(rates[0], rel=0.05)


def test_each_table_of_level_0_is_a_run() -> None:
    newest = [Shape(level=0, low=key(0), high=key(1), keys=KEYS) for _ in range(8)]
    law = TreeLaw(TEN, newest + level(1, 8))
    assert law.reads(law.options) == pytest.approx(
        sum(each.fpr for each in law.options[:9]), rel=0.05
    )
    assert max(each.fpr for each in law.options[:8]) < of_level(law, 1)[0].fpr


def test_a_level_of_part_of_the_keys_is_asked_by_that_part() -> None:
    law = TreeLaw(TEN, level(1, 2, 0.0, 0.25) + level(2, 16))
    assert sum(run.missed for run in law.runs[:2]) == pytest.approx(1 / 3, rel=0.05)
    assert sum(run.missed for run in law.runs[2:]) == pytest.approx(1.0, rel=0.05)


def random_tree(rng: random.Random) -> list[Shape]:
    shapes = []
    for _ in range(rng.randrange(4)):
        low, high = sorted((rng.random(), rng.random()))
        shapes.append(Shape(level=0, low=key(low), high=key(high), keys=rng.randrange(1, 40_000)))
    for number in range(1, rng.randrange(1, 5)):
        for part in level(number, rng.randrange(1, 20), *sorted((rng.random(), rng.random()))):
            if rng.random() < 0.8:
                shapes.append(attrs.evolve(part, keys=rng.randrange(1, 40_000)))
    return [attrs.evolve(each, missed=rng.choice((0, rng.randrange(5000)))) for each in shapes]


def rules(rng: random.Random) -> Iterator[BudgetRule]:
    for text in ("0 bits/key", "2.5 bits/key", "10 bits/key", "24 bits/key", "20 KiB", "1 %"):
        yield BudgetRule(
            Budget.parse(text),
            read_ns=rng.choice((1e3, 1e5, 1e7)),
            absent_share=rng.choice((0.0, 0.3, 1.0)),
            families=rng.choice(((), ("blocked",), ("bumped-ribbon", "blocked"))),
            heat=rng.random() < 0.5,
        )


@pytest.mark.parametrize("turn", range(by_effort(4, 20, 200)))
def test_a_budget_is_kept_and_no_uniform_filter_is_better(turn: int, rng: random.Random) -> None:
    for rule in rules(rng):
        shapes = random_tree(rng)
        law = TreeLaw(rule, shapes, data_bytes=100 * sum(shape.keys for shape in shapes))
        assert len(law.options) == len(law.runs) == len(shapes)
        assert taken(law) <= 1.001 * law.budget + 1e-6
        for run, shape in zip(law.runs, shapes, strict=True):
            assert run.keys == shape.keys
            assert 0 <= run.missed <= run.asked
        for bits in (1.0, 4.0, 8.0, 10.0):
            each = [_blocked(shape, bits) for shape in shapes]
            if sum(s.keys * o.bits_per_key for s, o in zip(shapes, each, strict=True)) <= taken(
                law
            ):
                assert law.time_ns(law.options) <= 1.02 * law.time_ns(each) + 1e-6


def _blocked(shape: Shape, bits: float) -> Option:
    found = option_of(policies.BlockedPolicy(bits_per_key=bits), shape.keys)
    assert found is not None
    return found


def test_who_is_asked_more_gets_more() -> None:
    shapes = level(1, 20)
    hot = [attrs.evolve(shape, missed=100_000 * (at == 3)) for at, shape in enumerate(shapes)]
    law = TreeLaw(TEN, hot)
    cold = [option for at, option in enumerate(law.options) if at != 3]
    assert law.options[3].bits_per_key > max(each.bits_per_key for each in cold) + 3
    assert law.run(hot[3]).missed > 10 * law.run(hot[4]).missed
    even = TreeLaw(attrs.evolve(TEN, heat=False), hot)
    assert max(each.fpr for each in even.options) <= 1.05 * min(each.fpr for each in even.options)
    assert taken(law) == pytest.approx(law.budget, rel=0.03)


def test_few_lookups_say_little() -> None:
    shapes = level(1, 20)
    few = [attrs.evolve(shape, missed=SUPPOSED_LOOKUPS // 1000) for shape in shapes]
    few[3] = attrs.evolve(few[3], missed=SUPPOSED_LOOKUPS // 500)
    rates = [option.fpr for option in TreeLaw(TEN, few).options]
    assert max(rates) <= 1.15 * min(rates)


@pytest.mark.parametrize("heat", [False, True])
def test_a_table_to_come_gets_what_its_neighbours_have(heat: bool, rng: random.Random) -> None:
    shapes = tree((2, 8, 32))
    if heat:
        shapes = [attrs.evolve(each, missed=90_000 / (2, 8, 32)[each.level - 1]) for each in shapes]
    law = TreeLaw(TEN, shapes)
    for at in range(len(shapes)):
        found = law.option(law.run(attrs.evolve(shapes[at], bits=None)), shapes[at].level)
        assert found.fpr == pytest.approx(law.options[at].fpr, rel=0.1)


def test_it_begins_with_the_heat_of_its_range() -> None:
    shapes = level(1, 2) + level(2, 20)
    asked = [attrs.evolve(each, missed=45_000 if each.level == 1 else 1) for each in shapes]
    asked[2 + 7] = attrs.evolve(asked[2 + 7], missed=90_000)
    law = TreeLaw(TEN, asked)
    hot, cold = (Shape(level=0, low=s.low, high=s.high, keys=KEYS) for s in (asked[9], asked[15]))
    assert law.run(hot).missed > 5 * law.run(cold).missed


@pytest.mark.parametrize(("too_much", "compare"), [(3.0, float.__lt__), (-3.0, float.__gt__)])
def test_what_others_take_too_much_those_to_come_make_good(
    too_much: float, compare: object
) -> None:
    shapes = tree((2, 8))
    even = TreeLaw(TEN, shapes)
    found = [
        attrs.evolve(shape, bits=shape.keys * (option.bits_per_key + too_much))
        for shape, option in zip(shapes, even.options, strict=True)
    ]
    law = TreeLaw(TEN, found)
    before, after = even.option(even.run(shapes[0]), 1), law.option(law.run(shapes[0]), 1)
    assert callable(compare)
    assert compare(after.bits_per_key, before.bits_per_key)
    assert abs(after.bits_per_key - before.bits_per_key) < 4  # a quarter, and a jump
    assert law.options[0].fpr == pytest.approx(even.options[0].fpr)


def test_filters_as_they_should_be_change_nothing() -> None:
    shapes = tree((2, 8))
    law = TreeLaw(TEN, shapes)
    exact = [
        attrs.evolve(shape, bits=shape.keys * option.bits_per_key)
        for shape, option in zip(shapes, law.options, strict=True)
    ]
    again = TreeLaw(TEN, exact)
    assert again.option(again.run(shapes[0]), 1).fpr == pytest.approx(law.options[0].fpr, rel=0.05)


def test_what_all_keys_begin_with_makes_no_difference(rng: random.Random) -> None:
    shapes = random_tree(rng)
    longer = [attrs.evolve(s, low=b"user:" * 9 + s.low, high=b"user:" * 9 + s.high) for s in shapes]
    assert TreeLaw(TEN, longer).options == TreeLaw(TEN, shapes).options


@attrs.frozen(order=True)
class Backwards:
    """A key as a comparator of its own may wrap it."""

    place: int


def test_keys_that_are_no_bytes_lie_where_they_stand_among_the_bounds() -> None:
    shapes = tree((1, 4, 16))
    wrapped = [
        attrs.evolve(
            shape,
            low=Backwards(int.from_bytes(shape.low, "big")),
            high=Backwards(int.from_bytes(shape.high, "big")),
        )
        for shape in shapes
    ]
    law, other = TreeLaw(TEN, shapes), TreeLaw(TEN, wrapped)
    assert other.reads(other.options) == pytest.approx(law.reads(law.options), rel=0.25)
    found = other.option(other.run(wrapped[3]), 2)
    assert 0 < found.fpr < 0.01


def test_present_keys_are_found_deepest_first() -> None:
    law = TreeLaw(attrs.evolve(TEN, absent_share=0.0), tree((1, 4, 16)))
    assert {option.policy for option in of_level(law, 3)} == {"none"}
    assert of_level(law, 1)[0].fpr < 0.001
    assert law.runs[-1].missed == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "shapes",
    [
        [],
        [Shape(level=0, low=b"a", high=b"a", keys=1)],
        [Shape(level=3, low=b"", high=b"", keys=5)],
        [Shape(level=1, low=b"a", high=b"a" * 50, keys=0)],
        [Shape(level=1, low=b"a" * 40, high=b"a" * 41, keys=7, bits=1e9, missed=1 << 62)],
    ],
    ids=repr,
)
def test_the_smallest_trees(shapes: list[Shape]) -> None:
    law = TreeLaw(TEN, shapes)
    assert len(law.options) == len(shapes)
    found = law.option(law.run(Shape(level=2, low=b"b", high=b"c", keys=1000)), 2)
    assert 0 <= found.fpr <= 1
