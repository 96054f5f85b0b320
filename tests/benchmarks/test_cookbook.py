"""The programs of the cookbook beside their alternatives: all are measured, none loses a key."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from benchmarks import tables
from benchmarks.cookbook import __main__ as command
from benchmarks.cookbook import table
from benchmarks.cookbook.comparison import Comparison, Side
from benchmarks.record import Record

for name in ("dask.dataframe", "pandas", "plyvel", "polars", "pyarrow"):
    pytest.importorskip(name)

PROGRAMS = {path.stem for path in tables.PROGRAMS}


@pytest.mark.no_cover
def test_every_program_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "cookbook.json"
    command.main(["--keys", "2000", "--repeats", "1", "--into", str(path)])
    found = Record.read(path)
    assert {row.group for row in found.rows} == PROGRAMS
    for row in found.rows:
        assert row.unit == {table.TIME: "ms", table.MEMORY: "bytes"}[row.name]
        assert row.value
        assert row.ratio == row.value / min(row.peer_repeats)
    assert len({row.id for row in found.rows}) == len(found.rows)
    lines = list(table.documented(found))
    times = [row for row in found.rows if row.name == table.TIME]
    assert len(lines) == len(times) + 4
    assert len({line.count("|") for line in lines[2:]}) == 1


def test_nothing_is_measured_that_loses_keys() -> None:
    side = Side("a filter", lambda: 0)
    lossy = Comparison("x", "ask", 1, side, attrs.evolve(side, words="a set"), lambda *_: False)
    with pytest.raises(RuntimeError, match="x: ask: the answers differ"):
        list(command.rows_of(lossy, 1))


def test_the_published_record_has_every_program() -> None:
    found = Record.read(tables.COOKBOOK)
    assert {row.group for row in found.rows} == PROGRAMS
    assert found.head["settings"]["cookbook"]["keys"] == 1_000_000
