"""What lies on the levels, and what is looked up: the same for all configurations."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from benchmarks.filled_levels import Pair, dealt
from benchmarks.levels.settings import USUAL, Settings, Shape

KEY_BYTES = 16
COPIES = 6
BLOCK_BYTES = 4096

# Of an entry's bytes in a block: its version, three lengths, and what keys in order share.
_OVERHEAD = 8 + 3 - 2
ENTRY_BYTES = KEY_BYTES * (1 + COPIES) + _OVERHEAD
KEYS_PER_BLOCK = round(BLOCK_BYTES / ENTRY_BYTES)
"""About how many entries a data block has: what a filter for one block is built of."""

ABSENT, PRESENT = "absent key", "present key"


@attrs.frozen
class Asked:
    """Of the lookups that come to a level, how many find their key there, and how many do not."""

    hits: int
    misses: int


@attrs.frozen
class Questions:
    """Keys to look up, the right answers, and on which levels those lookups come and end."""

    name: str
    keys: Sequence[bytes] = attrs.field(repr=False)
    answers: Sequence[bytes | None] = attrs.field(repr=False)
    asked: Mapping[int, Asked]


class Data:
    """Random keys of 16 bytes on the levels of a shape, the same for the same settings.

    Every run begins and ends with keys of its own at the ends of the range, so that no lookup is
    spared a level because its key lies outside of the run's bounds. No key is on two levels.
    """

    def __init__(self, settings: Settings, shape: Shape = USUAL):
        rng = random.Random(settings.seed)
        self.shape = shape
        levels = range(1, shape.levels + 1)
        inner = [pair(key) for key in distinct(settings.keys - 2 * shape.levels, rng)]
        self.runs: dict[int, Sequence[Pair]] = {
            level: [*pairs, *map(pair, ends(level))]
            for level, pairs in dealt(inner, shape.levels, shape.growth).items()
        }
        self.counts = {level: len(self.runs[level]) for level in levels}
        """How many keys each level has."""
        self.questions = {
            ABSENT: self._absent(settings.absent, rng),
            PRESENT: self._present(settings.present, rng),
        }

    def _absent(self, count: int, rng: random.Random) -> Questions:
        known = {key for run in self.runs.values() for key, _ in run}
        keys: list[bytes] = []
        while len(keys) < count:
            key = rng.randbytes(KEY_BYTES)
            if key not in known:
                keys.append(key)
        return Questions(ABSENT, keys, [None] * count, dict.fromkeys(self.runs, Asked(0, count)))

    def _present(self, count: int, rng: random.Random) -> Questions:
        places = [(level, key) for level, run in self.runs.items() for key, _ in run]
        chosen = rng.choices(places, k=count)
        hits = Counter(level for level, _ in chosen)
        asked, left = {}, count
        for level in sorted(self.runs):
            left -= hits[level]
            asked[level] = Asked(hits[level], left)
        keys = [key for _, key in chosen]
        return Questions(PRESENT, keys, [pair(key)[1] for key in keys], asked)


def pair(key: bytes) -> Pair:
    """A key and its value: six times itself, so that a wrong one is seen without keeping any."""
    return key, key * COPIES


def distinct(count: int, rng: random.Random) -> list[bytes]:
    """So many different random keys, in random order."""
    found: dict[bytes, None] = {}
    while len(found) < count:
        found[rng.randbytes(KEY_BYTES)] = None
    return list(found)


def ends(level: int) -> tuple[bytes, bytes]:
    """The first key of a level's run and its last; an upper run reaches further on both sides."""
    rest = KEY_BYTES - 1
    return bytes(rest) + bytes([level]), b"\xff" * rest + bytes([0xFF - level])
