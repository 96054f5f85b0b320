"""The page of the family: its sizing, its bytes, its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filters import classic, header
from filters.classic import Geometry, count_from_fill, payload_bytes, predicted_fpr
from filters.costs import Cost
from filters.family import RATE_RISES, Family
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "outside"
SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (2, 50), "fpr": (1e-9, 0.4)},
    default=SizingParameter("bits_per_key", 12),
    max_probes=40,
)

__all__ = ["count_from_fill", "payload_bytes", "predicted_fpr"]


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    SIZING_PARAMETERS.check_probes(num_probes)
    return SIZING_PARAMETERS.choose(bits_per_key=bits_per_key, fpr=fpr)


def plan(num_keys: int, sizing: SizingParameter, num_probes: int | None = None) -> Geometry:
    """The smallest geometry that meets the sizing parameter for this many keys."""
    return classic.plan(num_keys, sizing, num_probes, family=FAMILY)


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes."""
    head, payload = header.unpack(buffer, FAMILY)
    geometry = classic.checked_geometry(FAMILY, head)
    header.check_payload(FAMILY, payload, payload_bytes(geometry), geometry.bits)
    return head, geometry, payload


RECORD = Family(
    page=__name__,
    class_name="OutsideFilter",
    module="tests.outside.{kernel}",
    number=200,
    policy="tests.outside.policy:OutsidePolicy",
    estimate_num_keys=lambda built: count_from_fill(
        built.fill, Geometry(built.num_bits, built.num_probes)
    ),
    examples=({"bits_per_key": 5}, {"fpr": 0.01}, {"num_probes": 3}),
    purpose="tests of what a family takes",
    strength="comes from outside",
    reads="up to 8",
    grows=RATE_RISES,
    cost=Cost(build=80, probe=80),
)
