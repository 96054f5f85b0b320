"""An example's distribution in a directory on the import path, as installing puts it there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


class Environment:
    """A directory on the import path that looks as if the example were installed in it."""

    def __init__(self, path: Path, example: Path) -> None:
        self.path = path
        self.example = example
        self.project: dict[str, Any] = tomllib.loads((example / "pyproject.toml").read_text())

    @classmethod
    def begun(cls, directory: Path, example: Path) -> Self:
        """A new one within a directory, with the example installed."""
        site = directory / "site"
        site.mkdir()
        environment = cls(site, example)
        environment.install()
        return environment

    @property
    def modules(self) -> list[str]:
        """The names of the files and directories that are packaged."""
        packaged = self.project["tool"]["setuptools"]
        files = [f"{module}.py" for module in packaged.get("py-modules", ())]
        return [*files, *packaged.get("packages", ())]

    def install(self) -> None:
        """Copy the modules that its pyproject.toml names, and write its metadata."""
        project = self.project["project"]
        for name in self.modules:
            copy = shutil.copy if name.endswith(".py") else shutil.copytree
            copy(self.example / name, self.path / name)
        name = project["name"].replace("-", "_")
        self.info = self.path / f"{name}-{project['version']}.dist-info"
        self.info.mkdir()
        lines = []
        for group, entries in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
        (self.info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (self.info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )

    def uninstall(self) -> None:
        """Remove the metadata and the modules."""
        shutil.rmtree(self.info)
        for name in self.modules:
            installed = self.path / name
            if installed.is_dir():
                shutil.rmtree(installed)
            else:
                installed.unlink()

    def run(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, where this package and the example can be imported."""
        paths = (self.path, ROOT)
        return subprocess.run(
            [sys.executable, "-B", *map(str, arguments)],
            cwd=self.path,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("LSM_")},
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
                "PYTEST_ADDOPTS": "",
                **env,
            },
            capture_output=True,
            text=True,
        )

    def python(self, code: str, **env: str) -> list[str]:
        """What a program prints, line by line."""
        finished = self.run("-c", code, **env)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout.splitlines()

    def test(self, tests: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Its own tests, away from this project's pytest configuration and conftest."""
        return self.run(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"),
            *(f"--rootdir={tests}", tests, *arguments),
        )


def counts(summary: str) -> tuple[int, int]:
    """How many tests passed and were skipped; nothing else happened."""
    last = summary.strip().splitlines()[-1].strip("= ")
    found = re.fullmatch(r"(\d+) passed(?:, (\d+) skipped)? in .*", last)
    assert found, summary
    return int(found[1]), int(found[2] or 0)
