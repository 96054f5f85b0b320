"""The measuring commands: directories, stopping and going on, what is said at the end."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import measuring
from benchmarks.journal import JOURNAL_NAME
from benchmarks.record import RECORD_NAME, Record
from benchmarks.rows import FAILED, MISSED, NOT_MEASURED, UNEXPECTED, Row, Target
from tests.benchmarks.test_running import FakePart


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakePart:
    """The only part there is."""
    part = FakePart()
    monkeypatch.setattr(command, "parts", lambda: [part])
    monkeypatch.setattr(command.report, "write", lambda record, directory: directory / "page")
    monkeypatch.chdir(tmp_path)
    return part


def test_everything_is_measured_recorded_and_told(
    part: FakePart, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--quick", "--directory", "run", "--date", "2026-01-02"]) == 0
    shown = capsys.readouterr().out
    assert "this takes about 8 seconds" in shown
    assert shown.endswith("record: run/record.json\nreport: run/page\n")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [RECORD_NAME]
    record = Record.read(tmp_path / "run")
    assert (record.head["command"], record.head["size"]) == ("all", "quick")
    assert record.head["date"] == "2026-01-02"
    assert len(record.rows) == 8
    assert record.summary["information"] == 8


def test_one_part_is_a_command_and_shows_its_tables(
    part: FakePart, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["fake", "--only", "g/2"]) == 0
    assert part.ran == ["2"]
    assert "2 rows of fakes" in capsys.readouterr().out
    assert command.main(["--only", "g/2"]) == 0
    assert "2 rows of fakes" in capsys.readouterr().out
    found = [Record.read(directory) for directory in measuring.RUNS.iterdir()]
    assert {record.head["command"] for record in found} == {"fake", "all"}


def test_a_stopped_run_says_how_it_goes_on_and_does(
    part: FakePart, capsys: pytest.CaptureFixture[str]
) -> None:
    part.interrupted_at = "1"
    assert command.main(["--directory", "run", "--seed", "5"]) == measuring.STOPPED
    told = capsys.readouterr().err
    assert "1 of 4 units are kept" in told
    assert "--resume --directory run" in told
    part.interrupted_at = ""
    assert command.main(["--resume", "--directory", "run", "--seed", "5"]) == 0
    assert part.ran == ["0", "1", "2", "3"]
    shown = capsys.readouterr().out
    assert "1 of 4 units are done; this takes about 6 seconds" in shown
    assert not Path("run", JOURNAL_NAME).exists()


def test_without_a_directory_the_last_stopped_run_goes_on(part: FakePart) -> None:
    for seed, time in (("1", 10), ("2", 30), ("3", 20)):
        part.interrupted_at = "0"
        directory = str(measuring.RUNS / seed)
        assert command.main(["--directory", directory, "--seed", seed]) == measuring.STOPPED
        os.utime(measuring.RUNS / seed / JOURNAL_NAME, (time, time))
    part.interrupted_at = ""
    assert command.main(["--resume", "--seed", "2"]) == 0
    assert (measuring.RUNS / "2" / RECORD_NAME).exists()


@pytest.mark.parametrize(
    ("before", "words", "told"),
    [
        ([], ["--resume"], "no run in build/benchmarks was stopped"),
        ([], ["--resume", "--directory", "run"], "no run was stopped in run"),
        ([], ["--only", "nothing"], "nothing to measure has 'nothing' in its name"),
        ([], ["--quick", "--full"], "not allowed with"),
        (["--directory", "run"], ["--directory", "run"], "run/record.json is there already"),
        (["--directory", "run"], ["--resume", "--directory", "run"], "no run was stopped in run"),
    ],
)
def test_mistakes_are_explained(
    before: list[str],
    words: list[str],
    told: str,
    part: FakePart,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if before:
        assert command.main(before) == 0
    with pytest.raises(SystemExit, match="2"):
        command.main(words)
    assert told in capsys.readouterr().err


def test_a_stopped_run_is_not_begun_anew_by_mistake(
    part: FakePart, capsys: pytest.CaptureFixture[str]
) -> None:
    part.interrupted_at = "1"
    command.main(["--directory", "run"])
    with pytest.raises(SystemExit, match="2"):
        command.main(["--directory", "run"])
    assert "--resume goes on with it; choose another directory" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        command.main(["--directory", "run", "--resume", "--quick"])
    assert "another run: its size was default, now it is quick" in capsys.readouterr().err


def test_a_failed_row_makes_the_exit_status_one(
    part: FakePart, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def units(settings: object) -> list[object]:
        unit = part.unit("no number")
        return [unit, part.unit("1")]

    monkeypatch.setattr(part, "units", units)
    assert command.main(["fake"]) == 1
    assert re.search("FAILED: fake/g/no number/s: ValueError", capsys.readouterr().out)


def test_the_end_says_what_to_look_at_first() -> None:
    row = Row(part="p", group="g", name="n", subject="s")
    target = Target(2, "at most two")
    rows = [
        attrs.evolve(row, verdict=MISSED, ratio=2.5, target=target),
        attrs.evolve(row, verdict=MISSED, value=3.5, target=attrs.evolve(target, absolute=True)),
        attrs.evolve(row, verdict=UNEXPECTED, value=0.5, note="9 standard errors"),
        attrs.evolve(row, verdict=FAILED, reason="denies 1"),
        attrs.evolve(row, verdict=NOT_MEASURED, reason="peer x is not installed: pip install x"),
        attrs.evolve(row, verdict=NOT_MEASURED, reason="peer x is not installed: pip install x"),
    ]
    summary = {**measuring.counts(rows), "seconds": 7}
    assert measuring.ending(Record({}, rows, summary)) == [
        "",
        "MISSED: p/g/n/s: 2.5; at most two",
        "MISSED: p/g/n/s: 3.5; at most two",
        "UNEXPECTED: p/g/n/s: 9 standard errors",
        "FAILED: p/g/n/s: denies 1",
        "not measured: peer x is not installed: pip install x",
        "6 rows: 2 MISSED, 1 UNEXPECTED, 1 failed, 2 not measured; 7 s",
    ]
