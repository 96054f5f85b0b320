"""Commands for all entries at once: dump, load."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import IO

import attrs
import click

import lsm
from lsm.cli import options, output, ranges, records
from lsm.cli.entries import reading
from lsm.cli.keys import Form
from lsm.cli.mistakes import Failure
from lsm.cli.output import counted
from lsm.cli.progress import Meter
from lsm.cli.records import FORMATS, Entry, Format, Forms

_STANDARD = "-"
_LOOK_EVERY = 1024
# A batch is written when it has so many bytes of keys and values, or so many entries.
_BATCH_BYTES = 1 << 20

_format = click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    help="JSON Lines or CSV; by default what the file's name ends in, or else jsonl.",
)


@click.command(short_help="Write entries as JSON Lines or CSV.")
@options.path
@click.option("--output", "-o", "target", type=click.Path(dir_okay=False), default=_STANDARD,
              help="A file to write; it appears when it is whole.")  # fmt: skip
@_format
@ranges.bounds
@ranges.order
@options.forms
def dump(
    path: str,
    target: str,
    format: Format | None,
    prefix: str | None,
    start: str | None,
    stop: str | None,
    limit: int | None,
    reverse: bool,
    key_form: Form,
    value_form: Form,
) -> None:
    """Write the entries of a range as JSON Lines or CSV, which lsm load reads back exactly."""
    wanted = ranges.of(key_form, prefix, start, stop, limit, reverse)
    chosen = format or _format_of(target)
    with (
        reading(path) as db,
        Meter("writing", None, "entries", beside_output=target == _STANDARD) as meter,
        _target(target) as file,
    ):
        entries = _counted(wanted.entries(db), meter)
        for text in records.write(entries, chosen, Forms(key_form, value_form)):
            file.write(text.encode())


def _format_of(name: str) -> Format:
    return "csv" if name.lower().endswith(".csv") else "jsonl"


def _counted(entries: Iterable[Entry], meter: Meter) -> Iterator[Entry]:
    for count, entry in enumerate(entries, 1):
        if count % _LOOK_EVERY == 0:
            meter.reach(count)
        yield entry


@contextlib.contextmanager
def _target(name: str) -> Iterator[IO[bytes]]:
    """The file to write to, which takes its name at the end."""
    if name == _STANDARD:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    temporary = f"{name}.part"
    file = open(temporary, "xb")  # noqa: SIM115 - one that is there is somebody else's
    try:
        with file:
            yield file
        os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


@click.command(short_help="Put entries from JSON Lines or CSV into a database.")
@options.path
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False))
@_format
@options.forms
@click.option("--batch", type=click.IntRange(1, 1_000_000), default=1000, show_default=True,
              help="Write so many entries at once.")  # fmt: skip
@click.option("--sorted", "is_sorted", is_flag=True,
              help="The keys ascend: straight to tables, all of them or none.")  # fmt: skip
@options.create
@options.config
@options.as_json
def load(
    path: str,
    files: tuple[str, ...],
    format: Format | None,
    key_form: Form,
    value_form: Form,
    batch: int,
    is_sorted: bool,
    create: bool,
    config: str | None,
    as_json: bool,
) -> None:
    """Put the entries of FILES, or of standard input, into a database.

    A line that is no entry ends the load: the entries of all lines before it are in the database
    then, and nothing of what comes behind. With --sorted nothing is.
    """
    loading = _Loading(files or (_STANDARD,), format, Forms(key_form, value_form))
    with lsm.DB(path, create_if_missing=create, config=config) as db, loading.meter:
        if is_sorted:
            loading.entries = lsm.bulk.load(db, loading.read()).entries
        else:
            _write(db, loading, batch)
    if as_json:
        output.document({"path": path, "entries": loading.entries})
    else:
        output.line(f"loaded: {counted(loading.entries, 'entry')}")


@attrs.define
class _Loading:
    """What is loaded, and how far that has come."""

    files: tuple[str, ...]
    format: Format | None
    forms: Forms
    entries: int = 0
    meter: Meter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Find out how much there is to read, where files tell."""
        total = None
        if _STANDARD not in self.files:
            total = sum(os.path.getsize(name) for name in self.files)
        self.meter = Meter("loading", total)

    def read(self) -> Iterator[Entry]:
        """The entries of all files."""
        before = 0
        for name in self.files:
            format = self.format or _format_of(name)
            with _opened(name) as file:
                lines = _Lines(file, before, self.meter)
                shown = "standard input" if name == _STANDARD else name
                yield from records.read(lines, shown, format, self.forms)
                before += lines.read


@contextlib.contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == _STANDARD:
        yield sys.stdin.buffer
        return
    with open(name, "rb") as file:
        yield file


@attrs.define
class _Lines:
    """The lines of a file, of which the meter is told."""

    file: IO[bytes]
    before: int
    meter: Meter
    read: int = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self.file:
            self.read += len(line)
            self.meter.reach(self.before + self.read)
            yield line


def _write(db: lsm.DB, loading: _Loading, most: int) -> None:
    """Write entries in batches; those before a malformed line, too."""
    entries, failure = loading.read(), None
    while True:
        pending, size = db.write_batch(), 0
        count = 0
        try:
            for key, value in entries:
                pending.put(key, value)
                count, size = count + 1, size + len(key) + len(value)
                if count >= most or size >= _BATCH_BYTES:
                    break
        except records.MalformedError as error:
            failure = error
        if count:
            pending.write()
            loading.entries += count
        if failure is not None:
            raise Failure(f"{failure}; loaded: {counted(loading.entries, 'entry')} before it")
        if not count:
            return


COMMANDS = (dump, load)
