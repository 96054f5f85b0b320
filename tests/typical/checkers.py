"""Type checkers, run over a program that is nowhere near this project's own settings for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def mypy(*programs: Path, version: str) -> str:
    """What ``mypy --strict`` says of programs in a directory of their own that use the project."""
    [directory] = {program.parent for program in programs}
    found = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"),
            *("--python-version", version, "--follow-imports=silent"),
            *("--cache-dir", str(directory / "cache"), *map(str, programs)),
        ],
        capture_output=True,
        text=True,
        cwd=directory,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    return found.stdout


def mypy_lines(told: str) -> list[int]:
    """The lines that have an error."""
    return [int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line]


def pyright(directory: Path, version: str) -> list[tuple[str, int]]:
    """The files and lines that pyright's strict mode finds an error in, in a directory."""
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "pythonVersion": version}
    (directory / "pyrightconfig.json").write_text(json.dumps(settings))
    found = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr + found.stdout
    return [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in json.loads(found.stdout)["generalDiagnostics"]
    ]


def copied(programs: Iterable[ModuleType], directory: Path) -> list[Path]:
    """The files of programs, where nothing else is."""
    return [Path(shutil.copy(str(program.__file__), directory)) for program in programs]
