"""Tallies: what became of lookups at one level whose tables carry one policy's filters."""

from __future__ import annotations


class Tally:
    """Counts lookups while they run; :class:`lsm.stats.Counters` says what each count means."""

    __slots__ = (
        "corrupt",
        "declined",
        "failed",
        "false_positives",
        "none",
        "skipped",
        "true_positives",
        "unknown",
        "unloaded",
    )

    def __init__(self) -> None:
        self.skipped = self.true_positives = self.false_positives = 0
        self.none = self.unknown = self.corrupt = self.failed = self.declined = self.unloaded = 0

    def count(self, state: str) -> None:
        """Count a lookup that read a block without a filter's say, and why it had none."""
        setattr(self, state, getattr(self, state) + 1)
