"""The cuckoo filter: parameters, sizing and layout.

A key is a fingerprint of 6 to 32 bits in one of two buckets of four slots (Fan et al., 2014). The
other bucket follows from the one at hand and the fingerprint alone, as ``(d(f) - i) mod buckets``:
a reflection, which is its own inverse for any number of buckets, so that the table is never rounded
up to a power of two. In the header, ``size`` is the number of buckets and ``parameter`` the bits of
a fingerprint; the payload is the slots, packed without gaps: slot ``j`` is the bits from ``j * f``
on, bit ``i`` of the payload being ``payload[i // 8] >> (i % 8) & 1``. Zero is an empty slot.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from filters import header
from filters.errors import CorruptFilterError
from filters.family import Family
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "cuckoo"
SLOTS = 4
MIN_FINGERPRINT_BITS = 6
MAX_FINGERPRINT_BITS = 32
MAX_BUCKETS = 1 << 36

# Four slots a bucket can be filled to 98 %; up to here an eviction walk stays short.
TARGET_LOAD = 0.95

# How many evictions one key may cause: in a table that grows key by key, where the walk is undone
# on failure, and in a build, where a failure costs a new start.
MAX_KICKS = 500
MAX_KICKS_IN_BUILD = 10_000

# A build that failed starts again with one more bucket in so many, under another salt.
GROWTH = 128

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={
        "fingerprint_bits": (MIN_FINGERPRINT_BITS, MAX_FINGERPRINT_BITS),
        "bits_per_key": (6.4, 34),
        "fpr": (2e-9, 0.5),
    },
    default=SizingParameter("fingerprint_bits", 12),
    whole=frozenset({"fingerprint_bits"}),
)


@attrs.frozen
class Geometry:
    """How many buckets of four slots, and how many bits a slot has."""

    buckets: int
    fingerprint_bits: int

    @property
    def slots(self) -> int:
        """How many fingerprints fit."""
        return self.buckets * SLOTS

    def grown(self) -> Geometry:
        """The geometry to try after a build has failed in this one."""
        return attrs.evolve(self, buckets=self.buckets + 1 + self.buckets // GROWTH)


def check(
    *,
    fingerprint_bits: int | None = None,
    bits_per_key: float | None = None,
    fpr: float | None = None,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    return SIZING_PARAMETERS.choose(
        fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr
    )


def plan(num_keys: int, sizing: SizingParameter) -> Geometry:
    """The geometry that holds this many keys at the target load."""
    buckets = max(2, math.ceil(num_keys / (SLOTS * TARGET_LOAD)))
    if buckets > MAX_BUCKETS:
        raise ValueError(
            f"a {FAMILY} filter for {num_keys} keys takes more than the {MAX_BUCKETS} buckets "
            "allowed: split the keys over several filters"
        )
    return Geometry(buckets, fingerprint_bits_for(sizing))


def fingerprint_bits_for(sizing: SizingParameter) -> int:
    """The fewest bits that grant a rate, or the most that stay within a size."""
    if sizing.name == "fingerprint_bits":
        return int(sizing.value)
    if sizing.name == "bits_per_key":
        return min(MAX_FINGERPRINT_BITS, math.floor(sizing.value * TARGET_LOAD))
    sizes = range(MIN_FINGERPRINT_BITS, MAX_FINGERPRINT_BITS)
    granting = (bits for bits in sizes if rate(TARGET_LOAD, bits) <= sizing.value)
    return next(granting, MAX_FINGERPRINT_BITS)


def rate(load: float, fingerprint_bits: int, buckets: float = math.inf) -> float:
    """The rate at a load: some key has the fingerprint that is looked for, and its two buckets.

    The fingerprint decides which bucket is the other of one, so that a key agrees in both buckets
    or in none.
    """
    fingerprints = (1 << fingerprint_bits) - 1
    if math.isinf(buckets):
        return -math.expm1(-load * SLOTS * 2 / fingerprints)
    agreeing = (2 - 1 / buckets) / (fingerprints * buckets)
    return -math.expm1(load * SLOTS * buckets * math.log1p(-agreeing))


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The expected rate with this many keys in."""
    return rate(num_keys / geometry.slots, geometry.fingerprint_bits, geometry.buckets)


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of all slots, which are packed without gaps."""
    return -(-geometry.slots * geometry.fingerprint_bits // 8)


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes."""
    head, payload = header.unpack(buffer, FAMILY)
    geometry = Geometry(buckets=head.size, fingerprint_bits=head.parameter)
    bits = geometry.fingerprint_bits
    if not 1 <= geometry.buckets <= MAX_BUCKETS or not (
        MIN_FINGERPRINT_BITS <= bits <= MAX_FINGERPRINT_BITS
    ):
        raise CorruptFilterError(
            f"{FAMILY} filter claims {geometry.buckets} buckets of {bits}-bit fingerprints; "
            f"allowed are 1 to {MAX_BUCKETS} and {MIN_FINGERPRINT_BITS} to {MAX_FINGERPRINT_BITS}"
        )
    header.check_payload(FAMILY, payload, payload_bytes(geometry), geometry.slots * bits)
    if head.num_keys > geometry.slots:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.num_keys} keys in {geometry.slots} slots"
        )
    return head, geometry, payload


RECORD = Family(
    page=__name__,
    class_name="CuckooFilter",
    number=3,
    policy="policies.builtin:CuckooPolicy",
    examples=(
        {"fingerprint_bits": 6},
        {"fingerprint_bits": 32},
        {"bits_per_key": 10},
        {"fpr": 0.01},
    ),
    purpose="keys come and go, at low rates",
    strength="removes keys, two cache lines a lookup",
    reads="2",
    removes=True,
)
