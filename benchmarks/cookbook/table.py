"""The table of docs/cookbook.md, and what is said of the machine above it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.record import Record
from benchmarks.rows import Row, number

PART, TIME, MEMORY = "cookbook", "time", "memory"
_HEAD = ("", "what is timed", "keys", "here", "ms", "the alternative", "ms", "x", "bytes", "x")
_GIB = 1 << 30


def documented(found: Record) -> Iterator[str]:
    """Where it was measured, and a line for each comparison."""
    machine, versions = found.head["machine"], found.head["versions"]
    yield (
        f"One run, of {str(found.head['date'])[:10]}: {machine['processor']}, "
        f"{machine['processors']} processors, {machine['memory_bytes'] / _GIB:.0f} GiB, "
        f"{versions['python']}, the {found.head['kernel']['name']} kernel; "
        + ", ".join(f"{name} {versions[name]}" for name in ("pandas", "polars", "numpy", "pyarrow"))
        + f", dask {versions['dask']}, plyvel {versions['plyvel']}."
    )
    yield ""
    yield f"| {' | '.join(_HEAD)} |"
    yield "|---|---|---:|---|---:|---|---:|---:|---:|---:|"
    sizes = {(row.group, *row.at.values()): row for row in found.rows if row.name == MEMORY}
    for row in found.rows:
        if row.name == TIME:
            yield _line(row, sizes.get((row.group, *row.at.values())))


def _line(row: Row, size: Row | None) -> str:
    cells = [
        f"[{row.group}.py](cookbook/{row.group}.py)",
        str(row.at["what"]),
        f"{row.at['keys']:,}",
        row.subject,
        number(row.value),
        row.peer,
        number(min(row.peer_repeats)),
        number(row.ratio),
        f"{size.value:,.0f}" if size and size.value else "",
        number(size.ratio) if size else "",
    ]
    return f"| {' | '.join(cells)} |"
