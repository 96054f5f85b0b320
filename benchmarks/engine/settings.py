"""How much is measured, in all and with so many keys."""

from __future__ import annotations

import attrs

from benchmarks.engine.targets import FEW, JUDGED_AT, LARGE, MANY

FEWEST_KEYS, MOST_KEYS = 1000, 20_000_000

# What takes seconds for each million keys is repeated until so many were handled.
_KEYS_HANDLED = 200_000


@attrs.frozen
class Settings:
    """The sizes, and what is the same with each of them.

    With ``large`` keys or more only the rows are measured that tell something new there, and what
    goes over all entries once. Targets are held to with ``judged_at`` keys.
    """

    sizes: tuple[int, ...] = (FEW, MANY)
    repeats: int = 5
    seed: int = 1
    batch: int = 1000
    probes: int = 30_000
    ranges: int = 5_000
    puts: int = 20_000
    sync_puts: int = 100
    crowd_seconds: float = 0.5
    loads: int = 2
    disturbances: int = 3
    large: int = LARGE
    judged_at: tuple[int, ...] = JUDGED_AT

    def scale(self, keys: int) -> Scale:
        """What is measured with so many keys."""
        large = keys >= self.large
        writes = 1 if large else min(self.repeats, max(2, _KEYS_HANDLED // keys))
        return Scale(
            keys=keys,
            seed=self.seed,
            batch=self.batch,
            repeats=self.repeats,
            writes=writes,
            loads=min(writes, self.loads),
            disturbances=min(self.repeats, self.disturbances),
            passes=1 if large else self.repeats,
            probes=min(self.probes, keys // 2),
            ranges=min(self.ranges, keys // 2),
            puts=min(self.puts, keys),
            sync_puts=min(self.sync_puts, keys),
            crowd_seconds=self.crowd_seconds,
            large=large,
            judged=keys in self.judged_at,
        )


@attrs.frozen(kw_only=True)
class Scale:
    """A size, and how often and with how much of it.

    ``repeats`` are those of lookups, ranges, single puts and opening, ``passes`` those over all
    entries, ``writes`` those of loading, merging and replaying everything, ``loads`` those of
    loading until nothing is left to do, ``disturbances`` those of lookups meanwhile. ``batch`` is
    how many entries one batch puts, ``probes`` how many keys are looked up in a repeat, ``ranges``
    how many are sought, ``crowd_seconds`` how long writers and readers work at the same time.
    """

    keys: int
    seed: int
    batch: int
    repeats: int
    writes: int
    loads: int
    disturbances: int
    passes: int
    probes: int
    ranges: int
    puts: int
    sync_puts: int
    crowd_seconds: float
    large: bool
    judged: bool


DEFAULT = Settings()
QUICK = Settings(
    sizes=(10_000,), repeats=3, probes=3_000, ranges=300, puts=1_000, sync_puts=10,
    crowd_seconds=0.05, loads=1, disturbances=1, judged_at=(),
)  # fmt: skip
FULL = Settings(sizes=(FEW, 100_000, MANY, LARGE))
