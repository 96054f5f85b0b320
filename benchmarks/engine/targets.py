"""What the engine is to reach beside its peers in the same run, and what it aims for: all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from benchmarks.rows import Target

FEW, MANY, LARGE = 20_000, 1_000_000, 10_000_000
JUDGED_AT = (FEW, MANY, LARGE)

# What ours is held against that is no peer: ours in other circumstances.
ONE_THREAD = "one thread"
ONE_OF_EACH = "one of each"
IDLE = "idle"
OURS_OTHERWISE = (ONE_THREAD, ONE_OF_EACH, IDLE)

# What is aimed for in a unit of time, which each run makes a multiple of plyvel's.
LONGEST_BATCH_AIM = 50e-3
SLOW_GET_AIM = 50e-6

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


_SUSTAINED = _beside(plyvel=(0.5, 0.3), rocksdict=(0.95, 0.55), lmdb=(0.5, 0.28))
_NO_MORE_THAN_PLYVEL = _beside(plyvel=(1.0, None))

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
    ("puts", FEW): _beside(plyvel=(0.75, 0.55), rocksdict=(0.6, 0.42), lmdb=(0.3, 0.2)),
    ("load", FEW): _beside(plyvel=(0.6, 0.4), rocksdict=(0.5, 0.3), lmdb=(0.4, 0.25)),
    ("load", MANY): _beside(plyvel=(6.0, None)),
    ("sustained", MANY): _SUSTAINED,
    ("sustained", LARGE): _SUSTAINED,
    ("longest batch", MANY): _NO_MORE_THAN_PLYVEL,
    ("longest batch", LARGE): _NO_MORE_THAN_PLYVEL,
    ("amplification", MANY): _beside(plyvel=(1.05, None)),
    ("amplification", LARGE): _beside(plyvel=(1.05, None)),
    ("memory while loading", MANY): _beside(plyvel=(1.5, None)),
    ("memory while loading", LARGE): _beside(plyvel=(1.5, None)),
    ("crowd", MANY): (Bar(ONE_OF_EACH, 1.0, at_least=True),),
    ("replay", MANY): (Bar("", 5.0), *_beside(plyvel=(0.5, 0.25))),
    ("compaction", MANY): _beside(plyvel=(0.2, 0.09), rocksdict=(1.0, 0.6)),
    ("p50 while merging", MANY): (Bar(IDLE, 1.2),),
    ("p99 while merging", MANY): (Bar(IDLE, 3.0),),
    ("p99.9 while merging", MANY): _NO_MORE_THAN_PLYVEL,
    ("slowest while merging", MANY): _NO_MORE_THAN_PLYVEL,
}
"""By what is asked and among how many keys."""
