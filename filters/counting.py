"""The counting Bloom filter: parameters, sizing and layout.

A classic filter whose bits are 4-bit counters (Fan et al., 2000), so that keys can be removed. It
is sized and probed exactly like the classic filter of as many bits, and collapses to it. In the
header, ``size`` is the number of counters and ``parameter`` the number of probes; in the payload
counter ``i`` is the low half of byte ``i // 2`` where ``i`` is even, the high half where it is odd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filters import classic, header
from filters.classic import Geometry
from filters.family import RATE_RISES, Family
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "counting"
COUNTER_BITS = 4

# A counter that has reached 15 is saturated: it is never lowered again, so that no key is lost.
# At design load that happens to one counter in 10^16.
STUCK = 15

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"counters_per_key": (1, 64), "fpr": (1e-12, 0.5)},
    default=SizingParameter("counters_per_key", 10),
    max_probes=classic.MAX_PROBES,
)


def check(
    *,
    counters_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    SIZING_PARAMETERS.check_probes(num_probes)
    return SIZING_PARAMETERS.choose(counters_per_key=counters_per_key, fpr=fpr)


def plan(num_keys: int, sizing: SizingParameter, num_probes: int | None = None) -> Geometry:
    """The smallest geometry that meets the sizing parameter: ``bits`` counts the counters."""
    return classic.plan(num_keys, sizing, num_probes, family=FAMILY)


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of all counters, two in each."""
    return -(-geometry.bits * COUNTER_BITS // 8)


predicted_fpr = classic.predicted_fpr
count_from_fill = classic.count_from_fill


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes."""
    head, payload = header.unpack(buffer, FAMILY)
    geometry = classic.checked_geometry(FAMILY, head)
    bits = geometry.bits * COUNTER_BITS
    header.check_payload(FAMILY, payload, payload_bytes(geometry), bits)
    return head, geometry, payload


RECORD = Family(
    page=__name__,
    class_name="CountingBloomFilter",
    number=2,
    policy="policies.builtin:CountingPolicy",
    estimate_num_keys=lambda built: count_from_fill(
        built.fill, Geometry(built.num_counters, built.num_probes)
    ),
    examples=({"counters_per_key": 1}, {"fpr": 0.01}, {"num_probes": 3}),
    purpose="keys come and go; tables store it as `classic`",
    strength="removes keys, in four times the bits",
    reads="up to 7 and 10",
    in_tables=False,
    removes=True,
    grows=RATE_RISES,
)
