"""The xor filter: parameters, sizing and layout.

A static set in 9.8 or 19.7 bits per key (Graf and Lemire, 2020): every key's fingerprint is the
xor of one slot in each of three equal blocks, found by peeling. What it shares with the binary fuse
filter, its successor, is in ``peeled.py``. A row of the directory has 12 bytes: seed u64, block
length u32.
"""

from __future__ import annotations

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

FAMILY = "xor"

# Peeling follows a key's slots all over the array, and is fast only while that and what waits fit
# into a core's own cache: of this many keys they take half a megabyte.
KEYS_PER_SHARD = 1 << 15

# The compiled builder tells slots apart in arrays of up to a million. A shard gets near that only
# where keys were chosen so that their digests share their top bits under a salt that is known.
MAX_KEYS_IN_SHARD = 1 << 19

# Slots a key takes in the limit of many keys, and those that let small sets peel, too.
SLOTS_PER_KEY = 1.23
MORE_SLOTS = 32

SIZING_PARAMETERS = peeled.sizing_parameters(
    FAMILY, slots_per_key=SLOTS_PER_KEY, least_bits_per_key=9.84
)

_SHARD = struct.Struct("<QL")
SHARD_BYTES = _SHARD.size


@attrs.frozen
class Geometry:
    """The array of one shard: three blocks, in each of which a key has one slot."""

    block_length: int

    @property
    def slots(self) -> int:
        """The length of the array."""
        return ARITY * self.block_length

    def grown(self) -> Geometry:
        """The geometry to try after all seeds have failed in this one."""
        return Geometry(self.block_length + 1 + self.block_length // 32)


check = SIZING_PARAMETERS.check
fingerprint_bits_for = SIZING_PARAMETERS.fingerprint_bits_for


def shard_count(num_keys: int) -> int:
    """A power of two, so that a shard's keys share the top bits of their digests."""
    return peeled.shard_count(num_keys, KEYS_PER_SHARD)


def plan(num_keys: int) -> Geometry:
    """The geometry to try first for a shard of this many keys: the paper's, in whole numbers."""
    return Geometry((MORE_SLOTS + num_keys * 123 // 100) // ARITY)


def size_of(num_keys: int, sizing: SizingParameter) -> Size[Geometry]:
    """What a filter of this many keys is expected to take."""
    shards = shard_count(num_keys)
    return Size(shards, plan(-(-num_keys // shards)), fingerprint_bits_for(sizing))


def payload_bytes(size: Size[Geometry]) -> int:
    """The bytes of the directory and of all fingerprints."""
    return peeled.payload_bytes(size, SHARD_BYTES)


def build_shard(
    num_keys: int, populate: Callable[[Geometry], Shard[Geometry] | None]
) -> Shard[Geometry]:
    """The shard in the first geometry, from the planned one on, that ``populate`` finds one in."""
    if num_keys > MAX_KEYS_IN_SHARD:
        raise peeled.CrowdedShardError(
            f"{num_keys} different keys of a {FAMILY} filter come into one shard, which holds "
            f"{MAX_KEYS_IN_SHARD}: that is no chance, their digests were chosen for this salt; "
            "build without salt=, under one that nobody knows"
        )
    return peeled.build_shard(FAMILY, num_keys, plan(num_keys), populate)


def payload_of(shards: list[Shard[Geometry]]) -> bytes:
    """Directory and fingerprints of all shards."""
    directory = (_SHARD.pack(shard.seed, shard.geometry.block_length) for shard in shards)
    return b"".join([*directory, *(shard.fingerprints for shard in shards)])


def decode(buffer: Buffer) -> tuple[header.Header, list[Shard[Geometry]], memoryview]:
    """Validated header and shards of a filter's bytes; the fingerprints are views into the payload.

    The geometry is taken from the bytes and checked, never recomputed from the number of keys.
    """
    return peeled.decode(buffer, FAMILY, _SHARD, _checked_geometry)


def _checked_geometry(index: int, block_length: int) -> Geometry:
    if block_length < 1:
        raise CorruptFilterError(f"shard {index} of a {FAMILY} filter claims blocks of no slot")
    return Geometry(block_length)


RECORD = Family(
    page=__name__,
    class_name="XorFilter",
    number=7,
    policy="policies.builtin:XorPolicy",
    plan=size_of,
    predicted_fpr=peeled.predicted_fpr,
    only={"fingerprint_bits": peeled.FINGERPRINT_BITS},
    examples=({"fingerprint_bits": 16}, {"bits_per_key": 10}),
    purpose="small sets that never change",
    strength="three cache lines; smaller than binary-fuse for few keys only",
    reads="3",
)
