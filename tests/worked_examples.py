"""What a format page shows: its sections, its tables, and the bytes of its examples."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def sections(page: Path) -> dict[str, str]:
    """A page, cut at its headings."""
    parts = re.split(r"^#+ (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def example_titles(page: Path) -> list[str]:
    """What stands under ``### Example:`` headings, in order."""
    return [title[9:] for title in sections(page) if title.startswith("Example: ")]


def example_bytes(page: Path, title: str) -> bytes:
    """The bytes of the dump under ``### Example: <title>``, whose offsets must be right."""
    text = sections(page)[f"Example: {title}"]
    (dump,) = re.findall(r"^```hex\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    data = b""
    for line in dump.splitlines():
        offset, _, digits = line.partition("  ")
        assert int(offset, 16) == len(data), f"offset {offset} of example {title}"
        data += bytes.fromhex(digits)
    return data


def table_rows(text: str) -> list[list[str]]:
    """The body rows of every table in a piece of a page."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line] for line in lines]
    rules = [number for number, row in enumerate(rows) if set("".join(row)) <= set("-:")]
    heads = {number - 1 for number in rules} | set(rules)
    return [row for number, row in enumerate(rows) if number not in heads]
