"""Commands that look after a database: compact, refilter, verify, repair, destroy."""

from __future__ import annotations

import os

import attrs
import click

import lsm
from lsm import picking, verifying
from lsm import repair as repairs
from lsm.cli import options, output, questions, ranges
from lsm.cli.keys import Form
from lsm.cli.mistakes import FOUND_NOTHING
from lsm.cli.output import counted
from lsm.cli.progress import Meter
from lsm.manual import ManualCompaction, bytes_to_read, levels_to_compact
from lsm.options import LEVELS
from lsm.refiltering import RefilterReport
from lsm.repair_report import Report
from lsm.verifying import VerifyReport
from policies.cost_models import NO_FILTER, Option


@click.command(short_help="Merge tables level by level.")
@options.path
@ranges.bounds
@options.key_form
@click.option("--force", is_flag=True, help="Write the deepest tables anew, too.")
@options.config
@options.dry_run
@options.as_json
def compact(
    path: str,
    prefix: str | None,
    start: str | None,
    stop: str | None,
    key_form: Form,
    force: bool,
    config: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write what is in memory to tables, and merge the tables of a range level by level."""
    low, high = ranges.of(key_form, prefix, start, stop).ends
    if dry_run:
        _say_compaction(path, low, high, force, as_json)
        return
    with lsm.DB(path, config=config) as db:
        before = db.stats()
        with Meter("compacting") as meter:
            db.compact_range(
                start=low,
                stop=high,
                force=force,
                progress=lambda it: meter.reach(it.read_bytes, it.total_bytes),
            )
        after = db.stats()
    told = [
        {"level": now.level, "tables_before": was.tables, "bytes_before": was.bytes,
         "tables": now.tables, "bytes": now.bytes}
        for was, now in zip(before.levels, after.levels, strict=True)
        if was.tables or now.tables
    ]  # fmt: skip
    if as_json:
        output.document({"path": path, "levels": told})
        return
    output.table(
        ("level", "tables before", "size before", "tables", "size"),
        [
            (
                each["level"],
                each["tables_before"],
                output.size(each["bytes_before"]),
                each["tables"],
                output.size(each["bytes"]),
            )
            for each in told
        ],
    )


def _say_compaction(
    path: str, low: bytes | None, high: bytes | None, force: bool, as_json: bool
) -> None:
    """Which tables a compaction would merge, as they are now."""
    with lsm.DB(path, read_only=True) as db:
        version = db._store.opened_view().version
        kept = db._store.options
        in_memory = db.stats().memtable_bytes
    levels = levels_to_compact(version, low, high)
    merged = bytes_to_read(
        version,
        ManualCompaction(0, low, high),
        len(levels),
        picking.AT_ONCE_FACTOR * kept.max_file_size,
    )
    touched = range(LEVELS) if force else range(len(levels) + 1)
    tables = [table for level in touched for table in version.overlapping(level, low, high)]
    told = {
        "path": path,
        "dry_run": True,
        "memory_bytes": in_memory,
        "levels": len(levels),
        "tables": len(tables),
        "table_bytes": sum(table.size for table in tables),
        "bytes_to_read": merged,
    }
    if as_json:
        output.document(told)
        return
    size = output.size(sum(table.size for table in tables))
    output.line(f"would write {output.size(in_memory)} in memory to tables, and merge up to")
    output.line(f"{counted(len(tables), 'table')} of {size}, reading some {output.size(merged)}")


@click.command(short_help="Give tables other filters, their data as they are.")
@options.path
@click.option("--level", "levels", type=click.IntRange(0, LEVELS - 1), multiple=True,
              help="Only tables of this level.")  # fmt: skip
@click.option("--max-bytes", metavar="SIZE", help='So many bytes of tables, such as "1 GiB".')
@click.option("--rate", metavar="SIZE", help='So many bytes in a second, such as "20 MiB".')
@options.config
@options.dry_run
@options.as_json
def refilter(
    path: str,
    levels: tuple[int, ...],
    max_bytes: str | None,
    rate: str | None,
    config: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give tables the filters that they would be given today; their data stay as they are."""
    with lsm.DB(path, config=config, read_only=dry_run) as db, Meter("refiltering") as meter:
        report = db.refilter(
            dry_run=dry_run,
            levels=levels or None,
            max_bytes=max_bytes,
            bytes_per_second=rate,
            progress=lambda it: meter.reach(it.bytes, it.total_bytes),
        )
    if as_json:
        output.document(report.as_dict())
    else:
        _show_refiltered(report)


def _show_refiltered(report: RefilterReport) -> None:
    if report.tables:
        output.table(
            ("level", "table", "keys", "now", "then", "why"),
            [
                (
                    table.level,
                    table.number,
                    f"{table.keys:,}",
                    _filter(table.now),
                    _filter(table.then),
                    table.reason,
                )
                for table in report.tables
            ],
            left=("now", "then", "why"),
        )
    for each in report.skipped:
        output.line(f"level {each.level}, table {each.number} stays as it is: {each.reason}")
    did = "would be given" if report.dry_run else "given"
    output.line(
        f"{output.counted(len(report.tables), 'table')} of {output.size(report.bytes)} {did} "
        "another filter" + (f", {report.left} more have drifted" if report.left else "")
    )
    output.line(
        f"filters: {output.size(report.filter_bytes_before)} before, "
        f"{output.size(report.filter_bytes_after)} after"
    )
    output.line(
        f"blocks read in vain: {report.reads_before:.3g} before, {report.reads_after:.3g} after"
    )


def _filter(option: Option) -> str:
    if option.policy == NO_FILTER.policy:
        return option.policy
    return f"{option.policy} {option.bits_per_key:.1f} bits {100 * option.fpr:.2g} %"


@click.command(short_help="Check checksums, orders, filters, manifest and logs.")
@options.path
@options.as_json
@click.pass_context
def verify(ctx: click.Context, path: str, as_json: bool) -> None:
    """Check every checksum, every order, every filter against its keys, the manifest and the logs.

    The exit status is 1 if anything is wrong. Nothing is changed.
    """
    with Meter("verifying") as meter:
        report = verifying.verify(path, progress=lambda it: meter.reach(it.bytes, it.total_bytes))
    if as_json:
        output.document(report.as_dict())
    else:
        _show_verified(report)
    if not report.is_sound:
        ctx.exit(FOUND_NOTHING)


def _show_verified(report: VerifyReport) -> None:
    for problem in report.problems:
        output.problem(str(problem))
    for note in report.notes:
        output.line(f"note: {note}")
    output.line(
        f"{counted(report.tables, 'table')} of {output.size(report.bytes)}: "
        f"{counted(report.blocks, 'data block')}, {report.entries:,} entries"
    )
    output.line(
        f"{counted(report.filters, 'filter')} asked for {counted(report.asked_keys, 'key')}, "
        f"{counted(report.logs, 'log')} with {counted(report.log_records, 'record')}"
    )
    count = len(report.problems)
    output.line(f"{counted(count, 'problem')} found" if count else "nothing is wrong")


@click.command()
@options.path
@options.config
@options.dry_run
@options.yes
@options.as_json
@click.pass_context
def repair(
    ctx: click.Context, path: str, config: str | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Make a database of what can still be read in a directory.

    What would be done is told first, and what is lost by it. Nothing is removed: files that are
    left out move into lost/, and tables that cannot be read stay, named .unreadable. The exit
    status is 1 if anything was lost.
    """
    _check_directory(path)
    if not dry_run:
        questions.check(yes)
    if not yes or dry_run:
        planned = _repair(path, config, dry_run=True)
        if dry_run:
            _show_repair(planned, as_json, dry_run=True)
            _end(ctx, planned)
            return
        if not as_json:
            _show_repair(planned, as_json, dry_run=True)
        questions.confirm(f"Repair {path}?", yes)
    report = _repair(path, config, dry_run=False)
    _show_repair(report, as_json, dry_run=False)
    _end(ctx, report)


def _repair(path: str, config: str | None, dry_run: bool) -> Report:
    with Meter("reading", None, "tables") as meter:
        return repairs.repair(
            path,
            config=config,
            dry_run=dry_run,
            progress=lambda it: meter.reach(it.tables, it.total_tables),
        )


def _check_directory(path: str) -> None:
    """A repair creates a directory that is not there; whoever mistypes a path wants none."""
    if not os.path.isdir(path):
        raise lsm.NotADatabaseError(f"{path}: there is no such directory")


def _end(ctx: click.Context, report: Report) -> None:
    if report.losses:
        ctx.exit(FOUND_NOTHING)


def _show_repair(report: Report, as_json: bool, dry_run: bool) -> None:
    if as_json:
        output.document({"dry_run": dry_run} | attrs.asdict(report))
        return
    output.heading("what would be done:" if dry_run else "what was done:")
    output.facts(
        [
            ("tables kept as they are", report.tables_kept),
            ("tables written anew", report.tables_rewritten),
            ("tables left out, for others have replaced them", report.tables_replaced),
            ("tables lost", report.tables_lost),
            ("logs replayed", report.logs_replayed),
            (f"files moved into {repairs.LOST}/", " ".join(report.set_aside) or "none"),
            ("kept as unreadable", " ".join(report.unreadable) or "none"),
        ]
    )
    for loss in report.losses:
        output.problem(f"lost: {loss}")


@click.command()
@options.path
@options.dry_run
@options.yes
@options.as_json
def destroy(path: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove a database, and nothing else that is in its directory."""
    _check_directory(path)
    names = repairs.files_to_destroy(path)
    total = sum(os.path.getsize(os.path.join(path, name)) for name in names)
    if not names:
        raise lsm.NotADatabaseError(f"{path}: there is no database")
    told = {"path": path, "dry_run": dry_run, "files": names, "bytes": total}
    if dry_run:
        if as_json:
            output.document(told)
        else:
            for name in names:
                output.line(os.path.join(path, name))
            output.line(f"would remove {counted(len(names), 'file')} of {output.size(total)}")
        return
    questions.confirm(
        f"Remove {counted(len(names), 'file')} of {output.size(total)} in {path}?", yes
    )
    lsm.destroy_db(path)
    if as_json:
        output.document(told)
    else:
        output.line(f"removed {counted(len(names), 'file')} of {output.size(total)}")


@click.command(short_help="Copy a database as it is now, by links.")
@options.path
@click.argument("target", type=click.Path())
@click.option("--flush", is_flag=True, help="Write what is in memory to tables before.")
@options.as_json
def checkpoint(path: str, target: str, flush: bool, as_json: bool) -> None:
    """Copy a database as it is now to the directory TARGET, which must be new or empty.

    Tables are linked where the file system can do that, and take no room then. A database that a
    program has open is copied by that program: db.checkpoint(path).
    """
    with lsm.DB(path, read_only=not flush) as db, Meter("copying") as meter:
        report = db.checkpoint(
            target, flush=flush, progress=lambda it: meter.reach(it.bytes, it.total_bytes)
        )
    if as_json:
        output.document(attrs.asdict(report))
        return
    output.line(
        f"{counted(report.tables_linked, 'table')} linked, {report.tables_copied:,} copied, "
        f"{output.size(report.bytes)} in all, {output.size(report.log_bytes)} of it in logs"
    )


COMMANDS = (compact, refilter, verify, repair, checkpoint, destroy)
