"""What a database is opened with: read strictly, kept exactly, and overridden in one order."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.errors import FilterError
from filters.families import FAMILIES
from lsm import options
from lsm.options import (
    COMPRESSIONS,
    GIB,
    KEYS,
    KIB,
    LEVELS,
    LOADING,
    MIB,
    NOT_GIVEN,
    Count,
    Options,
    Size,
    effective,
    from_document,
    from_kept,
)
from policies import FilterPolicy, LevelPolicies, PluginError, PolicyConfigError
from policies.config import Choice
from policies.cost_models import FamilyModel
from tests.effort import examples
from tests.filters.test_family_formats import table_rows

ROOT = Path(__file__).parents[2]
FIELDS = attrs.fields_dict(Options)
NUMBERS = {key: FIELDS[key].validator for key in KEYS if isinstance(FIELDS[key].validator, Count)}
SIZES = {key: rule for key, rule in NUMBERS.items() if isinstance(rule, Size)}
COUNTS = {key: rule for key, rule in NUMBERS.items() if key not in SIZES}
FLAGS = ("paranoid_checks", "filters_compare_bytes", "warm_filters")
CLASSIC = policies.ClassicPolicy()


def parse(text: str) -> Options:
    return from_document(tomllib.loads(text), "my.toml")


def opened(
    kept: Options | None = None, config: str | Path | None = None, **keywords: Any
) -> Options:
    """The effective options, where ``kept`` needs no reading."""
    return effective(kept=lambda filters: kept, config=config, given=keywords)


def uniform(policy: FilterPolicy, layout: str = "table") -> LevelPolicies:
    return LevelPolicies.uniform(policy, LEVELS, layout)


class Unregistered(policies.NoFilterPolicy):
    name: ClassVar[str] = "test.unregistered"


class Impostor(policies.CuckooPolicy):
    """Has the name of a class it is not."""


# --- fields and their ranges ----------------------------------------------------------------------


def test_the_defaults_are_leveldbs_and_blocked_at_ten_bits() -> None:
    assert attrs.asdict(Options(), recurse=False) == {
        "write_buffer_size": 4 * MIB,
        "max_file_size": 2 * MIB,
        "block_size": 4096,
        "block_restart_interval": 16,
        "compression": "snappy",
        "lru_cache_size": 8 * MIB,
        "table_cache_size": 256 * MIB,
        "filter_cache_size": 64 * MIB,
        "pin_filters": "none",
        "load_filters": "lazy",
        "warm_filters": False,
        "max_open_files": 1000,
        "paranoid_checks": False,
        "level_size_base": 10 * MIB,
        "level_size_ratio": 10,
        "level0_compact_files": 4,
        "level0_slow_files": 8,
        "level0_stop_files": 12,
        "max_background_jobs": 0,
        "refilter_bytes_per_second": 0,
        "filters_compare_bytes": False,
        "filters": uniform(policies.BlockedPolicy(bits_per_key=10)),
    }


NAMES = ("compression", "pin_filters", "load_filters")


def test_every_range_is_the_one_that_was_decided() -> None:
    assert {key: (rule.low, rule.high) for key, rule in NUMBERS.items()} == {
        "write_buffer_size": (1, GIB),
        "max_file_size": (KIB, GIB),
        "block_size": (64, 4 * MIB),
        "block_restart_interval": (1, 65535),
        "lru_cache_size": (0, 2**40),
        "table_cache_size": (0, 2**40),
        "filter_cache_size": (0, 2**40),
        "max_open_files": (1, 1_000_000),
        "level_size_base": (KIB, 2**40),
        "level_size_ratio": (2, 100),
        "level0_compact_files": (1, 1000),
        "level0_slow_files": (1, 1_000_000),
        "level0_stop_files": (1, 1_000_000),
        "max_background_jobs": (0, 64),
        "refilter_bytes_per_second": (0, 2**40),
    }
    assert {*NUMBERS, *FLAGS, *NAMES} == set(KEYS)


# A value for the thresholds beside it, so that each can take its own range.
BESIDE = {
    "level0_compact_files": {"level0_slow_files": 1000, "level0_stop_files": 1000},
    "level0_slow_files": {"level0_compact_files": 1, "level0_stop_files": 1_000_000},
    "level0_stop_files": {"level0_compact_files": 1, "level0_slow_files": 1},
}


@pytest.mark.parametrize("key", NUMBERS)
def test_both_ends_of_a_range_are_in_it_and_nothing_beyond_is(key: str) -> None:
    rule = NUMBERS[key]
    for value in (rule.low, rule.high):
        assert getattr(Options(**{key: value, **BESIDE.get(key, {})}), key) == value
    for value in (rule.low - 1, rule.high + 1, -5):
        with pytest.raises(ValueError, match=f"^{key} is out of range: .*, allowed are ") as info:
            Options(**{key: value})
        assert f"{rule.text(value)}, allowed are {rule.range}" in str(info.value)


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", [True, False, 16.0, None, [16], b"16"])
def test_a_number_is_an_int_and_a_bool_is_none(key: str, value: Any) -> None:
    kind = type(value).__name__
    with pytest.raises(TypeError, match=f"^{key} is an? .*not {kind}; allowed are") as info:
        Options(**{key: value})
    assert NUMBERS[key].range in str(info.value)


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_is_a_bool_and_nothing_else(key: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{key} is a bool, not .*: write true or false"):
        Options(**{key: value})
    assert getattr(Options(**{key: True}), key) is True


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_each_compression_has_a_name(name: str) -> None:
    assert Options(compression=name).compression == name


def test_no_compression_is_none_in_both_spellings() -> None:
    assert Options(compression=None).compression == Options(compression="none").compression


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("snapy", ValueError, "did you mean 'snappy'"),
        ("Zstd", ValueError, "compression is 'Zstd'"),
        ("", ValueError, "compression is ''"),
        (1, TypeError, "compression is a name, not int"),
        (["zstd"], TypeError, "not list"),
        (False, TypeError, "not bool"),
    ],
)
def test_another_compression_is_refused(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"{message}.*; allowed are snappy, zstd, none"):
        Options(compression=value)


def test_numbers_too_long_to_be_written_are_refused_in_words() -> None:
    for key in ("block_size", "max_open_files"):
        with pytest.raises(PolicyConfigError, match=rf"\[engine\]: {key} .*a number of 40000 bits"):
            parse(f"[engine]\n{key} = 0x{'f' * 10_000}")


# --- sizes as text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64 MiB", 64 * MIB),
        ("4KiB", 4 * KIB),
        ("1 GiB", GIB),
        ("1024GiB", 2**40),
        ("0 KiB", 0),
        ("1073741824 KiB", 2**40),
    ],
)
def test_a_size_may_be_text_with_a_unit(text: str, value: int) -> None:
    assert Options(lru_cache_size=text).lru_cache_size == value
    assert parse(f"[engine]\nlru_cache_size = '{text}'").lru_cache_size == value


@pytest.mark.parametrize("key", SIZES)
def test_every_size_may_be_text(key: str) -> None:
    assert getattr(Options(**{key: "512 KiB"}), key) == 512 * KIB


@pytest.mark.parametrize(
    "text",
    [
        "64 MB", "64 mib", "64", "", "MiB", "1.5 GiB", "-1 KiB", "64  MiB", " 64 MiB", "64 MiB\n",
        "1_000 KiB", "01 KiB", "6\N{SUPERSCRIPT FOUR} MiB", "6\N{ARABIC-INDIC DIGIT FOUR} MiB",
        "1 TiB", "1 B", "9" * 14 + " KiB", "9" * 5000 + " KiB",
    ],
)  # fmt: skip
def test_text_that_is_no_size_is_refused_with_the_units(text: str) -> None:
    with pytest.raises(ValueError, match="^lru_cache_size is a whole number of bytes") as info:
        Options(lru_cache_size=text)
    for fact in ('"64 MiB" with one of KiB, MiB and GiB', "not '", "0 bytes to 1024 GiB"):
        assert fact in str(info.value)
    assert len(str(info.value)) < 250


def test_text_that_is_a_size_out_of_range_is_shown_as_a_size() -> None:
    with pytest.raises(ValueError, match="max_file_size is out of range: 2 GiB, allowed are 1 KiB"):
        Options(max_file_size="2 GiB")


@pytest.mark.parametrize("key", COUNTS)
def test_what_counts_no_bytes_takes_no_unit(key: str) -> None:
    with pytest.raises(TypeError, match=f"{key} is an int, not str; allowed are"):
        Options(**{key: "1 KiB"})


@examples(100)
@given(st.integers(0, 2**40))
def test_a_size_in_words_is_the_size(size: int) -> None:
    words = Size.text(size)
    number, unit = words.split()
    assert int(number) * {"byte": 1, "bytes": 1, **options._UNITS}[unit] == size
    if not unit.startswith("byte"):
        assert Options(lru_cache_size=words).lru_cache_size == size


# --- level 0, and the sizes of levels -------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"level0_compact_files": 9},
            r"level0_slow_files is out of range: 8, allowed are 9 \(level0_compact_files\) to 1000",
        ),
        (
            {"level0_slow_files": 13},
            r"level0_stop_files is out of range: 12, allowed are 13 \(level0_slow_files\) to 1000",
        ),
        ({"level0_slow_files": 3}, r"3, allowed are 4 \(level0_compact_files\)"),
        ({"level0_stop_files": 7}, r"7, allowed are 8 \(level0_slow_files\)"),
    ],
)
def test_the_thresholds_of_level_0_are_in_order(given: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**given)


def test_the_thresholds_of_level_0_may_be_one() -> None:
    one = Options(level0_compact_files=7, level0_slow_files=7, level0_stop_files=7)
    assert one.level0_stop_files == 7


def test_the_limits_of_levels_are_leveldbs() -> None:
    limits = [Options().limit(level) for level in range(1, LEVELS)]
    assert limits == [10 * MIB * 10**power for power in range(6)]
    assert Options(level_size_base="1 MiB", level_size_ratio=3).limit(4) == 27 * MIB


@pytest.mark.parametrize("level", [-1, 0, 7])
def test_only_levels_below_0_have_a_limit(level: int) -> None:
    with pytest.raises(ValueError, match=f"level is out of range: {level}, allowed are 1 to 6"):
        Options().limit(level)


# --- filters --------------------------------------------------------------------------------------


def test_filters_are_for_exactly_seven_levels() -> None:
    for levels in (1, 6, 8):
        with pytest.raises(ValueError, match=f"for {levels} levels, and a database has 7: make it"):
            Options(filters=LevelPolicies.uniform(CLASSIC, levels))


@pytest.mark.parametrize("filters", [None, CLASSIC, "blocked", [CLASSIC] * 7])
def test_filters_are_level_policies(filters: Any) -> None:
    with pytest.raises(TypeError, match="filters is a LevelPolicies, not"):
        Options(filters=filters)


@pytest.mark.parametrize("policy", [Unregistered(), Impostor()])
def test_a_policy_that_its_name_does_not_lead_to_is_refused(policy: FilterPolicy) -> None:
    name = type(policy).__name__
    with pytest.raises(ValueError, match=rf"call policies\.register\({name}\)") as info:
        opened(filter_policy=policy)
    assert f"the name {policy.name!r} does not lead to it" in str(info.value)
    some = LevelPolicies((*uniform(CLASSIC).choices[1:], Choice(policy)))
    with pytest.raises(ValueError, match="could not be opened again"):
        Options(filters=some)


def test_a_policy_whose_name_leads_to_a_broken_plugin_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(name: str) -> type[FilterPolicy]:
        raise PluginError("it does not import")

    monkeypatch.setattr(policies.registry, "lookup", broken)
    with pytest.raises(ValueError, match="could not be opened again") as info:
        Options(filters=uniform(Unregistered()))
    assert isinstance(info.value.__cause__, PluginError)


def test_a_policy_without_a_usable_name_is_refused() -> None:
    class Shouting(policies.NoFilterPolicy):
        name: ClassVar[str] = "TEST LOUD"

    with pytest.raises(ValueError, match="Shouting has the name 'TEST LOUD', allowed are"):
        opened(filter_policy=Shouting())


def test_a_registered_policy_is_as_good_as_a_built_in_one() -> None:
    policies.register(Unregistered)
    try:
        chosen = opened(filter_policy=Unregistered())
        assert chosen.filters == uniform(Unregistered())
        assert parse(chosen.to_toml()) == chosen
    finally:
        policies.registry._REGISTRY._registered.pop("test.unregistered")
    # And when it is gone, the kept options say how to do without.
    with pytest.raises(PolicyConfigError) as info:
        from_kept(chosen.to_toml().encode(), "db/lsm-options.toml")
    for fact in (
        "db/lsm-options.toml: [filters]: policy: unknown filter policy 'test.unregistered'",
        "config= takes the place of this whole file, filter_policy= that of its [filters]",
    ):
        assert fact in str(info.value)


# --- documents and files --------------------------------------------------------------------------


def test_an_empty_document_is_the_defaults() -> None:
    assert parse("") == parse("[engine]\n[filters]") == Options()


def test_both_parts_of_a_document_are_read() -> None:
    read = parse("[engine]\nblock_size = 8192\n[filters.level.3]\npolicy = 'classic'")
    assert read.block_size == 8192
    assert read.filters[3] == CLASSIC
    assert attrs.evolve(read, block_size=4096, filters=Options().filters) == Options()


REFUSED = [
    ("[engin]", ["unknown key or table 'engin'", "did you mean 'engine'"]),
    ("block_size = 3", ["unknown key or table 'block_size'", "[filters] and [engine]"]),
    ("engine = 3", ["'engine' is a table, written [engine], not a value like 3"]),
    ("[[engine]]", ["'engine' is a table"]),
    ("[engine]\nfilters = 3", ["[engine]: unknown key 'filters'"]),
    ("[engine.more]", ["[engine]: unknown key 'more'", "allowed here are block_restart_interval"]),
    ("[engine]\nblocksize = 1", ["[engine]", "unknown key 'blocksize' (did you mean 'block_size'"]),
    ("[engine]\nblock_size = 1", ["[engine]: block_size is out of range: 1 byte, allowed are 64"]),
    ("[engine]\nblock_size = 4e3", ["[engine]: block_size", "not float", "64 bytes to 4 MiB"]),
    ("[engine]\nblock_size = '4 kB'", ["[engine]: block_size", "'4 kB'", "KiB, MiB and GiB"]),
    ("[engine]\nmax_open_files = true", ["[engine]: max_open_files is an int, not bool", "1 to"]),
    ("[engine]\nparanoid_checks = 1", ["[engine]: paranoid_checks is a bool", "true or false"]),
    ("[engine]\ncompression = 'lz4'", ["[engine]: compression is 'lz4'", "snappy, zstd, none"]),
    ("[engine]\nlevel0_compact_files = 20", ["[engine]: level0_slow_files", "20 (level0_compact"]),
    ("[filters]\npolicy = 'x'", ["[filters]: policy: unknown filter policy 'x'", "known are"]),
    ("[filters.level.7]\npolicy = 'none'", ["[filters.level]: '7' is out of range"]),
    ("[filters]\nbudget = '1'", ["[filters]: budget is a number with a unit"]),
]


@pytest.mark.parametrize(("text", "facts"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_a_mistake_in_a_file_is_named_with_its_place(
    text: str, facts: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(PolicyConfigError) as info:
        options.load(path)
    assert str(info.value).startswith(f"{path}: ")
    for fact in facts:
        assert fact in str(info.value)


def test_a_file_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        options.load(tmp_path / "my.toml")


def test_the_example_shows_the_engines_defaults_and_a_family_for_each_level() -> None:
    path = ROOT / "examples" / "lsm.toml"
    loaded = options.load(path)
    assert attrs.evolve(loaded, filters=Options().filters) == Options()
    assert len({policy.name for policy in loaded.filters}) == LEVELS
    named = re.findall(r"^(\w+) =", path.read_text().partition("[engine]")[2], re.MULTILINE)
    assert named == ["compression", "write_buffer_size", "lru_cache_size", "filter_cache_size"]


# --- what the engine keeps ------------------------------------------------------------------------

SOME_POLICIES = st.one_of(
    st.builds(policies.BlockedPolicy, bits_per_key=st.floats(1, 16)),
    st.builds(policies.CuckooPolicy, fingerprint_bits=st.integers(6, 32)),
    st.builds(policies.LevelDBPolicy, bits_per_key=st.integers(1, 100)),
    st.builds(policies.RocksDBPolicy, optimize_filters_for_memory=st.booleans()),
    st.just(policies.NoFilterPolicy()),
)
SOME_CHOICES = SOME_POLICIES.flatmap(
    lambda policy: st.builds(
        Choice, st.just(policy), st.sampled_from([*sorted(policy.layouts), "partitioned"])
    )
)
SOME_BUDGETS = st.builds(
    LevelPolicies.by_budget,
    st.sampled_from(["10 bits/key", "64 MiB", "1.5 %"]),
    absent_share=st.floats(0, 1),
    families=st.none() | st.just(["blocked", "xor"]),
    heat=st.booleans(),
)
SOME_FILTERS = (
    st.builds(LevelPolicies, st.tuples(*[SOME_CHOICES] * LEVELS), st.booleans())
    | st.builds(uniform, SOME_POLICIES)
    | SOME_BUDGETS
)


@st.composite
def any_options(draw: st.DrawFn) -> Options:
    values: dict[str, Any] = {
        key: draw(st.integers(rule.low, rule.high))
        for key, rule in NUMBERS.items()
        if key not in BESIDE
    }
    steps = [draw(st.integers(1, high)) for high in (1000, 1_000_000, 1_000_000)]
    return Options(
        **values,
        **dict(zip(BESIDE, sorted(steps), strict=True)),
        **{key: draw(st.booleans()) for key in FLAGS},
        compression=draw(st.sampled_from(COMPRESSIONS)),
        filters=draw(SOME_FILTERS),
    )


@examples(60)
@given(any_options())
def test_what_is_kept_is_read_back_equal(chosen: Options) -> None:
    text = chosen.to_toml()
    assert parse(text) == chosen
    assert from_kept(text.encode(), "lsm-options.toml") == chosen


def test_what_is_kept_says_what_it_is_and_names_every_key() -> None:
    text = Options(compression=None, paranoid_checks=True).to_toml()
    assert text.startswith(
        "# Kept by the engine: the options this database was last opened with.\n"
        "\n"
        "[engine]\n"
        "write_buffer_size = 4194304\n"
    )
    assert 'compression = "none"\n' in text
    assert "paranoid_checks = true\n" in text
    assert tuple(tomllib.loads(text)["engine"]) == KEYS
    assert text.endswith(f"\n\n{Options().filters.to_toml()}")


def test_what_is_kept_holds_no_secret() -> None:
    seeded = Options(filters=Options().filters.with_seed(123456789))
    assert seeded == Options()
    assert "123456789" not in seeded.to_toml() + repr(seeded)


@pytest.mark.parametrize(
    "data", [b"[engine", b"\xff\xfe", b"x = " + b"[" * 100_000, b"[engine]\nnew = 1", b"[more]"]
)
def test_kept_options_that_cannot_be_read_say_what_overrides_them(data: bytes) -> None:
    with pytest.raises(PolicyConfigError, match=r"^db/kept: .*; config= takes the place of"):
        from_kept(data, "db/kept")


def test_filters_stand_in_for_those_of_a_document() -> None:
    data = b"[engine]\nblock_size = 8192\n[filters]\npolicy = 'gone'\nwhat = 3"
    assert from_kept(data, "kept", uniform(CLASSIC)) == Options(
        block_size=8192, filters=uniform(CLASSIC)
    )
    assert from_kept(b"filters = 3", "kept", uniform(CLASSIC)).filters[0] == CLASSIC
    for text in (b"[more]", b"[engine]\nx = 1"):
        with pytest.raises(PolicyConfigError, match="unknown key"):
            from_kept(text, "kept", uniform(CLASSIC))


def test_a_callers_filters_are_no_mistake_in_a_file() -> None:
    with pytest.raises(ValueError, match="^filters is for 3 levels") as info:
        from_kept(b"", "kept", LevelPolicies.uniform(CLASSIC, 3))
    assert not isinstance(info.value, PolicyConfigError)


# --- keywords, configuration, kept options --------------------------------------------------------

KEPT = Options(block_size=8192, max_open_files=50, filters=uniform(CLASSIC))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text("[engine]\nblock_size = 16384\n[filters]\npolicy = 'cuckoo'")
    return path


CONFIGURED = Options(block_size=16384, filters=uniform(policies.CuckooPolicy()))


def test_nothing_said_and_nothing_kept_is_the_defaults() -> None:
    assert opened() == Options()


def test_nothing_said_is_what_was_kept() -> None:
    assert opened(KEPT) == KEPT


@pytest.mark.parametrize("form", [str, Path])
def test_a_configuration_stands_alone(config: Path, form: Callable[[Path], Any]) -> None:
    """What it does not say is at its default, not as it was kept."""
    assert opened(KEPT, form(config)) == CONFIGURED


def test_kept_options_are_not_looked_at_beside_a_configuration(config: Path) -> None:
    def unreadable(filters: LevelPolicies | None) -> Options:
        raise AssertionError("kept options were read")

    assert effective(kept=unreadable, config=config, given={}) == CONFIGURED


def test_keywords_win_over_a_configuration_and_over_what_was_kept(config: Path) -> None:
    assert opened(KEPT, block_size="32 KiB") == attrs.evolve(KEPT, block_size=32 * KIB)
    assert opened(KEPT, config, block_size=512) == attrs.evolve(CONFIGURED, block_size=512)
    assert opened(KEPT, config, filter_policy=CLASSIC) == attrs.evolve(
        CONFIGURED, filters=uniform(CLASSIC)
    )


def test_false_and_zero_are_said() -> None:
    kept = Options(paranoid_checks=True)
    assert opened(kept, paranoid_checks=False, lru_cache_size=0) == Options(lru_cache_size=0)


def test_a_keyword_of_none_was_not_given() -> None:
    unsaid = {key: None for key in KEYS if key != "compression"}
    assert opened(KEPT, **unsaid, filter_layout=None, bloom_filter_bits=None) == KEPT


def test_a_keyword_that_is_not_given_was_not_given() -> None:
    names = (*KEYS, *options._FILTER_KEYWORDS)
    assert opened(KEPT, **dict.fromkeys(names, NOT_GIVEN)) == KEPT
    assert repr(NOT_GIVEN) == "NOT_GIVEN"


def test_a_compression_of_none_is_no_compression() -> None:
    assert opened(Options(compression="zstd"), compression=None).compression == "none"
    assert opened(Options(compression="zstd"), compression=NOT_GIVEN).compression == "zstd"


def test_what_keywords_say_is_checked_with_what_holds_besides() -> None:
    with pytest.raises(ValueError, match=r"8, allowed are 20 \(level0_compact_files\)") as info:
        opened(level0_compact_files=20)
    assert not isinstance(info.value, PolicyConfigError)
    with pytest.raises(TypeError, match="block_size is a whole number of bytes"):
        opened(block_size=4.0)


@pytest.mark.parametrize("name", ["block_sise", "filters", "comparator", "create_if_missing"])
def test_an_unknown_keyword_is_a_typeerror(name: str) -> None:
    with pytest.raises(TypeError, match=f"unknown option '{name}'.*; allowed are block_restart"):
        opened(**{name: None})


def test_a_misspelt_keyword_is_told_its_spelling() -> None:
    with pytest.raises(TypeError, match=r"'filter_polcy' \(did you mean 'filter_policy'\?\)"):
        opened(filter_polcy=None)


# --- keywords that select filters -----------------------------------------------------------------


def test_one_policy_is_for_all_levels() -> None:
    assert opened(KEPT, filter_policy=policies.RocksDBPolicy()) == attrs.evolve(
        KEPT, filters=uniform(policies.RocksDBPolicy())
    )


def test_a_policy_of_none_is_no_filters() -> None:
    assert opened(KEPT, filter_policy=None).filters == uniform(policies.NoFilterPolicy())


def test_level_policies_are_taken_whole() -> None:
    each = LevelPolicies.from_config(
        {"filters": {"optimize_filters_for_hits": True, "level": {"2": {"policy": "none"}}}}
    )
    assert opened(KEPT, filter_policy=each).filters is each
    with pytest.raises(ValueError, match="for 3 levels, and a database has 7"):
        opened(KEPT, filter_policy=LevelPolicies.uniform(CLASSIC, 3))


@pytest.mark.parametrize("layout", ["table", "block", "partitioned"])
def test_a_layout_goes_with_one_policy(layout: str) -> None:
    policy = policies.LevelDBPolicy()
    assert opened(filter_policy=policy, filter_layout=layout).filters == uniform(policy, layout)


@pytest.mark.parametrize(
    "keywords", [{}, {"filter_policy": None}, {"filter_policy": uniform(CLASSIC)}]
)
def test_a_layout_without_one_policy_is_refused(keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="filter_layout is 'table', and goes with a filter_policy"):
        opened(KEPT, filter_layout="table", **keywords)


def test_a_size_of_partitions_goes_with_partitions() -> None:
    place: dict[str, Any] = {"filter_layout": "partitioned", "filter_partition_blocks": 7}
    chosen = opened(filter_policy=CLASSIC, **place).filters
    assert [chosen.partition_blocks(level) for level in range(LEVELS)] == [7] * LEVELS
    usual = opened(filter_policy=CLASSIC, filter_layout="partitioned").filters
    assert usual.partition_blocks(3) == 128
    assert opened(filter_policy=CLASSIC).filters.partition_blocks(3) is None
    for layout in (None, "table"):
        with pytest.raises(ValueError, match="filter_partition_blocks is 7, and goes with"):
            opened(filter_policy=CLASSIC, **place | {"filter_layout": layout})
    with pytest.raises(ValueError, match="partition_blocks is out of range: 0"):
        opened(filter_policy=CLASSIC, **place | {"filter_partition_blocks": 0})


def test_a_layout_that_the_policy_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="'classic' has none: choose table"):
        opened(filter_policy=CLASSIC, filter_layout="block")
    with pytest.raises(ValueError, match="layout is '', allowed are table, block and partitioned"):
        opened(filter_policy=CLASSIC, filter_layout="")


@pytest.mark.parametrize("policy", ["cuckoo", policies.CuckooPolicy, 10, False, Path("lsm.toml")])
def test_what_is_no_policy_is_a_typeerror(policy: Any) -> None:
    with pytest.raises(TypeError, match=r"filter_policy is what policies\.create\(name\) or"):
        opened(filter_policy=policy)


@pytest.mark.parametrize("bits", [1, 10, 100])
def test_bloom_filter_bits_are_leveldbs_filters_in_leveldbs_layout(bits: int) -> None:
    chosen = opened(KEPT, bloom_filter_bits=bits)
    policy = policies.LevelDBPolicy(bits_per_key=bits)
    assert chosen == attrs.evolve(KEPT, filters=uniform(policy, "block"))


def test_bloom_filter_bits_of_0_say_nothing() -> None:
    assert opened(KEPT, bloom_filter_bits=0) == KEPT
    chosen = opened(filter_policy=CLASSIC, filter_layout="table", bloom_filter_bits=0)
    assert chosen.filters == uniform(CLASSIC)


@pytest.mark.parametrize("bits", [-1, 101, 10**6])
def test_bloom_filter_bits_out_of_range_are_refused(bits: int) -> None:
    message = f"bloom_filter_bits is out of range: {bits}, allowed are 0 to 100"
    with pytest.raises(ValueError, match=message):
        opened(bloom_filter_bits=bits)


@pytest.mark.parametrize("bits", [10.0, True, False, "10"])
def test_bloom_filter_bits_are_an_int(bits: Any) -> None:
    with pytest.raises(TypeError, match="bloom_filter_bits is an int, not"):
        opened(bloom_filter_bits=bits)


@pytest.mark.parametrize(
    "keywords",
    [{"filter_policy": CLASSIC}, {"filter_policy": None}, {"filter_layout": "block"}],
)
def test_bloom_filter_bits_stand_alone(keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="leave out filter_policy, filter_layout and prefixes, or"):
        opened(bloom_filter_bits=10, **keywords)


def test_a_budget_places_the_filters_of_all_levels() -> None:
    assert opened(KEPT, filter_budget="10 bits/key") == attrs.evolve(
        KEPT, filters=LevelPolicies.by_budget("10 bits/key")
    )
    chosen = opened(
        filter_budget="1 %",
        filter_read_cost="10 ms",
        filter_absent_share=0.5,
        filter_families=["blocked", "cuckoo"],
        filter_heat=False,
        bloom_filter_bits=0,
    )
    assert chosen.filters == LevelPolicies.by_budget(
        "1 %", read_cost="10 ms", absent_share=0.5, families=["blocked", "cuckoo"], heat=False
    )
    assert parse(chosen.to_toml()) == chosen


GOES_WITH_A_BUDGET: dict[str, Any] = {
    "filter_read_cost": "100 us",
    "filter_absent_share": 0.0,
    "filter_families": ["blocked"],
    "filter_heat": False,
}


@pytest.mark.parametrize("name", GOES_WITH_A_BUDGET)
def test_what_goes_with_a_budget_does_not_go_alone(name: str, config: Path) -> None:
    config.write_text("[filters]\nbudget = '10 bits/key'")
    given_alone = {name: GOES_WITH_A_BUDGET[name]}
    for base in ({}, {"kept": KEPT}, {"config": config}):
        with pytest.raises(ValueError, match=f"^{name} goes with a budget: give filter_budget="):
            opened(**base, **given_alone)
    assert opened(KEPT, **dict.fromkeys(GOES_WITH_A_BUDGET)) == KEPT


@pytest.mark.parametrize(
    "beside",
    [
        {"filter_policy": CLASSIC},
        {"filter_policy": None},
        {"filter_prefix": 8},
        {"bloom_filter_bits": 10},
    ],
)
def test_a_budget_stands_alone(beside: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"all levels: leave out {next(iter(beside))}, or the bud"):
        opened(filter_budget="10 bits/key", **beside)


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"filter_budget": 10}, TypeError, "^filter_budget is text with a unit"),
        ({"filter_budget": "-1 MiB"}, ValueError, "^filter_budget is a number with a unit"),
        ({"filter_budget": "101 %"}, ValueError, "^filter_budget is out of range"),
        ({"filter_read_cost": "0 ns"}, ValueError, "^filter_read_cost is out of range"),
        ({"filter_absent_share": 2}, ValueError, "^filter_absent_share is out of range"),
        ({"filter_families": "xor"}, TypeError, "^filter_families is a list of names"),
        ({"filter_families": ["none"]}, ValueError, "^filter_families: policy 'none'"),
        ({"filter_families": ["xr"]}, FilterError, "^filter_families: unknown filter policy 'xr'"),
        ({"filter_heat": "yes"}, TypeError, "^filter_heat is true or false"),
    ],
)
def test_a_keyword_for_a_budget_is_named_as_it_was_given(
    wrong: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told) as info:
        opened(**{"filter_budget": "10 bits/key", **wrong})
    assert not isinstance(info.value, PolicyConfigError)


def test_a_budget_may_be_for_partitions() -> None:
    place: dict[str, Any] = {"filter_layout": "partitioned", "filter_partition_blocks": 7}
    chosen = opened(filter_budget="10 bits/key", **place).filters
    assert chosen == LevelPolicies.by_budget(
        "10 bits/key", layout="partitioned", partition_blocks=7
    )
    assert (chosen.layout(3), chosen.partition_blocks(3)) == ("partitioned", 7)
    text = Options(filters=chosen).to_toml()
    assert from_document(tomllib.loads(text), "lsm.toml").filters == chosen
    usual = opened(filter_budget="10 bits/key", filter_layout="partitioned").filters
    assert usual.partition_blocks(0) == 128
    plain = opened(filter_budget="10 bits/key", filter_layout="table").filters
    assert plain == LevelPolicies.by_budget("10 bits/key")
    with pytest.raises(ValueError, match="choose table or partitioned"):
        opened(filter_budget="10 bits/key", filter_layout="block")


class Modelled(Unregistered):
    name: ClassVar[str] = "test.modelled-and-gone"

    @classmethod
    def cost_model(cls) -> FamilyModel:
        return FamilyModel(FAMILIES["blocked"])


def test_a_family_that_its_name_no_longer_leads_to_is_refused() -> None:
    known = policies.registry._REGISTRY._registered
    policies.register(Modelled)
    try:
        filters = LevelPolicies.by_budget("10 bits/key", families=["test.modelled-and-gone"])
        chosen = opened(filter_policy=filters)
        data = chosen.to_toml().encode()
        assert from_kept(data, "kept") == chosen
        known.pop(Modelled.name)
        with pytest.raises(ValueError, match=r"call policies\.register\(Modelled\)"):
            Options(filters=filters)
        with pytest.raises(
            PolicyConfigError, match="families: unknown .*; config= takes the place"
        ):
            from_kept(data, "kept")
        assert from_kept(data, "kept", uniform(CLASSIC)).filters == uniform(CLASSIC)
    finally:
        known.pop(Modelled.name, None)


KEPT_BROKEN = b"[engine]\nblock_size = 8192\n[filters]\npolicy = 'acme.gone'\nbits = 3"


def kept_broken(filters: LevelPolicies | None) -> Options:
    """As the engine reads the file it kept."""
    return from_kept(KEPT_BROKEN, "db/lsm-options.toml", filters)


@pytest.mark.parametrize(
    ("keywords", "filters"),
    [
        ({"filter_policy": CLASSIC}, uniform(CLASSIC)),
        ({"filter_policy": None}, uniform(policies.NoFilterPolicy())),
        ({"filter_policy": uniform(CLASSIC)}, uniform(CLASSIC)),
        ({"bloom_filter_bits": 10}, uniform(policies.LevelDBPolicy(), "block")),
        ({"filter_budget": "1 %"}, LevelPolicies.by_budget("1 %")),
    ],
)
def test_filters_by_keyword_save_the_rest_of_what_was_kept(
    keywords: dict[str, Any], filters: LevelPolicies
) -> None:
    chosen = effective(kept=kept_broken, config=None, given=keywords)
    assert chosen == Options(block_size=8192, filters=filters)


def test_kept_filters_that_nobody_knows_any_more_are_an_error_with_a_way_out(config: Path) -> None:
    with pytest.raises(PolicyConfigError) as info:
        effective(kept=kept_broken, config=None, given={"max_open_files": 3})
    for fact in ("db/lsm-options.toml", "'acme.gone'", "config= takes", "filter_policy= that of"):
        assert fact in str(info.value)
    assert effective(kept=kept_broken, config=config, given={}) == CONFIGURED


# --- the page, and the plan of the house ----------------------------------------------------------

PAGE = (ROOT / "docs" / "configuration.md").read_text()
ROWS = {
    row[0].strip("`"): row[1:]
    for row in table_rows(PAGE.partition("## Engine\n")[2].partition("\n## ")[0])
}


def test_the_page_has_every_key_in_order() -> None:
    assert tuple(ROWS) == KEYS


def stated(key: str) -> tuple[str, str, str]:
    """Value, default and range of a key, as the page should have them."""
    default, rule = getattr(Options(), key), NUMBERS.get(key)
    if key == "compression":
        return "name", f'`"{default}"`', ", ".join(f'`"{name}"`' for name in COMPRESSIONS)
    if key == "load_filters":
        return "name", f'`"{default}"`', ", ".join(f'`"{name}"`' for name in LOADING)
    if key == "pin_filters":
        return "levels", f'`"{default}"`', 'such as `"0"`, `"0-1"`, `"2+"`'
    if rule is None:
        return "boolean", f"`{str(default).lower()}`", "`true` or `false`"
    if key in BESIDE and key != "level0_compact_files":
        before = tuple(BESIDE)[tuple(BESIDE).index(key) - 1]
        return "whole number", str(default), f"`{before}` to {rule.high}"
    return "size" if key in SIZES else "whole number", rule.text(default), rule.range


@pytest.mark.parametrize("key", KEYS)
def test_the_page_has_value_default_and_range_of_each_key(key: str) -> None:
    value, default, span, does = ROWS[key]
    assert (value, default, span) == stated(key)
    assert len(does) > 20


def test_the_page_tells_what_effective_does() -> None:
    text = " ".join(PAGE.split())
    for keyword in (*options._FILTER_KEYWORDS, "config"):
        assert f"`{keyword}=" in text
    assert "`lsm-options.toml`" in text
    limits = [Options().limit(level) // MIB for level in (1, 2)]
    assert f"{limits[0]} MiB for level 1, {limits[1]} MiB for level 2" in text


def test_importing_options_loads_neither_numpy_nor_metadata() -> None:
    code = "import sys, lsm.options; print(*sys.modules)"
    fresh = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = fresh.stdout.split()
    assert "lsm.options" in loaded
    assert not {"numpy", "importlib.metadata", "crc32c", "cramjam", "difflib"} & set(loaded)
