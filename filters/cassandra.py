"""Cassandra's Bloom filter, the bytes of ``Filter.db``: sizing, layout and real rates.

``docs/cassandra-format.md`` is the specification. A file is two signed 32-bit big-endian numbers,
the probes and the words of 64 bits, and then the words. A key's 128-bit hash gives two numbers; one
is where its probes begin and the other is the step between them, both signed and wrapping, and a
probe is the distance from 0 modulo all bits. What the words look like in the file, and which number
comes first, is a matter of the SSTable's version (:func:`layout_of`).

The size comes from a table of rates and a number of keys. Cassandra takes its estimate for that, a
build here the keys it is given, where a key that equals the one before it is the same partition.

What the even steps do to the rate: probes of one key meet each other, and those of another key,
more often than independent ones do. What that adds falls with the size of the array: half as much
again for ten keys at ``fp_chance=0.01``, a percent for three hundred.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any

import attrs

from filters import occupancy, sampling
from filters.errors import CorruptFilterError
from filters.family import NO_SECRET, Family
from filters.header import immutable_view
from filters.sizing_parameters import SizingParameter, SizingParameters, checked_int

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.kernels.python.cassandra import CassandraBloomFilter

FAMILY = "cassandra"
MAX_WORDS = (1 << 31) - 1
MIN_FP_CHANCE = 6.71e-05
SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"fp_chance": (MIN_FP_CHANCE, 1)},
    default=SizingParameter("fp_chance", 0.01),
)

_HEADER = struct.Struct(">ii")
HEADER_BYTES = _HEADER.size

# How wrong the modelled excess of a rate may be, as a share of it.
_EXCESS_ERROR = 0.35

# Bits on top of all keys' buckets, BITSET_EXCESS.
_EXCESS = 20

# The rates that Cassandra promises for so many buckets per key (the row) and probes (the column,
# from 0 on): its BloomCalculations.probs, from Cao's "Bloom Filters - the math".
RATES: tuple[tuple[float, ...], ...] = (
    (1.0,),
    (1.0, 1.0),
    (1.0, 0.393, 0.400),
    (1.0, 0.283, 0.237, 0.253),
    (1.0, 0.221, 0.155, 0.147, 0.160),
    (1.0, 0.181, 0.109, 0.092, 0.092, 0.101),
    (1.0, 0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638),
    (1.0, 0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364),
    (1.0, 0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229),
    (1.0, 0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145),
    (1.0, 0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846),
    (1.0, 0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509),
    (1.0, 0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314),
    (1.0, 0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194),
    (1.0, 0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012),
    (1.0, 0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744),
    (1.0, 0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047,
     0.000459),
    (1.0, 0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335,
     0.000302, 0.000287, 0.000284),
    (1.0, 0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226,
     0.000198, 0.000183, 0.000176),
    (1.0, 0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155,
     0.000132, 0.000118, 0.000111, 0.000109),
    (1.0, 0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000108,
     8.89e-05, 7.77e-05, 7.12e-05, 6.79e-05, 6.71e-05),
)  # fmt: skip

# The probes of the lowest rate in each row, the first of equals, and at least one.
BEST_PROBES = tuple(max(1, row.index(min(row))) for row in RATES)
MAX_PROBES = max(BEST_PROBES)


@attrs.frozen
class Geometry:
    """How many bits, and how many of them a key sets; none of either where every key is present."""

    bits: int
    num_probes: int


@attrs.frozen
class Layout:
    """How an SSTable's version lays out a filter: the order of bytes in a word, and of probes.

    ``reversed_words``: the bytes of every word from the last to the first. ``old_order``: probes
    begin at h1 and go on in steps of h2, not the other way round.
    """

    reversed_words: bool
    old_order: bool


OLDEST = Layout(reversed_words=True, old_order=True)
NEWEST = Layout(reversed_words=False, old_order=False)
_BETWEEN = Layout(reversed_words=True, old_order=False)
_LAYOUTS = {**dict.fromkeys("jkl", OLDEST), "m": _BETWEEN, **dict.fromkeys("nod", NEWEST)}


def layout_of(sstable_version: str) -> Layout:
    """What the version of an SSTable, as its files' names have it, says about its filter."""
    if not isinstance(sstable_version, str):
        raise TypeError(f"sstable_version is a str, not {type(sstable_version).__name__}")
    letters = sstable_version
    if len(letters) != 2 or not all("a" <= letter <= "z" for letter in letters):
        found = None
    else:
        found = _LAYOUTS.get(letters[0])
    if found is None:
        raise ValueError(
            f"sstable_version={sstable_version!r} is not known: allowed are two lowercase letters "
            "from the names of an SSTable's files, the first of them j, k or l (Cassandra 2), "
            "m (3), n (4), o or d (5), such as 'na'"
        )
    return found


def check(*, fp_chance: float | None = None, expected_keys: int | None = None) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    if expected_keys is not None:
        checked_int(f"expected_keys of a {FAMILY} filter", expected_keys, 0, 1 << 40)
    sizing = SIZING_PARAMETERS.choose(fp_chance=fp_chance)
    if sizing.value == MIN_FP_CHANCE:
        raise ValueError(
            f"fp_chance of a {FAMILY} filter is out of range: {sizing.value!r}, Cassandra demands "
            "more than that, and at most 1"
        )
    return sizing


def plan(num_keys: int, sizing: SizingParameter) -> Geometry:
    """Cassandra's geometry for this many keys; no bits at an ``fp_chance`` of 1."""
    if sizing.value == 1:
        return Geometry(0, 0)
    num_probes, buckets = specification(sizing.value)
    words = ((num_keys * buckets + _EXCESS - 1) >> 6) + 1
    if words > MAX_WORDS:
        raise ValueError(
            f"a {FAMILY} filter of {num_keys} keys at fp_chance={sizing.value:g} would take "
            f"{words} words of 8 bytes, and Cassandra counts to {MAX_WORDS}: split the keys, or "
            "take a higher fp_chance"
        )
    return Geometry(64 * words, num_probes)


def specification(fp_chance: float) -> tuple[int, int]:
    """Cassandra's probes and buckets per key for a rate from the lowest of its table to below 1."""
    if fp_chance >= RATES[2][1]:
        # Cassandra hands the probes of two buckets over as the number of buckets, and has kept to
        # that: two probes into one bucket per key, which three absent keys in four pass.
        return 2, BEST_PROBES[2]
    buckets = 2
    while RATES[buckets][BEST_PROBES[buckets]] > fp_chance:
        buckets += 1
    num_probes = BEST_PROBES[buckets]
    while RATES[buckets][num_probes - 1] <= fp_chance:
        num_probes -= 1
    return num_probes, buckets


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """The typical rate of a filter of this many keys."""
    if not geometry.bits:
        return 1.0
    if num_keys == 0:
        return 0.0
    balls = num_keys * geometry.num_probes
    independent = occupancy.power_of_fill(balls, geometry.bits, geometry.num_probes)
    fill = 1 - occupancy.empty_share(balls, geometry.bits)
    return min(1.0, independent + excess_fpr(fill, geometry))


def excess_fpr(fill: float, geometry: Geometry) -> float:
    """What the even steps add to the rate of independent probes, from simulations.

    A step that is nothing modulo the size, or half of it, sends all probes to one or two places,
    and where two keys have one step in common they share more than one place. Both happen to a
    share of keys that falls with the size, and to more where it is a power of two: 2^64 is a
    multiple of such a size, and a number that wraps goes on in step.
    """
    if geometry.num_probes < 3:
        return 0.0
    bits = geometry.bits
    few, many = (0.15, 1.6) if bits & (bits - 1) == 0 else (0.1, 1.1)
    return (few + many * fill) * fill / bits


def should_be_sampled(fill: float, geometry: Geometry) -> bool:
    """Whether the model errs by more than a measurement of the filter itself would."""
    rate = modelled_fpr(fill, geometry)
    return _EXCESS_ERROR * excess_fpr(fill, geometry) > sampling.error_of(rate) * rate


def modelled_fpr(fill: float, geometry: Geometry) -> float:
    """The rate of a filter with this share of set bits, by the model of its steps."""
    return float(min(1.0, fill**geometry.num_probes + excess_fpr(fill, geometry)))


def count_from_fill(fill: float, geometry: Geometry) -> float:
    """The number of keys that a share of set bits suggests; 0 where there are no bits."""
    if not geometry.bits:
        return 0.0
    return occupancy.keys_from_fill(fill, geometry.bits, geometry.num_probes)


def payload_bytes(geometry: Geometry) -> int:
    """The bytes of the words; the header comes on top, where there are any."""
    return geometry.bits >> 3


def header(geometry: Geometry) -> bytes:
    """The eight bytes before the words; none where every key is present."""
    return _HEADER.pack(geometry.num_probes, geometry.bits >> 6) if geometry.bits else b""


def decode(buffer: Buffer, sstable_version: str) -> tuple[Geometry, Layout, memoryview]:
    """What a ``Filter.db`` of an SSTable of this version states, checked, and all of its bytes.

    There is no checksum. What can be told is told: a length that is not the stated one, a number of
    probes that Cassandra never takes. Changed words look like any others.
    """
    layout = layout_of(sstable_version)
    data = immutable_view(buffer)
    if not len(data):  # every key is present, in any version
        return Geometry(0, 0), NEWEST, data
    if len(data) < HEADER_BYTES:
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: {len(data)} bytes, its header alone takes "
            f"{HEADER_BYTES}"
        )
    num_probes, words = _HEADER.unpack_from(data)
    if not 1 <= num_probes <= MAX_PROBES:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {num_probes} probes (bytes 0 to 3); allowed are 1 to "
            f"{MAX_PROBES}"
        )
    if words < 1:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {words} words (bytes 4 to 7); allowed are 1 to {MAX_WORDS}"
        )
    if len(data) != HEADER_BYTES + 8 * words:
        raise CorruptFilterError(
            f"{FAMILY} filter of {words} words (bytes 4 to 7) takes {HEADER_BYTES + 8 * words} "
            f"bytes, and has {len(data)}"
        )
    return Geometry(64 * words, num_probes), layout, data


def encode(data: Buffer, layout: Layout, sstable_version: str) -> bytes:
    """The bytes of a filter in one layout as an SSTable of some version has them."""
    wanted = layout_of(sstable_version)
    stored = bytes(data)
    if not stored:
        return stored
    if wanted.old_order != layout.old_order:
        order, versions = ("old", "'ja' to 'lz'") if layout.old_order else ("new", "'ma' and later")
        raise ValueError(
            f"this {FAMILY} filter has the {order} hash order, which is that of SSTables "
            f"{versions}, not {sstable_version!r}: pass such an sstable_version, or build a filter "
            "of the keys; bits cannot be reordered"
        )
    if wanted.reversed_words == layout.reversed_words:
        return stored
    words = array("Q", stored[HEADER_BYTES:])
    words.byteswap()
    return stored[:HEADER_BYTES] + words.tobytes()


def latest_version(built: CassandraBloomFilter) -> str:
    """The last version whose SSTables can store a filter: one of its hash order."""
    return "la" if built.has_old_hash_order else "na"


def equal(one: CassandraBloomFilter, other: Any) -> bool:
    """Whether two filters have the same bytes and hash order, wherever they were read from."""
    version = latest_version(one)
    if other.family != FAMILY or latest_version(other) != version:
        return False
    return bool(one.to_bytes(sstable_version=version) == other.to_bytes(sstable_version=version))


RECORD = Family(
    page=__name__,
    class_name="CassandraBloomFilter",
    policy="policies.builtin:CassandraPolicy",
    options={"expected_keys": "in `build` only"},
    estimate_num_keys=lambda built: count_from_fill(
        built.fill, Geometry(built.num_bits, built.num_probes)
    ),
    overhead=HEADER_BYTES,
    examples=({"fp_chance": 0.1}, {"fp_chance": 0.0001}),
    purpose="Cassandra's own files",
    strength=NO_SECRET,
    reads="up to 5 and 7",
    foreign="Cassandra's",
)
