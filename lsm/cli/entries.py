"""Commands for entries: get, put, delete, scan, count."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO

import click

import lsm
from lsm.cli import keys, options, output, questions, ranges, records
from lsm.cli.keys import Form
from lsm.cli.mistakes import FOUND_NOTHING
from lsm.cli.progress import Meter

_BATCH_KEYS = 4096
# How often a command that counts looks at its watch.
_LOOK_EVERY = 4096


@contextmanager
def reading(path: str) -> Iterator[lsm.DB]:
    """A database that is only read: nothing in its directory changes."""
    with lsm.DB(path, read_only=True) as db:
        yield db


@click.command(short_help="Print the values of keys.")
@options.path
@click.argument("key", nargs=-1, required=True)
@options.forms
@click.option("--raw", is_flag=True, help="The value's bytes as they are, and nothing else.")
@options.as_json
@click.pass_context
def get(
    ctx: click.Context,
    path: str,
    key: tuple[str, ...],
    key_form: Form,
    value_form: Form,
    raw: bool,
    as_json: bool,
) -> None:
    """Print the value of KEY; of several keys a line each, with the key before it.

    The exit status is 1 if one of them has no value.
    """
    if raw and (as_json or len(key) > 1):
        raise click.UsageError("--raw is for the value of one key, and leaves out --json")
    wanted = [keys.parse(each, key_form) for each in key]
    with reading(path) as db:
        values = db.get_many(wanted)
    found = list(zip(wanted, values, strict=True))
    if as_json:
        output.document([_entry(each, value, key_form, value_form) for each, value in found])
    elif raw:
        sys.stdout.buffer.write(values[0] or b"")
    else:
        _print_values(found, key_form, value_form)
    if None in values:
        ctx.exit(FOUND_NOTHING)


def _entry(
    key: bytes, value: bytes | None, key_form: Form, value_form: Form
) -> dict[str, records.Word | None]:
    told = None if value is None else records.word(value, value_form)
    return {"key": records.word(key, key_form), "value": told}


def _print_values(
    found: list[tuple[bytes, bytes | None]], key_form: Form, value_form: Form
) -> None:
    for key, value in found:
        name = keys.show(key, key_form)
        if value is None:
            click.echo(f"lsm: {name}: not found", err=True)
        elif len(found) == 1:
            output.line(keys.show(value, value_form))
        else:
            output.line(f"{name}\t{keys.show(value, value_form)}")


@click.command()
@options.path
@click.argument("key")
@click.argument("value", required=False)
@options.forms
@click.option(
    "--file",
    type=click.File("rb"),
    help="The value is what this file has, as it is; - for standard input.",
)
@click.option("--sync", is_flag=True, help="Return when the value survives a loss of power.")
@options.create
@options.as_json
def put(
    path: str,
    key: str,
    value: str | None,
    key_form: Form,
    value_form: Form,
    file: BinaryIO | None,
    sync: bool,
    create: bool,
    as_json: bool,
) -> None:
    """Give KEY a VALUE."""
    name = keys.parse(key, key_form)
    if value is not None and file is None:
        data = keys.parse(value, value_form)
    elif file is not None and value is None:
        data = file.read()
    else:
        raise click.UsageError("a value is given as VALUE or by --file: one of them")
    with lsm.DB(path, create_if_missing=create) as db:
        db.put(name, data, sync=sync)
    if as_json:
        told = {"key": records.word(name, key_form), "value_bytes": len(data)}
        output.document({"path": path, **told})


@click.command(short_help="Delete keys, or the entries of a range.")
@options.path
@click.argument("key", nargs=-1)
@ranges.bounds
@options.key_form
@click.option("--sync", is_flag=True, help="Return when that survives a loss of power.")
@options.dry_run
@options.yes
@options.as_json
def delete(
    path: str,
    key: tuple[str, ...],
    prefix: str | None,
    start: str | None,
    stop: str | None,
    key_form: Form,
    sync: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete KEYs, all or none, or the entries of a range, in batches, once that is confirmed.

    A key that is not there is no error.
    """
    named = [each for each in (prefix, start, stop) if each is not None]
    if bool(key) == bool(named):
        raise click.UsageError("KEYs are deleted, or a range: give KEYs, or --prefix and such")
    wanted = [keys.parse(each, key_form) for each in key]
    within = ranges.of(key_form, prefix, start, stop)
    if named and not dry_run:
        questions.check(yes)
    with lsm.DB(path, read_only=dry_run) as db:
        if key:
            found = len(wanted) - db.get_many(wanted).count(None)
            if not dry_run:
                _delete_batch(db, wanted, sync)
        else:
            found = sum(1 for _ in within.keys(db))
            if not dry_run and found:
                questions.confirm(f"Delete {output.counted(found, 'entry')} of {path}?", yes)
                _delete_all(db, within.keys(db), sync)
    if as_json:
        output.document({"path": path, "dry_run": dry_run, "entries": found})
    elif dry_run or named:
        verb = "would delete" if dry_run else "deleted"
        output.line(f"{verb}: {output.counted(found, 'entry')}")


def _delete_batch(db: lsm.DB, wanted: Iterable[bytes], sync: bool) -> None:
    with db.write_batch(sync=sync) as batch:
        for key in wanted:
            batch.delete(key)


def _delete_all(db: lsm.DB, wanted: Iterable[bytes], sync: bool) -> None:
    """Delete keys in batches of some thousand, the last of them synced if that is wanted."""
    some = iter(wanted)
    batch = list(islice(some, _BATCH_KEYS))
    while batch:
        following = list(islice(some, _BATCH_KEYS))
        _delete_batch(db, batch, sync and not following)
        batch = following


@click.command()
@options.path
@ranges.bounds
@ranges.order
@options.forms
@click.option("--keys-only", is_flag=True, help="Leave out the values.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: one object for each.")
@click.pass_context
def scan(
    ctx: click.Context,
    path: str,
    prefix: str | None,
    start: str | None,
    stop: str | None,
    limit: int | None,
    reverse: bool,
    key_form: Form,
    value_form: Form,
    keys_only: bool,
    as_json: bool,
) -> None:
    """Print the entries of a range: the key, a tab, the value.

    The exit status is 1 if there are none.
    """
    wanted = ranges.of(key_form, prefix, start, stop, limit, reverse)
    is_empty = True
    with reading(path) as db:
        if keys_only:
            for key in wanted.keys(db):
                is_empty = False
                if as_json:
                    output.json_line(records.json_key(key, key_form))
                else:
                    output.line(keys.show(key, key_form))
        else:
            for key, value in wanted.entries(db):
                is_empty = False
                if as_json:
                    output.json_line(records.json_line(key, value, key_form, value_form))
                else:
                    output.line(f"{keys.show(key, key_form)}\t{keys.show(value, value_form)}")
    if is_empty:
        ctx.exit(FOUND_NOTHING)


@click.command()
@options.path
@ranges.bounds
@options.key_form
@options.as_json
def count(
    path: str,
    prefix: str | None,
    start: str | None,
    stop: str | None,
    key_form: Form,
    as_json: bool,
) -> None:
    """Print how many entries a range has."""
    wanted = ranges.of(key_form, prefix, start, stop)
    entries = key_bytes = value_bytes = 0
    with reading(path) as db, Meter("counting", None, "entries") as meter:
        for key, value in wanted.entries(db):
            entries += 1
            key_bytes += len(key)
            value_bytes += len(value)
            if entries % _LOOK_EVERY == 0:
                meter.reach(entries)
    if as_json:
        told = {"entries": entries, "key_bytes": key_bytes, "value_bytes": value_bytes}
        output.document({"path": os.fspath(path), **told})
    else:
        output.line(str(entries))


COMMANDS = (get, put, delete, scan, count)
