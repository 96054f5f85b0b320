"""A case of ``python -m benchmarks engine``: what is measured of whom, and the rows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from benchmarks.engine.bench import Bench
from benchmarks.engine.engines import ALL, PLYVEL
from benchmarks.engine.ours import BLOCKED, PLUG_IN
from benchmarks.engine.settings import Scale
from benchmarks.engine.targets import TARGETS, Bar
from benchmarks.errors import UnavailableError
from benchmarks.rows import FAILED, HIGHER, LOWER, NOT_MEASURED, Row, timed

PART = "engine"


@attrs.frozen
class Group:
    """Rows under one heading, which says what is measured."""

    title: str
    what: str
    short: str = ""
    """What tells its rows from those of the same name in another group."""


HELD = Group("Targets", "ours beside each peer: what the ratio must be, and what is aimed for")


@attrs.frozen
class Figures:
    """By engine what was measured of it, in the row's unit, one number per repeat; and remarks.

    ``taken`` may have others that ours is held against, and ``aims`` what is aimed for beside them.
    """

    taken: Mapping[str, Sequence[float]]
    notes: Mapping[str, str] = {}
    aims: Mapping[str, float] = {}


@attrs.frozen
class Case:
    """A row for each of these engines: how they are measured, and the targets ours is held to.

    ``seconds`` is about what it takes; making what several cases need counts with the first.
    """

    group: Group
    name: str
    unit: str
    measure: Callable[[Bench], Figures] = attrs.field(repr=False)
    engines: tuple[str, ...] = ALL
    target: str | None = None
    better: str = LOWER
    large: bool = False
    seconds: Callable[[Scale], float] = attrs.field(default=lambda scale: 0.01, repr=False)

    def row(self, keys: int) -> Row:
        """What its rows have in common."""
        return Row(
            part=PART, group=self.group.title, name=self.name, subject="", at={"n": keys},
            unit=self.unit, better=self.better,
        )  # fmt: skip

    def rows(self, bench: Bench) -> Iterator[Row]:
        """A row for each engine, also for those that cannot be measured or failed; then targets."""
        try:
            figures, unavailable = self.measure(bench), ""
        except UnavailableError as error:
            figures, unavailable = Figures({}), str(error)
        for name in self.engines:
            row = attrs.evolve(self.row(bench.scale.keys), subject=name)
            if name in figures.taken and name not in bench.failed:
                yield self._measured(row, bench, figures)
            else:
                yield _unmeasured(row, bench, unavailable)
        for bar in self.bars(bench.scale):
            yield self._held(bar, bench, figures, unavailable)

    def bars(self, scale: Scale) -> Sequence[Bar]:
        """What ours is held to with so many keys."""
        return TARGETS.get((self.target or "", scale.keys), ()) if scale.judged else ()

    def _measured(self, row: Row, bench: Bench, figures: Figures) -> Row:
        remarks = (
            figures.notes.get(row.subject),
            bench.engines[row.subject].remarks.get(self.name),
        )
        row = attrs.evolve(row, note="; ".join(filter(None, remarks)))
        if row.subject == PLYVEL or self.better == HIGHER:  # ratios are of what something takes
            return timed(row, figures.taken[row.subject])
        peer = () if PLYVEL in bench.failed else figures.taken.get(PLYVEL, ())
        peer = peer if all(peer) else ()  # LevelDB counts whole MiB
        return timed(
            attrs.evolve(row, peer=PLYVEL if peer else ""), figures.taken[row.subject], peer
        )

    def _held(self, bar: Bar, bench: Bench, figures: Figures, unavailable: str) -> Row:
        """Ours beside one peer, and the verdict."""
        name = ", ".join(filter(None, (self.name, self.group.short)))
        ours = next(engine for engine in self.engines if engine in (BLOCKED, PLUG_IN))
        keys = bench.scale.keys
        row = attrs.evolve(
            self.row(keys), group=HELD.title, name=name, subject=ours,
            at={"n": keys} | ({"beside": bar.peer} if bar.peer else {}),
            target=bar.target(f"{name}, {keys:,} keys"), aim=figures.aims.get(bar.peer, bar.aim),
        )  # fmt: skip
        if ours not in figures.taken or ours in bench.failed:
            return _unmeasured(row, bench, unavailable)
        peer = () if bar.peer in bench.failed else figures.taken.get(bar.peer, ())
        row = timed(attrs.evolve(row, peer=bar.peer if peer else ""), figures.taken[ours], peer)
        if row.verdict == NOT_MEASURED:
            why = bench.missing.get(bar.peer) or bench.failed.get(bar.peer) or unavailable
            row = attrs.evolve(row, reason=f"no ratio: {why}")
        return row


def _unmeasured(row: Row, bench: Bench, unavailable: str) -> Row:
    if row.subject in bench.missing:
        return attrs.evolve(row, verdict=NOT_MEASURED, reason=bench.missing[row.subject])
    if row.subject in bench.failed:
        return attrs.evolve(row, verdict=FAILED, reason=bench.failed[row.subject])
    return attrs.evolve(row, verdict=NOT_MEASURED, reason=unavailable)
