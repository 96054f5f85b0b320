"""``python -m benchmarks.cookbook``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import attrs

from benchmarks import record, tables
from benchmarks.cookbook import columns, processes, slower
from benchmarks.cookbook.comparison import Comparison
from benchmarks.cookbook.table import MEMORY, PART, TIME
from benchmarks.record import Record
from benchmarks.rows import Row, timed
from benchmarks.timing import quiet

ALL = (
    columns.parquet_column,
    columns.pandas_column,
    columns.polars_column,
    columns.numpy_array,
    processes.many_processes,
    processes.dask_partitions,
    processes.shared_filter,
    processes.mapped_file,
    slower.join_prefilter,
    slower.stream_dedup,
    slower.slow_store,
    slower.from_plyvel,
)
LIBRARIES = ("dask", "numpy", "pandas", "polars", "pyarrow")


@attrs.frozen
class Settings:
    """How much is measured."""

    keys: int
    repeats: int


def rows_of(comparison: Comparison, repeats: int) -> Iterator[Row]:
    """Time on all processors, and memory where it is known; RuntimeError if a key is lost.

    Both sides have run once before, have their turns, and each one's best counts.
    """
    sides = (comparison.ours, comparison.other)
    if not comparison.agrees(*(side.run() for side in sides)):
        raise RuntimeError(f"{comparison.program}: {comparison.what}: the answers differ")
    taken: tuple[list[float], ...] = ([], [])
    with quiet(pinned=False):
        for _ in range(repeats):
            for side, times in zip(sides, taken, strict=True):
                start = time.perf_counter()
                result = side.run()
                times.append((time.perf_counter() - start) * 1e3)
                del result
    row = Row(
        part=PART,
        group=comparison.program,
        name=TIME,
        subject=comparison.ours.words,
        peer=comparison.other.words,
        at={"what": comparison.what, "beside": comparison.other.words, "keys": comparison.keys},
        unit="ms",
    )
    yield timed(row, *taken)
    ours, other = (side.size for side in sides)
    if ours is not None and other is not None:
        yield timed(attrs.evolve(row, name=MEMORY, unit="bytes"), [ours], [other])


def measured(settings: Settings) -> Iterator[Row]:
    """All comparisons, one after the other, in a directory that is removed."""
    with tempfile.TemporaryDirectory() as directory:
        for comparisons in ALL:
            for comparison in comparisons(settings.keys, Path(directory)):
                yield from rows_of(comparison, settings.repeats)


def main(given: Sequence[str] | None = None) -> None:
    """Measure, keep the record, and write the page's table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cookbook", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="how many keys (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="how often (%(default)s)")
    parser.add_argument("--into", type=Path, default=tables.COOKBOOK, help="the record")
    options = parser.parse_args(given)
    settings = Settings(options.keys, options.repeats)
    head = record.head(PART, "full", {PART: settings}, datetime.now(UTC).isoformat("T", "seconds"))
    head["versions"] |= {name: metadata.version(name) for name in LIBRARIES}
    start, rows = time.perf_counter(), []
    for row in measured(settings):
        rows.append(row)
        print(f"{row.group}: {row.at['what']}: {row.subject} {row.value:,.4g} {row.unit}, "
              f"{row.peer} {min(row.peer_repeats):,.4g}", file=sys.stderr)  # fmt: skip
    Record(head, rows, {"seconds": time.perf_counter() - start}).write(options.into)
    if options.into == tables.COOKBOOK:
        tables.main(["docs/cookbook.md"])


if __name__ == "__main__":
    main()
