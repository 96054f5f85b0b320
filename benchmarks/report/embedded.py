"""The record within the page: as JSON that cannot end the element it stands in.

Six thousand rows have to fit: what all rows of a name have in common is said once, what can be
told from the rest is left out, and numbers have nine digits. ``script.js`` makes the rows whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.record import Record
from benchmarks.report.markup import Markup, tag
from benchmarks.rows import Row

DERIVED = ("best", "median", "spread")
DIGITS = 9


def embedded(record: Record) -> Markup:
    """The element with the record."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for place, row in enumerate(record.rows):
        found.setdefault((row.part, row.group, row.name), []).append(place)
    groups = [_group(record.rows, places) for places in found.values()]
    whole = {**record.head, "groups": groups, "summary": record.summary}
    text = json.dumps(whole, separators=(",", ":"))
    # Within JSON, < stands in strings only: written like this nothing looks like the end tag.
    return tag("script", Markup(text.replace("<", "\\u003c")), type="application/json", id="record")


def _group(rows: Sequence[Row], places: Sequence[int]) -> dict[str, Any]:
    members = [_members(rows[place]) for place in places]
    first, *others = members
    common = {
        name: value
        for name, value in first.items()
        if all(name in each and each[name] == value for each in others)
    }
    own = [{name: each[name] for name in each if name not in common} for each in members]
    return {"common": common, "places": places, "rows": own}


def _members(row: Row) -> dict[str, Any]:
    """What the page has of a row. Its id is there where JavaScript writes numbers otherwise."""
    without: tuple[str, ...] = DERIVED
    if not any(isinstance(value, float) for value in row.at.values()):
        without += ("id",)
    return {name: _rounded(value) for name, value in row.as_dict().items() if name not in without}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value
