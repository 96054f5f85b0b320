"""How a run is shown: as text for people and as a record for programs.

The members of the record are described in ``benchmarks/kernels.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs

import filters
from benchmarks import machine
from benchmarks.bench import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Row, Settings

SCHEMA = 1
VERDICTS = (MET, MISSED, INFORMATION, FAILED, NOT_MEASURED)
NAME_WIDTH = 46
LINE = "  {:<46} {:>9} {:>9} {:>6} {:>8}  {}"


def about(settings: Settings, date: str, *, quick: bool, only: str | None) -> dict[str, Any]:
    """What is known before anything is measured: the head of the record."""
    from filters.kernels.native import simd

    return {
        "schema": SCHEMA,
        "command": "kernels",
        "date": date,
        "machine": machine.describe(),
        "kernel": {
            "name": "native",
            "default": filters.KERNEL,
            "reason": filters.KERNEL_REASON,
            "simd": simd.in_use(),
            "simd_available": list(simd.available()),
        },
        "versions": machine.versions(),
        "settings": {**attrs.asdict(settings), "quick": quick, "only": only},
    }


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows came to each verdict."""
    return {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}


def record(head: Mapping[str, Any], rows: Sequence[Row], summary: Mapping[str, Any]) -> str:
    """The record as JSON."""
    whole = {**head, "rows": [row_record(row) for row in rows], "summary": summary}
    return json.dumps(whole, indent=1) + "\n"


def row_record(row: Row) -> dict[str, Any]:
    """One row of the record."""
    figures = row.figures
    return {
        "group": row.case.group.title,
        "name": row.case.name,
        "column": row.case.column,
        "verdict": row.verdict,
        "reason": row.reason,
        "note": figures.note if figures else "",
        "ours": _repeats(figures.ours if figures else None),
        "peer": _repeats(figures.peer if figures else None),
        "ratio": row.ratio,
        "target": attrs.asdict(row.target) if row.target else None,
    }


def text(head: Mapping[str, Any], rows: Sequence[Row], summary: Mapping[str, Any]) -> str:
    """Everything in readable form."""
    lines = list(_headline(head))
    for group, members in groupby(rows, key=lambda row: row.case.group):
        shown = _table if group.columns else _list
        lines += ["", group.title, f"  {group.what}", *shown(list(members))]
    return "\n".join([*lines, "", *_ending(rows, summary)])


def _headline(head: Mapping[str, Any]) -> Iterator[str]:
    kernel, here, versions = head["kernel"], head["machine"], head["versions"]
    settings = head["settings"]
    yield (
        f"native kernel with {kernel['simd']} (of {', '.join(kernel['simd_available'])}); "
        f"by default {kernel['default']} runs: {kernel['reason']}"
    )
    yield (
        f"{here['processor']}, {here['processors']} processors, {here['system']}, "
        f"huge pages: {here['huge_pages']}, load {here['load_average']}, {head['date']}"
    )
    yield ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
    yield (
        f"{settings['keys']:,} random keys of 16 bytes, seed {settings['seed']}; ns per key, "
        f"best of {settings['repeats']} repeats or more, ours and the peer's in turn"
    )


def _list(rows: Sequence[Row]) -> Iterator[str]:
    yield LINE.format("", "ours", "peer", "ratio", "target", "").rstrip()
    for row in rows:
        if row.ours is None:
            yield f"  {row.case.name:<{NAME_WIDTH}} {row.verdict}: {row.reason}"
            continue
        verdict = "" if row.verdict == INFORMATION else row.verdict
        remarks = ", ".join(filter(None, (verdict, row.figures.note if row.figures else "")))
        yield LINE.format(
            row.case.name,
            _number(row.ours),
            _number(row.peer),
            "" if row.ratio is None else f"{row.ratio:.3f}",
            str(row.target or ""),
            remarks,
        ).rstrip()


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Cells under their columns; below it why some are empty, each reason once."""
    columns = rows[0].case.group.columns
    yield f"  {'':<{NAME_WIDTH}}" + "".join(f" {column:>9}" for column in columns)
    for name, cells in groupby(rows, key=lambda row: row.case.name):
        found = {row.case.column: row for row in cells}
        shown = (_number(found[each].ours) if each in found else "" for each in columns)
        yield f"  {name:<{NAME_WIDTH}}" + "".join(f" {cell or '-':>9}" for cell in shown)
    yield from dict.fromkeys(f"  {row.verdict}: {row.reason}" for row in rows if row.reason)


def _ending(rows: Sequence[Row], summary: Mapping[str, Any]) -> Iterator[str]:
    for row in rows:
        if row.verdict == MISSED and row.target and row.ratio is not None:
            yield f"MISSED: {row.case.label}: {row.ratio:.3f}; {row.target.wording}"
    targets = sum(row.target is not None for row in rows)
    told = ", ".join(f"{summary[each]} {each}" for each in VERDICTS)
    yield f"{targets} targets among {len(rows)} rows: {told}; {summary['seconds']:.0f} s"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _repeats(values: list[float] | None) -> dict[str, Any] | None:
    return None if values is None else {"best": min(values), "repeats": values}
