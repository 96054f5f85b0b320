"""LevelDB's own Bloom filter, ``leveldb.BuiltinBloomFilter2``: sizing, layout and real rates.

The bytes are a bit array of at least 64 bits and, last, one byte with the number of probes; nothing
else is stored, and every byte string means something (fewer than two bytes: no key at all; more
than 30 probes: a future encoding, every key). A key's 32-bit hash ``h`` sets bit ``h % bits`` and
goes on in equal steps of ``rotr32(h, 17)``, modulo 2^32.

What that really does to the rate is not what theory says of independent probes:

* The third probe is degenerate. With ``h = A * 2^17 + B`` it is ``h + 2 * rotr32(h, 17) =
  65537 * (2A + B)``, which takes no more than 196,606 values, whatever the size of the filter. From
  about 50,000 keys on they fill up and the probe stops telling keys apart: at 10 bits per key and
  100,000 keys, 1.2 % of absent keys pass and not 0.82 %.
* Few keys walk a short array in even steps, which often coincide: 1.3 % for ten keys, and 0.46 %
  where 16 bits per key promise 0.05 %.
* Hashes of 32 bits collide: of all absent keys, ``num_keys / 2^32`` pass any number of probes. From
  10,000 keys on nothing is gained beyond 30 bits per key.
* Some sizes resonate with the steps. The second probe is never 1 modulo 3, so of an array whose
  size is divisible by 3 it misses a third, and a tenth more pass; 300,000 bits are worse still
  (1.2 % instead of 0.9 %), and a few are several times. Predictions are of the typical rate.

So predictions come from the measured table ``filters/leveldb_rates.py``, and the rate of a finished
filter is measured on the filter itself.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from filters import occupancy
from filters.family import NO_SECRET, Family
from filters.header import immutable_view
from filters.leveldb_rates import NUM_KEYS, RATES
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "leveldb"
MIN_BITS = 64
MAX_PROBES = 30
MAX_BITS_PER_KEY = 100
SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (1, MAX_BITS_PER_KEY), "fpr": (1e-4, 0.5)},
    default=SizingParameter("bits_per_key", 10),
    max_probes=MAX_PROBES,
)

# An unattainable rate is granted as far as it goes: with the fewest bits that come this close to
# the best, since the last of it would take several times the bits.
CLOSE_TO_BEST = 1.1


@attrs.frozen
class Geometry:
    """How many bits, and how many of them a key sets."""

    bits: int
    num_probes: int


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    num_probes: int | None = None,
) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    sizing = SIZING_PARAMETERS.check_bloom(
        bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes
    )
    if sizing.name == "bits_per_key" and sizing.value != int(sizing.value):
        raise ValueError(
            f"bits_per_key of a {FAMILY} filter is a whole number, not {sizing.value!r}: "
            f"LevelDB takes no fractions; choose {math.floor(sizing.value)} or "
            f"{math.ceil(sizing.value)}"
        )
    return sizing


def plan(num_keys: int, sizing: SizingParameter, num_probes: int | None = None) -> Geometry:
    """LevelDB's geometry for this many keys (repeats count) at the whole bits per key asked for.

    An ``fpr`` takes the fewest bits per key whose typical rate at this many keys is at most that.
    Where none is (below a handful of keys, or from ``fpr * 2^32`` on), it comes close to the best.
    """
    if sizing.name == "fpr":
        bits_per_key = bits_per_key_for_fpr(num_keys, sizing.value, num_probes)
    else:
        bits_per_key = int(sizing.value)
    return _geometry(num_keys, bits_per_key, num_probes)


def default_probes(bits_per_key: int) -> int:
    """LevelDB's probe count: 69 % of the bits per key (it is ln 2, rounded), cut to 1 to 30."""
    return max(1, min(MAX_PROBES, int(bits_per_key * 0.69)))


def bits_for(num_keys: int, bits_per_key: int) -> int:
    """LevelDB's size of the bit array: whole bytes, at least 64 bits."""
    return -(-max(MIN_BITS, num_keys * bits_per_key) // 8) * 8


def bits_per_key_for_fpr(num_keys: int, fpr: float, num_probes: int | None = None) -> int:
    """The fewest whole bits per key with a predicted rate of at most ``fpr``, or the next best."""
    rates = []
    for bits_per_key in range(1, MAX_BITS_PER_KEY + 1):
        rates.append(predicted_fpr(num_keys, _geometry(num_keys, bits_per_key, num_probes)))
        if rates[-1] <= fpr:
            return bits_per_key
    close = CLOSE_TO_BEST * min(rates)
    return 1 + next(i for i, rate in enumerate(rates) if rate <= close)


def _geometry(num_keys: int, bits_per_key: int, num_probes: int | None) -> Geometry:
    return Geometry(bits_for(num_keys, bits_per_key), num_probes or default_probes(bits_per_key))


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The typical rate of a filter of this many keys: measured for LevelDB's geometries.

    For any other geometry (another probe count, or more keys than it was made for) it is modelled,
    which comes within a fifth or so at 1,000 keys and more and up to 16 bits per key, and far too
    low for few keys at many bits.
    """
    count = round(num_keys)
    if count == 0:
        return 0.0
    bits_per_key = _bits_per_key_of(count, geometry)
    if bits_per_key is None:
        return modelled_fpr(count, geometry)
    return typical_fpr(count, bits_per_key)


def _bits_per_key_of(num_keys: int, geometry: Geometry) -> int | None:
    """The whole bits per key at which LevelDB makes this geometry for so many keys, if any."""
    highest = min(MAX_BITS_PER_KEY, geometry.bits // num_keys)
    # Small filters have the same 64 bits at several bits per key; the probes tell these apart.
    for bits_per_key in range(highest, 0, -1):
        if bits_for(num_keys, bits_per_key) != geometry.bits:
            return None
        if default_probes(bits_per_key) == geometry.num_probes:
            return bits_per_key
    return None


def typical_fpr(num_keys: int, bits_per_key: int) -> float:
    """The measured table, read between its rows and columns."""
    rows = tuple(RATES)
    low = max(0, bisect_right(rows, bits_per_key) - 1)
    rate = _along_row(RATES[rows[low]], num_keys)
    if rows[low] < bits_per_key:
        share = (bits_per_key - rows[low]) / (rows[low + 1] - rows[low])
        rate *= (_along_row(RATES[rows[low + 1]], num_keys) / rate) ** share
    return rate


def _along_row(row: Sequence[float], num_keys: int) -> float:
    if num_keys >= NUM_KEYS[-1]:
        # Past the table the keys' own hashes are what still grows.
        return min(1.0, row[-1] + (num_keys - NUM_KEYS[-1]) / 2**32)
    low = bisect_right(NUM_KEYS, num_keys) - 1
    share = math.log(num_keys / NUM_KEYS[low]) / math.log(NUM_KEYS[low + 1] / NUM_KEYS[low])
    return float(row[low] * (row[low + 1] / row[low]) ** share)


def modelled_fpr(num_keys: float, geometry: Geometry) -> float:
    """The rate if all probes were independent but for the third and for equal hashes."""
    probes, own = geometry.num_probes, num_keys / 2**32
    balls = _distinct_balls(num_keys, probes)
    rate = occupancy.power_of_fill(balls, geometry.bits, probes)
    if probes >= 3:
        empty = occupancy.empty_share(balls, geometry.bits)
        rate *= (1 - empty * (1 - _third_probe_met(num_keys))) / (1 - empty)
    return min(1.0, rate + own)


# How many keys it takes until a value of 2A + B has been met e-fold: 2^17 of them are most common.
_THIRD_SCALE = 1 << 17


def _distinct_balls(num_keys: float, num_probes: int) -> float:
    """How many different values the probes of so many keys have, before the modulus."""
    if num_probes < 3 or num_keys == 0:
        return num_keys * num_probes
    # 2A + B is a sum of two uniform numbers. Half of its 196,606 values are equally likely, and
    # their likelihood rises and falls in a straight line at either end; this is the integral.
    t = num_keys / _THIRD_SCALE
    met = -math.expm1(-t)
    third = _THIRD_SCALE / 2 * met + _THIRD_SCALE * (1 - met / t)
    return num_keys * (num_probes - 1) + third


def _third_probe_met(num_keys: float) -> float:
    """The chance that an absent key shares the value of its third probe with a key."""
    t = num_keys / _THIRD_SCALE
    if t < 1e-3:
        return t * 5 / 6
    gone = math.exp(-t)
    return 1 - gone / 2 - (1 - (1 + t) * gone) / t**2


def count_from_fill(fill: float, geometry: Geometry) -> float:
    """The number of keys that a share of set bits suggests."""
    balls = occupancy.keys_from_fill(fill, geometry.bits, 1)
    low, high = 0.0, balls
    for _ in range(64):
        middle = (low + high) / 2
        few = _distinct_balls(middle, geometry.num_probes) < balls
        low, high = (middle, high) if few else (low, middle)
    return high


def floor_fpr(fill: float, geometry: Geometry) -> float:
    """What can be said of a filter too good to be measured: theory, and the keys' own hashes."""
    own = count_from_fill(fill, geometry) / 2**32
    return max(float(fill**geometry.num_probes), own)


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of the bit array; one more byte says the number of probes."""
    return -(-geometry.bits // 8)


def decode(buffer: Buffer) -> tuple[Geometry, memoryview]:
    """The geometry that these bytes mean to LevelDB, and all of the bytes.

    Nothing is refused. No bits: every key is absent. 0 probes or more than 30: every key may be
    there.
    """
    data = immutable_view(buffer)
    if len(data) < 2:
        return Geometry(0, 0), data
    return Geometry(8 * (len(data) - 1), data[-1]), data


def _estimate_num_keys(built: Any) -> float:
    geometry = Geometry(built.num_bits, built.num_probes)
    return count_from_fill(built.fill, geometry) if built.num_bits else 0.0


RECORD = Family(
    page=__name__,
    class_name="LevelDBBloomFilter",
    policy="policies.builtin:LevelDBPolicy",
    layouts=frozenset({"table", "block"}),
    estimate_num_keys=_estimate_num_keys,
    overhead=1,  # the number of probes
    samples=True,
    examples=({"bits_per_key": 1}, {"bits_per_key": 20}, {"fpr": 0.02}),
    purpose="LevelDB's own files",
    strength=NO_SECRET,
    reads="up to 6 and 11",
    foreign="LevelDB's",
)
