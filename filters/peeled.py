"""What families share whose sets are peeled: three slots of a key xor to its fingerprint.

The binary fuse and the xor filter differ in which three slots of an array a key takes, and so in
the array's geometry; all else stands here once: the sizing parameters, the seeds that are tried,
the tables, and the frame around shards. A set is cut into a power of two of shards by the top bits
of the salted digest. In the header, ``size`` is the number of shards and ``parameter`` the bits of
a fingerprint; the payload is a directory with a row for each shard, which starts with its seed,
and then each shard's fingerprints.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import attrs

from filters import header
from filters.errors import CorruptFilterError, FilterError
from filters.hashing import MASK64
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

ARITY = 3
FINGERPRINT_BITS = (8, 16)
MAX_SHARDS = 1 << 20

# pyfusefilter gives up after as many seeds; a geometry that fails so often is a little too small.
SEEDS_PER_GEOMETRY = 100
GEOMETRIES = 32
_FIRST_SEED_STATE = 0x726B_2B9D_438B_9D4D


class CrowdedShardError(FilterError):
    """More keys come into one shard than it holds, unless some of them are the same."""


class Geometry(Protocol):
    """The array of one shard."""

    @property
    def slots(self) -> int:
        """The length of the array."""

    def grown(self) -> Self:
        """The geometry to try after all seeds have failed in this one."""


G = TypeVar("G", bound=Geometry)


@attrs.frozen
class Size(Generic[G]):
    """How many shards, the geometry of each, and the bits of a fingerprint."""

    shards: int
    geometry: G
    fingerprint_bits: int


@attrs.frozen
class Shard(Generic[G]):
    """One shard: under this seed, its keys' slots in this array xor to their fingerprints."""

    seed: int = attrs.field(repr=False)
    geometry: G
    fingerprints: bytes | memoryview = attrs.field(repr=False)


@attrs.frozen
class PeeledParameters(SizingParameters):
    """What a peeled family may be sized by; ``slots_per_key`` is what a large set takes."""

    slots_per_key: float = attrs.field(kw_only=True)

    def check(
        self,
        *,
        fingerprint_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
    ) -> SizingParameter:
        """The one sizing parameter that these arguments give, or TypeError or ValueError."""
        sizing = self.choose(fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr)
        if sizing.name == "fingerprint_bits" and sizing.value not in FINGERPRINT_BITS:
            raise ValueError(
                f"fingerprint_bits of a {self.family} filter is 8 or 16, not {sizing.value}"
            )
        return sizing

    def fingerprint_bits_for(self, sizing: SizingParameter) -> int:
        """8 or 16 bits: the fewest that grant a rate, or the most that stay within a size."""
        if sizing.name == "fingerprint_bits":
            return int(sizing.value)
        if sizing.name == "bits_per_key":
            return 16 if sizing.value >= 16 * self.slots_per_key else 8
        return 8 if sizing.value >= 2**-8 else 16


def sizing_parameters(
    family: str, *, slots_per_key: float, least_bits_per_key: float
) -> PeeledParameters:
    """What a peeled family may be sized by, in the ranges that all of them have."""
    return PeeledParameters(
        family,
        ranges={
            "fingerprint_bits": (8, 16),
            "bits_per_key": (least_bits_per_key, 64),
            "fpr": (2**-16, 0.5),
        },
        default=SizingParameter("fingerprint_bits", 8),
        whole=frozenset({"fingerprint_bits"}),
        slots_per_key=slots_per_key,
    )


def shard_count(num_keys: int, keys_per_shard: int) -> int:
    """A power of two, so that a shard's keys share the top bits of their digests."""
    return 1 << max(0, math.ceil(math.log2(max(1, num_keys) / keys_per_shard)))


def payload_bytes(size: Size[G], row_bytes: int) -> int:
    """The bytes of the directory, whose rows have so many, and of all fingerprints."""
    return size.shards * (row_bytes + size.geometry.slots * size.fingerprint_bits // 8)


def predicted_fpr(num_keys: float, size: Size[G]) -> float:
    """One in 2^fingerprint_bits, whatever the size; nothing in an empty set."""
    return 2.0**-size.fingerprint_bits if num_keys else 0.0


def seeds() -> Iterator[int]:
    """The seeds that are tried, in order: splitmix64 from a constant, as pyfusefilter does.

    They need not be secret: what they are added to is a salted digest.
    """
    state = _FIRST_SEED_STATE
    for _ in range(SEEDS_PER_GEOMETRY):
        state = (state + 0x9E37_79B9_7F4A_7C15) & MASK64
        seed = ((state ^ (state >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK64
        seed = ((seed ^ (seed >> 27)) * 0x94D0_49BB_1331_11EB) & MASK64
        yield seed ^ (seed >> 31)


def build_shard(
    family: str, num_keys: int, geometry: G, populate: Callable[[G], Shard[G] | None]
) -> Shard[G]:
    """The shard in the first geometry, from this one on, that ``populate`` finds one in."""
    for _ in range(GEOMETRIES):
        shard = populate(geometry)
        if shard is not None:
            return shard
        geometry = geometry.grown()
    raise FilterError(
        f"no {family} filter of {num_keys} keys was found in {GEOMETRIES} sizes up to "
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


def decode(
    buffer: Buffer,
    family: str,
    row: struct.Struct,
    geometry_of: Callable[..., G],
) -> tuple[header.Header, list[Shard[G]], memoryview]:
    """Validated header and shards of a filter's bytes; the fingerprints are views into the payload.

    The geometry is taken from the bytes and checked by ``geometry_of``, which gets a shard's index
    and what its row says behind the seed; it is never recomputed from the number of keys.
    """
    head, payload = header.unpack(buffer, family)
    if head.parameter not in FINGERPRINT_BITS:
        raise CorruptFilterError(
            f"{family} filter claims {head.parameter}-bit fingerprints; allowed are 8 and 16"
        )
    if not 1 <= head.size <= MAX_SHARDS or head.size & (head.size - 1):
        raise CorruptFilterError(
            f"{family} filter claims {head.size} shards; allowed are powers of two "
            f"up to {MAX_SHARDS}"
        )
    if len(payload) < head.size * row.size:
        raise CorruptFilterError(
            f"{family} filter is cut short: a directory of {head.size} shards takes "
            f"{head.size * row.size} bytes, there are {len(payload)}"
        )
    shards = list(_decode_shards(payload, family, head, row, geometry_of))
    slots = sum(shard.geometry.slots for shard in shards)
    if head.num_keys > slots:
        raise CorruptFilterError(f"{family} filter claims {head.num_keys} keys in {slots} slots")
    return head, shards, payload


def _decode_shards(
    payload: memoryview,
    family: str,
    head: header.Header,
    row: struct.Struct,
    geometry_of: Callable[..., G],
) -> Iterator[Shard[G]]:
    start = head.size * row.size
    for index in range(head.size):
        seed, *fields = row.unpack_from(payload, index * row.size)
        geometry = geometry_of(index, *fields)
        stop = start + geometry.slots * head.parameter // 8
        if stop > len(payload):
            raise CorruptFilterError(
                f"shard {index} of a {family} filter claims {geometry.slots} slots, which do not "
                f"fit into its payload of {len(payload)} bytes"
            )
        yield Shard(seed, geometry, payload[start:stop])
        start = stop
    if start != len(payload):
        raise CorruptFilterError(
            f"{family} filter has {len(payload) - start} bytes behind its last shard"
        )
