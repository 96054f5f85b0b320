"""What a part of the benchmark is: it says what there is to measure, and how.

A part is cut into units, the pieces that are shown as progress and kept when a run is stopped. What
costs time to make is made by the part's bench, when the first unit asks for it.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import attrs

from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.rows import FAILED, NOT_MEASURED, Row


class Size(StrEnum):
    """How much is measured."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


@attrs.frozen
class Unit:
    """A piece of work that gives rows, and about how many seconds it takes.

    ``row`` is what its rows have in common; it stands for them where there are none. Its id is the
    unit's name, which ``--only`` looks into.
    """

    row: Row
    measure: Callable[[Any], Iterable[Row]] = attrs.field(repr=False)
    seconds: float = 1.0

    @property
    def key(self) -> str:
        """The name under which the unit's rows are kept when a run is stopped."""
        return self.row.id

    def run(self, bench: Any) -> list[Row]:
        """Its rows, or one that says why there are none; no error costs what others have."""
        try:
            return list(self.measure(bench))
        except UnavailableError as error:
            return [attrs.evolve(self.row, verdict=NOT_MEASURED, reason=str(error))]
        except WrongAnswersError as error:
            return [attrs.evolve(self.row, verdict=FAILED, reason=str(error))]
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            return [attrs.evolve(self.row, verdict=FAILED, reason=reason)]


class Part(ABC):
    """One of the benchmark's parts."""

    name: ClassVar[str]
    help: ClassVar[str]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:  # noqa: B027 - most have none
        """Options of its own; their names may not clash with those of other parts."""

    @abstractmethod
    def settings(self, size: Size, options: argparse.Namespace) -> Any:
        """How much is measured, an attrs class with a ``seed``; ValueError for a wrong option."""

    @abstractmethod
    def units(self, settings: Any) -> Sequence[Unit]:
        """Everything there is to measure, in order. Making the list costs nothing."""

    @abstractmethod
    def bench(self, settings: Any, directory: Path) -> AbstractContextManager[Any]:
        """What units are measured with; it may keep files in this directory until it is closed."""

    @abstractmethod
    def text(self, rows: Sequence[Row]) -> Iterator[str]:
        """The lines in which a terminal shows these rows of its."""

    @abstractmethod
    def summary(self, rows: Sequence[Row]) -> Iterator[str]:
        """A screenful of them, for where other parts are shown, too."""
