"""Modules of somebody else's in the place of the packages beside the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def imported(at: Path, program: str = "import lsm", *paths: Path) -> str:
    """The last line of what a program says on stderr that is started in a directory."""
    found = subprocess.run(
        [sys.executable, "-B", "-c", program],
        capture_output=True,
        text=True,
        cwd=at,
        env={
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "PYTHONPATH": os.pathsep.join(map(str, (at, *paths, ROOT))),
        },
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    return (found.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("name", ["filters", "policies"])
def test_a_module_of_the_users_own_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    module = tmp_path / f"{name}.py"
    module.write_text("import lsm\nprint('ran', file=__import__('sys').stderr)\n")
    said = imported(tmp_path)
    assert said.startswith(f"ImportError: lsm needs its own package {name}, and something else")
    assert f"comes before it on sys.path: {module}." in said
    assert f"rename {module}, or start Python elsewhere" in said


def test_a_program_of_that_name_may_be_run_itself(tmp_path: Path) -> None:
    (tmp_path / "filters.py").write_text("import lsm\n")
    said = imported(tmp_path, "import runpy; runpy.run_path('filters.py', run_name='__main__')")
    assert f"rename {tmp_path / 'filters.py'}" in said


@pytest.mark.parametrize("name", ["filters", "policies"])
@pytest.mark.parametrize("text", ["", "raise ValueError('of its own')", "import lsm; lsm.DB"])
def test_a_package_of_somebody_elses_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).mkdir()
    init = tmp_path / name / "__init__.py"
    init.write_text(text)
    said = imported(tmp_path)
    assert said.startswith("ImportError: lsm needs its own package")
    assert str(init) in said


def test_one_that_was_imported_before_is_named(tmp_path: Path) -> None:
    (tmp_path / "filters.py").write_text("")
    said = imported(tmp_path, "import filters, lsm")
    assert str(tmp_path / "filters.py") in said


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A place with all three packages, as they are installed."""
    place = tmp_path / "site"
    for package in ("filters", "policies", "lsm"):
        shutil.copytree(ROOT / package, place / package, ignore=shutil.ignore_patterns("*.so"))
    return place


def test_a_distribution_that_has_taken_the_place_is_named(copied: Path, tmp_path: Path) -> None:
    (copied / "filters" / "__init__.py").write_text("def apply(): ...\n")
    info = copied / "strange_filters-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-filters\nVersion: 1.0\n")
    (info / "RECORD").write_text("filters/__init__.py,,\n")
    (info / "top_level.txt").write_text("filters\n")
    said = imported(copied, "import lsm")
    assert f"has taken its place: {copied / 'filters' / '__init__.py'}" in said
    assert "strange-filters" in said
    assert "install lsm-filters again" in said


def test_a_package_that_is_missing_is_named(copied: Path) -> None:
    shutil.rmtree(copied / "policies")
    found = subprocess.run(
        [sys.executable, "-B", "-I", "-c", f"import sys; sys.path.insert(0, {str(copied)!r})\n"
         "sys.meta_path[:] = [each for each in sys.meta_path if 'editable' not in repr(each)]\n"
         f"sys.path[:] = [each for each in sys.path if each != {str(ROOT)!r}]\nimport lsm"],
        capture_output=True,
        text=True,
        cwd=copied,
        check=False,
    )  # fmt: skip
    assert "lsm needs its package policies, which is not installed beside it" in found.stderr


def test_our_own_are_taken_from_elsewhere_too(copied: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(copied / "filters", other / "filters")
    assert imported(copied, "import lsm; lsm.DB", other) == ""


def test_what_keeps_our_own_from_being_imported_comes_through(tmp_path: Path) -> None:
    said = imported(tmp_path, "import os; os.environ['LSM_KERNEL'] = 'none such'; import lsm")
    assert "LSM_KERNEL" in said
    assert "own package" not in said
