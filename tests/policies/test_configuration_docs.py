"""``docs/configuration.md`` is right: files load, messages are real, tables are complete.

The table of ``[engine]`` is held against the code in ``tests/lsm/test_options.py``.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

import policies
from filters import surf
from filters.sizing_parameters import SizingParameters
from lsm import options
from policies import PolicyConfigError, config, layouts, levels
from policies.builtin import BUILTIN, FamilyPolicy
from policies.parameters import BUDGET_KEYS, parameter_names
from policies.registry import Registry
from policies.rule import READ_COST
from tests.filters.test_family_formats import table_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "configuration.md"
TEXT = PAGE.read_text(encoding="utf-8")
FAMILIES = {cls.name: cls for cls in BUILTIN if issubclass(cls, FamilyPolicy)}

# Every fenced block of the page: its kind, its body, and the body of a text block right behind it.
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", TEXT, flags=re.MULTILINE | re.DOTALL
)
TOML = [(body, message) for kind, body, message in BLOCKS if kind == "toml"]
GOOD = [body for body, message in TOML if not message]
BAD = [(body, message) for body, message in TOML if message]


def section(title: str) -> str:
    """The page from one heading to the next."""
    found = re.search(rf"^#+ {title}\n(.*?)(?=^#+ |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty directory, and policies that are built in: messages list whatever is known."""
    fresh = Registry(BUILTIN, dict)
    monkeypatch.setattr(policies.registry, "lookup", fresh.lookup)
    monkeypatch.setattr(policies.registry, "available", fresh.available)
    monkeypatch.chdir(tmp_path)


def load(text: str) -> policies.LevelPolicies:
    """What a file of this name and content selects."""
    Path("lsm.toml").write_text(text, encoding="utf-8")
    return policies.load("lsm.toml")


def test_all_blocks_are_looked_at() -> None:
    assert len(re.findall(r"^```\w+$", TEXT, flags=re.MULTILINE)) == len(BLOCKS) + len(BAD)
    assert {kind for kind, _, _ in BLOCKS} == {"python", "toml"}
    assert len(GOOD) >= 7
    assert len(BAD) >= 17
    assert sum("[engine]" in text for text, _ in BAD) >= 5


@pytest.mark.parametrize("text", GOOD)
def test_the_configurations_of_the_page_load(text: str) -> None:
    loaded = load(text)
    assert len(loaded) == 7
    assert load(loaded.to_toml()) == loaded
    load(text)
    assert options.load("lsm.toml").filters == loaded


@pytest.mark.parametrize(("text", "message"), BAD)
def test_the_messages_of_the_page_are_real(text: str, message: str) -> None:
    if "[engine]" in text:
        load(text)  # which leaves that table to the engine
    else:
        with pytest.raises(PolicyConfigError) as info:
            load(text)
        assert str(info.value) == " ".join(message.split())
    with pytest.raises(PolicyConfigError) as info:
        options.load("lsm.toml")
    assert str(info.value) == " ".join(message.split())


def test_the_python_of_the_page_runs() -> None:
    load(GOOD[0])
    namespace: dict[str, Any] = {}
    for kind, body, _ in BLOCKS:
        if kind == "python":
            exec(compile(body, str(PAGE), "exec"), namespace)
    assert load(namespace["levels"].to_toml())[3] == policies.create("cuckoo", fpr=0.001)


def test_the_example_configuration_loads() -> None:
    loaded = policies.load(ROOT / "examples" / "lsm.toml", levels=7)
    assert [(policy.name, policy.params()) for policy in loaded] == [
        ("rocksdb", {"bits_per_key": 14, "optimize_filters_for_memory": True}),
        ("blocked", {"bits_per_key": 12}),
        ("classic", {"bits_per_key": 10}),
        ("cuckoo", {"fpr": 0.005}),
        ("leveldb", {"bits_per_key": 10}),
        ("counting", {"counters_per_key": 10}),
        ("binary-fuse", {"fingerprint_bits": 8}),
    ]
    assert [loaded.layout(level) for level in range(7)] == [*["table"] * 4, "block", *["table"] * 2]
    assert not loaded.optimize_filters_for_hits


def test_what_the_page_says_of_its_files() -> None:
    def bits(text: str) -> list[Any]:
        return [policy.params().get("bits_per_key") for policy in load(text)]

    first = load(GOOD[0])
    names = [policy.name for policy in first]
    assert names == [*["rocksdb"] * 2, *["blocked"] * 2, *["binary-fuse"] * 3]
    [inheriting] = [text for text in GOOD if "bits_per_key = 16" in text]
    assert bits(inheriting) == [10, *[16] * 6]
    assert [load(inheriting).layout(level) for level in range(2)] == ["table", "block"]
    [last] = [text for text in GOOD if '"none"' in text]
    assert [policy.name for policy in load(last)] == [*["blocked"] * 6, "none"]
    assert set(load("")) == {policies.create("blocked", bits_per_key=10)}
    hits = load("[filters]\noptimize_filters_for_hits = true")
    assert hits.optimize_filters_for_hits
    assert hits[6].name == "blocked"
    assert load("[engine]\nwhatever = 1").choices == load("").choices
    for head in ("[filters.level.3]", "[filters.level.1-2]", '[filters.level."1-2"]'):
        assert load(f'{head}\npolicy = "none"')[int(head.strip('"]')[-1])].name == "none"
    with pytest.raises(PolicyConfigError, match="not valid TOML"):
        load('[filters.level.4+]\npolicy = "none"')
    with pytest.raises(FileNotFoundError):
        policies.load("missing.toml")
    assert "1 to 1000" in section("Levels")
    assert levels.MAX_LEVELS == 1000
    with pytest.warns(UserWarning, match="above 16"):
        load('[filters]\npolicy = "blocked"\nbits_per_key = 17')
    assert load('[filters]\npolicy = "leveldb"\nbits_per_key = 10.0')[0].name == "leveldb"


def test_the_table_of_keys_is_complete() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table_rows(section("Keys"))}
    assert rows.keys() - {"a parameter of the policy"} == config._FILTERS_KEYS | set(BUDGET_KEYS)
    for key, (above, below, value, default) in rows.items():
        if key in BUDGET_KEYS:
            assert (above, below) == (
                "instead of all above" if key == "budget" else "with `budget`",
                "no",
            )
        if key in config._FILTERS_KEYS:
            assert above == ("without `budget`" if key == "level" else "yes")
            assert (below != "no") == (key in config._LEVEL_KEYS)
        if key == "policy":
            assert default == f'`"{config.DEFAULT_POLICY}"`'
        if key == "read_cost":
            assert default == f'`"{READ_COST}"`'
        if key == "layout":
            assert default == f'`"{layouts.DEFAULT_LAYOUT}"`'
        if key == "partition_blocks":
            assert default == f"`{layouts.DEFAULT_PARTITION_BLOCKS}`"
            assert f"1 to {layouts.MOST_PARTITION_BLOCKS}," in value
    assert [cls.name for cls in BUILTIN if "block" in cls.layouts] == ["leveldb"]
    tables = [row[0].strip("`") for row in table_rows(section("Tables"))]
    assert tables == ["[filters]", "[filters.level.*]", "[engine]"]
    assert config.TOP_LEVEL == ("filters", "engine")


# --- the table of parameters ----------------------------------------------------------------------


@attrs.frozen
class Row:
    """One row of the table of parameters."""

    policy: str
    parameter: str
    value: str
    range: str
    default: str

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range."""
        low, _, high = self.range.replace(" or ", " to ").partition(" to ")
        return number(low), number(high)


def number(text: str) -> float:
    """A number as the page writes it."""
    base, power, exponent = text.partition("^")
    return float(base) ** float(exponent) if power else float(base)


ROWS = [Row(*(cell.strip("`") for cell in row)) for row in table_rows(section("Parameters"))]


def parameters_of(name: str) -> SizingParameters:
    found: SizingParameters = FAMILIES[name].family.parameters
    return found


def test_the_table_lists_exactly_the_parameters_of_each_policy() -> None:
    listed = sorted((row.policy, row.parameter) for row in ROWS)
    assert listed == sorted(
        (cls.name, parameter) for cls in BUILTIN for parameter in parameter_names(cls) or ()
    )
    assert "`none` takes no parameters" in section("Parameters")


def given_to(policy: str, parameter: str) -> Row:
    [found] = [row for row in ROWS if (row.policy, row.parameter) == (policy, parameter)]
    return found


def test_the_ranges_are_those_of_the_families() -> None:
    for row in ROWS:
        if row.value == "boolean":
            assert row.range == "true` or `false"
            continue
        if row.value == "string":
            assert (row.policy, row.parameter) == ("surf", "suffix")
            assert re.findall(r"\w\w\w+", row.range) == list(surf.SUFFIXES)
            continue
        sizes = parameters_of(row.policy)
        ranges = {**sizes.ranges, "num_probes": (1, sizes.max_probes)}
        ranges["range_length"] = (1, 2**32)
        assert row.ends == ranges[row.parameter], row
    families = {(row.policy, row.parameter) for row in ROWS}
    for name in FAMILIES:
        assert {(name, size) for size in parameters_of(name).ranges} <= families


def test_the_defaults_are_those_of_the_families() -> None:
    for name in FAMILIES:
        default = parameters_of(name).default
        given = {row.parameter: row.default for row in ROWS if row.policy == name}
        assert given.pop(default.name) == f"{default.value:g}"
        others = {key for key, value in given.items() if value}
        assert others <= {"num_probes", "optimize_filters_for_memory", "range_length", "suffix"}
    assert {row.default for row in ROWS if row.parameter == "range_length"} == {"1"}
    assert policies.GrafitePolicy().range_length == 1
    assert policies.SurfPolicy().suffix == given_to("surf", "suffix").default
    assert policies.RocksDBPolicy().optimize_filters_for_memory is True
    assert policies.RibbonPolicy().optimize_filters_for_memory is True
    assert {row.default for row in ROWS if row.value == "boolean"} == {"true"}


@pytest.mark.filterwarnings("ignore:a blocked filter at")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.policy}.{row.parameter}")
def test_what_a_file_may_say_is_what_the_table_says(row: Row) -> None:
    def attempt(value: object) -> None:
        load(f'[filters]\npolicy = "{row.policy}"\n{row.parameter} = {value}')

    def refused(value: object) -> None:
        with pytest.raises(PolicyConfigError):
            attempt(value)

    if row.value == "string":
        for value in re.findall(r"\w\w\w+", row.range):
            attempt(f'"{value}"')
        refused('"another"')
        refused(1)
        return
    if row.value == "boolean":
        attempt("true")
        attempt("false")
        refused(1)
        return
    low, high = row.ends
    written = [int(end) if row.value == "whole number" else end for end in row.ends]
    if (row.policy, row.parameter) == ("cassandra", "fp_chance"):  # all but the lower end
        refused(written[0])
        attempt(math.nextafter(written[0], 1))
        attempt(written[1])
    else:
        for end in written:
            attempt(end)
    step = 1 if row.value == "whole number" else low / 1000
    refused(written[0] - step)
    refused(written[1] + step)
    refused("true")
    refused('"10"')
    if row.value == "whole number":
        refused(low + 0.5)
    else:
        attempt(low + (high - low) / 3)
    if " or " in row.range:
        refused(int(low) + 1)
    if row.value == "whole number" and (row.policy, row.parameter) != ("leveldb", "bits_per_key"):
        refused(float(low))


def test_at_most_one_sizing_parameter() -> None:
    text = " ".join(section("Parameters").split())
    sizes = {size for name in FAMILIES for size in parameters_of(name).ranges}
    named = re.search(r"- The sizing parameters, of which there may be one, are (.*?)\. - ", text)
    assert named
    assert set(re.findall(r"`(\w+)`", named[1])) == sizes


def test_the_links_of_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", TEXT, flags=re.MULTILINE)
    for page, heading in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", TEXT):
        if page:
            assert (PAGE.parent / page).exists(), page
        else:
            assert heading in {each.lower().replace(" ", "-") for each in headings}
