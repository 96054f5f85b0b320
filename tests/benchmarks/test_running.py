"""Units run in order, are kept when they are done, and never cost each other anything."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks import progress, running
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.journal import Journal
from benchmarks.parts import Part, Size, Unit
from benchmarks.rows import FAILED, INFORMATION, NOT_MEASURED, Row

HEAD = {
    "schema": 2,
    "command": "fake",
    "size": "quick",
    "date": "2026-01-02",
    "settings": {"fake": {"seed": 1}},
    "kernel": {"name": "python"},
    "versions": {"python": "3"},
}


@attrs.frozen
class Settings:
    seed: int = 1
    units: int = 4


class FakePart(Part):
    """Units that write down that they ran; one of them can be made to interrupt."""

    name = "fake"
    help = "nothing"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.interrupted_at = ""
        self.open = 0
        self.directory: Path | None = None

    def settings(self, size: Size, options: argparse.Namespace) -> Settings:
        return Settings(options.seed)

    def units(self, settings: Settings) -> list[Unit]:
        return [self.unit(str(number)) for number in range(settings.units)]

    def unit(self, name: str) -> Unit:
        row = Row(part=self.name, group="g", name=name, subject="s")

        def measure(bench: object) -> Iterable[Row]:
            assert bench == "bench"
            if name == self.interrupted_at:
                raise KeyboardInterrupt
            self.ran.append(name)
            yield attrs.evolve(row, value=float(name))
            yield attrs.evolve(row, name=f"{name} again", value=float(name))

        return Unit(row, measure, seconds=2.0)

    @contextmanager
    def bench(self, settings: Settings, directory: Path) -> Iterator[str]:
        self.open += 1
        self.directory = directory
        (directory / "file").touch()
        try:
            yield "bench"
        finally:
            self.open -= 1

    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        yield f"{len(rows)} rows of fakes"

    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        yield f"{len(rows)} fakes in short"


def work_of(part: FakePart) -> list[running.Work]:
    return running.all_work([part], {"fake": Settings()})


def test_units_run_in_order_and_are_kept(tmp_path: Path) -> None:
    part, journal = FakePart(), Journal.begun(tmp_path / "j", HEAD)
    rows = running.run(work_of(part), journal)
    assert part.ran == ["0", "1", "2", "3"]
    assert [row.value for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert part.open == 0
    assert part.directory is not None
    assert not part.directory.exists()
    again = Journal.found(tmp_path / "j", HEAD)
    assert again.done == journal.done
    assert again.seconds == journal.seconds


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    part = FakePart()
    part.interrupted_at = "2"
    with pytest.raises(KeyboardInterrupt):
        running.run(work_of(part), Journal.begun(tmp_path / "j", HEAD))
    assert part.open == 0
    part.interrupted_at = ""
    journal = Journal.found(tmp_path / "j", HEAD)
    assert running.expected_seconds(work_of(part), journal) == 4
    rows = running.run(work_of(part), journal)
    assert part.ran == ["0", "1", "2", "3"]
    assert [row.name for row in rows[::2]] == ["0", "1", "2", "3"]


def test_a_line_that_was_cut_off_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    running.run(work_of(FakePart()), Journal.begun(path, HEAD))
    whole = path.read_bytes()
    for length in range(len(whole) - 1, whole.rindex(b"\n", 0, -1), -1):
        path.write_bytes(whole[:length])
        part = FakePart()
        running.run(work_of(part), Journal.found(path, HEAD))
        assert part.ran == ["3"]
        assert len(Journal.found(path, HEAD).done) == 4


@pytest.mark.parametrize("member", ["command", "size", "settings", "kernel", "versions", "schema"])
def test_a_run_of_something_else_is_not_gone_on_with(member: str, tmp_path: Path) -> None:
    Journal.begun(tmp_path / "j", HEAD)
    with pytest.raises(ValueError, match=f"another run: its {member} was"):
        Journal.found(tmp_path / "j", {**HEAD, member: "other"})
    assert Journal.found(tmp_path / "j", {**HEAD, "date": "later"}).head["date"] == "2026-01-02"


@pytest.mark.parametrize("content", ["", "nonsense\n"])
def test_what_is_no_journal_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "j").write_text(content)
    with pytest.raises(ValueError, match="no journal"):
        Journal.found(tmp_path / "j", HEAD)


@pytest.mark.parametrize(
    ("error", "verdict", "reason"),
    [
        (UnavailableError("pip install it"), NOT_MEASURED, "pip install it"),
        (WrongAnswersError("denies 1"), FAILED, "denies 1"),
        (ZeroDivisionError("by zero"), FAILED, "ZeroDivisionError: by zero"),
    ],
)
def test_an_error_costs_one_unit_its_rows_and_no_other(
    error: Exception, verdict: str, reason: str, tmp_path: Path
) -> None:
    def fail(bench: object) -> Iterable[Row]:
        raise error

    part = FakePart()
    work = work_of(part)
    work[1] = attrs.evolve(work[1], unit=attrs.evolve(work[1].unit, measure=fail))
    rows = running.run(work, Journal.begun(tmp_path / "j", HEAD))
    assert (rows[2].verdict, rows[2].reason, rows[2].value) == (verdict, reason, None)
    assert part.ran == ["0", "2", "3"]
    assert rows[0].verdict == rows[-1].verdict == INFORMATION


def test_only_looks_into_names_in_any_case() -> None:
    work = work_of(FakePart())
    assert running.chosen(work, None) == work
    assert [each.unit.row.name for each in running.chosen(work, "G/3")] == ["3"]
    with pytest.raises(ValueError, match="there are\n  fake/g/0/s\n") as raised:
        running.chosen(work, "nothing")
    assert "'nothing'" in str(raised.value)


def test_progress_is_a_few_lines_where_nobody_watches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.Progress("done", 80) as shown:
        for _ in range(80):
            shown.on("a name")
            shown.advance(1)
    told = capsys.readouterr().err
    assert told.count("\n") == progress.LINES
    assert told.startswith(" 10% done, 0 s\n")
    assert "\n100% done, " in told


@pytest.mark.parametrize("installed", [True, False])
def test_a_bar_is_for_terminals(
    installed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    if not installed:
        monkeypatch.setitem(sys.modules, "rich", None)
    else:
        pytest.importorskip("rich")
    with progress.Progress("done", 2) as shown:
        shown.on("the first half")
        shown.advance(1)
        shown.advance(1)
    told = capsys.readouterr().err
    assert ("100% done" in told) is not installed


def test_the_journal_is_one_line_a_unit(tmp_path: Path) -> None:
    path = tmp_path / "j"
    running.run(work_of(FakePart()), Journal.begun(path, HEAD))
    lines: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == HEAD
    assert [line["unit"] for line in lines[1:]] == [f"fake/g/{n}/s" for n in range(4)]
