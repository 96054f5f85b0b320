"""A family from outside is seen wherever there are families, and what it lacks is missed.

``tests/outside`` is all that a family is in code: its page with its record, its class in either
kernel, its policy. It lacks what a family has beside that: golden files, documents, a reader that
was written from them, hostile bytes. For each of these a test has to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.effort import effort
from tests.filters.cases import needs_native

pytestmark = [effort("full"), needs_native]
ROOT = Path(__file__).parents[1]

SEEN_BY = {
    "tests.filters.test_c_door",
    "tests.filters.test_chosen_keys",
    "tests.filters.test_damage",
    "tests.filters.test_digests",
    "tests.filters.test_files",
    "tests.filters.test_manners",
    "tests.filters.test_native_memory",
    "tests.filters.test_no_false_negatives",
    "tests.filters.test_over_filling",
    "tests.filters.test_packed_keys",
    "tests.filters.test_shape",
    "tests.filters.test_sizing",
    "tests.filters.test_twins",
    "tests.policies.test_block",
    "tests.policies.test_contract",
    "tests.policies.test_verified",
    "tests.lsm.test_metamorphic",
}
"""Where it passes what every family passes."""

MISSED_BY = {
    "its class among those of the readable kernel": "test_every_kernel_has_every_family",
    "golden files": "test_every_family_has_golden_files",
    "hostile bytes": "test_the_corpus_has_what_is_read_and_what_is_refused",
    "a reader of its bytes": "test_the_independent_reader_answers_as_the_code_does",
    "a row of README": "test_the_tables_name_every_policy_and_every_structure",
    "a row of its sizing parameters": "test_ranges_and_defaults_are_those_of_the_code",
    "rows of the configuration": "test_the_table_lists_exactly_the_parameters_of_each_policy",
    "a name among those that errors suggest": "test_users_see_the_errors_of_the_page",
}
"""What it lacks, and the test that says so."""

ABOUT_BYTES = {"tests.filters.test_hostile_bytes", "tests.policies.test_block_format"}
"""Where more than one test misses the same."""

ELSEWHERE = {
    # An interpreter that is started without it, and a class that is compiled itself.
    "test_another_process_reads",
    "test_holds_in_another_process_with_another_hash_seed",
    "test_what_was_never_built_does_not_crash",
    "test_nobody_sees_answers_before_they_are_there",
    "test_compiled_classes_are_not_made_by_calling_them",
    "test_both_kernels_have_the_same_names",
    "test_what_both_kernels_say_about_themselves_is_the_same",
}
"""What cannot be true of a family that is only added while tests run."""


@attrs.frozen
class Ran:
    """One test that ran."""

    module: str
    name: str
    passed: bool

    @property
    def function(self) -> str:
        return "test_" + self.name.partition("test_")[2].partition("[")[0]


def ran(report: Path) -> Iterator[Ran]:
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        failed = any(each.tag in ("failure", "error") for each in case)
        where = str(case.get("classname"))
        module, _, cls = where.partition(".Test")
        yield Ran(module, cls + str(case.get("name")), not failed)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    report = tmp_path_factory.mktemp("outside") / "report.xml"
    chosen = " or ".join(["outside", *MISSED_BY.values()])
    files = ["tests/filters", "tests/policies", "tests/lsm/test_metamorphic.py"]
    files += ["tests/test_docs.py", "tests/test_golden.py"]
    command = [sys.executable, "-m", "pytest", "-p", "tests.outside", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, "-q", "--no-header", "--tb=no", f"--junitxml={report}", "-k", chosen, *files],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return list(ran(report))


def test_it_is_seen_wherever_there_are_families(results: list[Ran]) -> None:
    seen = {each.module for each in results if each.passed and "utside" in each.name}
    assert seen >= SEEN_BY


@pytest.mark.parametrize("lacking", MISSED_BY)
def test_what_it_lacks_is_missed(results: list[Ran], lacking: str) -> None:
    told = [each for each in results if each.function == MISSED_BY[lacking]]
    assert told
    assert not all(each.passed for each in told)


def test_nothing_else_fails(results: list[Ran]) -> None:
    excused = {*MISSED_BY.values(), *ELSEWHERE}
    failed = {each.function for each in results if not each.passed} - excused
    assert failed <= {each.function for each in results if each.module in ABOUT_BYTES}
