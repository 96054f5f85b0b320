"""The whole page of a record: one file that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.advice import Advice, advice
from benchmarks.record import RECORD_NAME, Record
from benchmarks.report.charts import CHARTS
from benchmarks.report.charts.figures import described, told
from benchmarks.report.embedded import embedded
from benchmarks.report.markup import Markup, join, tag
from benchmarks.report.tables import LOUD, tables
from benchmarks.rows import VERDICTS, Row
from benchmarks.text import duration

TITLE = "What a filter costs, and what it saves"
STYLE, SCRIPT = (Path(__file__).with_name(name) for name in ("style.css", "script.js"))


def page(record: Record) -> str:
    """The HTML document of a record, with style, script and data in it."""
    style, script = Markup(STYLE.read_text()), Markup(SCRIPT.read_text())
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", TITLE),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("main", _header(record), [chart(record) for chart in CHARTS], _tables(record)),
        _footer(record),
        tag("aside", id="panel", hidden="", tabindex="-1", aria_label="A row of the record"),
        tag("div", id="tip", hidden="", role="status"),
        embedded(record),
        tag("script", script),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def _policy(script: str) -> str:
    """What the page may do: nothing but show itself and run its own script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _header(record: Record) -> Markup:
    return tag(
        "header",
        tag("h1", TITLE),
        tag("p", " · ".join(_about(record)), class_="about"),
        tag("ul", [_count(record, verdict) for verdict in VERDICTS], class_="verdicts"),
        _advice(record),
    )


def _about(record: Record) -> Iterator[str]:
    """What was run, when and where, as far as the record says."""
    head = record.head
    machine: dict[str, Any] = head.get("machine") or {}
    kernel: dict[str, Any] = head.get("kernel") or {}
    yield str(head.get("date", "no date"))[:16].replace("T", " ")
    yield f"{head.get('size', '')} run of {head.get('command', '')}".strip()
    if machine.get("processor"):
        yield f"{machine['processor']}, {machine.get('processors_allowed', '?')} processors"
    if machine.get("load_average"):
        after = record.summary.get("load_average")
        load = f"load {machine['load_average'][0]:g} before"
        yield load + (f" and {after[0]:g} after" if after else "")
    if kernel.get("name"):
        simd = f" ({kernel['simd']})" if kernel.get("simd") else ""
        engine = f", {kernel['engine']} engine" if kernel.get("engine") else ""
        yield f"{kernel['name']} kernel{simd}{engine}"
    if record.summary.get("seconds"):
        yield duration(record.summary["seconds"])


def _count(record: Record, verdict: str) -> Markup | None:
    count = sum(row.verdict == verdict for row in record.rows)
    if not count:
        return None
    bad = verdict in LOUD
    number = tag("strong", f"{count:,}")
    return tag("li", number, " ", verdict, class_="bad" if bad else None)


def _advice(record: Record) -> Markup | None:
    rows = {row.id: row for row in record.rows}
    found = [_answer(each, rows) for each in advice(record)]
    if not found:
        return None
    return tag("section", tag("h2", "What to use"), tag("dl", found), class_="advice")


def _answer(each: Advice, rows: dict[str, Row]) -> Markup:
    sources = [rows[name] for name in each.rows if name in rows]
    cited = [(" " if at else "", _cited(row)) for at, row in enumerate(sources)]
    return tag(
        "div",
        tag("dt", each.question),
        tag("dd", each.answer, tag("small", "From ", cited) if cited else None),
    )


def _cited(row: Row) -> Markup:
    return tag("span", told(row), title=described(row))


def _tables(record: Record) -> Markup:
    return tag(
        "section",
        tag("h2", "Every number"),
        tag(
            "p",
            "Click a heading to sort, a number to see its row of the record: all repeats, what was "
            "expected, the interval around it, remarks.",
        ),
        list(tables(record)),
        class_="tables",
    )


def _footer(record: Record) -> Markup:
    versions: dict[str, Any] = record.head.get("versions") or {}
    told = ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
    link = tag("a", "Download the record", href=RECORD_NAME, download=RECORD_NAME, id="download")
    system = str((record.head.get("machine") or {}).get("system", ""))
    return tag(
        "footer",
        tag("p", link, " as JSON, with every repeat of every row."),
        tag("p", join(filter(None, (system, system and told and ". ", told)))),
    )
