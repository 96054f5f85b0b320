"""docs/command.md has the help and the output of today, and leaves out no command."""

from __future__ import annotations

import re

from click.testing import CliRunner

from lsm.cli.program import program
from tests.lsm.cli import page

RENEW = "run: python -m tests.lsm.cli.page"


def test_the_page_has_the_help_of_every_command() -> None:
    text = page.PAGE.read_text()
    assert re.findall("<!-- help: ([a-z-]+) -->", text) == list(program.commands)
    assert page.with_help(text) == text, RENEW


def test_its_examples_print_what_it_says() -> None:
    text = page.PAGE.read_text()
    assert page.with_output(text) == text, RENEW


def test_every_command_has_an_example() -> None:
    examples = "".join(re.findall(r"```console\n(.*?)```", page.PAGE.read_text(), re.DOTALL))
    for name in program.commands:
        assert f"lsm {name} " in examples or f"lsm {name}\n" in examples, name


def test_help_is_no_wider_than_a_terminal() -> None:
    for name in program.commands:
        assert max(map(len, page.help_of(name).splitlines())) <= 80, name


def test_the_list_of_commands_breaks_off_nowhere() -> None:
    told = CliRunner().invoke(program, ["--help"], terminal_width=80).output
    listed = told.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(program.commands)
    assert not any("..." in line for line in listed)
