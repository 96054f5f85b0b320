"""Two records side by side: what is beyond noise is told, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import compare
from benchmarks.record import Record
from benchmarks.rows import FAILED, NOT_MEASURED, Row

ROW = Row(part="p", group="g", name="n", subject="s", unit="ns")
HEAD: dict[str, Any] = {
    "schema": 2,
    "command": "all",
    "size": "quick",
    "date": "2026-01-02",
    "machine": {"processor": "one", "load_average": [0.1]},
    "kernel": {"name": "native"},
    "versions": {"abloom": "1"},
    "settings": {"filters": {"seed": 1}},
}


def of(**members: Any) -> Row:
    return attrs.evolve(ROW, **members)


def repeats(*values: float) -> Row:
    return of(value=min(values), repeats=values)


def share(value: float, low: float, high: float) -> Row:
    return of(value=value, interval=(low, high), unit="share")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (repeats(10, 11, 12), repeats(11.5, 13, 14), compare.SAME),
        (repeats(10, 11, 12), repeats(13, 13, 14), compare.WORSE),
        (repeats(13, 13, 14), repeats(10, 11, 12), compare.BETTER),
        (repeats(10, 10.01), repeats(10.2, 10.3), compare.SAME),
        (of(value=10, repeats=[10]), of(value=12, repeats=[12]), compare.SAME),
        (of(value=10, repeats=[10]), of(value=13, repeats=[13]), compare.WORSE),
        (share(0.01, 0.009, 0.011), share(0.0115, 0.0105, 0.0125), compare.SAME),
        (share(0.01, 0.009, 0.011), share(0.02, 0.019, 0.021), compare.WORSE),
        (of(value=10.0), of(value=10.1), compare.SAME),
        (of(value=10.0), of(value=10.3), compare.WORSE),
        (of(value=10.0, better="higher"), of(value=20.0, better="higher"), compare.BETTER),
        (of(value=10.0, better=""), of(value=20.0, better=""), compare.OTHER),
        (of(value=0.0), of(value=1.0), compare.WORSE),
        (of(verdict=FAILED), of(value=1.0), compare.BETTER),
        (of(value=1.0), of(verdict=FAILED), compare.WORSE),
        (of(verdict=FAILED), of(verdict=FAILED), compare.SAME),
        (of(verdict=NOT_MEASURED), of(value=1.0), compare.OTHER),
    ],
)
def test_what_became_of_a_row(before: Row, after: Row, kind: str) -> None:
    assert compare.kind_of(before, after) == kind


def test_nothing_differs_from_itself() -> None:
    rows = [repeats(10, 11), share(0.01, 0.009, 0.011), of(value=3.0), of(verdict=NOT_MEASURED)]
    assert {compare.kind_of(row, row) for row in rows} == {compare.SAME}


def records(tmp_path: Path, before: list[Row], after: list[Row], **head: Any) -> list[str]:
    paths = []
    for name, rows, more in (("a", before, {}), ("b", after, head)):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "record.json"
        Record({**HEAD, **more}, rows, {}).write(path)
        paths.append(str(path if name == "a" else path.parent))
    return paths


def test_the_command_shows_what_changed_the_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [repeats(10, 11), of(name="same", value=1.0), of(name="gone", value=1.0)]
    before.append(of(name="up", value=5.0, repeats=[5, 5]))
    after = [repeats(5, 6), of(name="same", value=1.0), of(name="new", value=1.0)]
    after.append(of(name="up", value=50.0, repeats=[50, 50]))
    paths = records(
        tmp_path,
        before,
        after,
        versions={"abloom": "2"},
        machine={"processor": "other"} | {"load_average": [9]},
    )
    assert command.main(["compare", *paths]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert "  versions, abloom: 1 in A, 2 in B" in shown
    assert "  machine, processor: one in A, other in B" in shown
    assert not any("load_average" in line for line in shown)
    assert [line.split() for line in shown[-3:-1]] == [
        ["worse", "5", "50", "ns", "10.000", "p/g/up/s"],
        ["better", "10.5", "5.5", "ns", "0.524", "p/g/n/s"],
    ]
    assert shown[-1] == "5 rows: 1 worse, 1 better, 0 other, 1 gone, 1 new, 1 same"
    assert command.main(["compare", *paths, "--only", "SAME", "--all"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-2].split() == ["same", "1", "1", "ns", "1.000", "p/g/same/s"]


def test_what_cannot_be_read_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [path, _] = records(tmp_path, [], [])
    with pytest.raises(SystemExit, match="2"):
        command.main(["compare", path, str(tmp_path / "none")])
    assert "there is no record here" in capsys.readouterr().err
