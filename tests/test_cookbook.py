"""Every program of the cookbook runs by itself, and finds what it says it finds."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lsm
from tests.effort import by_effort, effort

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "cookbook.md"
PROGRAMS = sorted((ROOT / "docs" / "cookbook").glob("*.py"))

# Rates are of so many absent keys that no program fails by chance.
COUNT = by_effort(20_000, 200_000, 1_000_000)


def needed(program: str) -> Iterator[str]:
    """The modules that a program cannot do without."""
    for node in ast.parse(program).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def run(path: Path, *given: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-W", "error", str(path), *given],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
    )


@pytest.mark.no_cover
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run(path: Path) -> None:
    for module in needed(path.read_text()):
        pytest.importorskip(module)
    finished = run(path, str(COUNT))
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    [line] = finished.stdout.splitlines()
    assert line


BROKEN = """
import filters.kernels.python as kernel

def forgetful(ask):
    def asked(self, *given, **more):
        self._salt = 1
        return ask(self, *given, **more)
    return asked

for cls in (kernel.BlockedBloomFilter, kernel.BinaryFuseFilter, kernel.CuckooFilter):
    cls.might_contain = forgetful(cls.might_contain)
    cls.might_contain_many = forgetful(cls.might_contain_many)
kernel.ScalableBloomFilter.add = lambda self, key: True
"""


WITH_FILTERS = [path for path in PROGRAMS if path.stem != "from_plyvel"]


@effort("full")
@pytest.mark.no_cover
@pytest.mark.parametrize("path", WITH_FILTERS, ids=lambda path: path.stem)
def test_programs_notice_filters_that_lose_keys(path: Path, tmp_path: Path) -> None:
    """What stands in ``sitecustomize`` holds for processes that they start, too."""
    for module in needed(path.read_text()):
        pytest.importorskip(module)
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    finished = run(path, "1000", PYTHONPATH=paths, LSM_KERNEL="python")
    assert finished.returncode == 1
    assert finished.stderr.splitlines()[-1] == "AssertionError"


CLUSTER = """
import dask_partitions
from distributed import Client

if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        dask_partitions.main(20_000)
"""


@effort("full")
@pytest.mark.no_cover
def test_a_cluster_runs_the_program_of_dask(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    path = tmp_path / "cluster.py"
    path.write_text(CLUSTER)
    paths = os.pathsep.join((str(ROOT), str(ROOT / "docs" / "cookbook")))
    finished = run(path, PYTHONPATH=paths)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("4 partitions; ")


def test_the_page_has_every_program() -> None:
    """Their text is compared where all pages are: ``test_docs.py``."""
    page = PAGE.read_text(encoding="utf-8")
    for path in PROGRAMS:
        assert page.count(f"<!-- program: {path.stem} -->") == 1


def test_the_names_of_plyvel_are_there() -> None:
    plyvel = pytest.importorskip("plyvel")
    for theirs, ours in ((plyvel, lsm), (plyvel.DB, lsm.DB)):
        names = {name for name in dir(theirs) if not name.startswith("_")}
        assert not {name for name in names if not hasattr(ours, name)}
