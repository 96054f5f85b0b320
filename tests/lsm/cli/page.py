"""docs/command.md: its help and its examples, as the command prints them.

``python -m tests.lsm.cli.page`` writes both into the page. Examples are blocks of ``console`` that
are run one after the other in one directory, where ``users.db`` is; what stands behind ``<!-- as
measured -->`` differs from run to run: it is not compared, and run only with ``--measured``.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest import mock

import click
from click.testing import CliRunner

import lsm
import policies
from filters import hashing
from lsm.cli.program import program

PAGE = Path(__file__).parents[3] / "docs" / "command.md"
_MARK = re.compile(r"<!-- help: (?P<name>[a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)
_CONSOLE = re.compile(r"(?P<before><!-- as measured -->\n)?```console\n(?P<body>.*?)```", re.DOTALL)
_WIDTH = 80


def help_of(name: str) -> str:
    """What ``lsm NAME --help`` prints."""
    command = program.commands[name]
    parent = program.make_context("lsm", [], resilient_parsing=True)
    context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
    return command.get_help(context)


def with_help(text: str) -> str:
    """The page with the help of today."""
    return _MARK.sub(
        lambda it: (
            f"<!-- help: {it['name']} -->\n```text\n{help_of(it['name'])}\n```\n<!-- end -->"
        ),
        text,
    )


def with_output(text: str, measured: bool = False) -> str:
    """The page with what its examples print, run anew; with new measurements if so asked."""

    def rerun(found: re.Match[str]) -> str:
        before = found["before"] or ""
        return found[0] if before and not measured else before + _run(found["body"])

    with _directory():
        return _CONSOLE.sub(rerun, text)


@contextmanager
def _directory() -> Iterator[None]:
    """An empty directory to run in, where every run draws the same seeds."""
    seeds = random.Random(1)

    def drawn() -> int:
        return seeds.getrandbits(64)

    with (
        tempfile.TemporaryDirectory() as directory,
        chdir(directory),
        mock.patch.object(hashing, "random64", drawn),
        mock.patch.object(secrets, "token_bytes", seeds.randbytes),
        mock.patch.dict(os.environ, {"COLUMNS": str(_WIDTH)}),
    ):
        _make_users()
        yield


def _make_users() -> None:
    """A store whose filters know no seed, so that both kernels write the same."""
    rocksdbs = policies.create("rocksdb")
    with lsm.DB("users.db", create_if_missing=True, filter_policy=rocksdbs) as db:
        users = ((b"user:%08d" % number, b"name-%d" % number) for number in range(20_000))
        lsm.bulk.load(db, users)
        for number in range(0, 20_000, 40):
            db.put(b"user:%08d" % number, b"renamed-%d" % number)
        db.flush()
        db.put(b"user:00000007", b"Ada")


def _run(body: str) -> str:
    lines = []
    for line in body.splitlines():
        if line.startswith("$ "):
            lines.append(line)
            lines += _printed(line.removeprefix("$ "))
    return "```console\n" + "".join(f"{line}\n" for line in lines) + "```"


def _printed(line: str) -> list[str]:
    """What a line prints; it is a command, perhaps with another's output for its input."""
    line, _, target = line.partition(" > ")
    *sources, last = (shlex.split(part) for part in line.split(" | "))
    fed = b""
    for words in (*sources, last):
        if words[0] == "printf":
            fed = words[1].encode().decode("unicode_escape").encode("latin-1")
        else:
            assert words[0] == "lsm", words
            result = CliRunner().invoke(program, words[1:], input=fed)
            fed = result.output_bytes if words is last else result.stdout_bytes
    if target:
        Path(target).write_bytes(fed)
        return []
    text = fed.decode().replace(os.getcwd(), "/srv")
    return text.splitlines()


if __name__ == "__main__":
    PAGE.write_text(with_output(with_help(PAGE.read_text()), "--measured" in sys.argv))
