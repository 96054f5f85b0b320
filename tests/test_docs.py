"""What README and the pages for users show runs, and what they state is so."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import policies
from benchmarks import tables
from filters import header, sizing
from filters.families import FAMILIES
from filters.family import Family
from lsm.cli.program import program as command
from policies.builtin import BUILTIN
from tests.filters.test_xor import NEVER_FROM, SMALLER_FROM, SMALLER_TO

ROOT = Path(__file__).parents[1]
USERS_PAGES = [page for page in (ROOT / "docs").glob("*.md") if page.name != "house.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The cells of the table under a heading, by the first word in backquotes of each row."""
    section = (ROOT / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table: dict[str, list[str]] = {}
    for line in section.splitlines():
        if name := re.match(r"\| `([a-z-]+)`", line):
            table[name[1]] = [cell.strip() for cell in line.strip("|").split("|")]
    return table


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/families.md",
        "docs/choosing.md",
        "docs/kernels.md",
        "docs/c-door.md",
        "docs/engine.md",
        "docs/placement.md",
    ],
)
def test_programs_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    programs = blocks(page, "python")
    assert programs
    for program in programs:
        exec(compile(program, page, "exec"), {})


def test_the_first_programs_have_about_ten_lines() -> None:
    for program in blocks("README.md", "python")[:2]:
        statements = [line for line in program.splitlines() if line and not line.startswith("#")]
        assert len(statements) <= 13


def test_the_commands_of_the_first_minute_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the database that the program before them makes, with the configuration behind them."""
    monkeypatch.chdir(tmp_path)
    program = blocks("README.md", "python")[1]
    assert "100_000" in program
    exec(compile(program.replace("100_000", "1000"), "README.md", "exec"), {})
    Path("lsm.toml").write_text(blocks("README.md", "toml")[0])
    [table] = Path("shop.db").glob("*.ldb")
    [commands] = re.findall(r"```\n(lsm .*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        words = [str(table) if word == "000042.sst" else word for word in words]
        result = CliRunner().invoke(command, words[1:])
        assert (result.exit_code, bool(result.output)) == (0, True), (line, result.output)


def test_the_configuration_loads(tmp_path: Path) -> None:
    [text, budget] = blocks("README.md", "toml")
    path = tmp_path / "lsm.toml"
    path.write_text(text)
    names = [policy.name for policy in policies.load(path)]
    assert names == ["rocksdb"] * 2 + ["blocked"] * 2 + ["binary-fuse"] * 3
    path.write_text(budget)
    rule = policies.load(path).rule
    assert rule is not None
    assert str(rule.budget) == "10 bits/key"


@pytest.mark.filterwarnings("ignore:a blocked filter at")
@pytest.mark.parametrize("page", tables.PAGES)
def test_the_tables_of_families_are_those_of_their_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == tables.written(page), "run: python -m benchmarks.tables"
    begun = re.findall("<!-- (families|measured|metrics|program): ", text)
    assert len(begun) == text.count("<!-- end -->")


def test_a_page_without_a_place_for_its_table_is_told() -> None:
    place = tables.Place("docs/x.md", "<!-- families: x -->", "<!-- end -->", lambda: "new")
    assert place.written("a<!-- families: x -->old<!-- end -->b") == (
        "a<!-- families: x -->new<!-- end -->b"
    )
    for text in ("", "<!-- families: x -->", "<!-- end --><!-- families: x -->"):
        with pytest.raises(ValueError, match=r"docs/x\.md: there is no '<!-- families: x -->'"):
            place.written(text)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{page.name}" for page in USERS_PAGES)])
def test_no_table_for_users_has_the_bounds_of_who_works_on_it(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", text, re.MULTILINE)
    cells = [cell.strip() for head in heads for cell in head.strip("|").split("|")]
    assert not {"target", "must", "aim", "met", "verdict"} & set(cells)
    assert not re.search(r"\| (met|missed) \|$|\*\*missed\*\*", text, re.MULTILINE)


def test_the_tables_name_every_policy_and_every_structure() -> None:
    named = rows("README.md", "The families")
    structures = {family.name for family in FAMILIES.values() if not family.policy}
    assert set(named) == {cls.name for cls in BUILTIN} | structures
    assert {name for name, cells in named.items() if "no policy" in cells[0]} == structures
    assert set(rows("docs/families.md", "In one table")) == set(FAMILIES)


def test_what_is_said_beside_the_tables_is_what_sizing_says() -> None:
    page = " ".join((ROOT / "docs/families.md").read_text().split())
    fuse, xor = (sizing.stored_bits_per_key(name, n=1000) for name in ("binary-fuse", "xor"))
    assert f"of a thousand keys, `binary-fuse` takes {fuse:.1f} bits and `xor` {xor:.1f}." in page
    found = [
        {sizing.bits_per_key("leveldb", n=10**power, fpr=fpr) for power in range(2, 8)}
        for fpr in (0.01, 0.001)
    ]
    assert found[0] == {10, 11}
    assert (min(found[1]), max(found[1])) == (15, 18)
    assert "10 or 11 bits at 1 %, 15 to 18 at 0.1 %" in page


def test_what_growing_costs_is_what_sizing_says() -> None:
    """ "25 grown": from 1,024 keys to a million, in the mean up to two millions."""

    def grown(**size: Any) -> list[float]:
        counts = [int(1024 * 2 ** (10 + part / 8)) for part in range(8)]
        return [sizing.bits_per_key("scalable", n=n, capacity=1024, **size) for n in counts]

    few, many = (sum(grown(fpr=fpr)) / 8 for fpr in (0.01, 0.001))
    text = " ".join((ROOT / "docs/families.md").read_text().split())
    assert f"takes {few:.0f} bits in the mean at 1 % and {many:.0f} at 0.1 %" in text
    full = sizing.bits_per_key("scalable", n=1_000_000, capacity=1024)
    assert f"{full:.0f} bits just before it grows, {max(grown()):.0f} just after" in text
    quadrupled = [
        sizing.bits_per_key("scalable", n=int(1024 * 4 ** (5 + part / 8)), capacity=1024, growth=4)
        for part in range(8)
    ]
    assert f"{sum(quadrupled) / 8:.0f} bits per key instead of 25" in text


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_ranges_and_defaults_are_those_of_the_code(family: Family) -> None:
    cells = rows("docs/families.md", "Sizing parameters")[family.name]
    stated = re.findall(r"`(\w+)` \(([^)]*)\)", cells[1])
    sizes = family.parameters
    assert [name for name, _ in stated] == list(sizes.ranges)
    for name, text in stated:
        numbers = re.findall(r"2\^-[0-9]+|[0-9.]+(?:e-?[0-9]+)?", text)
        low, high = (
            2.0 ** int(number[2:]) if number.startswith("2^") else float(number)
            for number in numbers
        )
        assert (low, high) == sizes.ranges[name]
    assert cells[2] == f"`{sizes.default.name}={sizes.default.value:g}`"
    probes = re.search(r"`num_probes` 1 to ([0-9]+)", cells[3])
    assert (int(probes[1]) if probes else 0) == sizes.max_probes


def test_the_sizes_of_ribbon_filters_are_what_sizing_says() -> None:
    """Predictions, header and checksum with them; within what the page states of predictions."""
    page = (ROOT / "docs/families.md").read_text()
    section = page.partition("## What bumped-ribbon takes\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| ([0-9,]+) \| (.*) \|$", section, re.MULTILINE)
    assert len(table) == 5
    for keys, cells in table:
        n = int(keys.replace(",", ""))
        whole = 8 * header.OVERHEAD / n
        *ribbons, fuse = cells.split(" | ")
        for cell, fpr in zip(ribbons, (0.3, 0.1, 0.01, 0.001, 1e-6), strict=True):
            bits, times = map(float, re.findall(r"[0-9.]+", cell))
            predicted = sizing.bits_per_key("bumped-ribbon", n=n, fpr=fpr) + whole
            assert bits == pytest.approx(predicted, rel={1000: 0.05, 10_000: 0.02}.get(n, 0.01))
            assert times == pytest.approx(bits / sizing.lower_bound(fpr), abs=0.006)
        predicted = sizing.bits_per_key("binary-fuse", n=n) + whole
        assert float(fuse.split()[0]) == pytest.approx(predicted, abs=0.03)


@pytest.mark.filterwarnings("ignore:a blocked filter at bits_per_key=24")
def test_the_comparisons_in_words_hold() -> None:
    """ "less than a third", "twice", "five times", and the sizes and rates beside them."""
    million = 1_000_000
    fuse, size = sizing.fpr("binary-fuse", n=million), sizing.bits_per_key("binary-fuse", n=million)
    for family in ("classic", "blocked"):
        assert fuse < sizing.fpr(family, n=million, bits_per_key=size) / 3
    for n, stated in ((1000, 11.8), (10_000, 10.1), (million, 9.0)):
        whole = sizing.bits_per_key("binary-fuse", n=n) + 8 * header.OVERHEAD / n
        assert whole == pytest.approx(stated, abs=0.05)
    assert sizing.bits_per_key("xor", n=million) == pytest.approx(9.85, abs=0.005)
    for n, stated in ((100, 0.207), (1000, 0.107), (10_000, 0.017)):
        fuse, ours = (sizing.bits_per_key(family, n=n) for family in ("binary-fuse", "xor"))
        assert 1 - ours / fuse == pytest.approx(stated, abs=0.0005)
    page = " ".join((ROOT / "docs/choosing.md").read_text().split())
    assert f"always from {NEVER_FROM:,} keys on" in page
    assert f"From {SMALLER_FROM} to {SMALLER_TO:,} keys it is `xor`" in page
    for bits, times in ((10, 1.2), (16, 1.8), (24, 5.4)):
        ratio = sizing.fpr("blocked", bits_per_key=bits) / sizing.fpr("classic", bits_per_key=bits)
        assert ratio == pytest.approx(times, rel=0.05)
    assert sizing.fpr("leveldb", n=10, bits_per_key=10) == pytest.approx(0.013, rel=0.03)
    for n in (100_000, 200_000, 500_000, million):
        assert 0.012 < sizing.fpr("leveldb", n=n, bits_per_key=10) < 0.015


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page: Path) -> set[str]:
    """What links may name behind ``#`` on a page: its headings, as GitHub makes names of them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.DOTALL)
    found: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found[re.sub(r"[^\w\- ]", "", words).replace(" ", "-")] += 1
    again = {f"{name}-{number}" for name in found for number in range(1, found[name])}
    return {*found, *again}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([a-z-]+\.md)", index))
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert named == there - {"README.md"}


def test_the_c_door_page_states_the_struct_of_the_header(tmp_path: Path) -> None:
    """Offsets and kinds by the compiler's word, and the page's function compiles as strict C."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    page = (ROOT / "docs/c-door.md").read_text()
    fields = re.findall(r"^\| (\d+) \| `.*?(\w+)(?:\)\(.*\))?` \| ", page, re.MULTILINE)[:6]
    assert [name for _, name in fields[:4]] == ["struct_size", "digest_kind", "digest_seed", "self"]
    assert [name for _, name in fields[4:]] == ["probe", "probe_digest"]
    kinds = re.findall(r"^\| (\d) \| (?:<!-- .*? -->)?`", page, re.MULTILINE)[-6:]
    claims = [f"offsetof(lsm_probe_v1, {name}) == {offset}" for offset, name in fields]
    names = ("XXH3_64", "XXPH3_64", "LEVELDB", "ROCKSDB", "CASSANDRA", "NONE")
    claims += [f"LSM_DIGEST_{name} == {kind}" for name, kind in zip(names, kinds, strict=True)]
    program = "".join(f'_Static_assert({claim}, "{claim}");\n' for claim in claims)
    source = tmp_path / "door.c"
    source.write_text(blocks("docs/c-door.md", "c")[0] + program)
    include = f"-I{ROOT / 'filters/kernels/native'}"
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", include]
    compiled = subprocess.run(
        [compiler, *strict, str(source)], capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr
