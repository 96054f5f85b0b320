"""Measure what LevelDB's filters really do, and write ``filters/leveldb_rates.py``.

    python -m benchmarks.leveldb_rates [--seed N] [--output FILE]

Every cell throws hashes that are uniform over 32 bits at filters of LevelDB's geometry and probes
them with others, so only the probing scheme is judged and not the hash of keys. It needs NumPy and
about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from filters.leveldb import bits_for, default_probes

SEED = 20_141_108
TABLE = Path(__file__).parent.parent / "filters" / "leveldb_rates.py"

BITS_PER_KEY = (*range(1, 33), 34, 36, 38, 40, 42, 44, 48, 56, 64, 72, 80, 90, 100)

# Each of the first twenty counts has rates of its own; beyond them neighbours are alike.
EXACT_KEYS = tuple(range(1, 21))
SPREAD_KEYS = (
    *(24, 28, 34, 40, 50, 64, 80, 100, 130, 160, 200, 300, 500, 1_000, 2_000, 5_000, 10_000),
    *(20_000, 30_000, 50_000, 70_000, 100_000, 150_000, 200_000, 300_000, 500_000),
    *(1_000_000, 2_000_000, 5_000_000, 10_000_000),
)

# How far from a spread count its neighbours are drawn, as a share of it.
SPREAD = 0.06
MAX_NEIGHBOURS = 9
ENOUGH_HITS = 4000
MAX_SAMPLES = 1 << 23

# Bits in memory at once (a byte each), and probes per turn.
ARENA = 1 << 21
TURN = 1 << 20

Words = NDArray[np.uint64]


class Arena:
    """Several filters of one geometry side by side, each holding ``num_keys`` random hashes."""

    def __init__(self, num_keys: int, bits: int, probes: int, rng: np.random.Generator):
        self.filters = max(1, ARENA // bits)
        self._bits, self._probes, self._rng = np.uint64(bits), probes, rng
        self._set = np.zeros(self.filters * bits, dtype=np.bool_)
        for hashes, starts in self._turns(self.filters * num_keys):
            step = _rotate(hashes)
            for _ in range(probes):
                self._set[hashes % self._bits + starts] = True
                hashes = hashes + step & _LOW32

    def hits(self, samples: int) -> int:
        """How many of so many random hashes the filters answer "maybe" to."""
        return sum(self._survivors(hashes, starts) for hashes, starts in self._turns(samples))

    def _turns(self, count: int) -> Iterator[tuple[Words, Words]]:
        """Random hashes, dealt out evenly to the filters, and where the filter of each starts."""
        for first in range(0, count, TURN):
            size = min(TURN, count - first)
            dealt = np.arange(first, first + size, dtype=np.uint64) % np.uint64(self.filters)
            yield self._rng.integers(0, 1 << 32, size, dtype=np.uint64), dealt * self._bits

    def _survivors(self, hashes: Words, starts: Words) -> int:
        step = _rotate(hashes)
        for _ in range(self._probes):
            kept = self._set[hashes % self._bits + starts]
            hashes, step, starts = hashes[kept], step[kept], starts[kept]
            hashes = hashes + step & _LOW32
        return len(hashes)


_LOW32 = np.uint64(0xFFFF_FFFF)


def _rotate(hashes: Words) -> Words:
    """Each 32-bit word rotated right by 17: the step of its probes."""
    return (hashes >> np.uint64(17) | hashes << np.uint64(15)) & _LOW32


def measure(
    num_keys: int, bits: int, probes: int, rng: np.random.Generator, enough: int, most: int
) -> tuple[int, int]:
    """Hits and samples, once there are ``enough`` of the one or ``most`` of the other."""
    hits = samples = 0
    while hits < enough and samples < most:
        arena = Arena(num_keys, bits, probes, rng)
        turns = max(1, 2 * num_keys // TURN)
        hits += arena.hits(turns * TURN)
        samples += turns * TURN
    return hits, samples


def neighbours(num_keys: int, rng: np.random.Generator) -> list[int]:
    """The counts that stand for one column: itself alone, or several drawn around it."""
    if num_keys in EXACT_KEYS:
        return [num_keys]
    count = max(1, min(MAX_NEIGHBOURS, 3_000_000 // num_keys))
    drawn = rng.uniform(1 - SPREAD, 1 + SPREAD, count - count % 2 + 1)
    return [round(num_keys * factor) for factor in drawn]


def typical_rate(num_keys: int, bits_per_key: int, rng: np.random.Generator) -> float:
    """The median rate over a column's neighbours.

    It cannot lie below the share of all hashes that the keys' own are: they pass, whatever the
    size, and are too rare to be seen in so few samples.
    """
    counts = neighbours(num_keys, rng)
    rates = []
    for count in counts:
        bits, probes = bits_for(count, bits_per_key), default_probes(bits_per_key)
        share = len(counts)
        hits, samples = measure(
            count, bits, probes, rng, ENOUGH_HITS // share, MAX_SAMPLES // share
        )
        rates.append(hits / samples)
    return max(statistics.median(rates), num_keys / 2**32)


def module(rows: dict[int, list[float]], seed: int) -> str:
    """The source of ``filters/leveldb_rates.py``."""
    lines = [
        '"""Measured false-positive rates of LevelDB filters, by bits per key and number of keys.',
        "",
        "Written by ``python -m benchmarks.leveldb_rates``; do not edit. Columns past the first",
        f"{len(EXACT_KEYS)} are medians over neighbouring counts. Seed {seed}.",
        '"""',
        "",
        "# fmt: off",
        "# ruff: noqa: E501",
        "",
        f"NUM_KEYS = ({', '.join(map(str, (*EXACT_KEYS, *SPREAD_KEYS)))})",
        "",
        "# bits per key: one rate for each of NUM_KEYS",
        "RATES = {",
        *(f"    {bits}: ({', '.join(f'{r:.3g}' for r in row)})," for bits, row in rows.items()),
        "}",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure every row and write the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=TABLE)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    rows = {}
    for bits_per_key in BITS_PER_KEY:
        # A generator for each row, so that a row does not depend on those before it.
        rng = np.random.default_rng([arguments.seed, bits_per_key])
        rows[bits_per_key] = [
            typical_rate(num_keys, bits_per_key, rng) for num_keys in (*EXACT_KEYS, *SPREAD_KEYS)
        ]
        print(f"{bits_per_key} bits per key: {rows[bits_per_key][-1]:.3g} at the end", flush=True)
    arguments.output.write_text(module(rows, arguments.seed))
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
