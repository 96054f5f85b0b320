"""docs/benchmarks.md has every command, every option and every member of the record."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import record
from benchmarks.filters import tables
from benchmarks.levels import table
from benchmarks.levels.by_hand import BY_HAND
from benchmarks.levels.configurations import BUDGET, all_configurations
from benchmarks.levels.live_rows import REFILTERED, WARMED
from benchmarks.levels.lookups import all_lookups
from benchmarks.levels.settings import Settings
from benchmarks.record import Record
from benchmarks.rows import VERDICTS, Row, Target

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "benchmarks.md").read_text()
WORDS = set(re.findall(r"`([^`\n]+)`", PAGE))


def test_every_member_of_the_record() -> None:
    head = record.head("all", "quick", {}, "2026-01-02")
    assert {*head, "rows", "summary"} <= WORDS
    assert set(head["machine"]) <= WORDS
    assert {"name", "reason", "simd", "simd_available", *head["kernel"]} <= WORDS


def test_every_member_of_a_row() -> None:
    assert {each.name for each in attrs.fields(Row)} <= WORDS
    row = Row(part="p", group="g", name="n", subject="s", value=1.0, repeats=[1.0])
    assert set(row.as_dict()) <= WORDS
    assert {each.name for each in attrs.fields(Target)} <= WORDS
    assert set(VERDICTS) <= WORDS


def test_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    for name in (*(part.name for part in command.parts()), "compare", "report"):
        assert re.search(rf"^\| `{name}\b", PAGE, re.MULTILINE), name
        with pytest.raises(SystemExit, match="0"):
            command.main([name, "--help"])
        for option in re.findall(r"(?<!\S)--[a-z-]+", capsys.readouterr().out):
            assert option == "--help" or option in PAGE, (name, option)


def test_the_configurations_of_levels() -> None:
    names = {each.name for each in all_configurations(Settings())}
    section = PAGE.partition("## Which filter on which level\n")[2].partition("\n### ")[0]
    told = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+)", section, re.MULTILINE)
    named = {name for cell in told for name in re.findall(r"`([^`]+)`", cell)}
    assert len(named) > 7
    assert named <= names


def test_the_filters_of_live_stores() -> None:
    section = PAGE.partition("### Live stores\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    budget = f"budget {BUDGET}"
    assert told == {budget, f"...{REFILTERED}", f"...{WARMED}", *BY_HAND}
    assert {f"`{each.name}`" for each in all_lookups(1)} <= set(re.findall("`[^`]+`", section))


def test_the_figures_are_those_of_the_record() -> None:
    found = Record.read(DOCS / "results")
    assert found.head["size"] == "full"
    assert str(found.head["date"])[:10] in PAGE
    assert f"{found.summary['seconds'] / 60:.0f} minutes" in PAGE
    for lines in (
        tables.documented(found.of("filters"), "random", 1_000_000),
        table.documented(found.of("levels")),
    ):
        assert "\n".join(lines) in PAGE
