"""Where filter memory goes: by the law, and no worse than whatever can be tried one by one."""

from __future__ import annotations

import itertools
import json
import math
import random
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import policies
from filters import costs
from policies import placement
from policies.budget import Budget
from policies.builtin import BUILTIN
from policies.cost_models import (
    NO_FILTER,
    CostModel,
    FamilyModel,
    Option,
    models_of,
    usual_models,
)
from policies.curve import Curve, Menu
from policies.placement import Run, advise, asked_runs, floor, law, place
from policies.registry import Registry
from tests.effort import by_effort

CASES = by_effort(60, 600, 6000)
ROOT = Path(__file__).parents[2]


@attrs.frozen
class Bound:
    """A filter that takes no more than any has to, for each bit that it takes so many."""

    policy: str = "bound"
    share: float = 1.0
    overhead: float = 0.0
    probe: float = 0.0
    highest: float = 1.0

    def option(self, num_keys: int, fpr: float) -> Option | None:
        if fpr > self.highest:
            return None
        bits = self.share * -math.log2(fpr) + self.overhead / num_keys
        return Option(self.policy, {"fpr": fpr}, bits, fpr, self.probe)


@attrs.frozen
class Widths:
    """A filter that has some rates only, as one of fingerprints."""

    policy: str = "widths"
    widths: tuple[int, ...] = (8, 16)
    probe: float = 0.0

    def option(self, num_keys: int, fpr: float) -> Option | None:
        for width in self.widths:
            if 2.0**-width <= fpr:
                return Option(self.policy, {"bits": width}, 1.1 * width, 2.0**-width, self.probe)
        return None


def levels(growth: float, count: int = 5, first: int = 1_000_000) -> list[int]:
    return [round(first * growth**level) for level in range(count)]


@pytest.mark.parametrize(("growth", "published"), [(4, 0.00205), (10, 0.00140)])
def test_the_floor_is_what_was_published(growth: float, published: float) -> None:
    counts = levels(growth)
    assert floor(counts, 10 * sum(counts)) == pytest.approx(published, rel=0.005)
    assert floor(counts, 0) == len(counts)
    assert floor([7], 8 * 7) == pytest.approx(2**-8)
    assert floor([], 0) == 0


@pytest.mark.parametrize("growth", [4, 10])
def test_ideal_filters_come_to_the_floor(growth: float) -> None:
    counts = levels(growth)
    for bits_per_key in (1, 3, 5, 10, 16):
        budget = bits_per_key * sum(counts)
        found = place([Run(count) for count in counts], budget, models=[Bound()])
        assert budget * 0.9999 < found.bits <= budget * 1.0001
        assert found.reads == pytest.approx(floor(counts, budget), rel=0.002)


def test_rates_are_proportional_to_keys_over_lookups(rng: random.Random) -> None:
    for _ in range(CASES):
        runs = [
            Run(rng.randrange(1000, 1 << 20), asked=2.0 ** -rng.uniform(0, 4))
            for _ in range(rng.randrange(2, 9))
        ]
        budget = rng.uniform(9, 16) * sum(run.keys for run in runs)
        found = place(runs, budget, models=[Bound()])
        ratios = [
            option.fpr * run.asked / run.keys
            for run, option in zip(runs, found.options, strict=True)
            if 2.0**-29 < option.fpr < 0.7
        ]
        assert len(ratios) > 1
        assert max(ratios) < 1.02 * min(ratios)  # who would pay about the same is treated alike


def tried(
    runs: Sequence[Run], budget: float, models: Sequence[CostModel], read_ns: float, steps: int
) -> float:
    """The least time of all combinations of many options."""
    each = []
    for run in runs:
        options = {NO_FILTER.bits_per_key: NO_FILTER}
        for model, step in itertools.product(models, range(1, steps)):
            option = model.option(run.keys, 2.0 ** (-step / 2))
            if option is not None:
                options[hash((option.policy, option.fpr))] = option
        each.append(list(options.values()))
    best = math.inf
    for chosen in itertools.product(*each):
        pairs = list(zip(runs, chosen, strict=True))
        if sum(run.keys * option.bits_per_key for run, option in pairs) <= budget:
            time = sum(
                run.asked * option.probe_ns + run.missed * option.fpr * read_ns
                for run, option in pairs
            )
            best = min(best, time)
    return best


@pytest.mark.parametrize(
    "models",
    [
        [Bound()],
        [Bound(share=1.44, overhead=200)],
        [Bound("fast", share=1.5, probe=20), Bound("small", share=1.05, probe=75)],
        [Bound(share=1.44, probe=75, highest=0.5), Widths(probe=30)],
        [Widths()],
    ],
    ids=["bound", "overhead", "two", "mixed", "widths"],
)
def test_nothing_that_can_be_tried_takes_clearly_less_time(
    models: list[CostModel], rng: random.Random
) -> None:
    for _ in range(CASES // 6):
        runs = []
        for _ in range(rng.randrange(1, 4)):
            asked = rng.choice((1.0, 0.5, 0.01))
            runs.append(
                Run(rng.randrange(500, 100_000), asked, asked * rng.choice((1.0, 0.9, 0.3)))
            )
        budget = rng.uniform(0.5, 14) * sum(run.keys for run in runs)
        read_ns = rng.choice((1e3, 1e5, 1e7))
        found = place(runs, budget, models=models, read_ns=read_ns)
        assert found.bits <= budget * 1.01  # curves are shared by runs of about one size
        best = tried(runs, budget, models, read_ns, 33)
        if isinstance(models[0], Widths):  # the knapsack's own gap: the largest run may not fit
            assert found.time_ns <= 2 * best or found.bits < budget
        else:
            assert found.time_ns <= 1.03 * best + 1, (runs, budget, read_ns, found)


def test_more_memory_never_takes_more_time(rng: random.Random) -> None:
    models = usual_models()
    for _ in range(CASES // 10):
        runs = [Run(rng.randrange(100, 1 << 22), rng.random()) for _ in range(5)]
        total = sum(run.keys for run in runs)
        times = [place(runs, bits * total, models=models).time_ns for bits in range(1, 20)]
        for one, other in itertools.pairwise(times):
            assert other <= one * 1.001


def test_who_is_never_asked_in_vain_gets_no_filter() -> None:
    runs = [Run(1000), Run(1000, asked=1.0, missed=0.0), Run(1000, asked=0.0), Run(0)]
    found = place(runs, 1e6)
    assert [option.policy for option in found.options[1:]] == ["none"] * 3
    assert found.options[0].policy != "none"
    assert place([], 100).options == ()
    assert place([Run(1000)], 0).options == (NO_FILTER,)


def test_memory_that_is_to_be_had_is_used_by_equals_in_part() -> None:
    """Tables of one level, of which the budget lets some have twice the bits."""
    runs = [Run(10_000) for _ in range(100)]
    found = place(runs, 12 * 1.1 * 1_000_000, models=[Widths()])
    assert sorted(option.params["bits"] for option in found.options) == [8] * 50 + [16] * 50


@pytest.mark.parametrize(("growth", "most"), [(4, 1.105), (10, 1.15)])
def test_our_families_come_near_the_floor(growth: float, most: float) -> None:
    counts = levels(growth, first=20_000)
    budget = 10 * sum(counts)
    found = place([Run(count) for count in counts], budget)
    assert found.bits <= budget * 1.005
    assert found.reads < most * floor(counts, budget)


def test_families_are_chosen_by_what_a_block_costs() -> None:
    runs = [Run(count) for count in levels(4, first=100_000)]
    budget = 10 * sum(run.keys for run in runs)
    cached = place(runs, budget, read_ns=1e3)
    disk = place(runs, budget, read_ns=1e7)
    assert disk.reads < cached.reads
    assert sum(option.probe_ns for option in cached.options) < sum(
        option.probe_ns for option in disk.options
    )


def test_what_is_placed_can_be_made() -> None:
    runs = [Run(count) for count in levels(4, first=2_000)]
    for option in place(runs, 10 * sum(run.keys for run in runs)).options:
        assert policies.create(option.policy, **option.params)


def test_models_are_those_of_policies() -> None:
    assert {model.policy for model in usual_models()} >= {"blocked", "bumped-ribbon", "classic"}
    assert [model.policy for model in models_of(["leveldb", "blocked", "leveldb"])] == [
        "leveldb",
        "blocked",
    ]
    with pytest.raises(ValueError, match="'none' costs nothing that could be compared"):
        models_of(["none"])
    with pytest.raises(policies.UnknownPolicyError):
        models_of(["bloked"])


class Modelled(policies.FilterPolicy):
    """A plug-in that is all there, and half as large as any filter can be."""

    name = "acme.modelled"
    made: Any = Bound(share=0.5)

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True

    @classmethod
    def cost_model(cls) -> Any:
        if isinstance(cls.made, BaseException):
            raise cls.made
        return cls.made


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> type[Modelled]:
    monkeypatch.setattr("policies.registry._REGISTRY", Registry(BUILTIN))
    return policies.register(Modelled)


def test_a_plug_in_with_a_model_is_chosen_among_the_others(plug_in: type[Modelled]) -> None:
    found = advise(COUNTS, families=["blocked", plug_in.name])
    assert {run.option.policy for run in found.runs} == {plug_in.name}
    assert plug_in.name not in str(advise(COUNTS))


@attrs.frozen
class Sized:
    """A Bloom filter's cost by a parameter that is a size, in steps of a quarter of a bit."""

    policy: str = Modelled.name

    def option(self, num_keys: int, fpr: float) -> Option | None:
        bits = math.ceil(4 * 1.44 * math.log2(1 / fpr)) / 4
        return Option(self.policy, {"bits_per_key": bits}, bits, 2 ** (-bits / 1.44), 10.0)


def test_a_plug_in_is_made_with_parameters_that_its_model_has_named(
    plug_in: type[Modelled], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two rates there are more, of a family that takes them; its size is none."""
    monkeypatch.setattr(plug_in, "made", Sized())
    for bits in (2.3, 5.1, 10, 13.7):
        for run in advise(COUNTS, budget=f"{bits} bits/key", families=[plug_in.name]).runs:
            if run.option.policy == plug_in.name:
                assert run.option.params == {"bits_per_key": run.option.bits_per_key}
                assert run.option.fpr == 2 ** (-run.option.bits_per_key / 1.44)


@attrs.frozen
class Lying:
    found: Any

    def option(self, num_keys: int, fpr: float) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (KeyError("no"), r"Modelled raised in cost_model\(\): KeyError"),
        (None, r"raised in option\(\): AttributeError"),
        (Lying(KeyError("no")), r"raised in option\(\): KeyError"),
        (Lying("nonsense"), "offers 'nonsense' for"),
        (Lying(Option("x", {}, math.nan, 1e-9, 1.0)), "offers Option"),
        (Lying(Option("x", {}, -1.0, 1e-9, 1.0)), "offers Option"),
        (Lying(Option("x", {}, 1.0, 0.9, 1.0)), "offers Option"),
        (Lying(Option("x", {}, 1.0, 1e-9, -1.0)), "offers Option"),
    ],
)
def test_a_model_that_cannot_be_right_is_named(
    plug_in: type[Modelled], made: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plug_in, "made", made)
    with pytest.raises(policies.PluginError, match=told):
        advise(COUNTS, families=[plug_in.name])


def test_a_plug_in_without_a_model_is_refused(
    plug_in: type[Modelled], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(plug_in, "cost_model")
    with pytest.raises(ValueError, match=r"'acme.modelled' has no cost_model\(\)"):
        advise(COUNTS, families=[plug_in.name])


def test_a_family_offers_what_it_does_not_warn_of() -> None:
    (blocked,) = models_of(["blocked"])
    assert isinstance(blocked, FamilyModel)
    assert blocked.option(100_000, 0.01) is not None
    assert blocked.option(100_000, 1e-9) is None


# -- Advice --------------------------------------------------------------------------------

COUNTS = dict(enumerate(levels(4, first=10_000), 1))


def test_advice_is_what_is_placed() -> None:
    found = advise(COUNTS, budget="10 bits/key")
    placed = place([Run(count) for count in COUNTS.values()], 10 * sum(COUNTS.values()))
    assert [run.option for run in found.runs] == list(placed.options)
    assert (found.bits, found.reads, found.time_ns) == (placed.bits, placed.reads, placed.time_ns)
    assert found.floor == floor(list(COUNTS.values()), found.bits)
    assert found.floor < found.reads
    lines = str(found).splitlines()
    assert len(lines) == 4 + len(COUNTS)
    assert all(len(line) <= 80 for line in lines)
    assert "times the fewest possible" in lines[-2]


def test_the_page_shows_what_is_advised() -> None:
    page = (ROOT / "docs" / "placement.md").read_text()
    keys = {1: 20_000, 2: 80_000, 3: 320_000, 4: 1_280_000, 5: 5_120_000}
    assert f"keys = {{{', '.join(f'{level}: {count:_}' for level, count in keys.items())}}}" in page
    found = advise(keys, budget="10 bits/key", read_cost="100 us")
    assert f"```\n{found}\n```" in page
    sizes = ", ".join(f"{size:,}" for size in costs.SMALLER)
    assert f"filters of {sizes} and {costs.KEYS:,} keys" in page


def test_advice_can_be_written_down_and_read_again() -> None:
    found = advise({0: [3_000, 9_000], **COUNTS}, absent_share=0.5, read_cost="10 us")
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()
    selected = policies.LevelPolicies.from_config(tomllib.loads(found.to_toml()))
    for run in found.runs[1:]:
        policy = selected[run.level]
        assert (policy.name, policy.params()) == (run.option.policy, run.option.params)
    assert selected[6] == selected[5]
    assert policies.LevelPolicies.from_config(tomllib.loads(advise({}).to_toml())) is not None


def test_who_is_asked_for_present_keys_only_needs_no_filter_on_the_last_level() -> None:
    runs = asked_runs([10, 90, 900], absent_share=0.0)
    assert [run.missed for run in runs] == pytest.approx([0.99, 0.9, 0.0])
    assert [run.asked for run in runs] == pytest.approx([1.0, 0.99, 0.9])
    assert asked_runs([10, 90]) == [Run(10), Run(90)]
    found = advise(COUNTS, absent_share=0.0)
    assert found.runs[-1].option == NO_FILTER
    assert found.runs[0].option != NO_FILTER


@pytest.mark.parametrize(
    ("text", "keys", "data", "bits"),
    [
        ("10 bits/key", 7, 0, 70),
        ("9.5bits/key", 2, 0, 19),
        ("64 MiB", 7, 0, 64 << 23),
        ("1 %", 7, 1000, 80),
        ("3 bytes", 7, 0, 24),
    ],
)
def test_a_budget_is_bits(text: str, keys: int, data: int, bits: float) -> None:
    found = Budget.parse(text)
    assert found.bits(keys, data) == pytest.approx(bits)
    assert Budget.parse(str(found)) == found


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": "10"}, "budget is a number with a unit, like \"10 bits/key\", not '10'"),
        ({"budget": "10 bit/key"}, r"did you mean 'bits/key'\?"),
        ({"budget": "101 %"}, "out of range: '101 %', allowed are 0 to 100 %"),
        ({"budget": "-1 MiB"}, "a number with a unit"),
        ({"read_cost": "5 minutes"}, "allowed are ns, us, ms, s"),
        ({"read_cost": "0 ns"}, "allowed are 1 ns to 100 s"),
        ({"absent_share": 1.5}, "absent_share is out of range: 1.5, allowed are 0 to 1"),
        ({"families": ["none"]}, "choose among blocked"),
        ({"budget": "1 %"}, "nobody said how large they are: pass data_bytes="),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        advise(COUNTS, **wrong)
    with pytest.raises(TypeError, match='like "10 bits/key", not 10'):
        advise(COUNTS, budget=10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a number of keys of level 1 is out of range: -1"):
        advise({1: -1})


# -- The law for one run -------------------------------------------------------------------

SOME_MODELS: list[list[CostModel]] = [
    [Bound()],
    [Bound("fast", share=1.5, probe=20), Bound("small", share=1.05, probe=75)],
    [Bound(share=1.44, probe=75, highest=0.5), Widths(probe=30)],
    [Widths()],
    list(usual_models()),
]


def some_runs(rng: random.Random, most: int = 30) -> list[Run]:
    sizes = [round(2 ** rng.uniform(8, 18)) for _ in range(3)]
    shares = [1.0, 0.5, rng.random()]
    return [
        Run(rng.choice(sizes), asked := rng.choice(shares), asked * rng.choice((1.0, 0.7)))
        for _ in range(rng.randrange(1, most))
    ]


@pytest.mark.parametrize("models", SOME_MODELS, ids=["bound", "two", "mixed", "widths", "ours"])
def test_the_law_gives_each_run_what_it_was_placed_with(
    models: list[CostModel], rng: random.Random
) -> None:
    for _ in range(CASES // 6):
        runs = some_runs(rng)
        budget = rng.uniform(1, 16) * sum(run.keys for run in runs)
        found = law(runs, budget, models=models)
        placed = place(runs, budget, models=models)
        assert found.options == placed.options
        given: dict[Run, set[Option]] = {}
        for run, option in zip(runs, placed.options, strict=True):
            given.setdefault(run, set()).add(option)
        for run in given:
            # Runs of about one size that would pay the same are counted as one.
            alike = [each for each in given if abs(math.log2(each.keys / run.keys)) < 1]
            drawn = {found.option(run, draw) for draw in (0.0, 0.25, 0.5, 0.75, 0.999999)}
            assert drawn <= set().union(*(given[each] for each in alike))


def test_equals_keep_the_shares_that_the_budget_allows() -> None:
    runs = [Run(10_000) for _ in range(100)]
    found = law(runs, 12 * 1.1 * 1_000_000, models=[Widths()])
    drawn = [found.option(Run(10_000), draw / 100).params["bits"] for draw in range(100)]
    assert sorted(drawn) == [8] * 50 + [16] * 50


def test_the_law_has_an_option_for_runs_that_it_was_not_solved_for() -> None:
    found = law([Run(10_000), Run(40_000)], 10 * 50_000, models=[Bound()])
    one, four, half = map(found.option, (Run(10_000), Run(40_000), Run(10_000, 0.5)))
    assert four.fpr == pytest.approx(4 * one.fpr, rel=0.02)
    assert half.fpr == pytest.approx(2 * one.fpr, rel=0.02)
    assert found.option(Run(1 << 40)) == NO_FILTER
    assert found.option(Run(0)) == NO_FILTER
    assert found.option(Run(10, asked=1.0, missed=0.0)) == NO_FILTER
    cheaper = law([Run(10_000), Run(40_000)], 20 * 50_000, models=[Bound()])
    assert cheaper.price < found.price


def test_without_a_budget_or_without_runs_there_is_a_law_too() -> None:
    assert law([Run(1000)], 0).option(Run(1000)) == NO_FILTER
    assert law([], 100).options == ()
    assert isinstance(law([], 100).option(Run(1000)), Option)


def test_a_model_is_asked_once_for_each_size_whatever_blocks_and_bits_cost() -> None:
    @attrs.frozen
    class Counted(Bound):
        asked: list[int] = attrs.field(factory=list, eq=False)

        def option(self, num_keys: int, fpr: float) -> Option | None:
            self.asked.append(num_keys)
            return super().option(num_keys, fpr)

    model = Counted("counted", share=1.1)
    runs = [Run(1000, 1.0, missed / 100) for missed in range(1, 101)]
    place(runs, 8_000, models=[model])
    before = len(model.asked)
    assert len(set(model.asked)) == 1
    assert before < 200
    for read_ns in (1e3, 1e5, 1e7):
        place(runs, 10_000, models=[model], read_ns=read_ns)
    assert len(model.asked) < 1.5 * before  # for steps between options that were not beside before


def test_among_many_runs_few_prices_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    """What one of them cannot have is no large share, and not worth trying out both ways."""
    looked: list[float] = []

    def counted(asking: placement.Asking, budget: float) -> float:
        looked.append(budget)
        return price(asking, budget)

    price = placement._price
    monkeypatch.setattr(placement, "_price", counted)
    most = 0
    for _ in range(CASES // 3):
        runs = [Run(round(20_000 * rng.uniform(0.3, 1.2))) for _ in range(100)]
        budget = rng.uniform(0.1, 1) * sum(run.keys for run in runs)
        looked.clear()
        found = place(runs, budget, models=[Bound(share=1.44, overhead=10_000), Widths()])
        assert 0.9 * budget < found.bits <= 1.001 * budget
        most = max(most, len(looked))
    assert most <= 150


# -- Curves --------------------------------------------------------------------------------


def test_a_curve_has_no_need_of_what_another_option_beats(rng: random.Random) -> None:
    models = usual_models()
    for num_keys in (300, 17_000):
        menu = Menu(models, num_keys)
        everything = [
            option
            for model in models
            for step in range(2, 61)
            if (option := model.option(num_keys, 2.0 ** (-step / 2))) is not None
        ]
        for read_ns in (1e2, 1e3, 1e5, 1e7):
            kept = Curve(menu.options, read_ns, menu.between)
            whole = Curve([*menu.options, *everything], read_ns, menu.between)
            assert kept.slopes == whole.slopes
        assert len(menu.options) < len(everything)


def some_curves(rng: random.Random) -> list[Curve]:
    return [
        Curve(menu.options, read_ns, menu.between)
        for models in SOME_MODELS
        for menu in [Menu(models, rng.randrange(300, 100_000))]
        for read_ns in (1e3, 1e5)
    ]


def test_a_line_is_what_the_bits_follow(rng: random.Random) -> None:
    lines = 0
    for curve in some_curves(rng):
        ends = [end for slope in curve.slopes for end in (slope.first, slope.last)]
        for _ in range(CASES):
            low = rng.choice((rng.choice(ends), rng.uniform(min(ends) - 1, max(ends) + 1)))
            high = low + rng.choice((1e-9, 0.01, 0.3, 3.0))
            line = curve.line(low, high)
            prices = [low + (high - low) * share for share in (0, 0.3, 0.5, 0.9, 1)]
            if line is None:
                assert any(low <= end <= high for end in ends)
                continue
            lines += 1
            for price in prices:
                assert line[0] + line[1] * price == pytest.approx(curve.bits_at(price), abs=1e-6)
    assert lines > CASES


def test_a_curve_from_one_of_its_corners_on_is_the_rest_of_it(rng: random.Random) -> None:
    for curve in some_curves(rng):
        for index, slope in enumerate(curve.slopes):
            rest = curve.from_on(slope.upper.bits_per_key)
            assert rest.slopes == curve.slopes[index:]
            below = curve.within(math.nextafter(slope.lower.bits_per_key, 0))
            assert all(each.lower.bits_per_key < slope.lower.bits_per_key for each in below.slopes)
            price = rng.uniform(slope.last - 2, slope.first + 2)
            assert rest.bits_at(price) == max(curve.bits_at(price), slope.upper.bits_per_key)
        last = curve.slopes[-1].lower
        assert curve.from_on(last.bits_per_key).at(math.inf) == last
