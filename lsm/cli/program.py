"""The command itself: its group, what all of its commands share, and which there are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import rich  # noqa: F401 - whoever lacks it is told so before a command begins

import lsm as engine
from lsm.cli import advising, bench, care, entries, exchange, inspecting, look, mistakes

COMMANDS = (
    *entries.COMMANDS,
    *exchange.COMMANDS,
    *look.COMMANDS,
    *inspecting.COMMANDS,
    *advising.COMMANDS,
    *care.COMMANDS,
    *bench.COMMANDS,
)


class Program(click.Group):
    """A group of commands whose mistakes end in one line each."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that is named."""
        with mistakes.told(mistakes.wants_traceback(ctx.params["traceback"])):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are told of."""
        return list(self.commands)


@click.group(
    cls=Program,
    name="lsm",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 all is well; 1 nothing was found, or problems were; 2 it was asked for "
    "wrongly, or could not be done; 130 it was interrupted.",
)
@click.version_option(engine.__version__, prog_name="lsm")
@click.option("--traceback", is_flag=True, help="Show where an error comes from, as LSM_DEBUG=1.")
def program(traceback: bool) -> None:
    """Look after LSM stores: their entries, their filters, their files."""


for _command in COMMANDS:
    program.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or the process's; its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show is escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        program.main(arguments, prog_name="lsm")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else mistakes.FAILED
