"""Counts and times of an open database's flushes, compactions, stalls and written bytes."""

from __future__ import annotations

import attrs

from lsm.options import LEVELS


@attrs.define
class LevelWork:
    """The time and bytes that compactions into a level have taken."""

    seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0


@attrs.define
class Work:
    """Counts and times since opening; one thread at a time adds to each."""

    flushes: int = 0
    compactions: int = 0
    moves: int = 0
    flush_seconds: float = 0.0
    compaction_seconds: float = 0.0
    slowed_seconds: float = 0.0
    stopped_seconds: float = 0.0
    table_bytes: int = 0
    filters_failed: int = 0
    levels: list[LevelWork] = attrs.field(factory=lambda: [LevelWork() for _ in range(LEVELS)])
