"""The binary fuse filter: parameters, sizing and layout.

A static set in 9 or 18 bits per key (Graf and Lemire, 2022): every key's fingerprint is the xor of
three slots in neighbouring segments of an array, found by peeling. Large sets are cut into shards
by the top bits of the salted digest, so that building stays within the processor's cache; a probe
touches one shard. In the header, ``size`` is the number of shards and ``parameter`` the bits of a
fingerprint; the payload is a directory of 16 bytes a shard (seed u64, segment length u32, segment
count u32) and then each shard's fingerprints.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import attrs

from filters import header
from filters.errors import CorruptFilterError, FilterError
from filters.hashing import MASK64
from filters.wishes import Wish, Wishes

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "binary-fuse"
ARITY = 3
FINGERPRINT_BITS = (8, 16)
MIN_SEGMENT_LENGTH = 4
MAX_SEGMENT_LENGTH = 1 << 18
MAX_SHARDS = 1 << 20

# Building a shard of this many keys stays within a few megabytes of scratch memory; and from 8.4
# million keys on, the pyfusefilter library would slow down tenfold.
KEYS_PER_SHARD = 1 << 20

# The library gives up after as many seeds; a geometry that fails so often is a little too small.
SEEDS_PER_GEOMETRY = 100
GEOMETRIES = 32
_FIRST_SEED_STATE = 0x726B_2B9D_438B_9D4D

# Slots a key takes in the limit of many keys, see segment_count().
SLOTS_PER_KEY = 1.125

WISHES = Wishes(
    FAMILY,
    ranges={"fingerprint_bits": (8, 16), "bits_per_key": (9, 64), "fpr": (2**-16, 0.5)},
    default=Wish("fingerprint_bits", 8),
    whole=frozenset({"fingerprint_bits"}),
)

_SHARD = struct.Struct("<QLL")
SHARD_BYTES = _SHARD.size


@attrs.frozen
class Geometry:
    """The array of one shard: overlapping segments, a power of two of slots each."""

    segment_length: int
    segment_count: int

    @property
    def slots(self) -> int:
        """The length of the array: a key's first slot may lie in all but the last two segments."""
        return (self.segment_count + ARITY - 1) * self.segment_length

    def grown(self) -> Geometry:
        """The geometry to try after all seeds have failed in this one."""
        extra = 1 + self.segment_count // 32
        return attrs.evolve(self, segment_count=self.segment_count + extra)


@attrs.frozen
class Size:
    """How many shards, the geometry of each, and the bits of a fingerprint."""

    shards: int
    geometry: Geometry
    fingerprint_bits: int


@attrs.frozen
class Shard:
    """One shard: under this seed, its keys' slots in this array xor to their fingerprints."""

    seed: int = attrs.field(repr=False)
    geometry: Geometry
    fingerprints: bytes | memoryview = attrs.field(repr=False)


def check(
    *,
    fingerprint_bits: int | None = None,
    bits_per_key: float | None = None,
    fpr: float | None = None,
) -> Wish:
    """The one wish these arguments make, or TypeError or ValueError."""
    wish = WISHES.choose(fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr)
    if wish.name == "fingerprint_bits" and wish.value not in FINGERPRINT_BITS:
        raise ValueError(f"fingerprint_bits of a {FAMILY} filter is 8 or 16, not {wish.value}")
    return wish


def fingerprint_bits_for(wish: Wish) -> int:
    """8 or 16 bits: the fewest that grant a rate, or the most that stay within a size."""
    if wish.name == "fingerprint_bits":
        return int(wish.value)
    if wish.name == "bits_per_key":
        return 16 if wish.value >= 16 * SLOTS_PER_KEY else 8
    return 8 if wish.value >= 2**-8 else 16


def shard_count(num_keys: int) -> int:
    """A power of two, so that a shard's keys share the top bits of their digests."""
    return 1 << max(0, math.ceil(math.log2(max(1, num_keys) / KEYS_PER_SHARD)))


def plan(num_keys: int) -> Geometry:
    """The geometry to try first for a shard of this many keys.

    The size follows the paper. The segments are half as long as the paper's: measured over all
    sizes up to a million, that needs no more slots and peels under the first or second seed
    everywhere, while the paper's length fails in bands just above its steps (of 11,480 keys, under
    97 seeds in 100).
    """
    length = MIN_SEGMENT_LENGTH
    slots = 0
    if num_keys > 1:
        exponent = math.floor(math.log(num_keys) / math.log(3.33) + 1.25)
        length = min(MAX_SEGMENT_LENGTH, max(MIN_SEGMENT_LENGTH, 1 << exponent))
        slots = round(num_keys * slots_per_key(num_keys))
    return Geometry(length, max(1, -(-slots // length) - (ARITY - 1)))


def size_of(num_keys: int, wish: Wish) -> Size:
    """What a filter of this many keys is expected to take."""
    shards = shard_count(num_keys)
    return Size(shards, plan(-(-num_keys // shards)), fingerprint_bits_for(wish))


def payload_bytes(size: Size) -> int:
    """Directory and fingerprints."""
    return size.shards * (SHARD_BYTES + size.geometry.slots * size.fingerprint_bits // 8)


def slots_per_key(num_keys: float) -> float:
    """How many slots a key takes: more of them in a small set."""
    return max(SLOTS_PER_KEY, 0.875 + 0.25 * math.log(1e6) / math.log(num_keys))


def seeds() -> Iterator[int]:
    """The seeds that are tried, in order: splitmix64 from a constant, as the library does.

    They need not be secret: what they are added to is a salted digest.
    """
    state = _FIRST_SEED_STATE
    for _ in range(SEEDS_PER_GEOMETRY):
        state = (state + 0x9E37_79B9_7F4A_7C15) & MASK64
        seed = ((state ^ (state >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK64
        seed = ((seed ^ (seed >> 27)) * 0x94D0_49BB_1331_11EB) & MASK64
        yield seed ^ (seed >> 31)


def build_shard(num_keys: int, populate: Callable[[Geometry], Shard | None]) -> Shard:
    """The shard in the first geometry, from the planned one on, that ``populate`` finds one in."""
    geometry = plan(num_keys)
    for _ in range(GEOMETRIES):
        shard = populate(geometry)
        if shard is not None:
            return shard
        geometry = geometry.grown()
    raise FilterError(
        f"no binary fuse filter of {num_keys} keys was found in {GEOMETRIES} sizes up to "
        f"{geometry.slots} slots: is there memory left for about {24 * num_keys} bytes?"
    )


def empty_table(geometry: Geometry, fingerprint_bits: int) -> array[int]:
    """The fingerprints of a shard before any key is in."""
    typecode = "B" if fingerprint_bits == 8 else "H"
    return array(typecode, bytes(geometry.slots * fingerprint_bits // 8))


def table_bytes(table: array[int]) -> bytes:
    """A shard's fingerprints as the payload has them: little-endian."""
    if sys.byteorder == "big":
        table = array(table.typecode, table)
        table.byteswap()
    return table.tobytes()


def payload_of(shards: list[Shard]) -> bytes:
    """Directory and fingerprints of all shards."""
    directory = (
        _SHARD.pack(shard.seed, shard.geometry.segment_length, shard.geometry.segment_count)
        for shard in shards
    )
    return b"".join([*directory, *(shard.fingerprints for shard in shards)])


def decode(buffer: Buffer) -> tuple[header.Header, list[Shard], memoryview]:
    """Validated header and shards of a filter's bytes; the fingerprints are views into the payload.

    The geometry is taken from the bytes and checked, never recomputed from the number of keys.
    """
    head, payload = header.unpack(buffer, FAMILY)
    if head.parameter not in FINGERPRINT_BITS:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.parameter}-bit fingerprints; allowed are 8 and 16"
        )
    if not 1 <= head.size <= MAX_SHARDS or head.size & (head.size - 1):
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.size} shards; allowed are powers of two "
            f"up to {MAX_SHARDS}"
        )
    if len(payload) < head.size * SHARD_BYTES:
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: a directory of {head.size} shards takes "
            f"{head.size * SHARD_BYTES} bytes, there are {len(payload)}"
        )
    shards = list(_decode_shards(payload, head.size, head.parameter // 8))
    slots = sum(shard.geometry.slots for shard in shards)
    if head.num_keys > slots:
        raise CorruptFilterError(f"{FAMILY} filter claims {head.num_keys} keys in {slots} slots")
    return head, shards, payload


def _decode_shards(payload: memoryview, count: int, width: int) -> Iterator[Shard]:
    start = count * SHARD_BYTES
    for index in range(count):
        seed, length, segments = _SHARD.unpack_from(payload, index * SHARD_BYTES)
        geometry = Geometry(length, segments)
        if not MIN_SEGMENT_LENGTH <= length <= MAX_SEGMENT_LENGTH or length & (length - 1):
            raise CorruptFilterError(
                f"shard {index} of a {FAMILY} filter claims segments of {length} slots; allowed "
                f"are powers of two from {MIN_SEGMENT_LENGTH} to {MAX_SEGMENT_LENGTH}"
            )
        stop = start + geometry.slots * width
        if segments < 1 or stop > len(payload):
            raise CorruptFilterError(
                f"shard {index} of a {FAMILY} filter claims {segments} segments of {length} slots, "
                f"which do not fit into its payload of {len(payload)} bytes"
            )
        yield Shard(seed, geometry, payload[start:stop])
        start = stop
    if start != len(payload):
        raise CorruptFilterError(
            f"{FAMILY} filter has {len(payload) - start} bytes behind its last shard"
        )
