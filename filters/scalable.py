"""The scalable Bloom filter: terms, growth and layout.

A chain of classic Bloom filters, called slices, for who does not know how many keys will come
(Almeida, Baquero, Preguiça and Hutchison, 2007). Keys go into the newest slice; once that is full
it stays as it is, and a larger one with a lower rate follows. The rates are a geometric series that
sums up to the one that was asked for, so that no number of keys exceeds it. All slices share the
seed, so that a key is hashed once, and each has a salt of its own.

In the header, ``size`` is the number of slices and ``parameter`` the growth from one to the next;
the payload is the other terms in 24 bytes (capacity of the first slice u64, rate f64, tightening
f64), a directory of 16 bytes a slice (bits u64, probes u64), and then the slices' bit arrays.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from filters import classic, header
from filters.classic import Geometry
from filters.errors import CapacityError, CorruptFilterError
from filters.family import Family
from filters.sizing_parameters import SizingParameter, SizingParameters, checked_int, checked_number

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "scalable"
MAX_SLICES = 64
MAX_BITS = classic.MAX_BITS  # of all slices together
MAX_CAPACITY = 1 << 40
GROWTHS = (2, 4)
TIGHTENINGS = (0.5, 0.95)

# Bytes may claim any terms, so a new slice takes at most so many times the bits of those there are.
# Ours lead to six times as many: fourfold growth, from a rate of a quarter to half of it.
MOST_TIMES_LARGER = 8

# What the first slice is made for where nobody says it.
DEFAULT_CAPACITY = 1024

# The least that a build makes room for: a set that starts with a few keys often grows at once.
MIN_BUILT_CAPACITY = 64

# Bits per key at 1 %, in the mean over all numbers of keys from so many doublings to one more:
#
#   tightening   built   2   4   8  12  16          A low one costs every slice that follows, a high
#        0.5      11.0  19  23  32  40  49          one the first. This one is never far from the
#        0.8      12.9  20  21  24  27  30          best; probing takes as long with any, since
#        0.85     13.5  20  21  24  26  28          an absent key is denied by two probes a slice.
#        0.9      14.4  21  22  24  25  27
DEFAULT_TIGHTENING = 0.85

# Fourfold growth halves the number of slices that are probed, and takes a third more bits.
DEFAULT_GROWTH = 2

SIZING_PARAMETERS = SizingParameters(
    FAMILY, ranges={"fpr": (1e-9, 0.5)}, default=SizingParameter("fpr", 0.01)
)

_TERMS = struct.Struct("<Qdd")
_SLICE = struct.Struct("<QQ")


@attrs.frozen
class Terms:
    """The terms of a chain, which hold for every slice; the capacity is 0 until it is known."""

    capacity: int
    fpr: float
    tightening: float
    growth: int

    def begun(self, num_keys: int) -> Terms:
        """These terms for a first slice of so many keys."""
        return attrs.evolve(self, capacity=max(1, num_keys))

    def built(self, num_keys: int) -> Terms:
        """These terms for a chain that is built of so many keys."""
        return self.begun(max(num_keys, MIN_BUILT_CAPACITY))

    def capacity_of(self, index: int) -> int:
        """How many keys a slice is made for."""
        return self.capacity * int(self.growth**index)

    def fpr_of(self, index: int) -> float:
        """The rate that a slice does not exceed: all of them together make ``fpr``."""
        return self.fpr * (1 - self.tightening) * self.tightening**index

    def limit_of(self, index: int, geometry: Geometry) -> int:
        """How many bits of a slice may be set: as many as lead to its rate."""
        fill = self.fpr_of(index) ** (1 / geometry.num_probes)
        return math.floor(geometry.bits * float(fill))

    def geometry_of(self, index: int) -> Geometry:
        """The smallest slice whose expected rate is granted; beyond all limits where none does."""
        fpr = self.fpr_of(index)
        probes = max(1, min(classic.MAX_PROBES, round(-math.log2(fpr))))
        bits = classic.bits_for_fpr(self.capacity_of(index), fpr, probes)
        while self.limit_of(index, Geometry(bits, probes)) < probes:  # room for one key at least
            bits += 8
        return Geometry(bits, probes)


@attrs.frozen
class Chain:
    """A chain as its bytes state it: its terms, and the geometry of each slice."""

    terms: Terms
    slices: tuple[Geometry, ...]


def check(
    *,
    capacity: int | None = None,
    fpr: float | None = None,
    tightening: float | None = None,
    growth: int | None = None,
) -> Terms:
    """The terms these arguments make, or TypeError or ValueError."""
    sizing = SIZING_PARAMETERS.choose(fpr=fpr)
    if tightening is None:
        tightening = DEFAULT_TIGHTENING
    if growth is None:
        growth = DEFAULT_GROWTH
    checked_number(f"tightening of a {FAMILY} filter", tightening, *TIGHTENINGS)
    checked_int(f"growth of a {FAMILY} filter", growth, min(GROWTHS), max(GROWTHS))
    if growth not in GROWTHS:
        raise ValueError(f"growth of a {FAMILY} filter is 2 or 4, not {growth}")
    if capacity is not None:
        checked_int(f"capacity of a {FAMILY} filter", capacity, 1, MAX_CAPACITY)
    return Terms(capacity or 0, float(sizing.value), float(tightening), growth)


def first(terms: Terms) -> Geometry:
    """The first slice under these terms."""
    geometry = terms.geometry_of(0)
    if geometry.bits > MAX_BITS:
        raise ValueError(
            f"a {FAMILY} filter that starts with {terms.capacity} keys at fpr={terms.fpr:g} takes "
            f"more than the {MAX_BITS} bits that are allowed: split the keys over several filters"
        )
    return geometry


def following(terms: Terms, slices: Sequence[Geometry]) -> Geometry:
    """The slice that comes behind these; CapacityError where the chain may not grow any longer."""
    if len(slices) >= MAX_SLICES:
        raise CapacityError(
            f"{FAMILY} filter has {len(slices)} slices, the last of them full, and allowed are "
            f"{MAX_SLICES}: begin another filter with a larger capacity, and ask both"
        )
    geometry = terms.geometry_of(len(slices))
    used = sum(each.bits for each in slices)
    if used + geometry.bits > MAX_BITS:
        raise CapacityError(
            f"{FAMILY} filter of {used} bits is full, and with a slice more would exceed the "
            f"{MAX_BITS} that are allowed: begin another filter, and ask both"
        )
    if geometry.bits > MOST_TIMES_LARGER * used:
        raise CapacityError(
            f"{FAMILY} filter claims capacity={terms.capacity} at fpr={terms.fpr:g}, which takes a "
            f"slice of {geometry.bits} bits next, and has {used} bits; allowed are "
            f"{MOST_TIMES_LARGER} times as many: its slices were not made under these terms; build "
            "another filter of its keys"
        )
    return geometry


def plan(num_keys: int, terms: Terms) -> Chain:
    """The chain that a build makes of so many keys, or that has grown from a capacity to them."""
    if not terms.capacity:
        terms = terms.built(num_keys)
    slices = [first(terms)]
    while capacity(terms, len(slices)) < num_keys:
        slices.append(following(terms, slices))
    return Chain(terms, tuple(slices))


def capacity(terms: Terms, count: int) -> int:
    """How many keys the first so many slices are made for."""
    return sum(map(terms.capacity_of, range(count)))


def predicted_fpr(num_keys: float, chain: Chain) -> float:
    """The expected rate once this many distinct keys are in."""
    rates = []
    for index, geometry in enumerate(chain.slices):
        taken = min(num_keys, chain.terms.capacity_of(index))
        num_keys -= taken
        rates.append(classic.predicted_fpr(taken, geometry))
    return any_of(rates)


def fill_and_fpr(slices: Sequence[Geometry], bits_set: Sequence[int]) -> tuple[float, float]:
    """The share of all bits that are set, and the rate that this leads to."""
    fills = [count / each.bits for count, each in zip(bits_set, slices, strict=True)]
    rates = (fill**each.num_probes for fill, each in zip(fills, slices, strict=True))
    return sum(bits_set) / sum(each.bits for each in slices), any_of(rates)


def any_of(rates: Iterable[float]) -> float:
    """The rate of a chain: 1 less the chance that all slices deny, with all digits kept."""
    log_denied = sum(math.log1p(-rate) if rate < 1 else -math.inf for rate in rates)
    return abs(math.expm1(log_denied))


def payload_bytes(chain: Chain) -> int:
    """The bytes of terms, directory and bit arrays."""
    return head_bytes(len(chain.slices)) + sum(map(classic.payload_bytes, chain.slices))


def head_bytes(count: int) -> int:
    """The bytes of terms and of the directory of so many slices."""
    return _TERMS.size + count * _SLICE.size


def head_of(terms: Terms, slices: Sequence[Geometry]) -> bytes:
    """The payload up to the bit arrays."""
    rows = (_SLICE.pack(each.bits, each.num_probes) for each in slices)
    return b"".join((_TERMS.pack(terms.capacity, terms.fpr, terms.tightening), *rows))


def decode(buffer: Buffer) -> tuple[header.Header, Chain, list[memoryview]]:
    """Validated header and chain of a filter's bytes, and views of the slices' bit arrays.

    The geometries are taken from the bytes and checked, never computed from the terms.
    """
    head, payload = header.unpack(buffer, FAMILY)
    if head.parameter not in GROWTHS:
        raise CorruptFilterError(
            f"{FAMILY} filter claims to grow {head.parameter}-fold; allowed are 2 and 4"
        )
    if not 1 <= head.size <= MAX_SLICES:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.size} slices; allowed are 1 to {MAX_SLICES}"
        )
    if len(payload) < head_bytes(head.size):
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: terms and a directory of {head.size} slices take "
            f"{head_bytes(head.size)} bytes, there are {len(payload)}"
        )
    capacity, fpr, tightening = _TERMS.unpack_from(payload)
    terms = Terms(capacity, fpr, tightening, head.parameter)
    _check_terms(terms)
    slices, arrays = [], []
    for geometry, bits in _decode_slices(payload, head.size):
        slices.append(geometry)
        arrays.append(bits)
    return head, Chain(terms, tuple(slices)), arrays


def _check_terms(terms: Terms) -> None:
    for name, value, (low, high) in (
        ("capacity", terms.capacity, (1, MAX_CAPACITY)),
        ("fpr", terms.fpr, SIZING_PARAMETERS.ranges["fpr"]),
        ("tightening", terms.tightening, TIGHTENINGS),
    ):
        if not low <= value <= high:
            raise CorruptFilterError(
                f"{FAMILY} filter claims {name}={value:g}; allowed are {low:g} to {high:g}"
            )


def _decode_slices(payload: memoryview, count: int) -> Iterator[tuple[Geometry, memoryview]]:
    start = head_bytes(count)
    for index in range(count):
        bits, probes = _SLICE.unpack_from(payload, head_bytes(index))
        if not classic.MIN_BITS <= bits <= MAX_BITS or bits % 8:
            raise CorruptFilterError(
                f"slice {index} of a {FAMILY} filter claims {bits} bits; allowed are multiples "
                f"of 8 from {classic.MIN_BITS} to {MAX_BITS}"
            )
        if not 1 <= probes <= classic.MAX_PROBES:
            raise CorruptFilterError(
                f"slice {index} of a {FAMILY} filter claims {probes} probes; allowed are 1 to "
                f"{classic.MAX_PROBES}"
            )
        stop = start + bits // 8
        if stop > len(payload):
            raise CorruptFilterError(
                f"slice {index} of a {FAMILY} filter claims {bits} bits, which do not fit into "
                f"its payload of {len(payload)} bytes"
            )
        yield Geometry(bits, probes), payload[start:stop]
        start = stop
    if start != len(payload):
        raise CorruptFilterError(
            f"{FAMILY} filter has {len(payload) - start} bytes behind its last slice"
        )


RECORD = Family(
    page=__name__,
    class_name="ScalableBloomFilter",
    number=8,
    options={"tightening": "0.5 to 0.95", "growth": "2 or 4"},
    examples=({"fpr": 0.2, "tightening": 0.5, "growth": 4},),
    purpose="streams, of who knows how many keys",
    strength="keeps its rate however many keys come, a lookup asks every slice",
    reads="2 or more a slice",
    in_tables=False,
    grows="it goes on in a larger slice",
    outgrows=True,
)
