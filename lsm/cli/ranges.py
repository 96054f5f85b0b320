"""A part of a database: the options that name it, and the iterator over it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs
import click

import lsm
from lsm.arguments import prefix_successor
from lsm.cli import keys
from lsm.cli.keys import Form
from lsm.cli.options import Command


@attrs.frozen(kw_only=True)
class Range:
    """The entries whose keys begin with a prefix, or lie from a start up to a stop, this excluded.

    The first so many of them, of the last ones where ``reverse``.
    """

    prefix: bytes | None = None
    start: bytes | None = None
    stop: bytes | None = None
    limit: int | None = None
    reverse: bool = False

    def entries(self, db: lsm.DB) -> Iterator[tuple[bytes, bytes]]:
        """The keys with their values."""
        return self._iterate(db, include_value=True)

    def keys(self, db: lsm.DB) -> Iterator[bytes]:
        """The keys alone."""
        return self._iterate(db, include_value=False)

    @property
    def ends(self) -> tuple[bytes | None, bytes | None]:
        """A key that none is before, and one that none is behind."""
        if self.prefix is None:
            return self.start, self.stop
        return self.prefix, prefix_successor(self.prefix)

    def _iterate(self, db: lsm.DB, include_value: bool) -> Iterator[Any]:
        found = db.iterator(
            prefix=self.prefix,
            start=self.start,
            stop=self.stop,
            reverse=self.reverse,
            include_value=include_value,
            fill_cache=False,
        )
        return islice(found, self.limit)


def bounds(command: Command) -> Command:
    """``--prefix``, ``--start`` and ``--stop``, in the form of the keys."""
    for name, text in (
        ("--stop", "Only keys before this one."),
        ("--start", "Only keys from this one on."),
        ("--prefix", "Only keys that begin so."),
    ):
        command = click.option(name, metavar="KEY", help=text)(command)
    return command


def order(command: Command) -> Command:
    """``--limit`` and ``--reverse``."""
    command = click.option("--reverse", is_flag=True, help="The last keys first.")(command)
    return click.option("--limit", type=click.IntRange(min=0), help="No more than so many.")(
        command
    )


def of(
    key_form: Form,
    prefix: str | None,
    start: str | None,
    stop: str | None,
    limit: int | None = None,
    reverse: bool = False,
) -> Range:
    """The range that options name."""
    if prefix is not None and (start is not None or stop is not None):
        raise click.UsageError("--prefix names a range: leave out --start and --stop, or it")

    def parsed(name: str, given: str | None) -> bytes | None:
        try:
            return None if given is None else keys.parse(given, key_form)
        except click.BadParameter as error:
            raise click.BadParameter(error.message, param_hint=f"'--{name}'") from error

    return Range(
        prefix=parsed("prefix", prefix),
        start=parsed("start", start),
        stop=parsed("stop", stop),
        limit=limit,
        reverse=reverse,
    )
