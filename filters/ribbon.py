"""RocksDB's Ribbon filter, as its ``RibbonFilterPolicy`` writes it: sizing and layout.

A linear system over bits (Dillinger and Walzer, 2021): each key is an equation in 128 neighbouring
slots, and solving all of them takes a little more slots than keys. A slot holds as many bits as the
rate demands, seven where a Bloom filter of the same rate takes ten. They are stored by columns: a
block of 128 slots is one 16-byte segment for each of its bits, and the first blocks may have one
bit fewer than the rest, so that any rate can be had. Five bytes follow: fe, the seed, the number of
blocks in three bytes.

``bits_per_key`` means what it means to RocksDB: the size of the Bloom filter whose rate is asked
for. Where that very filter would be smaller, or no seed solves the equations, it is what is built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from filters import rocksdb
from filters.compat_hashing import MASK32, MASK64
from filters.family import NO_SECRET, Family
from filters.sizing_parameters import SizingParameter, SizingParameters, smallest

FAMILY = "ribbon"
KIND = 0xFE
BLOCK_SLOTS = 128
MIN_BLOCKS = 2  # a key that does not start at the first slot of a block reaches into the next
SEGMENT_BYTES = BLOCK_SLOTS // 8
MAX_COLUMNS = 32
MAX_KEYS = 950_000_000
SEEDS = 256

# A set that would take fewer slots than this is a Bloom filter, if that is smaller.
SMALL_SLOTS = 1024

# What hashes of 64 bits are multiplied with: once under each seed, and again for the row; what is
# xored to its lower half, so that both halves differ.
START_MULTIPLIER = 0x6193_D459_236A_3A0D
ROW_MULTIPLIER = 0xC28F_8282_2B65_0BED
ROW_DIFFERENCE = 0xC367_844A_6E52_731D

_SEED_MULTIPLIER = 0xC782_19A2_3EEA_DD03
_SEED_HIGH_NIBBLES = 0xF0F0_F0F0_F0F0_F0F0

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (0.5, 100), "fpr": (1e-9, 0.6)},
    default=SizingParameter("bits_per_key", 10),
)

# How many keys 2^8 to 2^17 slots take so that one seed in twenty fails, as RocksDB knows it; from
# 2^18 on, what a slot takes grows in even steps.
_SMALLEST_POWER = 8
_KEYS_OF_POWER = (
    248.851, 499.532, 1001.26, 2003.97, 4005.59, 8000.39, 15966.6, 31828.1, 63447.3, 126506.0,
)  # fmt: skip
_LARGEST_POWER = _SMALLEST_POWER + len(_KEYS_OF_POWER) - 1
_GROWTH = 0.0038
_SLOTS_PER_KEY = (1 << _LARGEST_POWER) / _KEYS_OF_POWER[-1] - _GROWTH * _LARGEST_POWER


@attrs.frozen
class Geometry:
    """So many blocks in so many segments: each block has ``columns``, or one column fewer."""

    blocks: int
    segments: int

    @property
    def slots(self) -> int:
        """How many slots all blocks have."""
        return self.blocks * BLOCK_SLOTS

    @property
    def starts(self) -> int:
        """How many slots can be the first one of a key."""
        return self.slots - BLOCK_SLOTS + 1

    @property
    def columns(self) -> int:
        """The columns of the widest block."""
        return min(MAX_COLUMNS, -(-self.segments // self.blocks))

    @property
    def narrow_blocks(self) -> int:
        """How many blocks, the first ones, have one column fewer."""
        return max(0, self.columns * self.blocks - self.segments)


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    optimize_filters_for_memory: bool = True,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    rocksdb.check(optimize_filters_for_memory=optimize_filters_for_memory)
    return SIZING_PARAMETERS.choose(bits_per_key=bits_per_key, fpr=fpr)


def plan(
    num_keys: int,
    sizing: SizingParameter,
    *,
    first_hash: int = 1 << 63,
    optimize_filters_for_memory: bool = True,
) -> Geometry | rocksdb.Geometry:
    """RocksDB's geometry for this many keys: a Ribbon filter's, or a Bloom filter's if smaller.

    The upper half of the first key's hash is the dice that rounds the number of narrow blocks.
    """
    adaptive = optimize_filters_for_memory
    bits = equivalent_bits_per_key(num_keys, sizing, optimize_filters_for_memory=adaptive)
    return _geometry(num_keys, bits, first_hash, adaptive)


def bloom_plan(
    num_keys: int, sizing: SizingParameter, *, optimize_filters_for_memory: bool = True
) -> rocksdb.Geometry:
    """The Bloom filter of the same rate, which is built where no seed solves the equations."""
    adaptive = optimize_filters_for_memory
    bits = equivalent_bits_per_key(num_keys, sizing, optimize_filters_for_memory=adaptive)
    return _bloom(num_keys, bits, adaptive)


def equivalent_bits_per_key(
    num_keys: int, sizing: SizingParameter, *, optimize_filters_for_memory: bool = True
) -> float:
    """The size of the Bloom filter whose rate is asked for.

    An ``fpr`` takes the fewest thousandths of a bit per key that grant it, however the dice fall.
    """
    if sizing.name == "bits_per_key":
        return max(1.0, sizing.value)

    def granted(millibits: int) -> bool:
        unlucky = _geometry(num_keys, millibits / 1000, MASK64, optimize_filters_for_memory)
        return predicted_fpr(num_keys, unlucky) <= sizing.value

    chosen = smallest(granted, rocksdb.MIN_MILLIBITS, rocksdb.MAX_MILLIBITS)
    return min(chosen, rocksdb.MAX_MILLIBITS) / 1000


def _geometry(
    num_keys: int, bits_per_key: float, first_hash: int, adaptive: bool
) -> Geometry | rocksdb.Geometry:
    bloom = _bloom(num_keys, bits_per_key, adaptive)
    if not 0 < num_keys <= MAX_KEYS:
        return bloom
    slots = slots_for(num_keys)
    ribbon = Geometry(slots // BLOCK_SLOTS, _segments(slots, _one_in(bits_per_key), first_hash))
    if slots < SMALL_SLOTS and rocksdb.payload_bytes(bloom) < payload_bytes(ribbon):
        return bloom
    return ribbon


def _bloom(num_keys: int, bits_per_key: float, adaptive: bool) -> rocksdb.Geometry:
    sizing = SizingParameter("bits_per_key", bits_per_key)
    return rocksdb.plan(num_keys, sizing, optimize_filters_for_memory=adaptive)


def _one_in(bits_per_key: float) -> float:
    """One in how many absent keys passes RocksDB's Bloom filter of this size: its own estimate."""
    probes = rocksdb.choose_num_probes(rocksdb.millibits(bits_per_key))
    keys = rocksdb.LINE_BITS / bits_per_key
    crowded, sparse = (
        math.pow(1 - math.exp(-probes / (rocksdb.LINE_BITS / each)), probes)
        for each in (keys + math.sqrt(keys), keys - math.sqrt(keys))
    )
    return 1 / ((crowded + sparse) / 2)


def slots_for(num_keys: int) -> int:
    """RocksDB's number of slots: interpolated between powers of two, in whole blocks.

    The sums are RocksDB's, too, to the last bit of a double.
    """
    power = int(math.log(num_keys) * 1.4426950409 + 0.5)
    if power < _SMALLEST_POWER:
        return MIN_BLOCKS * BLOCK_SLOTS
    low, high = _keys_of_power(power), _keys_of_power(power + 1)
    if num_keys < low:
        power, low, high = power - 1, _keys_of_power(power - 1), low
    slots = 2.0**power
    slots = math.floor((num_keys - low) / (high - low) * slots + slots + 0.999999999)
    return max(MIN_BLOCKS, -(-slots // BLOCK_SLOTS)) * BLOCK_SLOTS


def keys_for(slots: int) -> int:
    """The most keys that so many slots are taken for: what a foreign filter's size tells."""
    keys = 0
    for power in reversed(range(slots.bit_length())):
        if slots_for(keys + (1 << power)) <= slots:
            keys += 1 << power
    return keys


def _keys_of_power(power: int) -> float:
    """How many keys 2^power slots take."""
    if power < _SMALLEST_POWER:
        return 0.0
    if power <= _LARGEST_POWER:
        return _KEYS_OF_POWER[power - _SMALLEST_POWER]
    return math.ldexp(1, power) / (_SLOTS_PER_KEY + _GROWTH * power)


def _segments(slots: int, one_in: float, first_hash: int) -> int:
    """How many segments come nearest to the rate, rounded at random so that many filters do."""
    if one_in > 0xFFFF_FFFF:
        return slots // BLOCK_SLOTS * MAX_COLUMNS
    columns = math.floor(math.log2(int(one_in)))
    narrow_rate, wide_rate = 2.0**-columns, 2.0 ** -(columns + 1)
    narrow = (1 / one_in - wide_rate) / (narrow_rate - wide_rate)
    dice = ((first_hash >> 32) + 0.5) / 2**32
    narrow_blocks = int((narrow * (slots - BLOCK_SLOTS + 1) + dice) / BLOCK_SLOTS)
    return slots // BLOCK_SLOTS * (columns + 1) - narrow_blocks


def payload_bytes(geometry: Geometry | rocksdb.Geometry) -> int:
    """Segments, or the lines of a Bloom filter; the trailer comes on top."""
    if isinstance(geometry, rocksdb.Geometry):
        return rocksdb.payload_bytes(geometry)
    return geometry.segments * SEGMENT_BYTES


def predicted_fpr(num_keys: float, geometry: Geometry | rocksdb.Geometry) -> float:
    """The expected rate of a filter of this many keys."""
    if isinstance(geometry, rocksdb.Geometry):
        return rocksdb.predicted_fpr(num_keys, geometry)
    return fpr(geometry)


def fpr(geometry: Geometry) -> float:
    """The share of absent keys whose equations hold in all columns of the block they start in."""
    narrow = min(geometry.starts, geometry.narrow_blocks * BLOCK_SLOTS) / geometry.starts
    return narrow * 2.0 ** (1 - geometry.columns) + (1 - narrow) * 2.0**-geometry.columns


def seeds(first_hash: int) -> Iterator[int]:
    """All seeds in the order in which they are tried, from the first key's lowest byte on."""
    return ((first_hash + step) % SEEDS for step in range(SEEDS))


def seed_mask(seed: int) -> int:
    """What is xored to every hash under one of the 256 seeds."""
    spread = seed * _SEED_MULTIPLIER & MASK64
    return (spread ^ (spread & _SEED_HIGH_NIBBLES) >> 4) & MASK32


def trailer(geometry: Geometry, seed: int) -> bytes:
    """The five bytes after the segments."""
    return bytes((KIND, seed)) + geometry.blocks.to_bytes(3, "little")


RECORD = Family(
    page=__name__,
    class_name="RocksDBRibbonFilter",
    policy="policies.builtin:RibbonPolicy",
    table_key="fullfilter.rocksdb.BuiltinBloomFilter",
    options={"optimize_filters_for_memory": "`true` or `false`"},
    estimate_num_keys=rocksdb.RECORD.estimate_num_keys,
    overhead=rocksdb.TRAILER_BYTES,
    examples=({"bits_per_key": 1.5}, {"fpr": 0.0123}),
    purpose="RocksDB's own files, large levels",
    strength=NO_SECRET,
    reads="4",
    foreign="RocksDB's",
)
