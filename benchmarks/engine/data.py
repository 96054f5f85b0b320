"""What goes into the databases, what is asked of them, and what the right answers are."""

from __future__ import annotations

import random
from typing import TypeVar

from benchmarks.bench import Keys
from benchmarks.engine.settings import Settings

VALUE_BYTES = 100
RANGE_ENTRIES = 10

Item = TypeVar("Item")
Pair = tuple[bytes, bytes]


class Data:
    """Random keys of 16 bytes in random order, each with a value of 100 bytes.

    The second half of a value repeats the first: compressed, it takes a little more than half.
    ``absent`` keys are random, too, so that they lie between the others.
    """

    def __init__(self, settings: Settings):
        keys = Keys(settings.keys, settings.seed)
        rng = random.Random(settings.seed)
        half = VALUE_BYTES // 2
        halves = rng.randbytes(half * settings.keys)
        values = [halves[at : at + half] * 2 for at in range(0, len(halves), half)]
        self.pairs = list(zip(keys.in_order[True], values, strict=True))
        self.batches = cut(self.pairs, settings.batch)
        self.in_order = sorted(self.pairs)
        self.values = dict(self.pairs)
        self.present = keys.shuffled[True][: settings.probes]
        self.absent = keys.shuffled[False][: settings.probes]
        self.lists = cut(self.present, settings.batch)
        self.places = self.present[: settings.ranges]
        """Keys that seeks go to."""
        self.first_of = self._first_of_prefixes()
        """For prefixes of ten keys or more, the first ten pairs."""
        self.prefixes = rng.choices(list(self.first_of), k=settings.ranges)

    def _first_of_prefixes(self) -> dict[bytes, list[Pair]]:
        width = 0
        while 256 ** (width + 1) * RANGE_ENTRIES <= len(self.pairs):
            width += 1
        found: dict[bytes, list[Pair]] = {}
        for pair in self.in_order:
            first = found.setdefault(pair[0][:width], [])
            if len(first) < RANGE_ENTRIES:
                first.append(pair)
        return {prefix: first for prefix, first in found.items() if len(first) == RANGE_ENTRIES}


def cut(items: list[Item], size: int) -> list[list[Item]]:
    """The items in lists of so many."""
    return [items[at : at + size] for at in range(0, len(items), size)]
