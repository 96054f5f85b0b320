"""Questions before something is lost: asked on a terminal, refused without one."""

from __future__ import annotations

import sys

import click

from lsm.cli.mistakes import Failure


def has_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def check(yes: bool) -> None:
    """Failure if somebody has to be asked, and nobody can be."""
    if not yes and not has_terminal():
        raise Failure(
            "there is no terminal to ask on whether to go on: say --yes, or look with --dry-run"
        )


def confirm(question: str, yes: bool) -> None:
    """Return if somebody says yes, or has said so by ``--yes``; click.Abort if not."""
    check(yes)
    if not yes:
        sys.stdout.flush()
        click.confirm(question, abort=True, err=True)
