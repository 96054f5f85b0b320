"""The benches of all sizes, of which one at a time has databases."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from benchmarks.engine.bench import Bench
from benchmarks.engine.settings import Settings


class Benches:
    """What the units of all sizes are measured with."""

    def __init__(self, settings: Settings, directory: Path):
        self._settings = settings
        self._directory = directory
        self._bench: Bench | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        bench, self._bench = self._bench, None
        if bench is not None:
            bench.__exit__(*exc)

    def of(self, keys: int) -> Bench:
        """The bench with so many keys; one with another number goes first."""
        if self._bench is None or self._bench.scale.keys != keys:
            self.__exit__()
            self._bench = Bench(self._settings.scale(keys), self._directory / f"{keys}")
        return self._bench
