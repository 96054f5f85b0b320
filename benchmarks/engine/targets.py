"""What the engine is to reach, beside plyvel in the same run: every target there is."""

from __future__ import annotations

import attrs


@attrs.frozen
class Target:
    """An upper bound: on the ratio of ours to the peer's, or on our number alone."""

    limit: float
    wording: str
    absolute: bool = False

    def is_met(self, value: float) -> bool:
        """Whether a ratio, or our number, is good enough; the limit itself is."""
        return value <= self.limit

    def __str__(self) -> str:
        return f"<= {self.limit:g}" + (" alone" if self.absolute else "")


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
