"""How far a command has come: a bar with rate and remaining time, for who watches a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any, Literal, Self

from lsm.cli.output import size

# Nothing is shown of what is done by then.
_PATIENCE = 1.0
_INTERVAL = 0.1


class Meter:
    """A bar on stderr for work of a ``total``, None where nobody knows it.

    It appears after a second, and only on a terminal; where what the command prints goes to the
    same terminal, ``beside_output``, it stays away.
    """

    def __init__(
        self,
        label: str,
        total: float | None = None,
        unit: str = "bytes",
        *,
        beside_output: bool = False,
    ):
        self._label, self._total, self._unit = label, total, unit
        self._watched = sys.stderr.isatty() and not (beside_output and sys.stdout.isatty())
        self._began = time.monotonic()
        self._next = self._began + _PATIENCE
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        if self._bar is not None:
            self._bar.stop()
        return False

    def reach(self, done: float, total: float | None = None) -> None:
        """So much is done; ``total`` is what it will be in the end, where that has changed."""
        now = time.monotonic()
        if not self._watched or now < self._next:
            return
        self._next = now + _INTERVAL
        if self._bar is None:
            self._bar = _bar()
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total, rate="")
        self._bar.update(
            self._task,
            completed=done,
            total=self._total if total is None else total,
            rate=self._rate(done / (now - self._began)),
        )

    def _rate(self, speed: float) -> str:
        return f"{size(speed)}/s" if self._unit == "bytes" else f"{speed:,.0f} {self._unit}/s"


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[rate]}", markup=False),
        progress.TimeRemainingColumn(elapsed_when_finished=False),
        progress.TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
