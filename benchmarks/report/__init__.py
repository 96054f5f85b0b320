"""``python -m benchmarks report RECORD``: the page of a record, made again.

``report.html`` is one file with everything in it: what to use, charts, tables, and the record that
every number leads to. Where there is a Chromium, ``report.png`` pictures its beginning.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.browser import BrowserError
from benchmarks.errors import UnavailableError
from benchmarks.record import Record
from benchmarks.report.page import page
from benchmarks.report.picture import WIDTH, picture

HELP = "the page of a record, made again: charts and tables in one HTML file"
PAGE_NAME, PICTURE_NAME = "report.html", "report.png"
WIDTHS = range(320, 4001)


def write(record: Record, directory: Path) -> Path:
    """Write the report, and a picture of it where that is possible; where the report is."""
    target = _write_page(record, directory)
    try:
        picture(target, directory / PICTURE_NAME)
    except (BrowserError, UnavailableError, OSError) as error:
        print(f"no {PICTURE_NAME}: {error}", file=sys.stderr)
    return target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "record", type=Path, metavar="RECORD", help="a record, or a run's directory"
    )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where the report goes (beside the record)"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="PNG", help=f"where its picture goes ({PICTURE_NAME})"
    )
    parser.add_argument("--width", type=int, default=WIDTH, help=f"of the picture ({WIDTH})")
    parser.add_argument("--dark", action="store_true", help="a picture in dark colours")


def main(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Make the report; 0, or 1 if a picture was asked for and there is none."""
    if options.width not in WIDTHS:
        parser.error(f"--width must lie between {WIDTHS[0]} and {WIDTHS[-1]}, not {options.width}")
    try:
        record = Record.read(options.record)
    except ValueError as error:
        parser.error(str(error))
    beside = options.record if options.record.is_dir() else options.record.parent
    directory = options.directory or beside
    directory.mkdir(parents=True, exist_ok=True)
    target = _write_page(record, directory)
    print(f"report: {target}")
    image = options.picture or directory / PICTURE_NAME
    try:
        picture(target, image, width=options.width, dark=options.dark)
    except (BrowserError, UnavailableError, OSError) as error:
        print(f"no picture: {error}", file=sys.stderr)
        return int(options.picture is not None)
    print(f"picture: {image}")
    return 0


def _write_page(record: Record, directory: Path) -> Path:
    target = directory / PAGE_NAME
    target.write_text(page(record), encoding="utf-8")
    return target
