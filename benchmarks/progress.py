"""How long work shows how far it is: a bar on a terminal, a few lines anywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

LINES = 10


class Progress:
    """Progress of work that is so much in all, as a context manager.

    On a terminal it is rich's bar; where rich is missing or nobody watches, about ten lines on
    stderr.
    """

    def __init__(self, label: str, total: float):
        self._label = label
        self._total = max(total, 1e-9)
        self._done = 0.0
        self._lines_told = 0
        self._started = time.perf_counter()
        self._bar = _rich_bar() if sys.stderr.isatty() else None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def on(self, what: str) -> None:
        """Say what is worked on now."""
        if self._bar is not None:
            self._bar.update(self._task, description=what[:60])

    def advance(self, amount: float) -> None:
        """Say that so much more is done."""
        self._done = min(self._total, self._done + amount)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)
            return
        reached = int(LINES * (self._done / self._total + 1e-9))
        if reached > self._lines_told:
            self._lines_told = reached
            share = f"{self._done / self._total:4.0%} {self._label}"
            print(f"{share}, {self.seconds:.0f} s", file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        """How long it has been at work."""
        return time.perf_counter() - self._started


def _rich_bar() -> Any:
    """rich's bar, if it is installed."""
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(elapsed_when_finished=False),
        console=Console(stderr=True),
        transient=True,
    )
