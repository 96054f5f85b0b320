"""The bumped ribbon filter: parameters, sizing and layout.

A static set within a percent or two of the fewest bits there can be, at any rate (Dillinger,
Hübschle-Schneider, Sanders and Walzer, 2022). A key is an equation: the slots at its start, chosen
by a row of 64 coefficients, xor to its result. A layer has a few slots less than keys, so that
nearly all of them are used; where the equations of a bucket of starts contradict each other, its
keys up to a threshold are bumped: the next layer, small as they are few, takes them. What the last
layer leaves over is kept as it is, in a list of hashes, and so no set fails to build.

A slot is a bit of each of ``c`` columns, or of one more: the later blocks of 64 slots have it, as
many as the sizing parameter asks for. In the header, ``size`` is the number of 64-bit words of all
columns and ``parameter`` the columns of the narrow blocks. The payload is the number of layers
(u32), each layer's number of blocks (u32), two bits for the threshold of each bucket, zeros up to a
whole word, the words of every block column by column, and the hashes left over in ascending order
(u64).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import attrs

from filters import header
from filters.errors import CorruptFilterError
from filters.family import Family
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

FAMILY = "bumped-ribbon"
WORD_BYTES = 8
WORD_BITS = 64
CODES_PER_BYTE = 4
BLOCK_SLOTS = 64
BUCKET_STARTS = 128
BUCKET_BLOCKS = BUCKET_STARTS // BLOCK_SLOTS
BUCKET_SLOTS = BUCKET_STARTS + BLOCK_SLOTS - 1  # that its keys ask for
MAX_COLUMNS = 32
MAX_LAYERS = 8
MIN_BLOCKS = 2
MAX_BLOCKS = (1 << 32) - 1

# Keys whose start lies so far into its bucket, or farther, are in the layer: by the bucket's code.
# Of the thresholds tried in two bits, those that cost the least.
THRESHOLDS = (0, 14, 32, BUCKET_STARTS)

# What is added to a hash before it is mixed again for the next layer, or for the list left over.
STEP = 0x9E37_79B9_7F4A_7C15

# So many keys are crowded into fewer slots than there are keys; fewer than that are a last layer,
# with no room to spare or with some.
CROWD = 1400
CROWDING = 0.03
CROWDING_OF_FEW = 3.0
ROOMS = (1.0, 1.04)

# A large layer is banded from so many places on, so that the compiled twin can do so at all of
# them at a time. A row that would come into a slot which no key of its bucket asks for is bumped,
# else it could run into what is done elsewhere.
SECTIONS = 4
MIN_SECTION_BUCKETS = 128

# Measured over many builds: of the slots of a crowded layer so many stay empty.
EMPTY_SLOTS = 0.0016

# A small set takes more than its share of bits for what is not in columns; this much stays there.
LEAST_SHARE_OF_COLUMNS = 0.9

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={"bits_per_key": (1.1, 34), "fpr": (2**-32, 0.5)},
    default=SizingParameter("fpr", 0.01),
)

_COUNT = struct.Struct("<L")
_HASH = struct.Struct("<Q")

# How many starts in each half of a bucket, which is a block, are not bumped: by the bucket's code.
_KEPT = tuple(
    (max(0, BLOCK_SLOTS - each), min(BLOCK_SLOTS, BUCKET_STARTS - each)) for each in THRESHOLDS
)
_UNPACKED = [bytes(byte >> shift & 3 for byte in range(256)) for shift in (0, 2, 4, 6)]


@attrs.frozen
class Layer:
    """Blocks of 64 slots, the last of which no key starts in, and the code of each bucket."""

    blocks: int
    codes: bytes | bytearray = attrs.field(repr=False)

    @property
    def starts(self) -> int:
        """In how many slots a key can start: those of the last block follow on the one before."""
        return (self.blocks - 1) * BLOCK_SLOTS

    def kept(self, first_block: int = 0) -> int:
        """How many starts, from this block on, are not bumped."""
        evens, odds = -(-first_block // BUCKET_BLOCKS), first_block // BUCKET_BLOCKS
        last = (self.blocks - 1) // BUCKET_BLOCKS
        count = self.codes.count
        return sum(
            kept[0] * count(code, evens) + kept[1] * count(code, odds, last)
            for code, kept in enumerate(_KEPT)
        )


@attrs.frozen
class Planned(Layer):
    """A layer before anything is built, taken as if none of its starts will be bumped."""

    codes: bytes = attrs.field(default=b"", init=False, repr=False)

    def kept(self, first_block: int = 0) -> int:
        """All starts from this block on."""
        return max(0, self.blocks - 1 - first_block) * BLOCK_SLOTS


@attrs.frozen
class Columns:
    """How many columns the blocks have, and how many of the last ones have one more."""

    narrow: int
    wide_blocks: int

    def words(self, blocks: int) -> int:
        """The 64-bit words of all blocks."""
        return blocks * self.narrow + self.wide_blocks


@attrs.frozen
class Size:
    """What a filter is expected to take: its layers, columns, and how many hashes are left over."""

    layers: tuple[Layer, ...]
    columns: Columns
    left_over: int


def check(*, bits_per_key: float | None = None, fpr: float | None = None) -> SizingParameter:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    return SIZING_PARAMETERS.choose(bits_per_key=bits_per_key, fpr=fpr)


def blocks_for(num_keys: int, layers: int, sizing: SizingParameter) -> list[int]:
    """The numbers of blocks to try for the next layer, behind so many, of the keys bumped so far.

    The list is empty where storing the hashes takes no more words than the smallest layer would. Of
    two tries the one with the fewest :func:`words_taken` is kept; a large layer gets one try, since
    building it takes long.
    """
    if layers == MAX_LAYERS or num_keys <= MIN_BLOCKS * most_columns(sizing) + 1:
        return []
    if num_keys >= CROWD:
        crowding = CROWDING + CROWDING_OF_FEW / math.sqrt(num_keys)
        return [min(MAX_BLOCKS, math.ceil(num_keys * (1 - crowding) / BLOCK_SLOTS))]
    tries = {max(MIN_BLOCKS, math.ceil(num_keys * room / BLOCK_SLOTS)) for room in ROOMS}
    return sorted(tries)


def words_taken(blocks: int, bumped: int, sizing: SizingParameter) -> int:
    """What a layer costs: its words, and those of the hashes that it bumped."""
    return blocks * most_columns(sizing) + bumped


def buckets_of(blocks: int) -> int:
    """How many buckets of starts a layer has; the last may be half a one."""
    return blocks // BUCKET_BLOCKS


def sections_of(buckets: int) -> list[int]:
    """The buckets that are banded first, each before all that lie to its left."""
    if buckets < SECTIONS * MIN_SECTION_BUCKETS:
        return [0]
    return [buckets // SECTIONS * section for section in range(SECTIONS)]


def columns_for(
    sizing: SizingParameter, num_keys: int, layers: Sequence[Layer], left_over: int
) -> Columns:
    """The fewest columns that grant a rate, or the most that stay within a size.

    Chosen once it is known which starts are bumped, so that the rate is met exactly.
    """
    blocks = sum(layer.blocks for layer in layers)
    if not blocks:
        return Columns(most_columns(sizing), 0)
    if sizing.name == "fpr":
        return _columns_for_rate(sizing.value, layers)
    fixed = fixed_bytes([each.blocks for each in layers]) // WORD_BYTES + left_over
    words = sizing.value * num_keys / WORD_BITS - fixed
    return _columns_in(max(words, LEAST_SHARE_OF_COLUMNS * sizing.value * blocks), blocks)


def most_columns(sizing: SizingParameter) -> int:
    """The columns of a wide block, as far as they are known before anything is built."""
    return (
        math.ceil(-math.log2(sizing.value)) if sizing.name == "fpr" else min(32, int(sizing.value))
    )


def _columns_in(words: float, blocks: int) -> Columns:
    """The most columns that these words have room for: one at least."""
    narrow, wide = divmod(min(int(words), MAX_COLUMNS * blocks), blocks)
    return Columns(narrow, wide) if narrow else Columns(1, 0)


def _columns_for_rate(fpr: float, layers: Sequence[Layer]) -> Columns:
    """As many columns as leave the rate too high, then wide blocks until it is not."""
    chances = list(_chances(layers))
    asked = sum(chance * layer.kept() for chance, layer in zip(chances, layers, strict=True))
    if asked <= fpr:
        return Columns(1, 0)
    narrow = min(MAX_COLUMNS, max(1, math.floor(math.log2(asked / fpr))))
    excess = asked - fpr * 2**narrow
    if excess <= 0 or narrow == MAX_COLUMNS:
        return Columns(narrow, 0)
    wide = 0
    for chance, layer in zip(reversed(chances), reversed(layers), strict=True):
        if excess <= chance * layer.kept() / 2:
            wide += _blocks_that_keep(layer, excess * 2 / chance)
            break
        wide += layer.blocks
        excess -= chance * layer.kept() / 2
    blocks = sum(layer.blocks for layer in layers)
    return Columns(narrow + 1, 0) if wide >= blocks else Columns(narrow, wide)


def _chances(layers: Sequence[Layer]) -> Iterator[float]:
    """For each layer, how likely an absent key is to come to any one of its starts."""
    arriving = 1.0
    for layer in layers:
        yield arriving / layer.starts
        arriving *= 1 - layer.kept() / layer.starts


def _blocks_that_keep(layer: Layer, wanted: float) -> int:
    """How many of the last blocks it takes until so many of their starts are not bumped."""
    few, enough = 0, layer.blocks
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (
            (few, middle) if layer.kept(layer.blocks - middle) >= wanted else (middle, enough)
        )
    return enough


def expected_fpr(layers: Sequence[Layer], columns: Columns) -> float:
    """The share of absent keys that the columns answer "maybe" to.

    A key that every layer bumps is compared with whole 64-bit hashes, and hardly ever passes.
    """
    narrow = sum(layer.blocks for layer in layers) - columns.wide_blocks
    rate = 0.0
    for chance, layer in zip(_chances(layers), layers, strict=True):
        wide = layer.kept(min(layer.blocks, max(0, narrow)))
        rate += chance * (layer.kept() - wide / 2)
        narrow -= layer.blocks
    return rate * 2.0**-columns.narrow


def plan(num_keys: int, sizing: SizingParameter) -> Size:
    """What a filter of so many keys is expected to take."""
    layers: list[Layer] = []
    left = num_keys
    while tries := blocks_for(left, len(layers), sizing):
        left = max(0, left - math.floor(tries[-1] * BLOCK_SLOTS * (1 - EMPTY_SLOTS)))
        layers.append(Planned(tries[-1]))
    return Size(tuple(layers), columns_for(sizing, num_keys, layers, left), left)


def predicted_fpr(num_keys: float, size: Size) -> float:
    """The rate that is expected of a filter of this size."""
    return expected_fpr(size.layers, size.columns) if num_keys else 0.0


def payload_bytes(size: Size) -> int:
    """The bytes between header and checksum."""
    words = size.columns.words(sum(layer.blocks for layer in size.layers))
    return fixed_bytes([each.blocks for each in size.layers]) + WORD_BYTES * (
        words + size.left_over
    )


def codes_start(layers: int) -> int:
    """Where in the payload the codes start."""
    return _COUNT.size * (1 + layers)


def fixed_bytes(blocks: Sequence[int]) -> int:
    """The payload before its columns, for layers of so many blocks."""
    codes = -(-sum(map(buckets_of, blocks)) // CODES_PER_BYTE)
    return -(-(codes_start(len(blocks)) + codes) // WORD_BYTES) * WORD_BYTES


def head_of(layers: Sequence[Layer]) -> bytes:
    """The payload before its columns."""
    counts = b"".join(map(_COUNT.pack, [len(layers), *(layer.blocks for layer in layers)]))
    codes = b"".join(layer.codes for layer in layers)
    codes += bytes(-len(codes) % CODES_PER_BYTE)
    packed = 0
    for place in range(CODES_PER_BYTE):
        packed |= int.from_bytes(codes[place::CODES_PER_BYTE], "little") << 2 * place
    head = counts + packed.to_bytes(len(codes) // CODES_PER_BYTE, "little")
    return head + bytes(-len(head) % WORD_BYTES)


def decode(buffer: Buffer) -> tuple[header.Header, list[Layer], Columns, memoryview]:
    """Validated header, layers and columns of a filter's bytes, and its payload.

    Everything is taken from the bytes and checked, so that a probe stays within them.
    """
    head, payload = header.unpack(buffer, FAMILY)
    layers = _decode_layers(payload)
    columns = _decode_columns(head, sum(layer.blocks for layer in layers))
    start = fixed_bytes([layer.blocks for layer in layers]) + WORD_BYTES * head.size
    if start > len(payload) or (len(payload) - start) % WORD_BYTES:
        raise CorruptFilterError(
            f"{FAMILY} filter has a payload of {len(payload)} bytes where its layers take {start}, "
            f"and each hash left over {WORD_BYTES}"
        )
    _check_left_over(head, [each for (each,) in _HASH.iter_unpack(payload[start:])], layers)
    return head, layers, columns, payload


def _decode_layers(payload: memoryview) -> list[Layer]:
    """The layers, each with its codes taken apart."""
    if len(payload) < WORD_BYTES:
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: {len(payload)} payload bytes, there are {WORD_BYTES} "
            "without a layer"
        )
    [count] = _COUNT.unpack_from(payload)
    start = codes_start(count)
    if count > MAX_LAYERS or start > len(payload):
        raise CorruptFilterError(
            f"{FAMILY} filter claims {count} layers in a payload of {len(payload)} bytes; allowed "
            f"are 0 to {MAX_LAYERS}, as many as fit"
        )
    blocks = [each for (each,) in _COUNT.iter_unpack(payload[_COUNT.size : start])]
    for index, each in enumerate(blocks):
        if each < MIN_BLOCKS:
            raise CorruptFilterError(
                f"layer {index} of a {FAMILY} filter claims {each} blocks; allowed are "
                f"{MIN_BLOCKS} to {MAX_BLOCKS}"
            )
    stop = fixed_bytes(blocks)
    if stop > len(payload):
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: the codes of its layers end at byte {stop} of a "
            f"payload of {len(payload)}"
        )
    codes = _unpacked(bytes(payload[start:stop]))
    ends = list(accumulate(map(buckets_of, blocks), initial=0))
    if any(codes[ends[-1] :]):
        raise CorruptFilterError(f"{FAMILY} filter has bits set behind the last of its codes")
    return [Layer(each, codes[a:b]) for each, (a, b) in zip(blocks, pairwise(ends), strict=True)]


def _unpacked(packed: bytes) -> bytes:
    """Codes of two bits each as bytes."""
    codes = bytearray(CODES_PER_BYTE * len(packed))
    for place, table in enumerate(_UNPACKED):
        codes[place::CODES_PER_BYTE] = packed.translate(table)
    return bytes(codes)


def _decode_columns(head: header.Header, blocks: int) -> Columns:
    if not 1 <= head.parameter <= MAX_COLUMNS:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.parameter} columns; allowed are 1 to {MAX_COLUMNS}"
        )
    columns = Columns(head.parameter, head.size - blocks * head.parameter)
    most = max(0, blocks - 1) if head.parameter < MAX_COLUMNS else 0
    if not 0 <= columns.wide_blocks <= most:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.size} words for {blocks} blocks of {head.parameter} "
            f"columns; allowed are {blocks * head.parameter} to {blocks * head.parameter + most}"
        )
    return columns


def _check_left_over(head: header.Header, hashes: list[int], layers: list[Layer]) -> None:
    """Ascending, each once, and no fewer than there must be for so many keys."""
    if any(one >= two for one, two in pairwise(hashes)):
        raise CorruptFilterError(f"{FAMILY} filter has hashes left over that are not ascending")
    slots = BLOCK_SLOTS * sum(layer.blocks for layer in layers)
    if not len(hashes) <= head.num_keys <= len(hashes) + slots:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {head.num_keys} keys in {slots} slots and a list of "
            f"{len(hashes)} hashes"
        )


RECORD = Family(
    page=__name__,
    class_name="BumpedRibbonFilter",
    number=6,
    policy="policies.builtin:BumpedRibbonPolicy",
    examples=({"bits_per_key": 4.3}, {"fpr": 1e-6}),
    purpose="the fewest bits at any rate, slower to build",
    strength="nearest to the bound at any rate, and slower to build and to ask",
    reads="2 to 3, side by side",
)
