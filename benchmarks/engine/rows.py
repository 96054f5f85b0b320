"""What a row of the table is: a case knows how to measure it, running that gives the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from benchmarks.bench import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Group
from benchmarks.engine.targets import TARGETS, Target
from benchmarks.errors import UnavailableError, WrongAnswersError

if TYPE_CHECKING:
    from benchmarks.engine.bench import Bench

Taken = Mapping[str, Sequence[float]]
"""By the names of engines, what was measured of each, in the row's unit; one number per repeat."""


@attrs.frozen
class Figures:
    """What was measured of the engines that take part, and a remark."""

    taken: Taken
    note: str = ""


@attrs.frozen
class Case:
    """One row: an engine of ours beside its peer, if there is one, and the target, if any."""

    group: Group
    name: str
    unit: str
    measure: Callable[[Bench], Figures] = attrs.field(repr=False)
    ours: str
    peer: str | None = None
    target: str | None = None

    @property
    def label(self) -> str:
        """The row's full name."""
        return f"{self.group.title}: {self.name}, {self.ours}"


@attrs.frozen
class Row:
    """What became of a case. ``reason`` says why there is no verdict, or why it failed."""

    case: Case
    verdict: str
    figures: Figures | None = None
    reason: str = ""

    @property
    def target(self) -> Target | None:
        """What the ratio is held against, or our number."""
        return TARGETS[self.case.target] if self.case.target else None

    def repeats(self, engine: str | None) -> Sequence[float] | None:
        """All that was measured of an engine; None if nothing was."""
        if self.figures is None or engine is None:
            return None
        return self.figures.taken.get(engine)

    @property
    def ours(self) -> float | None:
        """The best of our repeats."""
        return min(self.repeats(self.case.ours) or (), default=None)

    @property
    def peer(self) -> float | None:
        """The best of the peer's repeats."""
        return min(self.repeats(self.case.peer) or (), default=None)

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's."""
        return self.ours / self.peer if self.ours is not None and self.peer else None

    @property
    def judged(self) -> float | None:
        """What is held against the target."""
        return self.ours if self.target is not None and self.target.absolute else self.ratio


def run(case: Case, bench: Bench) -> Row:
    """Measure a case, or say why it cannot be; no error costs the rows that others have."""
    try:
        figures = case.measure(bench)
    except UnavailableError as error:
        return Row(case, NOT_MEASURED, reason=str(error))
    except WrongAnswersError as error:
        return Row(case, FAILED, reason=str(error))
    except Exception as error:
        return Row(case, FAILED, reason=f"{type(error).__name__}: {error}")
    row = Row(case, INFORMATION, figures)
    if row.target is None:
        return row
    if row.judged is None:
        return attrs.evolve(row, verdict=NOT_MEASURED, reason=bench.missing)
    return attrs.evolve(row, verdict=MET if row.target.is_met(row.judged) else MISSED)
