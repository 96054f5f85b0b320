"""What the engine is to reach, beside plyvel in the same run: every target there is."""

from __future__ import annotations

from benchmarks.rows import Target

TARGETS = {
    "absent": Target(4, "a get of an absent key: at most 4 x plyvel"),
    "present": Target(8, "a get of a present key: at most 8 x plyvel"),
    "load": Target(6, "a put in a batch, with all it has to wait for: at most 6 x plyvel"),
    "iteration": Target(10, "an entry of an iteration over everything: at most 10 x plyvel"),
    "opening": Target(20, "opening with an empty log: at most 20 ms", absolute=True),
    "replay": Target(
        5, "an entry of a log that is replayed and becomes a table: at most 5 us", absolute=True
    ),
}
