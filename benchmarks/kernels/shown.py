"""The rows beside a peer as the table in ``docs/kernels.md``, which is for users: no targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.rows import Row, number
from benchmarks.text import markdown


def documented(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each row that has a target: our time, the peer's, and ours over the peer's."""
    heads = ("what", "ours, ns", "peer", "its, ns", "ratio")
    yield from markdown([heads, *(_cells(row) for row in rows if row.target and row.value)])


def _cells(row: Row) -> Sequence[str]:
    assert row.value is not None
    theirs = min(row.peer_repeats)
    what = f"{row.group[0].lower()}{row.group[1:]}: {row.name}"
    return what, number(row.value), row.peer, number(theirs), f"{row.value / theirs:.2f}"
