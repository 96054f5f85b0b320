"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lsm.cli.keys import FORMS

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMS = ", ".join(FORMS)

path = click.argument("path", type=click.Path())

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")

yes = click.option("--yes", is_flag=True, help="Do not ask.")

dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be done.")

config = click.option(
    "--config",
    type=click.Path(dir_okay=False),
    help="A configuration, in place of the options that the database keeps.",
)

create = click.option("--create", is_flag=True, help="Create the database if there is none.")


def key_form(command: Command) -> Command:
    """``--keys``: how keys are written and shown."""
    return click.option(
        "--keys",
        "key_form",
        type=click.Choice(FORMS),
        default="text",
        metavar="FORM",
        help=f"How keys are written and shown: {_FORMS}.",
    )(command)


def forms(command: Command) -> Command:
    """``--keys`` and ``--values``: how both are written and shown."""
    values = click.option(
        "--values",
        "value_form",
        type=click.Choice(FORMS),
        default="text",
        metavar="FORM",
        help=f"How values are written and shown: {_FORMS}.",
    )
    return key_form(values(command))
