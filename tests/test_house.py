"""The plan of the house: imports go down only, and importing loads nothing that is not needed."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from filters.families import every

ROOT = Path(__file__).parents[1]
FLOORS = ("filters", "policies", "lsm")
RUNTIME = {"attrs", "cramjam", "crc32c", "xxhash", "sortedcontainers", "pyfusefilter"}
RUNTIME |= {"typing_extensions"}  # for type checkers only
EXTRAS = {"prometheus_client", "opentelemetry"}  # of lsm.metrics, which nothing else imports


def imports_of(path: Path) -> Iterator[str]:
    """The top-level packages a module imports, at its top or within its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively, from {node.module}"
            yield str(node.module).partition(".")[0]


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_go_down_only(floor: str) -> None:
    above = set(FLOORS[FLOORS.index(floor) + 1 :]) | {"tests", "benchmarks", "examples"}
    for path in (ROOT / floor).rglob("*.py"):
        assert not above & set(imports_of(path)), path


@pytest.mark.parametrize("floor", FLOORS)
def test_only_declared_dependencies_are_imported(floor: str) -> None:
    allowed = RUNTIME | set(FLOORS) | set(sys.stdlib_module_names)
    if floor == "policies":
        # The contract suite for authors of plug-ins; nothing else in the package imports it.
        allowed |= {"pytest"}
    for path in (ROOT / floor).rglob("*.py"):
        # Who talks to an optional package, and who names its types for type checkers.
        extras = EXTRAS if path.parent.name == "metrics" else set()
        if path.is_relative_to(ROOT / "lsm" / "cli"):
            extras = {"click", "rich"}
        assert set(imports_of(path)) <= allowed | extras, path


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_an_optional_package_has_one_module_that_talks_to_it(package: str) -> None:
    talking = [
        path.name
        for path in (ROOT / "lsm").rglob("*.py")
        if package in imports_of(path) and path.name != "__init__.py"
    ]
    assert len(talking) == 1


WRITE_CORE = ("lsm.state", "lsm.installing", "lsm.background", "lsm.writer", "lsm.store")


@pytest.mark.parametrize("part", WRITE_CORE)
def test_the_parts_that_write_know_only_those_before_them(part: str) -> None:
    """As docs/house.md has it, what is imported for type checkers alone included."""
    tree = ast.parse((ROOT / f"{part.replace('.', '/')}.py").read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert not modules & set(WRITE_CORE[WRITE_CORE.index(part) :])


def test_pytest_stays_in_the_contract_suite() -> None:
    users = [path.name for path in (ROOT / "policies").glob("*.py") if "pytest" in imports_of(path)]
    assert users == ["testing.py"]


def test_families_know_nothing_of_files_and_configurations() -> None:
    for path in (ROOT / "filters").rglob("*.py"):
        assert not {"pathlib", "io", "tomllib", "json", "logging"} & set(imports_of(path)), path


def test_one_module_of_the_filters_floor_maps_files() -> None:
    users = [path.name for path in (ROOT / "filters").rglob("*.py") if "mmap" in imports_of(path)]
    assert users == ["files.py"]


IMPORT = """
import sys
before = set(sys.modules)
import filters, policies, lsm
loaded = set(sys.modules) - before
print(*sorted(loaded))
"""


def test_importing_loads_neither_numpy_nor_metadata_nor_plugins() -> None:
    fresh = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{IMPORT}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = fresh.stdout.split()
    assert "policies.registry" in loaded
    heavy = ("numpy", "importlib.metadata", "pyfusefilter", "cffi", "_cffi_backend")
    heavy += (
        "pytest",
        "hypothesis",
        "plyvel",
        "rocksdict",
        "crc32c",
        "cramjam",
        "policies.testing",
        "prometheus_client",
        "opentelemetry",
        "lsm.metrics",
    )
    for module in loaded:
        assert not module.startswith(heavy), module


def test_every_module_of_the_filters_floor_has_its_place_on_the_map() -> None:
    """docs/house.md names each file that is no family's, and none that is gone."""
    page = (ROOT / "docs" / "house.md").read_text()
    table = page.partition("## What lies where")[2].partition("\n## ")[0]
    named = set(re.findall(r"`((?:kernels/)?[a-z_]+\.py)`", table))
    families = {name.replace("-", "_") + ".py" for name in every()}
    there = {path.name for path in (ROOT / "filters").glob("*.py")} - families
    assert named == there - {"__init__.py", "errors.py"} | {"kernels/fuse_library.py"}


def test_every_module_of_the_engine_has_its_place_on_the_map() -> None:
    page = (ROOT / "docs" / "house.md").read_text()
    section = page.partition("## The engine")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(?:kernels/python/)?([a-z_]+\.py)`", section))
    assert named == {path.name for path in (ROOT / "lsm").rglob("*.py")} - {"__init__.py"}


def test_every_source_of_the_engines_native_kernel_has_its_place_on_the_map() -> None:
    page = (ROOT / "docs" / "house.md").read_text()
    section = page.partition("## The engine")[2].partition("\n## ")[0]
    native = ROOT / "lsm" / "kernels" / "native"
    readable = {path.stem for path in (ROOT / "lsm/kernels/python").glob("[a-z]*.py")}
    alone = {path.name for path in native.glob("*.pyx") if path.stem not in readable}
    headers = {path.name for path in native.glob("*.h")}
    declarations = {
        path.name
        for path in native.glob("*.pxd")
        if not path.with_suffix(".pyx").exists() and not path.with_suffix(".h").exists()
    }
    sources = alone | headers | declarations
    assert set(re.findall(r"`([a-z0-9_]+\.(?:h|pyx|pxd))`", section)) == sources


def test_every_module_of_the_benchmark_has_its_place_on_the_map() -> None:
    page = (ROOT / "docs" / "house.md").read_text()
    section = page.partition("## The benchmark")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z][a-z_]*(?:\.py|/))`", section))
    there = {path.name for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    rooms = {f"{path.parent.name}/" for path in (ROOT / "benchmarks").glob("*/__init__.py")}
    assert named == there | rooms | {"benchmarks/"}


NATIVE = ROOT / "filters" / "kernels" / "native"


def test_every_module_of_the_readable_kernel_has_its_twin() -> None:
    readable = {path.stem for path in (ROOT / "filters/kernels/python").glob("[a-z]*.py")}
    assert readable <= {path.stem for form in ("*.pyx", "*.h") for path in NATIVE.glob(form)}


def test_every_source_of_the_native_kernel_has_its_place_on_the_map() -> None:
    page = (ROOT / "docs" / "house.md").read_text()
    table = page.partition("## The native kernel")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+\.(?:h|pyx|pxd))`", table))
    modules = {path.name for path in NATIVE.glob("*.pyx")}
    # A .pxd beside a .pyx or a .h of its name declares that, and needs no line of its own.
    alone = {
        path.name
        for path in NATIVE.glob("*.pxd")
        if not path.with_suffix(".pyx").exists() and not path.with_suffix(".h").exists()
    }
    described = modules - {"chain.pyx"} | {"chain.pxd"} | alone
    assert named == described | {path.name for path in NATIVE.glob("*.h")}


def test_a_wheels_tests_take_along_what_they_import() -> None:
    """Of the modules beside ``tests/filters``, in cibuildwheel's list of what is copied."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    copied = [ROOT / each for each in settings["test-sources"]]
    files = [each for each in copied if each.suffix == ".py"]
    files += [path for each in copied if each.is_dir() for path in each.rglob("*.py")]
    for path in files:
        for name in re.findall(r"^(?:from|import) (tests\.[a-z_.]+)", path.read_text(), re.M):
            module = ROOT / f"{name.replace('.', '/')}.py"
            assert module in files or module.with_suffix("") in copied, f"{path}: {name}"
