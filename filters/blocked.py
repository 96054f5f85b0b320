"""The blocked Bloom filter: parameters, sizing and layout.

All probes of a key fall into one 512-bit line, which is one cache miss (Putze, Sanders and Singler,
2007). Lines fill unevenly, and that costs rate: nothing worth mentioning up to ten bits per key,
twofold at sixteen, fivefold at twenty-four.

The high half of ``salted digest * lines`` chooses the line; the digest's low 32 bits, multiplied by
the golden ratio again and again, choose the bits by their top nine: the sequence RocksDB's
cache-local filter uses, which eight lanes of a vector unit compute at once. In the header, ``size``
is the number of lines and ``parameter`` the number of probes; the payload is the lines, bit ``i``
of a line being ``line[i // 8] >> (i % 8) & 1``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

import attrs

from filters import advice, header, occupancy
from filters.blocked_probes import PROBES_UP_TO
from filters.errors import CorruptFilterError
from filters.family import RATE_RISES, Family
from filters.rate_search import RateSearch, bits_of_many
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "blocked"
LINE_BITS = occupancy.LINE_BITS
LINE_BYTES = LINE_BITS // 8
MAX_PROBES = 32
MAX_LINES = (1 << 40) // LINE_BITS

# 2^32 divided by the golden ratio, rounded to odd.
PROBE_MULTIPLIER = 0x9E37_79B9

# Above this a classic or a fuse filter of the same size has half the rate or less.
ADVISED_BITS_PER_KEY = 16

_MANY = 1 << 20  # so many keys that rounding to lines matters no more

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (1, 64), "fpr": (1e-8, 0.6)},
    default=SizingParameter("bits_per_key", 10),
    max_probes=MAX_PROBES,
)


@attrs.frozen
class Geometry:
    """How many lines, and how many bits a key sets in its own."""

    lines: int
    num_probes: int

    @property
    def size(self) -> int:
        """The number of lines, as the header stores it."""
        return self.lines


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError.

    It warns whoever chose a size that is unwise, unless they were warned before.
    """
    sizing = SIZING_PARAMETERS.check_bloom(
        bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes
    )
    is_chosen = bits_per_key is not None or fpr is not None
    if is_chosen and advice.is_wanted() and not _is_advised(sizing, num_probes):
        advice.warn(lambda: _warning(sizing, num_probes))
    return sizing


def _warning(sizing: SizingParameter, num_probes: int | None) -> str:
    size = plan(_MANY, sizing, num_probes).lines * LINE_BITS / _MANY
    return (
        f"a blocked filter at {sizing.name}={sizing.value:g} takes {size:.3g} bits per key; "
        f"above {ADVISED_BITS_PER_KEY} a classic or a binary-fuse filter has a far lower rate"
    )


@lru_cache(maxsize=256)
def _is_advised(sizing: SizingParameter, num_probes: int | None) -> bool:
    """Whether the largest size that is advised is enough for many keys."""
    most = ADVISED_BITS_PER_KEY * 1.001  # a rate may come to a little more than its size
    if sizing.name == "bits_per_key":
        return sizing.value <= most
    geometry = Geometry(int(_MANY * most / LINE_BITS), num_probes or best_probes(most))
    return predicted_fpr(_MANY, geometry) <= sizing.value


def plan(num_keys: int, sizing: SizingParameter, num_probes: int | None = None) -> Geometry:
    """The fewest lines that meet the sizing parameter for this many keys."""
    if sizing.name == "fpr":
        lines = lines_for_fpr(num_keys, sizing.value, num_probes)
    else:
        lines = max(1, math.ceil(num_keys * sizing.value / LINE_BITS))
    if lines > MAX_LINES:
        raise ValueError(
            f"a {FAMILY} filter for {num_keys} keys at {sizing.name}={sizing.value:g} takes more "
            f"than the {MAX_LINES} lines allowed: split the keys over several filters"
        )
    return Geometry(lines, num_probes or best_probes(lines * LINE_BITS / max(1, num_keys)))


def best_probes(bits_per_key: float) -> int:
    """The simulated best probe count for the bits per key that a filter really has."""
    row = bisect_left(PROBES_UP_TO, (bits_per_key, 0))
    return PROBES_UP_TO[min(row, len(PROBES_UP_TO) - 1)][1]


def lines_for_fpr(num_keys: int, fpr: float, num_probes: int | None) -> int:
    """The fewest lines whose expected rate at this many keys is at most ``fpr``."""

    def probes_of(lines: int) -> int:
        return num_probes or best_probes(lines * LINE_BITS / max(1, num_keys))

    def rate_of(lines: int, probes: int) -> float:
        return predicted_fpr(num_keys, Geometry(lines, probes))

    search = RateSearch(rate_of, probes_of, fpr, max(1, num_keys // LINE_BITS), MAX_LINES)
    return search.smallest(num_keys * bits_of_many(fpr, num_probes) / LINE_BITS)


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The expected rate once this many distinct keys are in; may exceed what it was sized for."""
    return occupancy.line_fpr(num_keys, geometry.lines, geometry.num_probes)


def count_from_fill(fill: float, geometry: Geometry) -> float:
    """The number of distinct keys that a share of set bits suggests."""
    return occupancy.keys_from_line_fill(fill, geometry.lines, geometry.num_probes)


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of all lines."""
    return geometry.lines * LINE_BYTES


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes."""
    head, payload = header.unpack(buffer, FAMILY)
    geometry = Geometry(lines=head.size, num_probes=head.parameter)
    if not 1 <= geometry.lines <= MAX_LINES or not 1 <= geometry.num_probes <= MAX_PROBES:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {geometry.lines} lines and {geometry.num_probes} probes; "
            f"allowed are 1 to {MAX_LINES} and 1 to {MAX_PROBES}"
        )
    expected = payload_bytes(geometry)
    header.check_payload(FAMILY, payload, expected, 8 * expected)
    return head, geometry, payload


RECORD = Family(
    page=__name__,
    class_name="BlockedBloomFilter",
    number=4,
    policy="policies.builtin:BlockedPolicy",
    estimate_num_keys=lambda built: count_from_fill(
        built.fill, Geometry(built.num_lines, built.num_probes)
    ),
    examples=({"bits_per_key": 1}, {"bits_per_key": 24}, {"fpr": 0.01}, {"num_probes": 3}),
    purpose="the default: one cache line a key",
    strength="one cache line a lookup, and the quickest to build",
    reads="1",
    grows=RATE_RISES,
)
