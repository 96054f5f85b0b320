"""What the engine is to reach beside its peers in the same run, and what it aims for: all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from benchmarks.rows import Target

FEW, MANY = 20_000, 1_000_000
JUDGED_AT = (FEW, MANY)
ONE_THREAD = "one thread"

# A policy in Python may cost 1.3 times what it did before the engine's kernel was compiled, which
# docs/results/engine.json has as multiples of plyvel's time.
PLUG_IN_SLACK = 1.3
PLUG_IN_BEFORE = {"plug-in absent": 5.72, "plug-in present": 4.94}


@attrs.frozen
class Bar:
    """Beside whom, the limit of the ratio to that one's number, and the ratio that is aimed for.

    Without a ``peer`` it is our number that is limited. ``at_least`` is as in Target.
    """

    peer: str
    must: float
    aim: float | None = None
    at_least: bool = False

    def target(self, what: str) -> Target:
        """The same as a row has it, in words."""
        sign = "at least" if self.at_least else "at most"
        times = f" x {self.peer}" if self.peer else ""
        aim = "" if self.aim is None else f", and {self.aim:g} is the aim"
        wording = f"{what}: {sign} {self.must:g}{times}{aim}"
        return Target(self.must, wording, at_least=self.at_least, absolute=not self.peer)


def _beside(**limits: tuple[float, float | None]) -> Sequence[Bar]:
    """What must be reached and what is aimed for, by peer."""
    return tuple(Bar(peer, must, aim) for peer, (must, aim) in limits.items())


def _plug_in(what: str) -> Sequence[Bar]:
    return _beside(plyvel=(round(PLUG_IN_SLACK * PLUG_IN_BEFORE[what], 2), None))


TARGETS: Mapping[tuple[str, int], Sequence[Bar]] = {
    ("absent", MANY): _beside(plyvel=(0.2, 0.12), rocksdict=(0.4, 0.25), lmdb=(0.15, 0.08)),
    ("absent, five levels", MANY): _beside(
        plyvel=(0.1, 0.06), rocksdict=(0.3, 0.18), lmdb=(0.3, 0.18)
    ),
    ("present", MANY): _beside(plyvel=(0.4, 0.25), rocksdict=(0.4, 0.22), lmdb=(0.85, 0.55)),
    ("present", FEW): _beside(plyvel=(0.25, 0.14), rocksdict=(0.2, 0.11), lmdb=(0.6, 0.35)),
    ("present, five levels", MANY): _beside(
        plyvel=(0.4, 0.25), rocksdict=(0.45, 0.3), lmdb=(0.95, 0.7)
    ),
    ("many absent", MANY): _beside(plyvel=(0.12, 0.07), rocksdict=(0.3, 0.16), lmdb=(0.08, 0.05)),
    ("many present", MANY): _beside(plyvel=(0.15, 0.09), rocksdict=(0.15, 0.09), lmdb=(0.25, 0.15)),
    ("iteration", MANY): _beside(plyvel=(0.5, 0.3), rocksdict=(0.45, 0.26), lmdb=(0.5, 0.3)),
    ("seek", MANY): _beside(plyvel=(0.5, 0.3), rocksdict=(0.45, 0.26), lmdb=(0.85, 0.52)),
    ("prefix", MANY): _beside(plyvel=(0.5, 0.32), rocksdict=(0.45, 0.26), lmdb=(0.6, 0.4)),
    # The aim is what plyvel gains, which each run measures.
    ("threads", MANY): (Bar(ONE_THREAD, 1.0, at_least=True),),
    ("opening", MANY): _beside(plyvel=(1.0, None), rocksdict=(0.5, None)),
    ("memory", MANY): _beside(plyvel=(1.1, 0.9)),
    ("plug-in absent", MANY): _plug_in("plug-in absent"),
    ("plug-in present", MANY): _plug_in("plug-in present"),
    ("load", MANY): _beside(plyvel=(6.0, None)),
    ("replay", MANY): (Bar("", 5.0),),
}
"""By what is asked and among how many keys."""
