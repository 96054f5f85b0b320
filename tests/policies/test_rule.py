"""A budget in place of policies: read strictly, written back exactly, and what it makes."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.costs import Cost
from policies import LevelPolicies, PolicyConfigError
from policies.budget import Budget, nanoseconds, time_text
from policies.builtin import BUILTIN
from policies.config import Choice
from policies.cost_models import NO_FILTER, Option, usual_models
from policies.placement import Run, place
from policies.registry import Registry
from policies.rule import BudgetRule

TEN = Budget.parse("10 bits/key")
SEED = 0x5EED


def parse(text: str, levels: int = 7) -> LevelPolicies:
    return LevelPolicies.from_config(tomllib.loads(f"[filters]\n{text}"), levels, "my.toml")


def rule_of(text: str) -> BudgetRule:
    found = parse(text).rule
    assert found is not None
    return found


@attrs.frozen
class Half:
    """Filters of half the bits that any has to take."""

    policy: str = "acme.half"
    offers: bool = True

    def option(self, num_keys: int, fpr: float) -> Option | None:
        return Option(self.policy, {"fpr": fpr}, 4.0, fpr, 1.0) if self.offers else None


@attrs.frozen
class HalfPolicy(policies.FilterPolicy):
    """A plug-in with a cost model."""

    name = "acme.half"
    fpr: float = 0.01
    seed: int = attrs.field(default=0, eq=False, repr=False)

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b""

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True

    def with_seed(self, seed: int) -> HalfPolicy:
        return attrs.evolve(self, seed=seed)

    @classmethod
    def cost_model(cls) -> Any:
        return Half()


@pytest.fixture(autouse=True)
def plug_in(monkeypatch: pytest.MonkeyPatch) -> type[HalfPolicy]:
    """Policies that are built in, and one that is not."""
    fresh = Registry(BUILTIN, dict)
    monkeypatch.setattr(policies.registry, "lookup", fresh.lookup)
    monkeypatch.setattr(policies.registry, "available", fresh.available)
    return fresh.register(HalfPolicy)


class TestReading:
    def test_a_budget_alone_has_defaults(self) -> None:
        assert rule_of("budget = '10 bits/key'") == BudgetRule(
            TEN, read_ns=100_000.0, absent_share=1.0, families=(), heat=True
        )

    def test_all_that_can_be_said(self) -> None:
        found = rule_of(
            "budget = '64 MiB'\nread_cost = '10 ms'\nabsent_share = 0.25\n"
            "families = ['blocked', 'acme.half']\nheat = false"
        )
        assert found == BudgetRule(
            Budget(64, "MiB"), 1e7, 0.25, ("blocked", "acme.half"), heat=False
        )

    def test_levels_have_the_choices_of_an_empty_section(self) -> None:
        found = parse("budget = '1 %'", levels=4)
        assert found.choices == parse("", levels=4).choices
        assert not found.optimize_filters_for_hits
        assert found != parse("", levels=4)
        assert parse("").rule is None

    def test_programs_say_the_same(self) -> None:
        assert LevelPolicies.by_budget("10 bits/key") == parse("budget = '10 bits/key'")
        found = LevelPolicies.by_budget(
            "5 MiB", 3, read_cost="1 us", absent_share=0, families=iter(["cuckoo"]), heat=False
        )
        assert len(found) == 3
        assert found.rule == BudgetRule(Budget(5, "MiB"), 1000.0, 0.0, ("cuckoo",), False)
        with pytest.raises(ValueError, match="levels is out of range: 0"):
            LevelPolicies.by_budget("10 bits/key", 0)

    @pytest.mark.parametrize("text", ["1099511627776 bytes", "1024 GiB", "100 %", "100 bits/key"])
    def test_the_largest_budgets_are_read_and_written(self, text: str) -> None:
        assert rule_of(f"budget = '{text}'").entries()["budget"] == text

    def test_no_filters_at_all_can_be_meant(self) -> None:
        for text in ("0 bits/key", "0 MiB", "0 %"):
            assert rule_of(f"budget = '{text}'").budget.bits(1000, 1000) == 0


BESIDE = "budget = '10 bits/key'\n"
REFUSED = [
    # text, what the message must say
    ("budget = 10", ["budget is text with a unit", '"10 bits/key"', "not 10"]),
    ("budget = '10'", ["budget is a number with a unit", "not '10'"]),
    ("budget = '-1 bits/key'", ["budget is a number with a unit"]),
    ("budget = 'nan bits/key'", ["budget is a number with a unit"]),
    ("budget = 'inf MiB'", ["budget is a number with a unit"]),
    ("budget = '1e3 MiB'", ["budget is a number with a unit"]),
    ("budget = '100.5 bits/key'", ["budget is out of range", "0 to 100 bits/key"]),
    ("budget = '101 %'", ["budget is out of range", "0 to 100 %"]),
    ("budget = '1025 GiB'", ["budget is out of range: '1025 GiB', allowed are 0 to 1024 GiB"]),
    ("budget = '999999999999 MiB'", ["budget is out of range", "0 to 1024 GiB"]),
    ("budget = '10 bytes/key'", ["has the unit 'bytes/key'", "did you mean", "GiB, %"]),
    (BESIDE + "read_cost = 100", ["read_cost is text with a unit", '"100 us"']),
    (BESIDE + "read_cost = '0.5 ns'", ["read_cost is out of range: '0.5 ns'", "1 ns to 100 s"]),
    (BESIDE + "read_cost = '2 min'", ["read_cost '2 min'", "ns, us, ms, s"]),
    (BESIDE + "absent_share = '1'", ["absent_share is a number, not str"]),
    (BESIDE + "absent_share = true", ["absent_share is a number, not bool"]),
    (BESIDE + "absent_share = 1.01", ["absent_share is out of range: 1.01, allowed are 0 to 1"]),
    (BESIDE + "absent_share = nan", ["absent_share is out of range: nan"]),
    (BESIDE + "heat = 1", ["heat is true or false, not 1"]),
    (BESIDE + "families = 'blocked'", ["families is a list of names", "not 'blocked'"]),
    (BESIDE + "families = 3", ["families is a list of names", "not 3"]),
    (BESIDE + "families = []", ["families names none: leave it out"]),
    (BESIDE + "families = [3]", ["families is a list of names in quotes, and 3 is none"]),
    (BESIDE + "families = [['xor']]", ["['xor'] is none"]),
    (BESIDE + "families = ['xor', 'xor']", ["families names 'xor' more than once"]),
    (BESIDE + "families = ['none']", ["families: policy 'none' costs nothing", "choose among"]),
    (BESIDE + "families = ['bloked']", ["families: unknown", "'bloked' (did you mean 'blocked'?)"]),
    (BESIDE + "budgett = 1", ["unknown key 'budgett' (did you mean 'budget'?)", "with a budget"]),
    (BESIDE + "read_costs = 1", ["unknown key 'read_costs' (did you mean 'read_cost'?)", "heat"]),
    (BESIDE + "policy = 'blocked'", ["leave out policy, or name it among the families"]),
    (BESIDE + "layout = 'block'", ["layout is 'block'", "choose table or partitioned"]),
    (BESIDE + "partition_blocks = 8", ["goes with layout 'partitioned', and the layout is"]),
    (BESIDE + "layout = 'partitioned'\npartition_blocks = 0", ["partition_blocks is out of range"]),
    (
        BESIDE + "optimize_filters_for_hits = false",
        ["write absent_share instead of optimize_filte"],
    ),
    (BESIDE + "bits_per_key = 10", ["bits_per_key is a parameter of a policy"]),
    (BESIDE + "num_probes = 7", ["num_probes is a parameter of a policy"]),
    (BESIDE + "[filters.level.0]\npolicy = 'none'", ["leave out [filters.level.*], or the budget"]),
    (BESIDE + "level = 3", ["leave out [filters.level.*], or the budget"]),
    ("read_cost = '1 ms'", ["read_cost goes with a budget", 'add budget = "10 bits/key"']),
    ("absent_share = 1.0", ["absent_share goes with a budget", "or leave it out"]),
    ("families = ['xor']", ["families goes with a budget"]),
    ("policy = 'blocked'\nheat = true", ["heat goes with a budget"]),
    ("budgt = '1 %'", ["unknown key 'budgt' (did you mean 'budget'?)"]),
    (
        "[filters.level.1]\npolicy = 'none'\nbudget = '1 %'",
        ["[filters.level.1]: budget is for the whole database: move it to [filters]"],
    ),
    ("[filters.level.1]\nheat = false", ["[filters.level.1]: heat is for the whole database"]),
]


class TestRefusal:
    @pytest.mark.parametrize(("text", "facts"), REFUSED, ids=[text[-45:] for text, _ in REFUSED])
    def test_the_message_says_where_and_what(self, text: str, facts: list[str]) -> None:
        with pytest.raises(PolicyConfigError) as info:
            parse(text)
        for fact in ["my.toml: [filters", *facts]:
            assert fact in str(info.value)

    def test_programs_are_told_the_same(self) -> None:
        with pytest.raises(TypeError, match="^budget is text with a unit"):
            LevelPolicies.by_budget(10)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="^absent_share is out of range: 2"):
            LevelPolicies.by_budget("10 bits/key", absent_share=2)
        with pytest.raises(policies.UnknownPolicyError, match="^families: unknown filter policy"):
            LevelPolicies.by_budget("10 bits/key", families=["gone"])

    def test_a_family_without_a_model(
        self, plug_in: type[HalfPolicy], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = BESIDE + "families = ['blocked', 'acme.half']"
        monkeypatch.delattr(plug_in, "cost_model")
        with pytest.raises(PolicyConfigError, match=r"families: policy 'acme.half' has no cost_mo"):
            parse(text)

    def test_a_family_that_has_no_filters(
        self, plug_in: type[HalfPolicy], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plug_in, "cost_model", lambda: Half(offers=False))
        with pytest.raises(PolicyConfigError, match="'acme.half' offers no filter for a million"):
            parse(BESIDE + "families = ['acme.half']")

    def test_a_family_whose_model_fails(
        self, plug_in: type[HalfPolicy], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for broken in (lambda: {}["nerves"], lambda: 3):
            monkeypatch.setattr(plug_in, "cost_model", broken)
            with pytest.raises(
                PolicyConfigError, match="families: filter policy HalfPolicy raised"
            ):
                parse(BESIDE + "families = ['acme.half']")

    @pytest.mark.parametrize(
        ("wrong", "error", "told"),
        [
            ({"budget": "10 bits/key"}, TypeError, "budget is what Budget.parse"),
            ({"budget": Budget(-1, "MiB")}, ValueError, "budget is a number"),
            ({"budget": Budget(float("nan"), "%")}, ValueError, "budget is a number"),
            ({"read_ns": 0.0}, ValueError, "read_ns is out of range"),
            ({"read_ns": float("nan")}, ValueError, "read_ns is out of range"),
            ({"absent_share": -0.1}, ValueError, "absent_share is out of range"),
            ({"heat": None}, TypeError, "heat is True or False"),
            ({"families": ("none",)}, ValueError, "'none' costs nothing"),
        ],
    )
    def test_a_rule_that_cannot_be_written(
        self, wrong: dict[str, Any], error: type[Exception], told: str
    ) -> None:
        with pytest.raises(error, match=told):
            BudgetRule(**{"budget": TEN, **wrong})

    def test_a_rule_beside_choices(self) -> None:
        usual = parse("").choices
        for choices, hits in ((usual, True), ((Choice(policies.CuckooPolicy()), *usual), False)):
            with pytest.raises(ValueError, match="leave out the choices, or the rule"):
                LevelPolicies(choices, hits, BudgetRule(TEN))
        with pytest.raises(TypeError, match="rule is a BudgetRule, not '10 bits/key'"):
            LevelPolicies(usual, rule="10 bits/key")  # type: ignore[arg-type]


def numbers(most: float) -> st.SearchStrategy[float]:
    return st.floats(0, most) | st.integers(0, int(most)).map(float)


BUDGETS = st.one_of(
    st.builds(Budget, numbers(100), st.sampled_from(["bits/key", "%"])),
    st.builds(Budget, numbers(1024), st.just("GiB")),
    st.builds(Budget, numbers(1024 << 30), st.just("bytes")),
)
RULES = st.builds(
    BudgetRule,
    BUDGETS,
    st.floats(1, 1e11) | st.floats(1, 1e4) | st.sampled_from([1.0, 1e5, 1e11]),
    st.floats(0, 1) | st.sampled_from([0, 1]),
    st.lists(st.sampled_from(["blocked", "xor", "cuckoo", "acme.half"]), unique=True).map(tuple),
    st.booleans(),
)


class TestWriting:
    @given(RULES, st.integers(1, 12))
    def test_what_is_written_is_read_back_equal(self, rule: BudgetRule, levels: int) -> None:
        written = LevelPolicies.of_rule(rule, levels)
        read = LevelPolicies.from_config(tomllib.loads(written.to_toml()), levels)
        assert read == written
        assert read.rule == rule
        assert read.to_toml() == written.to_toml()

    def test_it_reads_well(self) -> None:
        text = (
            "[filters]\n"
            'budget = "9.5 bits/key"\n'
            'read_cost = "250 us"\n'
            "absent_share = 0.5\n"
            'families = ["xor", "blocked"]\n'
            "heat = false\n"
        )
        assert LevelPolicies.from_config(tomllib.loads(text)).to_toml() == text
        assert "families" not in LevelPolicies.by_budget("10 bits/key").to_toml()

    @given(st.floats(1, 1e11), st.sampled_from(["ns", "us", "ms", "s"]))
    def test_a_time_is_what_its_text_says(self, number: float, unit: str) -> None:
        size = nanoseconds("x", f"1 {unit}")
        text = f"{number / size:.6f} {unit}"
        if 1 <= float(text.split()[0]) * size <= 1e11:
            found = nanoseconds("x", text)
            assert nanoseconds("x", time_text(found)) == found
            assert len(time_text(found)) <= 22

    def test_equality_is_by_what_is_said_and_order_counts(self) -> None:
        assert BudgetRule(TEN, families=("xor", "blocked")) != BudgetRule(
            TEN, families=("blocked", "xor")
        )
        assert BudgetRule(TEN) != BudgetRule(TEN, heat=False)
        assert LevelPolicies.by_budget("10 bits/key") != LevelPolicies.by_budget("9 bits/key")


class TestPolicies:
    def test_models_are_ours_or_those_named(self) -> None:
        assert BudgetRule(TEN).models() == usual_models()
        assert BudgetRule(TEN).classes() == ()
        named = BudgetRule(TEN, families=("acme.half", "xor"))
        assert [model.policy for model in named.models()] == ["acme.half", "xor"]
        assert named.classes() == (HalfPolicy, policies.XorPolicy)
        assert named.models() is named.models()  # curves are kept by model

    def test_the_policy_of_each_option_that_is_placed(self) -> None:
        rule = BudgetRule(TEN)
        runs = [Run(1000 * 4**level) for level in range(6)]
        for bits in (2, 10, 20):
            for option in place(runs, bits * sum(run.keys for run in runs)).options:
                policy = rule.policy_of(option)
                assert (policy.name, policy.params()) == (option.policy, dict(option.params))

    def test_digests_are_collected_where_all_build_of_the_same(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A range filter, once it is timed and named, builds of keys that nobody has hashed."""
        record = attrs.evolve(policies.GrafitePolicy.family, cost=Cost(build=100, probe=100))
        monkeypatch.setattr(policies.GrafitePolicy, "family", record)
        assert BudgetRule(TEN).digests() is not None
        assert BudgetRule(TEN, families=("blocked", "cuckoo")).digests() is not None
        assert BudgetRule(TEN, families=("blocked", "rocksdb")).digests() is None
        assert BudgetRule(TEN, families=("blocked", "grafite")).digests() is None
        assert BudgetRule(TEN, families=("grafite",)).models()[0].option(10_000, 0.01) is not None

    def test_no_filter_is_a_policy_too(self) -> None:
        assert BudgetRule(TEN).policy_of(NO_FILTER) == policies.NoFilterPolicy()
        assert BudgetRule(TEN).with_seed(SEED).policy_of(NO_FILTER) == policies.NoFilterPolicy()

    @pytest.mark.parametrize("name", ["blocked", "acme.half"])
    def test_a_seed_reaches_them_and_is_never_shown(self, name: str) -> None:
        levels = LevelPolicies.by_budget("10 bits/key", families=[name])
        seeded = levels.with_seed(SEED)
        assert seeded == levels
        assert str(SEED) not in repr(seeded) + seeded.to_toml()
        assert seeded.rule is not None
        assert seeded.rule.models() is levels.rule.models()  # type: ignore[union-attr]
        made = seeded.rule.policy_of(Option(name, {"fpr": 0.02}, 8.0, 0.02, 1.0))
        assert made == policies.registry.lookup(name)(fpr=0.02)
        assert made.seed == SEED  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="seed is an int"):
            levels.rule.with_seed("secret")  # type: ignore[union-attr, arg-type]

    def test_nobody_is_warned_of_a_size_that_nobody_chose(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            BudgetRule(TEN).policy_of(Option("blocked", {"bits_per_key": 20}, 20.0, 0.1, 1.0))

    def test_a_plug_in_that_cannot_be_made_is_named(self) -> None:
        rule = BudgetRule(TEN, families=("acme.half",))
        with pytest.raises(policies.PluginError, match=r"HalfPolicy is not made with \{'x': 1\}"):
            rule.policy_of(Option("acme.half", {"x": 1}, 4.0, 0.1, 1.0))
