"""Commands that look into a database: stats, filters, explain, config, policies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import attrs
import click

import policies
from filters import sizing
from filters.families import every
from lsm import options as engine_options
from lsm.cli import keys, options, output, records
from lsm.cli.entries import reading
from lsm.cli.keys import Form
from lsm.cli.mistakes import FOUND_NOTHING
from lsm.filter_summary import FilterSummary
from lsm.inspection import LevelFilters
from lsm.stats import Stats


@click.command(short_help="Show the levels, and what their filters take and promise.")
@options.path
@options.as_json
def stats(path: str, as_json: bool) -> None:
    """Show the levels of a database, and what their filters take and promise.

    Counters of lookups begin when a program opens a database: see db.stats() there.
    """
    with reading(path) as db:
        found = db.stats()
    if as_json:
        output.document(found.as_dict())
        return
    _show_levels(found)
    tables = sum(level.tables for level in found.levels)
    output.facts(
        [
            ("tables", tables),
            ("bytes", output.size(sum(level.bytes for level in found.levels))),
            ("filters", output.size(sum(level.filter_bytes for level in found.levels))),
            ("in logs", f"{output.size(found.memtable_bytes)} in memory"),
        ]
    )
    for loss in found.log_losses:
        output.problem(f"replay left {loss}")


def _show_levels(found: Stats) -> None:
    rows = [
        (
            level.level,
            level.tables,
            output.size(level.bytes),
            output.size(level.filter_bytes),
            output.number(level.bits_per_key),
            output.rate(level.expected_fpr),
        )
        for level in found.levels
        if level.tables
    ]
    if rows:
        output.table(("level", "tables", "size", "filters", "bits/key", "expected"), rows)


@click.command(short_help="Show which filters levels are to have, and which they have.")
@options.path
@click.option("--tables", is_flag=True, help="Show every table on a line of its own.")
@options.as_json
def filters(path: str, tables: bool, as_json: bool) -> None:
    """Show which filters each level is to have, and which its tables carry."""
    with reading(path) as db:
        levels = db.filters()
    if as_json:
        output.document([attrs.asdict(level) for level in levels])
        return
    _show_configured(levels)
    if tables:
        _show_tables(levels)
    else:
        _show_carried(levels)
    drifted = sum(len(level.drifted) for level in levels)
    if drifted:
        behind = output.counted(drifted, "table")
        output.line(f"{behind} without the filter that is to be there: see lsm refilter")


def _show_configured(levels: Sequence[LevelFilters]) -> None:
    said = [
        f"a budget of {each.budget}"
        if each.budget is not None
        else f"{each.configured or 'unknown'} {output.params(each.params or {})}".rstrip()
        + ("" if each.layout == "table" else f", {each.layout}")
        for each in levels
    ]
    first = 0
    for level, text in enumerate(said):
        if level + 1 == len(said) or said[level + 1] != text:
            several = f"levels {first} to {level}" if level > first else f"level {level}"
            output.line(f"{several}: {text}")
            first = level + 1


def _carried(table: FilterSummary) -> str:
    """The filter of a table: what it is, and what is unusual with it."""
    name = f"{table.policy} {output.params(table.params)}".rstrip()
    if table.layout != "table":
        name += f", {table.layout}"
    if table.prefixes:
        name += f", {output.params(table.prefixes)}"
    return name if table.state in ("built", "none") else f"{table.state}: {name}"


def _show_carried(levels: Sequence[LevelFilters]) -> None:
    """Tables with the same filters of a level on one line."""
    rows = []
    for level in levels:
        groups: dict[str, list[FilterSummary]] = {}
        for table in level.tables:
            groups.setdefault(_carried(table), []).append(table)
        for name, some in groups.items():
            counted = sum(table.num_keys or 0 for table in some)
            size = sum(table.bytes for table in some)
            rates = [table.expected_fpr for table in some if table.expected_fpr is not None]
            rows.append(
                (
                    level.level,
                    len(some),
                    name,
                    f"{counted:,}" if counted else "-",
                    output.size(size),
                    output.number(8 * size / counted if counted else None),
                    output.rate(sum(rates) / len(rates) if rates else None),
                )
            )
    if rows:
        heads = ("level", "tables", "filter", "keys", "size", "bits/key", "expected")
        output.table(heads, rows, left=("filter",))


def _show_tables(levels: Sequence[LevelFilters]) -> None:
    rows = [
        (
            level.level,
            table.file_number,
            _carried(table),
            "-" if table.num_keys is None else f"{table.num_keys:,}",
            output.number(table.bits_per_key),
            output.rate(table.expected_fpr),
            "-" if table.written_for_level is None else table.written_for_level,
        )
        for level in levels
        for table in level.tables
    ]
    if rows:
        heads = ("level", "table", "filter", "keys", "bits/key", "expected", "for")
        output.table(heads, rows, left=("filter",))


@click.command(short_help="Show what answers for a key, and why.")
@options.path
@click.argument("key", nargs=-1, required=True)
@options.key_form
@options.as_json
@click.pass_context
def explain(
    ctx: click.Context, path: str, key: tuple[str, ...], key_form: Form, as_json: bool
) -> None:
    """Show which memtables, filters and blocks answer for KEYs, and why.

    The exit status is 1 if one of them has no value.
    """
    wanted = [keys.parse(each, key_form) for each in key]
    with reading(path) as db:
        told = [db.explain(each) for each in wanted]
    if as_json:
        output.document(
            [attrs.asdict(each) | {"key": records.word(each.key, key_form)} for each in told]
        )
    else:
        for each in told:
            verdict = "found" if each.found else "not found"
            output.line(f"{keys.show(each.key, key_form)}: {verdict}")
            for step in each.steps:
                output.line(f"  {step}")
    if not all(each.found for each in told):
        ctx.exit(FOUND_NOTHING)


@click.command(short_help="Show the options of a database or a file, or the defaults.")
@click.argument("path", type=click.Path(), required=False)
@options.as_json
def config(path: str | None, as_json: bool) -> None:
    """Show the options that a database keeps, or those in a file, or else the defaults.

    PATH is a database, or a configuration, which is checked.
    """
    if path is None:
        found = engine_options.Options()
    elif os.path.isdir(path):
        with reading(path) as db:
            found = db._store.options
    else:
        found = engine_options.load(path)
    if not as_json:
        output.line(found.to_toml().rstrip())
        return
    engine = {name: getattr(found, name) for name in engine_options.KEYS}
    output.document({"path": path, "engine": engine, "filters": _levels_of(found)})


def _levels_of(found: engine_options.Options) -> dict[str, Any]:
    """Which filters the levels are to have."""
    rule = found.filters.rule
    if rule is not None:
        return {"budget": rule.entries()}
    return {
        str(level): {
            "policy": policy.name,
            **policy.params(),
            "layout": found.filters.layout(level),
        }
        for level, policy in enumerate(found.filters)
    }


@click.command(name="policies")
@options.as_json
def policies_(as_json: bool) -> None:
    """List the filter policies that are built in and installed."""
    told = [_policy(name) for name in policies.available()]
    if as_json:
        output.document(told)
        return
    output.table(
        ("policy", "default", "bits/key", "rate", "what it is for"),
        [
            (
                each["policy"],
                each["default"] or "-",
                output.number(each["bits_per_key"]),
                output.rate(each["fpr"]),
                each["purpose"],
            )
            for each in told
        ],
        left=("policy", "default", "what it is for"),
    )


# What is said of a policy's defaults is for so many keys.
_USUAL_KEYS = 1_000_000


def _policy(name: str) -> dict[str, Any]:
    """What there is to say of a policy: of a plug-in only that it is one."""
    told: dict[str, Any] = {"policy": name, "default": None, "parameters": {}}
    told |= {"bits_per_key": None, "fpr": None}
    family = every().get(name)
    if family is None:
        purpose = "no filter" if name == "none" else "a plug-in"
        return {**told, "purpose": purpose}
    default = family.parameters.default
    return {
        **told,
        "default": f"{default.name}={default.value:g}",
        "parameters": {key: list(ends) for key, ends in family.parameters.ranges.items()},
        "bits_per_key": sizing.stored_bits_per_key(name, n=_USUAL_KEYS),
        "fpr": sizing.fpr(name, n=_USUAL_KEYS),
        "purpose": family.purpose,
    }


COMMANDS = (stats, filters, explain, config, policies_)
