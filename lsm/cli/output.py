"""What commands print: lines, tables that are aligned, JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lsm.cli import keys

_MIB = 1 << 20
# What goes to a file or a pipe is wrapped nowhere: whoever reads it cuts it as they like.
_UNBOUNDED = 10_000


def line(text: str = "") -> None:
    """Print a line. It may wait in a buffer until the command ends."""
    sys.stdout.write(f"{text}\n")


def document(value: Any) -> None:
    """Print one JSON document, in UTF-8 whatever the terminal has, as JSON is."""
    json_line(json.dumps(value, indent=2, ensure_ascii=False, default=as_json))


def json_line(text: str) -> None:
    """Print a line of JSON. What prints those prints no others."""
    sys.stdout.buffer.write(f"{text}\n".encode())


def as_json(value: object) -> object:
    """What JSON has in the place of a value that it has not."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return keys.show(value, "text")
    return str(value)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], left: Iterable[str] = ()
) -> None:
    """Print cells under headings: numbers to the right, and what is under a ``left`` heading."""
    lefts = set(left)
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        is_left = heading in lefts
        shown.add_column(
            heading, justify="left" if is_left else "right", no_wrap=not is_left, overflow="fold"
        )
    for cells in rows:
        shown.add_row(*(Text(str(cell)) for cell in cells))
    _print(shown)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and what they stand for, in two columns."""
    shown = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in pairs:
        shown.add_row(Text(name), Text(str(value)))
    _print(shown)


def heading(text: str) -> None:
    """Print a line that begins a part of what is shown."""
    _print(Text(text, style="bold"))


def problem(text: str) -> None:
    """Print what is wrong with something that was looked at."""
    _print(Text(text, style="red"))


def _print(what: Any) -> None:
    """Print as the terminal is; without escapes, and as wide as need be, where there is none."""
    is_terminal = sys.stdout.isatty()
    is_plain = bool(os.environ.get("NO_COLOR"))
    width = shutil.get_terminal_size().columns if is_terminal else _UNBOUNDED
    console = Console(
        file=sys.stdout, width=width, highlight=False, emoji=False, markup=False,
        force_terminal=is_terminal and not is_plain, soft_wrap=False, legacy_windows=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(what)
    for each in captured.get().splitlines():
        line(each.rstrip())


def size(count: float) -> str:
    """So many bytes, in the unit that leaves few digits."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def rate(share: float | None) -> str:
    """A share of lookups, in percent; a dash where nobody knows."""
    if share is None:
        return "-"
    return f"{share:.3%}" if share >= 1e-4 or share == 0 else f"{share:.2e}"


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many digits behind the point; a dash where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def counted(count: int, noun: str) -> str:
    """So many of something."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"


def value(said: object) -> str:
    """A fact of any kind, on one line: bytes as text, whatever they are."""
    if isinstance(said, bytes):
        return keys.show(said, "text")
    if isinstance(said, Mapping):
        return params(said)
    if isinstance(said, list | tuple):
        return ", ".join(map(value, said))
    if isinstance(said, int) and not isinstance(said, bool):
        return f"{said:,}"
    return str(said)


def params(entries: Mapping[str, Any]) -> str:
    """Parameters on one line."""
    return " ".join(f"{key}={each}" for key, each in entries.items())
