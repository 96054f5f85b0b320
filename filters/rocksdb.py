"""RocksDB's full Bloom filters, as in ``fullfilter.rocksdb.BuiltinBloomFilter``: sizing and layout.

What is built is the cache-local filter of format version 5 and later: all probes of a key fall
into one 512-bit line. The low half of the key's 64-bit hash chooses the line, the high bits of
``low * lines``; the high half, multiplied by the golden ratio again and again, chooses the bits by
its top nine. Five bytes follow the lines: ff 00, the number of probes, 00 00.

The probes are as good as independent ones down to a rate of 1e-8, so the rate follows from how full
each line is. What is read is any bytes: ``filters/rocksdb_forms.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import attrs

from filters import occupancy
from filters.family import NO_SECRET, Family
from filters.sizing_parameters import SizingParameter, SizingParameters, smallest

FAMILY = "rocksdb"
LINE_BITS = occupancy.LINE_BITS
LINE_BYTES = LINE_BITS // 8
MAX_PROBES = 30
MAX_PAYLOAD_BYTES = 0xFFFF_FFC0
MIN_MILLIBITS, MAX_MILLIBITS = 1_000, 100_000

# 2^32 divided by the golden ratio, rounded to odd.
PROBE_MULTIPLIER = 0x9E37_79B9

TRAILER_BYTES = 5  # behind the lines or segments of whatever filter

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (0.5, 100), "fpr": (1e-6, 0.6)},
    default=SizingParameter("bits_per_key", 10),
    max_probes=MAX_PROBES,
)


@attrs.frozen
class Geometry:
    """How many lines, and how many bits a key sets in its own."""

    lines: int
    num_probes: int


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
    optimize_filters_for_memory: bool = True,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    SIZING_PARAMETERS.check_probes(num_probes)
    if not isinstance(optimize_filters_for_memory, bool):
        raise TypeError(
            "optimize_filters_for_memory is True or False, "
            f"not {type(optimize_filters_for_memory).__name__}"
        )
    return SIZING_PARAMETERS.choose(bits_per_key=bits_per_key, fpr=fpr)


def plan(
    num_keys: int,
    sizing: SizingParameter,
    num_probes: int | None = None,
    *,
    optimize_filters_for_memory: bool = True,
) -> Geometry:
    """RocksDB's geometry for this many keys at the bits per key asked for.

    An ``fpr`` takes the fewest thousandths of a bit per key with a predicted rate of at most that.
    """
    adaptive = optimize_filters_for_memory
    if sizing.name == "bits_per_key":
        return _geometry(num_keys, millibits(sizing.value), num_probes, adaptive)

    def granted(candidate: int) -> bool:
        geometry = _geometry(num_keys, candidate, num_probes, adaptive)
        return predicted_fpr(num_keys, geometry) <= sizing.value

    chosen = smallest(granted, MIN_MILLIBITS, MAX_MILLIBITS)
    return _geometry(num_keys, min(chosen, MAX_MILLIBITS), num_probes, adaptive)


def _geometry(num_keys: int, milli: int, num_probes: int | None, adaptive: bool) -> Geometry:
    space = calculate_space(num_keys, milli)
    if adaptive:
        # The size is rounded up to lines, and the probes are chosen for what there really is.
        milli = space * 8000 // max(num_keys, 1)
    return Geometry(space // LINE_BYTES, num_probes or choose_num_probes(milli))


def millibits(bits_per_key: float) -> int:
    """Bits per key in thousandths, as RocksDB rounds them; half a bit and more counts as one."""
    return max(MIN_MILLIBITS, int(bits_per_key * 1000 + 0.500001))


def calculate_space(num_keys: int, millibits: int) -> int:
    """The bytes of all lines: rounded up to whole ones, just below 4 GiB at the most."""
    return -(-min((num_keys * millibits + 7999) // 8000, MAX_PAYLOAD_BYTES) // 64) * 64


# The most thousandths of a bit per key at which 1, 2, 3 ... 12 probes are chosen.
_PROBES_UP_TO = (2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501)


def choose_num_probes(millibits: int) -> int:
    """RocksDB's probe count. It falls from 12 to 11 just past 25.501 bits and rises again at 26."""
    if millibits <= _PROBES_UP_TO[-1]:
        return bisect_left(_PROBES_UP_TO, millibits) + 1
    return 24 if millibits > 50_000 else (millibits - 1) // 2000 - 1


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The expected rate of a filter of this many keys."""
    if geometry.lines == 0:
        return 0.0
    return occupancy.line_fpr(num_keys, geometry.lines, geometry.num_probes)


def count_from_fill(fill: float, geometry: Geometry) -> float:
    """The number of keys that a share of set bits suggests; 0 where there are no lines."""
    if geometry.lines == 0:
        return 0.0
    return occupancy.keys_from_line_fill(fill, geometry.lines, geometry.num_probes)


def payload_bytes(geometry: Geometry) -> int:
    """Whole lines; the trailer comes on top."""
    return geometry.lines * LINE_BYTES


def trailer(geometry: Geometry) -> bytes:
    """The five bytes after the lines of a cache-local filter."""
    return bytes((0xFF, 0, geometry.num_probes, 0, 0))


def _estimate_num_keys(built: Any) -> float:
    from filters import rocksdb_forms  # which knows of Ribbon, too, and needs this page

    return rocksdb_forms.estimate_num_keys(built)


RECORD = Family(
    page=__name__,
    class_name="RocksDBBloomFilter",
    policy="policies.builtin:RocksDBPolicy",
    table_key="fullfilter.rocksdb.BuiltinBloomFilter",
    options={"optimize_filters_for_memory": "`true` or `false`"},
    estimate_num_keys=_estimate_num_keys,
    overhead=TRAILER_BYTES,
    examples=({"bits_per_key": 1.5}, {"fpr": 0.01}, {"optimize_filters_for_memory": False}),
    purpose="RocksDB's own files",
    strength=NO_SECRET,
    reads="1",
    foreign="RocksDB's",
)
