"""What goes into the databases, what is asked of them, and what the right answers are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

from benchmarks.engine.settings import Scale
from benchmarks.filled_levels import dealt
from benchmarks.keys import KEY_BYTES, random_bytes

VALUE_BYTES = 100
RANGE_ENTRIES = 10
LEVELS, GROWTH = 5, 3.5
THREADS = 4
LISTS = (100, 1000)
MANY_NAMES = tuple(
    f"get_many of {size} {kind} keys, per key" for size in LISTS for kind in ("present", "absent")
)
SUSTAINED_NAMES = ("put in a batch, until idle", "put in a batch, until idle, uncompressed")
LOADED_NAMES = ("bytes to tables per byte loaded", "bytes to tables per byte loaded, uncompressed")
THREADED_NAME = f"get from {THREADS} threads, per key"

Item = TypeVar("Item")
Pair = tuple[bytes, bytes]


class Data:
    """Random keys of 16 bytes in random order, each with a value of 100 bytes.

    The second half of a value repeats the first: compressed, it takes a little more than half.
    ``absent`` keys are random, too, so that they lie between the others.
    """

    def __init__(self, scale: Scale):
        rng, half = random.Random(scale.seed), VALUE_BYTES // 2
        self._rng = random.Random(scale.seed + 1)
        self._scale = scale
        keys = cut(random_bytes(rng, KEY_BYTES * scale.keys), KEY_BYTES)
        values = (first * 2 for first in cut(random_bytes(rng, half * scale.keys), half))
        self.pairs = list(zip(keys, values, strict=True))
        self.batches = cut(self.pairs, scale.batch)
        self.in_order = sorted(self.pairs)
        chosen = rng.sample(self.pairs, scale.probes)
        self.present = [key for key, _ in chosen]
        self.answers = [value for _, value in chosen]
        """The values of the present keys."""
        self.absent = cut(random_bytes(rng, KEY_BYTES * scale.probes), KEY_BYTES)
        self.places = chosen[: scale.ranges]
        """What seeks go to."""

    @cached_property
    def user_bytes(self) -> int:
        """What all keys and values have together."""
        return sum(len(key) + len(value) for key, value in self.pairs)

    @cached_property
    def runs(self) -> dict[int, Sequence[Pair]]:
        """All pairs, dealt to the levels that are filled."""
        return dealt(self.pairs, LEVELS, GROWTH)

    @cached_property
    def first_of(self) -> dict[bytes, list[Pair]]:
        """For prefixes of ten keys or more, the first ten pairs."""
        width = 0
        while 256 ** (width + 1) * RANGE_ENTRIES <= len(self.pairs):
            width += 1
        found: dict[bytes, list[Pair]] = {}
        for pair in self.in_order:
            first = found.setdefault(pair[0][:width], [])
            if len(first) < RANGE_ENTRIES:
                first.append(pair)
        return {prefix: first for prefix, first in found.items() if len(first) == RANGE_ENTRIES}

    @cached_property
    def prefixes(self) -> list[bytes]:
        """The prefixes that are scanned."""
        return self._rng.choices(list(self.first_of), k=self._scale.ranges)


def cut(items: Item, size: int) -> list[Item]:
    """The items in pieces of so many."""
    return [items[at : at + size] for at in range(0, len(items), size)]  # type: ignore
