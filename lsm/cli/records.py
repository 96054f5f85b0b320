"""Entries as text that reads back exactly: lines of JSON, rows of CSV.

In the form ``text`` what is not UTF-8 stands in base64. In JSON that is an object, ``{"base64":
"/w=="}``, in the place of a string; in CSV a third column names what of the row it is: ``key``,
``value`` or ``key value``. There it is base64 for control characters, too, which programs that
read CSV would change: so a row is a line.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import attrs
import click

from lsm.cli import keys
from lsm.cli.keys import Form

Format: TypeAlias = Literal["jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv")

Word: TypeAlias = str | dict[str, str]
Entry: TypeAlias = tuple[bytes, bytes]

BASE64: Final = "base64"
COLUMNS = ["key", "value", BASE64]

_encode = json.JSONEncoder(ensure_ascii=False).encode
_CONTROL = re.compile("[\0-\x1f\x7f]")
# What a value may take; the module's own limit is 128 KiB.
_LARGEST_FIELD = min(sys.maxsize, (1 << 31) - 1)


class MalformedError(ValueError):
    """A line that is no entry; the message names its file and number."""


def word(data: bytes, form: Form) -> Word:
    """The word for a key or a value, as JSON has it."""
    if form != "text":
        return keys.show(data, form)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode("ascii")}


def json_line(key: bytes, value: bytes, key_form: Form, value_form: Form) -> str:
    """The line for an entry."""
    return _encode({"key": word(key, key_form), "value": word(value, value_form)})


def json_key(key: bytes, form: Form) -> str:
    """The line for a key alone."""
    return _encode({"key": word(key, form)})


@attrs.frozen
class Forms:
    """The forms of keys and of values."""

    keys: Form = "text"
    values: Form = "text"


def write(entries: Iterable[Entry], format: Format, forms: Forms) -> Iterator[str]:
    """The lines for some entries, each with its newline."""
    if format == "jsonl":
        for key, value in entries:
            yield json_line(key, value, forms.keys, forms.values) + "\n"
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, value in entries:
        shown_key, is_key = _cell(key, forms.keys)
        shown_value, is_value = _cell(value, forms.values)
        which = [COLUMNS[0]] * is_key + [COLUMNS[1]] * is_value
        writer.writerow((shown_key, shown_value, " ".join(which)))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _cell(data: bytes, form: Form) -> tuple[str, bool]:
    """The cell for a key or a value, and whether it is in base64 for want of text."""
    if form != "text":
        return keys.show(data, form), False
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL.search(text):
        return base64.b64encode(data).decode("ascii"), True
    return text, False


def read(lines: Iterable[bytes], name: str, format: Format, forms: Forms) -> Iterator[Entry]:
    """The entries in some lines; MalformedError at the first that is none."""
    return _read_json(lines, name, forms) if format == "jsonl" else _read_csv(lines, name, forms)


def _read_json(lines: Iterable[bytes], name: str, forms: Forms) -> Iterator[Entry]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict) or found.keys() != {"key", "value"}:
                raise ValueError('it is no object with "key" and "value", and nothing else')
            yield _bytes_of(found["key"], forms.keys), _bytes_of(found["value"], forms.values)
        except (ValueError, RecursionError, click.BadParameter) as error:
            raise _malformed(name, number, error) from error


def _bytes_of(found: Any, form: Form) -> bytes:
    """What a word means."""
    if isinstance(found, dict) and found.keys() == {BASE64} and isinstance(found[BASE64], str):
        return keys.parse(found[BASE64], BASE64)
    if not isinstance(found, str):
        raise ValueError(f'a key or a value is a string, or {{"base64": ...}}, not {found!r:.60}')
    return found.encode() if form == "text" else keys.parse(found, form)


def _read_csv(lines: Iterable[bytes], name: str, forms: Forms) -> Iterator[Entry]:
    csv.field_size_limit(_LARGEST_FIELD)
    rows = csv.reader((line.decode() for line in lines), strict=True)
    head: list[str] | None = None
    while True:
        try:
            row = next(rows, None)
            if row is None:
                return
            if head is None:
                head = _checked_head(row)
            elif row:
                yield _entry_of(row, head, forms)
        except (ValueError, csv.Error, click.BadParameter) as error:
            raise _malformed(name, rows.line_num, error) from error


def _checked_head(row: list[str]) -> list[str]:
    row[:1] = [each.removeprefix("\ufeff") for each in row[:1]]  # as spreadsheets begin a file
    if row not in (COLUMNS, COLUMNS[:2]):
        raise ValueError(f"the first row is {','.join(COLUMNS)}, not {','.join(row):.60}")
    return row


def _entry_of(row: list[str], head: list[str], forms: Forms) -> Entry:
    if len(row) != len(head):
        raise ValueError(f"it has {len(row)} columns, and the first row has {len(head)}")
    key, value, *rest = row
    which = rest[0].split() if rest else []
    if not set(which) <= set(COLUMNS[:2]):
        raise ValueError(f"the column {BASE64} says key, value or both, not {rest[0]!r:.60}")
    return _cell_bytes(key, forms.keys, "key" in which), _cell_bytes(
        value, forms.values, "value" in which
    )


def _cell_bytes(text: str, form: Form, is_base64: bool) -> bytes:
    if is_base64:
        return keys.parse(text, BASE64)
    return text.encode() if form == "text" else keys.parse(text, form)


def _malformed(name: str, number: int, error: Exception) -> MalformedError:
    what = error.message if isinstance(error, click.BadParameter) else str(error)
    return MalformedError(f"{name}: line {number}: {what}")
