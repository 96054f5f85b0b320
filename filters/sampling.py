"""Measure a filter's rate on the filter itself, where its fill alone does not tell.

Only for foreign formats: there the probes of one key depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from filters.compat_hashing import mixed64
from filters.packed_keys import PackedKeys

# A filter is asked until so many hits or samples.
ENOUGH_HITS = 400
MAX_SAMPLES = 1 << 18
SAMPLE_GROUP = 64
SAMPLE_GROUPS = MAX_SAMPLES // SAMPLE_GROUP


def sample_hash(index: int) -> int:
    """The ``index``-th 32-bit hash to ask for: all differ, and neighbours have nothing in common.

    A counter through a bijective mixer, MurmurHash3's finalizer. Evenly spaced hashes bring the
    error down no further, and could fall into step with the even spacing of a key's probes.
    """
    h = index + 1 & 0xFFFF_FFFF
    h = (h ^ h >> 16) * 0x85EB_CA6B & 0xFFFF_FFFF
    h = (h ^ h >> 13) * 0xC2B2_AE35 & 0xFFFF_FFFF
    return h ^ h >> 16


def wide_sample_hash(index: int) -> int:
    """The ``index``-th 128-bit hash to ask for, as unlike its neighbours as two mixers make it."""
    return mixed64(2 * index + 1) << 64 | mixed64(2 * index + 2)


def hit_rate(probe: Callable[[int], bool], sample: Callable[[int], int] = sample_hash) -> float:
    """The share of hashes that ``probe`` answers "maybe" to: the same at each call, 0 if none."""
    hits = 0
    for index in range(MAX_SAMPLES):
        if probe(sample(index)):
            hits += 1
            if hits == ENOUGH_HITS:
                return hits / (index + 1)
    return hits / MAX_SAMPLES


@cache
def sample_keys(group: int) -> PackedKeys:
    """A few keys for what is asked with keys, not with hashes; made once, since many ask."""
    start = group * SAMPLE_GROUP
    hashes = (sample_hash(index) for index in range(start, start + SAMPLE_GROUP))
    return PackedKeys(b"".join(each.to_bytes(8, "little") for each in hashes), width=8)


def error_of(rate: float) -> float:
    """The standard error of a rate that was measured here, as a share of it: 5 % unless rare."""
    return 1 / math.sqrt(max(1.0, min(ENOUGH_HITS, rate * MAX_SAMPLES)))
