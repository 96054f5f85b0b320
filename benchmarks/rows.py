"""A row: one number that was measured, of whom, under which circumstances, and what to think of it.

Every part of the benchmark gives rows, a record is a list of them, the report and ``compare`` read
nothing else. ``docs/benchmarks.md`` describes the members.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Self

import attrs

MET = "met"
MISSED = "MISSED"
INFORMATION = "information"
AS_EXPECTED = "as expected"
UNEXPECTED = "UNEXPECTED"
FAILED = "failed"
NOT_MEASURED = "not measured"
VERDICTS = (MET, MISSED, INFORMATION, AS_EXPECTED, UNEXPECTED, FAILED, NOT_MEASURED)

LOWER = "lower"
HIGHER = "higher"
NEITHER = ""

Coordinate = str | int | float

# The members of a row that a record has even if there is nothing in them.
ALWAYS = ("part", "group", "name", "subject", "value", "better")


@attrs.frozen
class Target:
    """A bound on a ratio of two measured numbers, or on our number alone.

    The ratio is ours over the peer's, and at most ``limit``. Where ``at_least`` is set it is the
    other way round: the peer's over ours, which says how many times as fast ours is. Where
    ``absolute`` is set no peer counts.
    """

    limit: float
    wording: str
    at_least: bool = False
    absolute: bool = False

    def ratio(self, ours: float, peer: float) -> float:
        """What is shown beside the limit."""
        return peer / ours if self.at_least else ours / peer

    def is_met(self, value: float) -> bool:
        """Whether a ratio, or our number, is good enough; the limit itself is."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{sign} {self.limit:g}" + (" alone" if self.absolute else "")


def _numbers(given: Iterable[float]) -> tuple[float, ...]:
    return tuple(given)


def _finite(instance: Any, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{attribute.name} is {value}: a record holds finite numbers, or none")


@attrs.frozen(kw_only=True)
class Row:
    """One number.

    ``subject`` is who was measured and ``at`` under which circumstances; with part, group and name
    they tell a row from all others. ``value`` is the number that counts, None where there is none:
    the ``reason`` says why. ``better`` is the direction to hope for. ``aim`` is what is hoped for
    where the target is what must be.
    """

    part: str
    group: str
    name: str
    subject: str
    at: Mapping[str, Coordinate] = attrs.field(factory=dict, hash=False)
    unit: str = ""
    better: str = LOWER
    value: float | None = attrs.field(default=None, validator=_finite)
    repeats: Sequence[float] = attrs.field(default=(), converter=_numbers)
    expected: float | None = attrs.field(default=None, validator=_finite)
    interval: tuple[float, float] | None = None
    sigmas: float | None = None
    peer: str = ""
    peer_repeats: Sequence[float] = attrs.field(default=(), converter=_numbers)
    ratio: float | None = None
    target: Target | None = None
    aim: float | None = attrs.field(default=None, validator=_finite)
    verdict: str = INFORMATION
    reason: str = ""
    note: str = ""

    @property
    def id(self) -> str:
        """The row's name in the record, and in any other record of the same benchmark."""
        at = ",".join(f"{name}={value}" for name, value in self.at.items())
        return "/".join(filter(None, (self.part, self.group, self.name, self.subject, at)))

    @property
    def median(self) -> float | None:
        """The middle of the repeats."""
        return median(self.repeats) if self.repeats else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The lowest and the highest of the repeats."""
        return (min(self.repeats), max(self.repeats)) if self.repeats else None

    @property
    def reaches_aim(self) -> bool:
        """Whether it has an aim, and comes to that."""
        value = self.value if self.target and self.target.absolute else self.ratio
        if self.target is None or self.aim is None or value is None:
            return False
        return attrs.evolve(self.target, limit=self.aim).is_met(value)

    def as_dict(self) -> dict[str, Any]:
        """The row as the record has it: what does not apply is left out."""
        members: dict[str, Any] = {"id": self.id}
        for each in attrs.fields(type(self)):
            given = getattr(self, each.name)
            if each.name in ALWAYS or given not in (None, "", (), {}):
                members[each.name] = given
        if self.target is not None:
            members["target"] = attrs.asdict(self.target)
        if self.repeats:
            members["best"] = min(self.repeats)
            members["median"] = self.median
            members["spread"] = self.spread
        return members

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Self:
        """The row that :meth:`as_dict` was made of; ValueError says what is wrong with it."""
        names = {each.name for each in attrs.fields(cls)}
        given = {name: value for name, value in members.items() if name in names}
        try:
            if given.get("target") is not None:
                given["target"] = Target(**given["target"])
            if given.get("interval") is not None:
                given["interval"] = tuple(given["interval"])
            return cls(**given)
        except TypeError as error:
            raise ValueError(f"not a row: {json.dumps(members)[:200]} ({error})") from error


def timed(
    row: Row, ours: Sequence[float], peer: Sequence[float] = (), *, counts: str = "best"
) -> Row:
    """The row with repeats of ours, and of the peer's if there is one, and a verdict on its target.

    ``counts`` says which of the repeats does: the ``best``, since a disturbance can only add to
    what something takes, or the ``median``.
    """
    choose = min if counts == "best" else median
    value, ratio = choose(ours), None
    if peer:
        ratio = row.target.ratio(value, choose(peer)) if row.target else value / choose(peer)
    row = attrs.evolve(row, value=value, repeats=ours, peer_repeats=peer, ratio=ratio)
    return judged(row)


def judged(row: Row) -> Row:
    """The row with a verdict on its target, if it has one and what it takes to judge it."""
    if row.target is None:
        return row
    value = row.value if row.target.absolute else row.ratio
    if value is None:
        return attrs.evolve(row, verdict=NOT_MEASURED)
    return attrs.evolve(row, verdict=MET if row.target.is_met(value) else MISSED)


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """How many rows came to each verdict."""
    verdicts = [row.verdict for row in rows]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def number(value: float | None) -> str:
    """A number with three digits that count."""
    if value is None:
        return ""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.2e}"
