"""Balls into bins: how full a bit array gets, and how often a probe of absent keys then hits.

Everything here is exact or a second-order expansion for independent uniform probes; what a family
really does is measured against it in the tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain, islice

LINE_BITS = 512

# Of what sizing looks at again and again, so many values are kept together.
_BLOCK = 64


def empty_share(balls: float, bins: float) -> float:
    """The expected share of bins that stay empty: (1 - 1/bins)^balls."""
    return math.exp(balls * math.log1p(-1 / bins))


def power_of_fill(balls: float, bins: float, power: int) -> float:
    """E[fill^power] after throwing the balls: the false-positive rate of ``power`` probes.

    The fill varies from filter to filter, and a power rewards variance: for ten keys the rate lies
    ten percent above (expected fill)^power. The variance term of the expansion accounts for it.
    """
    empty = empty_share(balls, bins)
    fill = 1 - empty
    if fill == 0 or power < 2:
        return fill if power else 1.0
    # Var[empty bins] = bins * e + bins (bins - 1) e2 - bins^2 e^2, with e2 = (1 - 2/bins)^balls and
    # e2 / e^2 = (1 - 1/(bins - 1)^2)^balls, which is written so that nothing cancels.
    pair_excess = math.expm1(balls * math.log1p(-1 / (bins - 1) ** 2))
    variance = empty / bins + empty**2 * (pair_excess * (1 - 1 / bins) - 1 / bins)
    return min(1.0, fill**power * (1 + power * (power - 1) / 2 * max(0.0, variance) / fill**2))


def keys_from_fill(fill: float, bins: float, probes: float) -> float:
    """How many keys of ``probes`` balls each fill this share of the bins."""
    most_filled = 1 - 0.5 / bins
    return math.log1p(-min(fill, most_filled)) / math.log1p(-1 / bins) / probes


def line_fpr(num_keys: float, lines: int, num_probes: int) -> float:
    """The rate of a cache-local filter, whose keys each fill one of its lines."""
    return line_moment(num_keys, lines, num_probes, num_probes)


def line_moment(num_keys: float, lines: int, num_probes: int, power: int) -> float:
    """E[fill^power] of a line: a mixture over how many keys share it."""
    if num_keys == 0:
        return 0.0
    if lines == 1:
        return power_of_fill(num_keys * num_probes, LINE_BITS, power)
    mean = num_keys / lines
    spread = 12 * math.sqrt(mean) + 12
    low, high = max(0, math.floor(mean - spread)), min(math.ceil(mean + spread), round(num_keys))
    blocks, skipped = range(low // _BLOCK, high // _BLOCK + 1), low % _BLOCK
    ways = islice(chain.from_iterable(_ways(num_keys, each) for each in blocks), skipped, None)
    powers = chain.from_iterable(_line_powers(num_probes, power, each) for each in blocks)
    here, elsewhere = math.log(1 / lines), math.log1p(-1 / lines)
    return sum(
        [
            math.exp(log_ways + keys * here + (num_keys - keys) * elsewhere) * powered
            for keys, log_ways, powered in zip(
                range(low, high + 1), ways, islice(powers, skipped, None), strict=False
            )
        ]
    )


@lru_cache(maxsize=512)
def _ways(num_keys: float, block: int) -> tuple[float, ...]:
    """In how many ways 0, 1, 2 and so on of the keys can be chosen, as logarithms; a block."""
    most = math.lgamma(num_keys + 1)
    end = min((block + 1) * _BLOCK, round(num_keys) + 1)
    return tuple(
        most - math.lgamma(keys + 1) - math.lgamma(num_keys - keys + 1)
        for keys in range(block * _BLOCK, end)
    )


@lru_cache(maxsize=512)
def _line_powers(num_probes: int, power: int, block: int) -> tuple[float, ...]:
    """E[fill^power] of a line that 0, 1, 2 and so on keys share; a block of them."""
    numbers = range(block * _BLOCK, (block + 1) * _BLOCK)
    return tuple(power_of_fill(keys * num_probes, LINE_BITS, power) for keys in numbers)


def count_lines(payload: memoryview | bytearray, line_bytes: int) -> Counter[int]:
    """How many lines of a cache-local filter have how many bits set."""
    return Counter(
        int.from_bytes(payload[start : start + line_bytes], "little").bit_count()
        for start in range(0, len(payload), line_bytes)
    )


def mean_line_fpr(counts: Mapping[int, int], line_bits: int, num_probes: int) -> float:
    """The rate of a cache-local filter as built: the mean over its lines of fill^probes."""
    # In ascending order, so that every kernel adds up to the same float.
    powers = (lines * (bits / line_bits) ** num_probes for bits, lines in sorted(counts.items()))
    return sum(powers) / sum(counts.values())


def keys_from_line_fill(fill: float, lines: int, num_probes: int) -> float:
    """How many keys fill this share of all lines' bits, lines being unevenly full."""
    if lines == 1:
        return keys_from_fill(fill, LINE_BITS, num_probes)
    # A key empties a given bit's chance by 1/lines * (1 - (1 - 1/512)^probes).
    per_key = -math.expm1(num_probes * math.log1p(-1 / LINE_BITS)) / lines
    return math.log1p(-min(fill, 1 - 0.5 / (lines * LINE_BITS))) / math.log1p(-per_key)
