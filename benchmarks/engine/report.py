"""How a run is shown: as text for people and as a record for programs.

The members of the record are described in ``benchmarks/engine/__init__.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs

import filters
from benchmarks import machine
from benchmarks.bench import INFORMATION, MISSED
from benchmarks.engine.engines import versions
from benchmarks.engine.rows import Row
from benchmarks.engine.settings import Settings
from benchmarks.report import VERDICTS

SCHEMA = 1
LINE = "  {:<40} {:<8} {:>9} {:>9} {:<3} {:>6} {:>12}  {}"
PYTHON = ("python", "python_compiler", "lsm-filters")


def about(settings: Settings, date: str, *, quick: bool) -> dict[str, Any]:
    """What is known before anything is measured: the head of the record."""
    here = machine.versions()
    return {
        "schema": SCHEMA,
        "command": "engine",
        "date": date,
        "machine": machine.describe(),
        "kernel": {
            "name": filters.KERNEL,
            "default": filters.KERNEL,
            "reason": filters.KERNEL_REASON,
        },
        "versions": {**{name: here[name] for name in PYTHON}, **versions()},
        "settings": {**attrs.asdict(settings), "quick": quick},
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
    return {
        "group": row.case.group.title,
        "name": row.case.name,
        "unit": row.case.unit,
        "verdict": row.verdict,
        "reason": row.reason,
        "note": row.figures.note if row.figures else "",
        "ours": _side(row, row.case.ours),
        "peer": _side(row, row.case.peer),
        "ratio": row.ratio,
        "target": attrs.asdict(row.target) if row.target else None,
    }


def text(head: Mapping[str, Any], rows: Sequence[Row], summary: Mapping[str, Any]) -> str:
    """Everything in readable form."""
    lines = list(_headline(head))
    for group, members in groupby(rows, key=lambda row: row.case.group):
        lines += ["", group.title, f"  {group.what}", *_list(list(members))]
    return "\n".join([*lines, "", *_ending(rows, summary)])


def number(value: float | None) -> str:
    """A number with three digits that count."""
    if value is None:
        return ""
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _headline(head: Mapping[str, Any]) -> Iterator[str]:
    kernel, here, settings = head["kernel"], head["machine"], head["settings"]
    yield f"filters: {kernel['name']} kernel ({kernel['reason']})"
    yield (
        f"{here['processor']}, {here['processors']} processors, {here['system']}, "
        f"load {here['load_average']}, {head['date']}"
    )
    told = head["versions"].items()
    yield ", ".join(f"{name} {version or 'not installed'}" for name, version in told)
    yield (
        f"{settings['keys']:,} random keys of 16 bytes with values of 100, seed "
        f"{settings['seed']}; best of {settings['repeats']} repeats, the engines in turn"
    )


def _list(rows: Sequence[Row]) -> Iterator[str]:
    peers = {row.case.peer for row in rows}
    peer = str(*peers) if len(peers) == 1 else "peer"
    yield LINE.format("", "filters", "ours", peer, "", "ratio", "target", "").rstrip()
    for row in rows:
        kind = row.case.ours.partition(", ")[2]
        if row.ours is None:
            yield f"  {row.case.name:<40} {kind:<8} {row.verdict}: {row.reason}"
            continue
        verdict = "" if row.verdict == INFORMATION else row.verdict
        note = row.figures.note if row.figures else ""
        yield LINE.format(
            row.case.name,
            kind,
            number(row.ours),
            number(row.peer),
            row.case.unit,
            "" if row.ratio is None else f"{row.ratio:.2f}",
            str(row.target or ""),
            ", ".join(filter(None, (verdict, row.reason, note))),
        ).rstrip()


def _ending(rows: Sequence[Row], summary: Mapping[str, Any]) -> Iterator[str]:
    for row in rows:
        if row.verdict == MISSED and row.target and row.judged is not None:
            yield f"MISSED: {row.case.label}: {row.judged:.2f}; {row.target.wording}"
    targets = sum(row.target is not None for row in rows)
    told = ", ".join(f"{summary[each]} {each}" for each in VERDICTS)
    yield f"{targets} targets among {len(rows)} rows: {told}; {summary['seconds']:.0f} s"


def _side(row: Row, engine: str | None) -> dict[str, Any] | None:
    repeats = row.repeats(engine)
    if not repeats:
        return None
    return {"engine": engine, "best": min(repeats), "repeats": list(repeats)}
