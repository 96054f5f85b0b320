"""What is printed: aligned, wrapped on terminals alone, without escapes where nobody wants them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable

import pytest

from lsm.cli import output, progress
from lsm.cli.progress import Meter

HEADINGS = ("name", "count", "what")
ROWS = [("a", 1, "short"), ("b", 1000, "word " * 30)]


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        return self.bytes.getvalue().decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    """Makes a stream of the process a terminal of some width."""

    def make(name: str, width: int = 80) -> Terminal:
        made = Terminal()
        monkeypatch.setattr(sys, name, made)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return made

    return make


def test_a_table_in_a_pipe_is_as_wide_as_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(HEADINGS, ROWS, left=("name", "what"))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "name  count  what",
        "a         1  short",
        "b      1000  " + ("word " * 30).rstrip(),
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_on_a_terminal_is_no_wider(terminal: Callable[..., Terminal], width: int) -> None:
    made = terminal("stdout", width)
    output.table(HEADINGS, ROWS, left=("name", "what"))
    text = made.text()
    assert "\x1b[1m" in text
    assert "word" in text
    plain = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.splitlines())) <= width
    assert len(plain.splitlines()) == (5 if width == 80 else 3)


def test_nobody_gets_escapes_who_does_not_want_them(
    terminal: Callable[..., Terminal],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.problem("[bold]wrong[/bold] :warning:")
    assert capsys.readouterr().out == "[bold]wrong[/bold] :warning:\n"
    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        made = terminal("stdout")
        monkeypatch.setenv(variable, value)
        output.problem("[bold]wrong[/bold] :warning:")
        assert made.text() == "[bold]wrong[/bold] :warning:\n"
        monkeypatch.delenv(variable)


def test_json_is_utf8_whatever_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    made = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(made, encoding="ascii"))
    output.document({"name": "Zoë", "bytes": b"\xff", "mapped": {1: 2}})
    sys.stdout.flush()
    assert json.loads(made.getvalue()) == {"name": "Zoë", "bytes": "\\xff", "mapped": {"1": 2}}


def test_numbers_in_words() -> None:
    assert [output.size(count) for count in (0, 1023, 1024, 1 << 20, 5 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.0 MiB",
        "5120.0 GiB",
    ]
    assert [output.rate(share) for share in (None, 0.0, 0.0123, 1.5e-7)] == [
        "-",
        "0.000%",
        "1.230%",
        "1.50e-07",
    ]
    assert [output.counted(count, "entry") for count in (0, 1, 2000)] == [
        "0 entries",
        "1 entry",
        "2,000 entries",
    ]
    assert output.counted(2, "key") == "2 keys"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_meter_appears_after_a_second_with_its_rate(
    terminal: Callable[..., Terminal], clock: Clock
) -> None:
    made = terminal("stderr")
    with Meter("reading", 4 << 20) as meter:
        meter.reach(1)
        assert made.text() == ""
        clock.now += 2
        meter.reach(2 << 20)
    text = made.text()
    assert "reading" in text
    assert "50%" in text
    assert "1.0 MiB/s" in text


def test_a_meter_without_a_total_counts(terminal: Callable[..., Terminal], clock: Clock) -> None:
    made = terminal("stderr")
    with Meter("asking", None, "keys") as meter:
        clock.now += 2
        meter.reach(5000)
    assert "2,500 keys/s" in made.text()


def test_a_meter_stays_away_from_pipes_and_from_what_is_printed(
    terminal: Callable[..., Terminal], clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Meter("reading", 100) as meter:
        clock.now += 2
        meter.reach(50)
    assert capsys.readouterr().err == ""
    made = terminal("stderr")
    terminal("stdout")
    with Meter("writing", 100, beside_output=True) as meter:
        clock.now += 2
        meter.reach(50)
    assert made.text() == ""
