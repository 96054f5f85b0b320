"""Putting everything in, batch after batch, until the engine has nothing left to do."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import attrs

from benchmarks.engine.engine import Engine, Pairs


@attrs.frozen
class Load:
    """Seconds until the last call returned, until nothing was left to do, and of the longest call.

    ``amplification`` is how many bytes went to tables for each byte of the user's until then, None
    where the engine does not tell; ``merging`` how long merging everything took afterwards, if it
    was merged.
    """

    calls: float
    idle: float
    longest: float
    amplification: float | None = None
    merging: float | None = None


def load(engine: Engine, db: Any, batches: Iterable[Pairs]) -> Load:
    """Write these batches into a database, each timed by itself, and wait for the background."""
    clock, longest = time.perf_counter, 0.0
    start = before = clock()
    for pairs in batches:
        engine.put_batch(db, pairs)
        now = clock()
        longest, before = max(longest, now - before), now
    sure = engine.settle(db)
    return Load(calls=before - start, idle=clock() - sure - start, longest=longest)
