"""The classic Bloom filter: parameters, sizing and layout.

``num_probes`` bits of one array are set per key (Bloom, 1970). The positions come from a multiply
chain over the salted digest, see ``filters/kernels/python/chain.py``. In the header, ``size`` is
the number of bits and ``parameter`` the number of probes; the payload is the bit array, bit ``i``
being ``payload[i // 8] >> (i % 8) & 1``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from filters import header, occupancy
from filters.errors import CorruptFilterError
from filters.family import RATE_RISES, Family
from filters.rate_search import RateSearch, bits_of_many
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "classic"
MAX_PROBES = 64
MIN_BITS = 64
MAX_BITS = 1 << 40
SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (1, 64), "fpr": (1e-12, 0.5)},
    default=SizingParameter("bits_per_key", 10),
    max_probes=MAX_PROBES,
)


@attrs.frozen
class Geometry:
    """How many bits, and how many of them a key sets."""

    bits: int
    num_probes: int

    @property
    def size(self) -> int:
        """The number of bits, as the header stores it."""
        return self.bits


check = SIZING_PARAMETERS.check_bloom


def plan(
    num_keys: int, sizing: SizingParameter, num_probes: int | None = None, *, family: str = FAMILY
) -> Geometry:
    """The smallest geometry that meets the sizing parameter for this many keys."""
    if sizing.name == "fpr":
        bits = bits_for_fpr(num_keys, sizing.value, num_probes)
    else:
        bits = max(MIN_BITS, math.ceil(num_keys * sizing.value / 8) * 8)
    if bits > MAX_BITS:
        raise ValueError(
            f"a {family} filter for {num_keys} keys at {sizing.name}={sizing.value:g} takes a size "
            f"of {bits}, allowed are {MAX_BITS}: split the keys over several filters"
        )
    return Geometry(bits, num_probes or best_probes(bits / max(1, num_keys)))


def best_probes(bits_per_key: float) -> int:
    """The probe count with the lowest rate: one of the two integers around bits/key * ln 2."""
    ideal = bits_per_key * math.log(2)
    few = max(1, min(MAX_PROBES, math.floor(ideal)))
    many = max(1, min(MAX_PROBES, math.ceil(ideal)))
    return min(few, many, key=lambda probes: asymptotic_fpr(bits_per_key, probes))


def asymptotic_fpr(bits_per_key: float, num_probes: int) -> float:
    """(1 - e^(-k/b))^k: the rate of a filter of many keys."""
    fill = -math.expm1(-num_probes / bits_per_key)
    return float(fill**num_probes)


def bits_for_fpr(num_keys: int, fpr: float, num_probes: int | None) -> int:
    """The fewest bits, in whole bytes, whose expected rate at this many keys is at most ``fpr``."""

    def probes_of(size: int) -> int:
        return num_probes or best_probes(8 * size / max(1, num_keys))

    def rate_of(size: int, probes: int) -> float:
        return predicted_fpr(num_keys, Geometry(8 * size, probes))

    search = RateSearch(rate_of, probes_of, fpr, MIN_BITS // 8, MAX_BITS // 8)
    return 8 * search.smallest(num_keys * bits_of_many(fpr, num_probes) / 8)


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The expected rate once this many distinct keys are in; may exceed what it was sized for."""
    return occupancy.power_of_fill(
        num_keys * geometry.num_probes, geometry.bits, geometry.num_probes
    )


def count_from_fill(fill: float, geometry: Geometry) -> float:
    """The number of distinct keys that a share of set bits suggests."""
    return occupancy.keys_from_fill(fill, geometry.bits, geometry.num_probes)


def checked_geometry(family: str, head: header.Header) -> Geometry:
    """The geometry a header claims, refused where no filter of this kind has it."""
    geometry = Geometry(bits=head.size, num_probes=head.parameter)
    if not MIN_BITS <= geometry.bits <= MAX_BITS or not 1 <= geometry.num_probes <= MAX_PROBES:
        raise CorruptFilterError(
            f"{family} filter claims a size of {geometry.bits} and {geometry.num_probes} probes; "
            f"allowed are {MIN_BITS} to {MAX_BITS} and 1 to {MAX_PROBES}"
        )
    return geometry


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of the bit array."""
    return -(-geometry.bits // 8)


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes."""
    head, payload = header.unpack(buffer, FAMILY)
    geometry = checked_geometry(FAMILY, head)
    header.check_payload(FAMILY, payload, payload_bytes(geometry), geometry.bits)
    return head, geometry, payload


RECORD = Family(
    page=__name__,
    class_name="ClassicBloomFilter",
    number=1,
    policy="policies.builtin:ClassicPolicy",
    estimate_num_keys=lambda built: count_from_fill(
        built.fill, Geometry(built.num_bits, built.num_probes)
    ),
    examples=({"bits_per_key": 1}, {"bits_per_key": 16.5}, {"fpr": 0.01}, {"num_probes": 3}),
    purpose="lower rates per bit, more cache misses",
    strength="as many bits at any rate, one cache miss for each probe",
    reads="up to 7 and 10",
    grows=RATE_RISES,
)
