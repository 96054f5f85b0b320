"""Fixtures of the command's tests: a small database, and the command run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lsm
import policies
from lsm.cli.program import program

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """The command: ``run("get", path, "key", status=1)``, its status checked."""

    def invoke(*arguments: object, status: int = 0, input: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(program, [str(each) for each in arguments], input=input)
        assert result.exit_code == status, (result.output, result.exception)
        return result

    return invoke


ENTRIES = {
    b"": b"empty",
    b"user:1": b"Ada",
    b"user:2": "Zoë".encode(),
    b"user:3": b"\xff\x00raw",
    b"back\\slash": b"a\tb\nc",
    b"\xfe\xff": b"not UTF-8",
    "naïve".encode(): b"",
}
"""Entries of every kind that text has trouble with."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A database of these entries, some in a table and some in the log."""
    path = tmp_path / "store"
    with lsm.DB(path, create_if_missing=True, filter_policy=policies.create("blocked")) as db:
        for number, (key, value) in enumerate(ENTRIES.items()):
            db.put(key, value)
            if number == 3:
                db.flush()
    return path


def snapshot(path: Path) -> dict[str, bytes]:
    """Every file below a directory, with its bytes."""
    files = (each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path)): each.read_bytes() for each in files}
