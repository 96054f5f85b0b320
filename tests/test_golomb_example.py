"""The larger example as its users have it: installed, configured, measured, read about."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.effort import by_effort
from tests.installed_example import EXAMPLES, Environment, counts

EXAMPLE = EXAMPLES / "golomb-coded-set"
CONFIGURATION = '[filters]\npolicy = "bip158.golomb"\nm = 1000\n'


@pytest.fixture
def installed(tmp_path: Path) -> Environment:
    """The example, installed."""
    return Environment.begun(tmp_path, EXAMPLE)


@pytest.mark.no_cover
def test_it_passes_its_own_tests(installed: Environment, tmp_path: Path) -> None:
    """In a copy; a quick run has the contract kept by the policy of its defaults alone."""
    tests = tmp_path / "golomb-coded-set" / "tests"
    shutil.copytree(EXAMPLE / "tests", tests, ignore=shutil.ignore_patterns("__pycache__"))
    left_out = by_effort(["-k", "not TestGolombPolicy or 784931"], [], [])
    finished = installed.test(tests, *left_out)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    tail = re.sub(r", \d+ deselected", "", finished.stdout.strip().splitlines()[-1])
    passed, skipped = counts(tail)
    assert passed > by_effort(400, 800, 800)
    assert skipped < 10


DATABASE = """
import lsm, sys
keys = [b"key%05d" % number for number in range(3000)]
with lsm.DB("db", create_if_missing=True, config="lsm.toml", write_buffer_size=65536) as db:
    for key in keys:
        db.put(key, b"value")
    db.compact_range()
    print("golomb_coded_set.lanes" in sys.modules)
with lsm.DB("db", config="lsm.toml") as db:
    print(sum(value is not None for value in db.get_many(keys)))
    print(sum(value is not None for value in db.get_many([key + b"!" for key in keys])))
    told = [table for level in db.filters() for table in level.tables]
    print({each.policy for each in told}, sum(each.num_keys for each in told))
"""


def test_a_database_has_its_filters(installed: Environment) -> None:
    (installed.path / "lsm.toml").write_text(CONFIGURATION)
    finished = installed.python(DATABASE)
    assert finished == ["True", "3000", "0", "{'bip158.golomb'} 3000"]


def test_without_numpy_it_makes_the_same_bytes(installed: Environment) -> None:
    code = """
import golomb_coded_set, sys
keys = [b"key%d" % number for number in range(1000)]
policy = golomb_coded_set.GolombPolicy().with_seed(7)
print(policy.create_filter(keys).hex(), "golomb_coded_set.lanes" in sys.modules)
"""
    [with_it] = installed.python(code)
    [without] = installed.python(f"import sys; sys.modules['numpy'] = None\n{code}")
    assert with_it.endswith(" True")
    assert without == with_it.removesuffix("True") + "False"


def test_the_command_and_the_benchmark_know_it(installed: Environment) -> None:
    listed = installed.run("-m", "lsm", "policies", "--json")
    assert listed.returncode == 0, listed.stderr
    told = {each["policy"]: each["purpose"] for each in json.loads(listed.stdout)}
    assert told["bip158.golomb"] == "a plug-in"
    measured = installed.run(
        *("-m", "benchmarks", "filters", "--quick", "--policy", "bip158.golomb:m=1000"),
        *("--keys", "integers", "--keys-count", "1500", "--directory", "run"),
    )
    assert measured.returncode == 0, measured.stderr
    rows = json.loads((installed.path / "run" / "record.json").read_text())["rows"]
    [rate] = [row for row in rows if row["name"] == "false-positive rate"]
    assert rate["subject"] == "bip158.golomb m=1000 p=9"
    assert rate["verdict"] == "as expected"


def test_the_program_of_its_page_runs(installed: Environment) -> None:
    page = (EXAMPLE / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert installed.python(program) == []
    [configuration] = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (installed.path / "lsm.toml").write_text(configuration)
    load = "import policies; print(*[each.name for each in policies.load('lsm.toml')])"
    assert installed.python(load) == ["blocked " * 5 + "bip158.golomb bip158.golomb"]


def test_the_figures_of_its_page_are_the_laws(installed: Environment) -> None:
    page = (EXAMPLE / "README.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", page, flags=re.MULTILINE)
    assert len(rows) == 3
    for m, measured, law in rows:
        code = (
            f"import golomb_coded_set as g; print(g.Parameters({m.replace(',', '')}).bits_per_key)"
        )
        [told] = installed.python(code)
        assert float(law) == pytest.approx(float(told), abs=0.005)
        assert float(measured) == pytest.approx(float(told), rel=0.001)


def test_the_package_is_complete(installed: Environment) -> None:
    """Every import is the standard library's, the project's, or declared."""
    assert installed.project["tool"]["setuptools"]["packages"] == ["golomb_coded_set"]
    assert [path.parent.name for path in EXAMPLE.rglob("*.py")].count("tests") == 5
    assert installed.project["project"]["dependencies"] == ["lsm-filters"]
    imported = {
        name
        for path in (EXAMPLE / "golomb_coded_set").glob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), flags=re.MULTILINE)
    }
    foreign = imported - set(sys.stdlib_module_names)
    assert foreign == {"attrs", "filters", "golomb_coded_set", "numpy", "policies"}
    assert installed.project["project"]["optional-dependencies"]["fast"] == ["numpy>=2.0"]
