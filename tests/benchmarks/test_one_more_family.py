"""A family that is added from outside takes part in everything, without another line anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interpreter import fresh

RECORD = """
import attrs
from filters import classic, families

families.add(attrs.evolve(
    classic.RECORD, name="echo", number=99, policy="echo_policy:EchoPolicy",
    module="filters.kernels.{kernel}.classic", purpose="to be heard twice",
    examples=({"bits_per_key": 12},),
))
"""
POLICY = """
import attrs
from policies.builtin import SeededPolicy

@attrs.frozen(kw_only=True)
class EchoPolicy(SeededPolicy, family="echo"):
    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None
"""
LOOKED_AT = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import echo_record

import attrs
from benchmarks import choosing, costs, tables
from benchmarks.filters import FiltersPart, contenders
from benchmarks.filters.settings import Settings
from benchmarks.kernels import KernelsPart, all_cases
from benchmarks.kernels.bench import Settings as KernelSettings
from benchmarks.levels.configurations import all_configurations, described
from benchmarks.levels.settings import Settings as LevelSettings
from benchmarks.record import Record
from benchmarks.report import families
from tests.benchmarks.example_record import example_record

settings = Settings(
    counts={"random": (1000,)}, timed_keys=100, repeats=1, at_least_seconds=0, memory_from=10**9
)
settings = attrs.evolve(settings, sweep_keys=1000)
part, found = FiltersPart(), {}
units = part.units(settings)
found["subjects"] = [unit.row.subject for unit in units if unit.row.subject.startswith("echo")]
with part.bench(settings, Path(sys.argv[1])) as bench:
    [unit] = [unit for unit in units if unit.row.subject == "echo bits_per_key=10"]
    found["rows"] = [[row.name, row.verdict, row.value] for row in unit.run(bench)]
found["kernels"] = [
    case.column for case in all_cases(KernelSettings()) if case.row.name == "echo"
]
found["look"] = [families.colour("echo"), families.mark_of("echo")]
found["looks"] = [[families.colour(name), families.mark_of(name)] for name in
                  ("blocked", "classic", "cassandra")]
[configuration] = [
    each for each in all_configurations(LevelSettings()) if each.name.startswith("echo")
]
counts = {1: 100, 2: 400}
found["configuration"] = [configuration.name, described(configuration.choose(counts), counts)]
record = Record.read(costs.RECORD)
found["unmeasured"] = "echo" in costs.costs(record)
echoed = [
    attrs.evolve(row, subject="echo bits_per_key=10")
    for row in record.rows if row.subject == "classic bits_per_key=10"
]
cost = costs.costs(attrs.evolve(record, rows=[*record.rows, *echoed]))
found["cost"] = [cost["echo"], cost["classic"]]
found["drawn"] = "echo" in choosing.drawing() and any("`echo`" in row for row in choosing.table())
found["example"] = sorted({
    row.subject for row in example_record().rows if row.subject.startswith("echo")
})
found["pages"] = {page: tables.written(page).count("echo") for page in tables.PAGES}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What benchmarks make of it, in an interpreter to which it was added first."""
    directory: Path = tmp_path_factory.mktemp("echo")
    (directory / "echo_record.py").write_text(RECORD)
    (directory / "echo_policy.py").write_text(POLICY)
    done = fresh(LOOKED_AT, str(directory))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_a_subject_larger_too_and_swept(found: Any) -> None:
    sizes = ("10", "16", "4", "6", "8", "12", "14", "20", "24")
    assert found["subjects"] == [f"echo bits_per_key={size}" for size in sizes]


def test_it_is_measured_like_the_others(found: Any) -> None:
    rows = {name: (verdict, value) for name, verdict, value in found["rows"]}
    assert rows["false negatives"][1] == 0
    assert rows["false-positive rate"][0] == "as expected"
    assert {"bits per key", "build", "one key, miss, in order", "buffer, miss"} <= set(rows)
    assert found["kernels"] == ["build", "hit", "miss", "list", "buffer"]


def test_it_has_a_look_of_its_own(found: Any) -> None:
    assert found["look"][0] != "f-other"
    assert found["look"] not in found["looks"]


def test_it_is_a_configuration_of_levels(found: Any) -> None:
    assert found["configuration"] == ["echo 10", "1-2 echo bits_per_key=10"]


def test_it_has_a_cost_once_it_was_measured(found: Any) -> None:
    assert not found["unmeasured"]
    assert found["cost"][0] == found["cost"][1]
    assert found["drawn"]


def test_it_is_in_every_table_and_every_list_of_the_documents(found: Any) -> None:
    assert found["pages"] == {
        "README.md": 1,
        "docs/families.md": 2,
        "docs/choosing.md": 1,
        "docs/configuration.md": 4,  # three parameters, and a message with all names
        "docs/block-format.md": 1,
        "docs/family-formats.md": 1,
        "docs/c-door.md": 1,
        "docs/cookbook.md": 0,  # programs, and what they take
        "examples/lsm.toml": 1,
        "docs/placement.md": 0,  # no family is named there but those that are chosen
        "docs/benchmarks.md": 0,
        "docs/metrics.md": 0,
        "docs/kernels.md": 0,  # what was measured, of families that were there
        "docs/engine-speed.md": 0,
        "docs/plugins.md": 2,
    }


def test_it_is_in_the_record_that_charts_are_tested_with(found: Any) -> None:
    assert "echo bits_per_key=10" in found["example"]
