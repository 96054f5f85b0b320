"""What to use for a memory: of all configurations those that no other one beats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from benchmarks.rows import FAILED, Row

PART = "levels"
MEMORY, READS = "Filter memory", "Blocks read per lookup"
TIME = "Time per lookup"
LIVE = "Live store"
BYTES, BITS, ABSENT = "bytes", "bits per key", "absent key"
FLOOR, OVER = "times the floor", "times the budget"
ALL = "all"


@attrs.frozen
class Choice:
    """A configuration, the memory its filters take, and what an absent key reads with them."""

    subject: str
    memory: Row = attrs.field(repr=False)
    bits: Row = attrs.field(repr=False)
    reads: Row = attrs.field(repr=False)

    @property
    def bytes(self) -> float:
        """What its filters take."""
        return self.memory.value or 0.0

    @property
    def bits_per_key(self) -> float:
        """The same for one key."""
        return self.bits.value or 0.0

    @property
    def blocks(self) -> float:
        """Blocks read for an absent key."""
        return self.reads.value or 0.0

    @property
    def at_most(self) -> float:
        """The upper end of the interval around them."""
        return self.reads.interval[1] if self.reads.interval else self.blocks


def usual(rows: Iterable[Row]) -> list[Row]:
    """Of the rows of this part those on filled levels of the usual shape."""
    return [
        row
        for row in rows
        if row.part == PART and row.group in (MEMORY, READS, TIME) and "growth" not in row.at
    ]


def steep(rows: Iterable[Row]) -> list[Row]:
    """Those on levels that grow by more, without saying so."""
    return [
        attrs.evolve(row, at={name: at for name, at in row.at.items() if name != "growth"})
        for row in rows
        if row.part == PART and "growth" in row.at
    ]


def choices(rows: Iterable[Row]) -> list[Choice]:
    """The configurations of which memory and reads were measured, in the order of the rows."""
    found: dict[str, dict[str, Row]] = {}
    for row in usual(rows):
        wanted = (row.group, row.name) in ((MEMORY, BYTES), (MEMORY, BITS), (READS, ABSENT))
        usable = row.value is not None and row.verdict != FAILED
        if wanted and usable and row.at.get("level") == ALL:
            found.setdefault(row.subject, {})[row.name] = row
    return [
        Choice(subject, of[BYTES], of[BITS], of[ABSENT])
        for subject, of in found.items()
        if len(of) == len((BYTES, BITS, ABSENT))
    ]


def frontier(rows: Iterable[Row]) -> list[Choice]:
    """For ascending budgets the configuration to use: it reads least for an absent key.

    Each takes more memory than the one before it and reads clearly less: the interval around its
    reads lies below them. What is not in the list is beaten by one that is, which takes no more
    memory and reads no more, as far as can be told.
    """
    best: list[Choice] = []
    for each in sorted(choices(rows), key=lambda each: (each.bytes, each.blocks)):
        if not best or each.at_most < best[-1].blocks:
            best.append(each)
    return best


def within(found: Sequence[Choice], bits_per_key: float) -> Choice | None:
    """The one of a frontier to use for so many bits per key; None where all take more."""
    fitting = [each for each in found if each.bits_per_key <= bits_per_key]
    return fitting[-1] if fitting else None
