"""Tables of no files, placed in versions: for tests of what is decided about them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from lsm.comparator import BYTEWISE, Comparator
from lsm.disk.keys import PUT, pack, rank_of
from lsm.kernels import TableFile
from lsm.options import LEVELS
from lsm.version import PlacedTable, Version


def table(
    number: int,
    low: bytes,
    high: bytes,
    *,
    level: int = 0,
    size: int = 100,
    newest: int = 9,
    oldest: int = 1,
    comparator: Comparator = BYTEWISE,
) -> PlacedTable:
    """A table from a key to a key."""
    smallest, largest = pack(low, rank_of(newest, PUT)), pack(high, rank_of(oldest, PUT))
    return PlacedTable.at(level, TableFile(number, size), smallest, largest, comparator)


def version(*levels: Sequence[PlacedTable]) -> Version:
    """A version of these levels, the others empty."""
    return Version([*levels, *([()] * (LEVELS - len(levels)))])


def random_version(rng: random.Random, keys: int = 30) -> Version:
    """Tables that overlap on level 0, and on the others at most share their border keys."""
    number = iter(range(1, 1000))

    def key(at: int) -> bytes:
        return b"%02d" % at

    levels: list[list[PlacedTable]] = [[]]
    for _ in range(rng.randrange(6)):
        low, high = sorted(rng.choices(range(keys), k=2))
        levels[0].append(table(next(number), key(low), key(high), size=rng.randrange(1, 2000)))
    for level in range(1, LEVELS):
        borders = sorted(rng.sample(range(keys), rng.randrange(0, 12)))
        tables, last, newest = [], -1, 1000
        for low, high in itertools.pairwise(borders):
            # LevelDB may cut a table between two versions of one key.
            begin = low if low > last or rng.random() < 0.4 else low + 1
            if begin <= high and rng.random() < 0.7:
                newest -= 2
                tables.append(
                    table(
                        next(number),
                        key(begin),
                        key(high),
                        level=level,
                        size=rng.randrange(1, 2000),
                        newest=newest + 1,
                        oldest=newest,
                    )
                )
                last = high
        levels.append(tables)
    made = Version(levels)
    made.check_order()
    return made


def numbers(tables: Sequence[PlacedTable]) -> list[int]:
    """The tables' numbers, in their order."""
    return [each.number for each in tables]
