"""Which policy each level uses: what a configuration selects, and how it is told off."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.errors import FilterError
from policies import LevelPolicies, PolicyConfigError
from policies.config import Choice
from policies.layouts import MOST_PARTITION_BLOCKS
from policies.levels import MAX_LEVELS
from policies.sections import toml_value

EXAMPLE = Path(__file__).parents[2] / "examples" / "lsm.toml"
RANGES = """
[filters.level.0]
policy = "rocksdb"
bits_per_key = 14
[filters.level."1-2"]
policy = "cuckoo"
fpr = 0.001
[filters.level."4+"]
policy = "binary-fuse"
fingerprint_bits = 8
"""
BLOCKED = policies.BlockedPolicy()


def parse(text: str, levels: int = 7) -> LevelPolicies:
    return LevelPolicies.from_config(tomllib.loads(text), levels, source="my.toml")


class TestSelection:
    def test_the_example(self) -> None:
        levels = policies.load(EXAMPLE, levels=7)
        assert list(levels) == [
            policies.RocksDBPolicy(bits_per_key=14),
            policies.BlockedPolicy(bits_per_key=12),
            policies.ClassicPolicy(),
            policies.CuckooPolicy(fpr=0.005),
            policies.LevelDBPolicy(),
            policies.CountingPolicy(),
            policies.BinaryFusePolicy(),
        ]
        assert len(levels) == 7
        assert {level for level in range(7) if levels.layout(level) == "block"} == {4}
        assert levels.optimize_filters_for_hits is False

    @pytest.mark.parametrize("text", ["", "[filters]", "[engine]\ncompression = 'none'"])
    def test_nothing_said_is_blocked_at_ten_bits_everywhere(self, text: str) -> None:
        assert parse(text) == LevelPolicies.uniform(BLOCKED)

    def test_level_tables_alone(self) -> None:
        levels = parse("[filters.level.6]\npolicy = 'none'")
        assert list(levels) == [BLOCKED] * 6 + [policies.NoFilterPolicy()]

    def test_a_level_inherits_nothing(self) -> None:
        levels = parse(
            """
            [filters]
            policy = "leveldb"
            bits_per_key = 20
            layout = "block"
            optimize_filters_for_hits = true
            [filters.level.1]
            policy = "leveldb"
            """
        )
        assert levels[0] == policies.LevelDBPolicy(bits_per_key=20)
        assert levels[1] == policies.LevelDBPolicy()
        assert [levels.layout(0), levels.layout(1)] == ["block", "table"]
        assert levels.optimize_filters_for_hits is True

    @pytest.mark.parametrize(
        ("spec", "levels", "chosen"),
        [
            ("0", 7, {0}),
            ("6", 7, {6}),
            ("0-6", 7, set(range(7))),
            ("3-3", 7, {3}),
            ("5+", 7, {5, 6}),
            ("6+", 7, {6}),
            ("0+", 1, {0}),
            ("12-13", 20, {12, 13}),
        ],
    )
    def test_ways_to_name_levels(self, spec: str, levels: int, chosen: set[int]) -> None:
        selection = parse(f"[filters.level.'{spec}']\npolicy = 'none'", levels)
        assert {n for n, policy in enumerate(selection) if policy.name == "none"} == chosen

    def test_the_engine_table_is_the_engines(self) -> None:
        assert parse("[engine]\nwhatever = 1\n[engine.more]\nx = 2") == parse("")

    def test_plugins_are_policies_like_others(self) -> None:
        levels = parse("[filters]\npolicy = 'test.bitmap'")
        assert levels[0] == policies.create("test.bitmap")

    def test_a_level_that_does_not_exist(self) -> None:
        levels = LevelPolicies.uniform(BLOCKED, levels=3)
        for level in (-1, 3):
            with pytest.raises(IndexError, match=f"no level {level}: allowed are 0 to 2"):
                levels[level]
            with pytest.raises(IndexError, match=f"no level {level}"):
                levels.layout(level)

    def test_a_seed_reaches_every_level_and_changes_nothing_else(self) -> None:
        levels = policies.load(EXAMPLE)
        seeded = levels.with_seed(1234)
        assert seeded == levels
        assert seeded.to_toml() == levels.to_toml()
        assert "1234" not in repr(seeded)
        seeds = [getattr(policy, "seed", 1234) for policy in seeded]
        assert seeds == [1234] * 7
        assert getattr(levels[1], "seed", None) is None


class TestUniform:
    def test_one_policy_everywhere(self) -> None:
        levels = LevelPolicies.uniform(policies.LevelDBPolicy(), levels=3, layout="block")
        assert list(levels) == [policies.LevelDBPolicy()] * 3
        assert [levels.layout(level) for level in range(3)] == ["block"] * 3

    @pytest.mark.parametrize("policy", ["blocked", policies.BlockedPolicy, None])
    def test_what_is_no_policy(self, policy: Any) -> None:
        with pytest.raises(TypeError, match=r"is what policies.create\(name\) makes, not"):
            LevelPolicies.uniform(policy)

    def test_a_layout_without_windows(self) -> None:
        with pytest.raises(ValueError, match="'blocked' has none: choose table"):
            LevelPolicies.uniform(BLOCKED, layout="block")

    def test_a_layout_that_does_not_exist(self) -> None:
        with pytest.raises(
            ValueError, match="layout is 'page', allowed are table, block and partitioned"
        ):
            LevelPolicies.uniform(BLOCKED, layout="page")

    @pytest.mark.parametrize("levels", [0, -1, MAX_LEVELS + 1])
    def test_a_number_of_levels_out_of_range(self, levels: int) -> None:
        with pytest.raises(ValueError, match=f"levels is out of range: {levels}, allowed are 1 to"):
            LevelPolicies.uniform(BLOCKED, levels)
        with pytest.raises(ValueError, match="levels is out of range"):
            LevelPolicies.from_config({}, levels)


PARTITIONED = "[filters]\nlayout = 'partitioned'\npartition_blocks = "
REFUSED = [
    # text, what the message must say
    ("[filter]", ["'filter'", "did you mean 'filters'", "[filters] and [engine]"]),
    ("policy = 'blocked'", ["unknown key or table 'policy'", "[filters] and [engine]"]),
    ("[zzz]", ["'zzz'", "[filters] and [engine]"]),
    ("filters = 3", ["'filters' is a table, written [filters], not a value like 3"]),
    ("[[filters]]", ["'filters' is a table"]),
    ("[filters]\nlevel = 3", ["[filters]", "'level' is a table, written [filters.level]"]),
    (
        "[filters.level]\n3 = 'none'",
        ["[filters.level]", "'3' is a table, written [filters.level.3"],
    ),
    ("[filters]\npolicy = 'blockd'", ["[filters]", "'blockd'", "did you mean 'blocked'", "known"]),
    ("[filters]\npolicy = 3", ["[filters]", "policy is a name in quotes, not 3", "known are"]),
    ("[filters]\npolcy = 'none'", ["[filters]", "'polcy'", "did you mean 'policy'"]),
    ("[filters]\nfpr = 0.1", ["[filters]", "'fpr'", "where no policy is named", "policy"]),
    (
        "[filters]\npolicy = 'cuckoo'\nfingerprintbits = 3",
        ["[filters]", "did you mean 'fingerprint_bits'", "with policy 'cuckoo' are bits_per_key"],
    ),
    ("[filters]\npolicy = 'none'\nfpr = 0.1", ["[filters]", "unknown key 'fpr'", "'none'"]),
    ("[filters]\npolicy = 'blocked'\nseed = 1", ["[filters]", "unknown key 'seed'"]),
    (
        "[filters]\npolicy = 'blocked'\nfpr = 2",
        ["[filters]: fpr of a blocked", "2, allowed are", "to"],
    ),
    ("[filters]\npolicy = 'blocked'\nfpr = '1'", ["[filters]", "fpr", "a number, not str"]),
    ("[filters]\npolicy = 'blocked'\nfpr = nan", ["[filters]", "fpr", "out of range"]),
    ("[filters]\npolicy = 'blocked'\nbits_per_key = true", ["[filters]", "bits_per_key"]),
    ("[filters]\npolicy = 'blocked'\nfpr = 0.1\nbits_per_key = 3", ["bits_per_key and fpr"]),
    ("[filters]\npolicy = 'cuckoo'\nlayout = 'block'", ["[filters]", "'cuckoo' has none"]),
    ("[filters]\nlayout = 'block'", ["[filters]", "'blocked' has none: choose table"]),
    (
        "[filters]\nlayout = 'page'",
        ["layout is 'page', allowed are table, block and"],
    ),
    ("[filters]\npartition_blocks = 1", ["[filters]", "goes with layout 'partitioned'"]),
    (PARTITIONED + "0", ["[filters]", "partition_blocks is out of range: 0, allowed are 1 to"]),
    (PARTITIONED + "1048577", ["partition_blocks is out of range"]),
    (PARTITIONED + "true", ["partition_blocks is"]),
    (PARTITIONED + "8.0", ["partition_blocks is"]),
    (PARTITIONED + "'8'", ["partition_blocks is"]),
    ("[filters]\nlayout = 1", ["[filters]", "layout is 1, allowed are"]),
    ("[filters]\nlayout = []", ["[filters]", "layout is [], allowed are"]),
    (
        "[filters]\noptimize_filters_for_hits = 1",
        ["[filters]", "optimize_filters_for_hits is true or false, not 1"],
    ),
    (
        "[filters.level.0]\npolicy = 'none'\noptimize_filters_for_hits = true",
        ["[filters.level.0]", "whole database: move it to [filters]"],
    ),
    ("[filters.level.0]", ["[filters.level.0]", "names no policy", "inherits nothing", "cuckoo"]),
    ("[filters.level.0]\npolcy = 'none'", ["[filters.level.0]", "is 'polcy' meant to be 'policy'"]),
    (
        "[filters.level.'1-2']\npolicy = 'rocksdb'\nbits_per_kee = 3",
        ['[filters.level."1-2"]', "'bits_per_kee'", "did you mean 'bits_per_key'"],
    ),
    (
        "[filters.level.'1-2']\npolicy = 'rocksdb'\nbits_per_key = 1000",
        ['[filters.level."1-2"]', "bits_per_key of a rocksdb filter", "1000", "0.5 to 100"],
    ),
    ("[filters.level.0.level.1]\npolicy = 'none'", ["[filters.level.0]", "policy"]),
    ("[filters.level.7]\npolicy = 'none'", ["[filters.level]", "'7'", "levels 0 to 6"]),
    ("[filters.level.'5-7']\npolicy = 'none'", ["[filters.level]", "'5-7'", "levels 0 to 6"]),
    ("[filters.level.'7+']\npolicy = 'none'", ["[filters.level]", "'7+'", "levels 0 to 6"]),
    ("[filters.level.'3-1']\npolicy = 'none'", ["'3-1' runs backwards", '"1-3"']),
    ("[filters.level.'a']\npolicy = 'none'", ["'a' names no level", '"3"', '"1-2"', '"4+"']),
    ("[filters.level.'-1']\npolicy = 'none'", ["'-1' names no level"]),
    ("[filters.level.'01']\npolicy = 'none'", ["'01' names no level"]),
    ("[filters.level.'1-']\npolicy = 'none'", ["'1-' names no level"]),
    ("[filters.level.'1-2+']\npolicy = 'none'", ["'1-2+' names no level"]),
    ("[filters.level.'²']\npolicy = 'none'", ["'²' names no level"]),
    (f"[filters.level.{'9' * 5000}]\npolicy = 'none'", ["names no level"]),
    (
        "[filters.level.'1-3']\npolicy = 'none'\n[filters.level.2]\npolicy = 'none'",
        ["[filters.level]", "level 2 is in both '1-3' and '2'"],
    ),
    (
        "[filters.level.'4+']\npolicy = 'none'\n[filters.level.6]\npolicy = 'none'",
        ["level 6 is in both '4+' and '6'"],
    ),
]


class TestRefusal:
    @pytest.mark.parametrize(("text", "facts"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
    def test_the_message_says_where_and_what(self, text: str, facts: list[str]) -> None:
        with pytest.raises(PolicyConfigError) as info:
            parse(text)
        for fact in ["my.toml: ", *facts]:
            assert fact in str(info.value)
        assert isinstance(info.value, FilterError)
        assert isinstance(info.value, ValueError)

    def test_a_plugin_that_raises_anything(self) -> None:
        @policies.register
        @attrs.frozen
        class Touchy(policies.NoFilterPolicy):
            name: ClassVar[str] = "test.touchy"

            def __attrs_post_init__(self) -> None:
                raise KeyError("nerves")

        try:
            with pytest.raises(PolicyConfigError, match=r"\[filters\]: KeyError: 'nerves'") as info:
                parse("[filters]\npolicy = 'test.touchy'")
            assert isinstance(info.value.__cause__, KeyError)
        finally:
            policies.registry._REGISTRY._registered.pop("test.touchy")

    def test_a_file_that_is_no_toml(self, tmp_path: Path) -> None:
        path = tmp_path / "my.toml"
        path.write_text("[filters]\npolicy = ?\n")
        with pytest.raises(PolicyConfigError, match=re.escape(f"{path}: not valid TOML")) as info:
            policies.load(path)
        assert "line 2, column 10" in str(info.value)

    @pytest.mark.parametrize("content", [b"\xff\xfe", b"x = " + b"[" * 100_000])
    def test_a_file_that_is_no_text_or_a_trap(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "my.toml"
        path.write_bytes(content)
        with pytest.raises(PolicyConfigError, match="not valid TOML"):
            policies.load(path)

    def test_the_file_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "my.toml"
        path.write_text("[filters]\npolicy = 'x'")
        with pytest.raises(PolicyConfigError, match=re.escape(f"{path}: [filters]: policy: ")):
            policies.load(str(path))

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            policies.load(tmp_path / "my.toml")


SOME_POLICIES = st.one_of(
    st.builds(policies.BlockedPolicy, bits_per_key=st.floats(1, 16)),
    st.builds(policies.BlockedPolicy, fpr=st.floats(0.01, 0.2), num_probes=st.integers(4, 8)),
    st.builds(policies.ClassicPolicy, fpr=st.floats(1e-12, 0.5)),
    st.builds(policies.CuckooPolicy, fingerprint_bits=st.integers(6, 32)),
    st.builds(policies.LevelDBPolicy, bits_per_key=st.integers(1, 100)),
    st.builds(policies.RocksDBPolicy, optimize_filters_for_memory=st.booleans()),
    st.builds(policies.BinaryFusePolicy, fingerprint_bits=st.sampled_from([8, 16])),
    st.builds(policies.XorPolicy, bits_per_key=st.floats(9.84, 64)),
    st.builds(policies.BumpedRibbonPolicy, bits_per_key=st.floats(1.1, 34)),
    st.just(policies.NoFilterPolicy()),
    st.just(policies.create("test.bitmap")),
)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    policy = draw(SOME_POLICIES)
    layout = draw(st.sampled_from([*sorted(policy.layouts), "partitioned"]))
    if layout == "partitioned" and draw(st.booleans()):
        return Choice(policy, layout, draw(st.integers(1, MOST_PARTITION_BLOCKS)))
    return Choice(policy, layout)


class TestWriting:
    @given(
        st.lists(choices(), min_size=1, max_size=5).flatmap(
            lambda few: st.lists(st.sampled_from(few), min_size=1, max_size=12)
        ),
        st.booleans(),
    )
    def test_what_is_written_is_read_back_equal(self, each: list[Choice], hits: bool) -> None:
        levels = LevelPolicies(tuple(each), hits)
        assert parse(levels.to_toml(), len(each)) == levels

    def test_it_reads_well(self) -> None:
        assert parse(RANGES).to_toml() == (
            "[filters]\n"
            'policy = "binary-fuse"\n'
            "fingerprint_bits = 8\n"
            'layout = "table"\n'
            "optimize_filters_for_hits = false\n"
            "\n"
            "[filters.level.0]\n"
            'policy = "rocksdb"\n'
            "bits_per_key = 14\n"
            "optimize_filters_for_memory = true\n"
            'layout = "table"\n'
            "\n"
            '[filters.level."1-2"]\n'
            'policy = "cuckoo"\n'
            "fpr = 0.001\n"
            'layout = "table"\n'
            "\n"
            "[filters.level.3]\n"
            'policy = "blocked"\n'
            "bits_per_key = 10\n"
            'layout = "table"\n'
        )

    @given(
        st.recursive(
            st.booleans()
            | st.integers()
            | st.floats(allow_nan=False)
            | st.text(st.characters(exclude_categories=["Cs"])),
            lambda value: (
                st.lists(value)
                | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), value)
            ),
            max_leaves=10,
        )
    )
    def test_any_parameter_that_toml_can_say(self, value: Any) -> None:
        assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}

    @pytest.mark.parametrize("value", [None, b"bytes", {1, 2}])
    def test_a_parameter_that_toml_cannot_say(self, value: Any) -> None:
        with pytest.raises(TypeError, match=f"of type {type(value).__name__} cannot be written"):
            toml_value(value)
