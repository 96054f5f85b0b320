"""Grafite: ranges of keys as well as keys (Costa, Ferragina and Vinciguerra, 2023).

A key is a number, see ``key_numbers.py``. Numbers are cut into blocks as long as the codes'
universe, ``r``, and each block is laid over all codes, shifted by a random number of its own:
``code(x) = (shift(x div r) + x) mod r``. So numbers in a row have codes in a row but where a block
ends, and a range is empty where no code lies between those of its ends. Shifts are pairwise
independent: whatever the ``n`` keys are, and whoever asks without knowing the seed, an empty range
of length ``l`` passes once in ``r / (n * l)`` times at most. The distinct codes stand in Elias and
Fano's code, in at most ``2 + log2(r / n)`` bits a key.

In the header, ``size`` is the universe of the codes and ``parameter`` how many lowest bits of each
stand apart. The payload: number of codes u64, length of the prefix u32, width of a number u8, the
prefix, the codes as ``elias_fano.py`` lays them out.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import attrs

from filters import header
from filters.elias_fano import MAX_LOW_BITS, MAX_UNIVERSE, Layout
from filters.errors import CorruptFilterError
from filters.family import Family
from filters.hashing import digest
from filters.key_numbers import MAX_WIDTH, Numbering
from filters.sizing_parameters import SizingParameter, SizingParameters, checked_int

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "grafite"
MAX_RANGE_LENGTH = 1 << 32
USUAL_FPR = 0.01  # of ranges whose length is all that is said

_FIXED = struct.Struct("<QLB")
FIXED_BYTES = _FIXED.size


@attrs.frozen
class RangeSize(SizingParameter):
    """A sizing parameter whose rate is that of empty ranges of this length."""

    range_length: int = 1


SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (3, 64), "fpr": (1e-8, 0.5)},
    default=RangeSize("bits_per_key", 14),
)


def check(
    *,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    range_length: int = 1,
) -> RangeSize:
    """The one sizing parameter that these arguments give, or TypeError or ValueError.

    A length of ranges without anything else asks for the usual rate.
    """
    what = f"range_length of a {FAMILY} filter"
    length = checked_int(what, range_length, 1, MAX_RANGE_LENGTH)
    sizing = SIZING_PARAMETERS.choose(bits_per_key=bits_per_key, fpr=fpr)
    if length > 1 and bits_per_key is not None:
        raise ValueError(
            f"{what} says which ranges have the rate fpr=, and bits_per_key={bits_per_key:g} asks "
            "for a size: leave one of them out"
        )
    if length > 1 and fpr is None:
        return RangeSize("fpr", USUAL_FPR, length)
    return RangeSize(sizing.name, sizing.value, length)


def plan(num_keys: int, sizing: SizingParameter) -> Layout:
    """The codes of so many keys, none of which falls on another's."""
    count = max(1, num_keys)
    if sizing.name == "fpr":
        length = sizing.range_length if isinstance(sizing, RangeSize) else 1
        universe = math.ceil(count * length / sizing.value)
        if universe > MAX_UNIVERSE:
            raise ValueError(
                f"a {FAMILY} filter for {num_keys} keys at fpr={sizing.value:g} for ranges of "
                f"{length} takes codes below {universe}, and allowed are 2^63: split the keys over "
                "several filters, or ask for a higher rate"
            )
    else:
        universe = min(MAX_UNIVERSE, math.ceil(count * 2.0 ** (sizing.value - 2)))
    return Layout.of(universe, num_keys)


def payload_bytes(layout: Layout) -> int:
    """The bytes of all codes where keys share no prefix."""
    return FIXED_BYTES + layout.low_bytes + layout.high_bytes


def predicted_fpr(num_keys: float, layout: Layout) -> float:
    """The rate of absent keys once so many different numbers are in."""
    return range_fpr(num_keys, layout.universe, 1)


def range_fpr(num_keys: float, universe: int, length: int) -> float:
    """The rate of empty ranges of a length, far from keys; those in blocks with keys have less."""
    if not num_keys:
        return 0.0
    if length >= universe:
        return 1.0
    return -math.expm1(num_keys * math.log1p(-length / universe))


def multipliers(seed: int, salt: int) -> tuple[int, int, int, int]:
    """What the shift of a block is computed with, which is secret as long as the seed is."""
    first, second, third, fourth = (
        digest(salt.to_bytes(8, "little") + bytes([index]), seed) for index in range(4)
    )
    return first, second, third, fourth


def head_of(numbering: Numbering, num_codes: int) -> bytes:
    """What precedes the codes."""
    fixed = _FIXED.pack(num_codes, len(numbering.prefix), numbering.width)
    return fixed + numbering.prefix


def decode(buffer: Buffer) -> tuple[header.Header, Layout, Numbering, memoryview]:
    """Validated header, layout, numbering and payload of a filter's bytes.

    How many codes the buckets hold is left to who counts them: ``layout.check_ones``.
    """
    head, payload = header.unpack(buffer, FAMILY)
    if not 1 <= head.size <= MAX_UNIVERSE or head.parameter > MAX_LOW_BITS:
        raise CorruptFilterError(
            f"{FAMILY} filter claims codes below {head.size} and {head.parameter} lowest bits; "
            f"allowed are 1 to 2^63 and 0 to {MAX_LOW_BITS}"
        )
    if len(payload) < FIXED_BYTES:
        raise CorruptFilterError(
            f"{FAMILY} filter has a payload of {len(payload)} bytes; its fixed fields alone take "
            f"{FIXED_BYTES}"
        )
    num_codes, prefix_length, width = _FIXED.unpack_from(payload)
    if width > MAX_WIDTH:
        raise CorruptFilterError(
            f"{FAMILY} filter claims numbers of {width} bytes; allowed are 0 to {MAX_WIDTH}"
        )
    if num_codes > min(head.num_keys, head.size) or bool(num_codes) != bool(head.num_keys):
        raise CorruptFilterError(
            f"{FAMILY} filter claims {num_codes} codes of {head.num_keys} keys below {head.size}"
        )
    layout = Layout(head.size, num_codes, head.parameter)
    expected = payload_bytes(layout) + prefix_length
    header.check_payload(FAMILY, payload, expected, 8 * expected)
    layout.check_unused(FAMILY, payload[FIXED_BYTES + prefix_length :])
    prefix = payload[FIXED_BYTES : FIXED_BYTES + prefix_length].tobytes()
    return head, layout, Numbering(prefix, width), payload


RECORD = Family(
    page=__name__,
    class_name="GrafiteFilter",
    number=9,
    policy="policies.builtin:GrafitePolicy",
    options={"range_length": "1 to 2^32"},
    examples=({"bits_per_key": 8}, {"fpr": 0.01}, {"fpr": 0.01, "range_length": 32}),
    purpose="ranges of keys, too",
    strength="answers for ranges, whatever the keys are and whatever is asked",
    reads="3",
    in_tables=False,
    answers_ranges=True,
)
