"""The binary fuse filter: parameters, sizing and layout.

A static set in 9 or 18 bits per key (Graf and Lemire, 2022): every key's fingerprint is the xor of
three slots in neighbouring segments of an array, found by peeling. What it shares with the xor
filter is in ``peeled.py``. Large sets are cut into shards, so that building stays within the
processor's cache; a probe touches one shard. A row of the directory has 16 bytes: seed u64, segment
length u32, segment count u32.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from filters import header, peeled
from filters.errors import CorruptFilterError
from filters.family import Family
from filters.peeled import ARITY, Shard, Size
from filters.sizing_parameters import SizingParameter

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "binary-fuse"
MIN_SEGMENT_LENGTH = 4
MAX_SEGMENT_LENGTH = 1 << 18

# Building a shard of this many keys stays within a few megabytes of scratch memory; and from 8.4
# million keys on, the pyfusefilter library would slow down tenfold.
KEYS_PER_SHARD = 1 << 20

# Slots a key takes in the limit of many keys, see segment_count().
SLOTS_PER_KEY = 1.125

SIZING_PARAMETERS = peeled.sizing_parameters(
    FAMILY, slots_per_key=SLOTS_PER_KEY, least_bits_per_key=9
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


check = SIZING_PARAMETERS.check
fingerprint_bits_for = SIZING_PARAMETERS.fingerprint_bits_for


def shard_count(num_keys: int) -> int:
    """A power of two, so that a shard's keys share the top bits of their digests."""
    return peeled.shard_count(num_keys, KEYS_PER_SHARD)


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


def size_of(num_keys: int, sizing: SizingParameter) -> Size[Geometry]:
    """What a filter of this many keys is expected to take."""
    shards = shard_count(num_keys)
    return Size(shards, plan(-(-num_keys // shards)), fingerprint_bits_for(sizing))


def payload_bytes(size: Size[Geometry]) -> int:
    """The bytes of the directory and of all fingerprints."""
    return peeled.payload_bytes(size, SHARD_BYTES)


def slots_per_key(num_keys: float) -> float:
    """How many slots a key takes: more of them in a small set."""
    return max(SLOTS_PER_KEY, 0.875 + 0.25 * math.log(1e6) / math.log(num_keys))


def build_shard(
    num_keys: int, populate: Callable[[Geometry], Shard[Geometry] | None]
) -> Shard[Geometry]:
    """The shard in the first geometry, from the planned one on, that ``populate`` finds one in."""
    return peeled.build_shard(FAMILY, num_keys, plan(num_keys), populate)


def payload_of(shards: list[Shard[Geometry]]) -> bytes:
    """Directory and fingerprints of all shards."""
    directory = (
        _SHARD.pack(shard.seed, shard.geometry.segment_length, shard.geometry.segment_count)
        for shard in shards
    )
    return b"".join([*directory, *(shard.fingerprints for shard in shards)])


def decode(buffer: Buffer) -> tuple[header.Header, list[Shard[Geometry]], memoryview]:
    """Validated header and shards of a filter's bytes; the fingerprints are views into the payload.

    The geometry is taken from the bytes and checked, never recomputed from the number of keys.
    """
    return peeled.decode(buffer, FAMILY, _SHARD, _checked_geometry)


def _checked_geometry(index: int, length: int, segments: int) -> Geometry:
    if not MIN_SEGMENT_LENGTH <= length <= MAX_SEGMENT_LENGTH or length & (length - 1):
        raise CorruptFilterError(
            f"shard {index} of a {FAMILY} filter claims segments of {length} slots; allowed "
            f"are powers of two from {MIN_SEGMENT_LENGTH} to {MAX_SEGMENT_LENGTH}"
        )
    if segments < 1:
        raise CorruptFilterError(f"shard {index} of a {FAMILY} filter claims to have no segment")
    return Geometry(length, segments)


RECORD = Family(
    page=__name__,
    class_name="BinaryFuseFilter",
    number=5,
    policy="policies.builtin:BinaryFusePolicy",
    plan=size_of,
    predicted_fpr=peeled.predicted_fpr,
    only={"fingerprint_bits": peeled.FINGERPRINT_BITS},
    examples=({"fingerprint_bits": 16}, {"bits_per_key": 9}, {"fpr": 0.001}),
    purpose="large sets that never change",
    strength="near the bound at rates of 1/256 and 1/65536, three cache lines",
    reads="3",
)
