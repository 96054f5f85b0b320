"""RocksDB's full Bloom filters, as in ``fullfilter.rocksdb.BuiltinBloomFilter``: sizing and layout.

What is built is the cache-local filter of format version 5 and later: all probes of a key fall
into one 512-bit line. The low half of the key's 64-bit hash chooses the line, the high bits of
``low * lines``; the high half, multiplied by the golden ratio again and again, chooses the bits by
its top nine. Five bytes follow the lines: ff 00, the number of probes, 00 00.

What is read is any bytes, as RocksDB reads them (:func:`decode`): also the legacy filters of format
versions 2 to 4, and whatever is no filter of either kind answers "maybe".

The cache-local probes are as good as independent ones down to a rate of 1e-8, so the rate follows
from how full each line is. The legacy filter steps evenly through its line, and every 512th key
stands still in it: 1.1 % instead of 0.95 % at 10 bits per key, four times theory at 16. Its rate is
therefore measured on the filter itself.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import attrs

from filters import occupancy
from filters.header import immutable_view
from filters.wishes import Wish, Wishes, smallest

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.kernels.python.rocksdb import RocksDBBloomFilter

FAMILY = "rocksdb"
LINE_BITS = occupancy.LINE_BITS
LINE_BYTES = LINE_BITS // 8
TRAILER_BYTES = 5
MAX_PROBES = 30
MAX_PAYLOAD_BYTES = 0xFFFF_FFC0
MIN_MILLIBITS, MAX_MILLIBITS = 1_000, 100_000

# 2^32 divided by the golden ratio, rounded to odd.
PROBE_MULTIPLIER = 0x9E37_79B9

WISHES = Wishes(
    FAMILY,
    ranges={"bits_per_key": (0.5, 100), "fpr": (1e-6, 0.6)},
    default=Wish("bits_per_key", 10),
    max_probes=MAX_PROBES,
)

EMPTY = "empty"
FAST_LOCAL = "fast-local"
LEGACY = "legacy"
ALWAYS_MAYBE = "always-maybe"


@attrs.frozen
class Geometry:
    """How many lines, and how many bits a key sets in its own."""

    lines: int
    num_probes: int


@attrs.frozen
class Form:
    """What some bytes are to RocksDB: the kind, and for an always-maybe one the reason.

    ``lines`` of ``line_bits`` bits and the probes are those of fast-local and legacy filters.
    """

    kind: str
    reason: str = ""
    lines: int = 0
    line_bits: int = 0
    num_probes: int = 0

    def __str__(self) -> str:
        return f"{self.kind} ({self.reason})" if self.reason else self.kind


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
    optimize_filters_for_memory: bool = True,
) -> Wish:
    """The one wish these arguments make, or TypeError or ValueError."""
    WISHES.check_probes(num_probes)
    if not isinstance(optimize_filters_for_memory, bool):
        raise TypeError(
            "optimize_filters_for_memory is True or False, "
            f"not {type(optimize_filters_for_memory).__name__}"
        )
    return WISHES.choose(bits_per_key=bits_per_key, fpr=fpr)


def plan(
    num_keys: int,
    wish: Wish,
    num_probes: int | None = None,
    *,
    optimize_filters_for_memory: bool = True,
) -> Geometry:
    """RocksDB's geometry for this many keys at the bits per key wished for.

    An ``fpr`` takes the fewest thousandths of a bit per key with a predicted rate of at most that.
    """
    adaptive = optimize_filters_for_memory
    if wish.name == "bits_per_key":
        return _geometry(num_keys, millibits(wish.value), num_probes, adaptive)

    def granted(candidate: int) -> bool:
        geometry = _geometry(num_keys, candidate, num_probes, adaptive)
        return predicted_fpr(num_keys, geometry) <= wish.value

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


def geometry_of(built: RocksDBBloomFilter) -> Geometry:
    """The lines and probes of a filter object; no lines where its bytes are no filter of lines."""
    return Geometry(-(-built.num_bits // LINE_BITS), built.num_probes)


def payload_bytes(geometry: Geometry) -> int:
    """Whole lines; the trailer comes on top."""
    return geometry.lines * LINE_BYTES


def trailer(geometry: Geometry) -> bytes:
    """The five bytes after the lines of a cache-local filter."""
    return bytes((0xFF, 0, geometry.num_probes, 0, 0))


def decode(buffer: Buffer) -> tuple[Form, memoryview]:
    """What these bytes are to RocksDB, and all of the bytes. Nothing is refused."""
    data = immutable_view(buffer)
    if len(data) <= TRAILER_BYTES:
        return Form(EMPTY), data
    size = len(data) - TRAILER_BYTES
    kind = data[size]
    if kind == 0xFF:
        return _fast_local(size, data[size + 1 :]), data
    if kind == 0xFE:
        return _always_maybe("a Ribbon filter, which this release does not read"), data
    if kind >= 0x80:
        return _always_maybe(f"reserved kind {kind:#x}"), data
    if kind == 0:
        return _always_maybe("no probes"), data
    lines = int.from_bytes(data[size + 1 :], "little")
    return _legacy(size, lines, num_probes=kind), data


def _always_maybe(reason: str) -> Form:
    return Form(ALWAYS_MAYBE, reason)


def _fast_local(size: int, rest: memoryview) -> Form:
    implementation, line_and_probes = rest[0], rest[1]
    num_probes = line_and_probes & 31
    if implementation != 0:
        return _always_maybe(f"unknown implementation {implementation}")
    if line_and_probes > 31:
        return _always_maybe(f"lines of {64 << (line_and_probes >> 5)} bytes")
    if not 1 <= num_probes <= MAX_PROBES:
        return _always_maybe(f"{num_probes} probes, allowed are 1 to {MAX_PROBES}")
    if rest[2] or rest[3]:
        return _always_maybe("reserved bytes in use")
    lines, odd_bytes = divmod(size, LINE_BYTES)
    if odd_bytes:
        return _always_maybe(f"{size} bytes are no whole lines of {LINE_BYTES}")
    return Form(FAST_LOCAL, lines=lines, line_bits=LINE_BITS, num_probes=num_probes)


def _legacy(size: int, lines: int, num_probes: int) -> Form:
    """Lines have 64 bytes, or the power of two that the machine it was built on had."""
    if lines == 0 or size % lines:
        return _always_maybe(f"{size} bytes are no {lines} equal lines")
    line_bytes = size // lines
    if line_bytes & (line_bytes - 1):
        return _always_maybe(f"lines of {line_bytes} bytes, which is no power of two")
    return Form(LEGACY, lines=lines, line_bits=8 * line_bytes, num_probes=num_probes)
