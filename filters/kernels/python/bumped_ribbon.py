"""The bumped ribbon filter, built and probed in Python."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from filters import bumped_ribbon
from filters.bumped_ribbon import (
    BLOCK_SLOTS,
    BUCKET_STARTS,
    THRESHOLDS,
    WORD_BYTES,
    Columns,
    Layer,
)
from filters.columns import one_by_one
from filters.hashing import MASK64
from filters.kernels.python.banding import (
    Band,
    band,
    coefficients_of,
    result_of,
    solve,
    stepped,
)
from filters.kernels.python.base import SaltedFilter, salted
from filters.sizing_parameters import SizingParameter

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


_NUMBER = struct.Struct("<Q")


class BumpedRibbonFilter(SaltedFilter):
    """A static filter of nearly the fewest bits; sized by ``fpr`` or ``bits_per_key``."""

    __slots__ = ("_columns", "_layers", "_left_over", "_words")
    family = bumped_ribbon.FAMILY

    def __init__(
        self,
        layers: Sequence[Layer],
        columns: Columns,
        *,
        seed: int,
        salt: int,
        num_keys: int,
        payload: memoryview,
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        super().__init__(seed=seed, salt=salt, num_keys=num_keys, payload=payload)
        self._layers = layers
        self._columns = columns
        start = bumped_ribbon.fixed_bytes([layer.blocks for layer in layers])
        stop = start + WORD_BYTES * columns.words(sum(layer.blocks for layer in layers))
        self._words = payload[start:stop]
        self._left_over = [number for (number,) in _NUMBER.iter_unpack(payload[stop:])]

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys."""
        sizing = bumped_ribbon.check(bits_per_key=bits_per_key, fpr=fpr)
        mixed, seed, salt = salted(one_by_one(keys, nulls), seed, salt)
        bands, left_over = bands_of(mixed, sizing)
        layers = [each.layer for each in bands]
        columns = bumped_ribbon.columns_for(sizing, len(mixed), layers, len(left_over))
        numbers = [*solve_all(bands, columns), *left_over]
        payload = memoryview(
            bumped_ribbon.head_of(layers) + struct.pack(f"<{len(numbers)}Q", *numbers)
        )
        return cls(layers, columns, seed=seed, salt=salt, num_keys=len(mixed), payload=payload)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, layers, columns, payload = bumped_ribbon.decode(buffer)
        return cls(
            layers,
            columns,
            seed=head.seed,
            salt=head.salt,
            num_keys=head.num_keys,
            payload=payload,
        )

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self._pack(parameter=self._columns.narrow, size=len(self._words) // WORD_BYTES)

    @property
    def num_columns(self) -> float:
        """The mean number of columns of all blocks, which need not be whole."""
        blocks = sum(layer.blocks for layer in self._layers)
        return self._columns.narrow + self._columns.wide_blocks / max(1, blocks)

    @property
    def num_layers(self) -> int:
        """How many layers there are: each takes what the one before bumped."""
        return len(self._layers)

    @property
    def num_left_over(self) -> int:
        """How many keys are in no layer, so that their hashes are kept."""
        return len(self._left_over)

    @property
    def fill(self) -> float:
        """The share of slots in use; 0 where there are none."""
        slots = BLOCK_SLOTS * sum(layer.blocks for layer in self._layers)
        return (self._num_keys - len(self._left_over)) / slots if slots else 0.0

    @property
    def expected_fpr(self) -> float:
        """The rate that columns and thresholds lead to, whatever the keys are."""
        return bumped_ribbon.expected_fpr(self._layers, self._columns)

    def _probe(self, mixed: int) -> bool:
        value = stepped(mixed)
        first_block = 0
        for layer in self._layers:
            start = value * layer.starts >> 64
            threshold = THRESHOLDS[layer.codes[start // BUCKET_STARTS]]
            if start % BUCKET_STARTS >= threshold:
                return self._agrees(first_block + start // BLOCK_SLOTS, start % BLOCK_SLOTS, value)
            value = stepped(value)
            first_block += layer.blocks
        place = bisect_left(self._left_over, value)
        return place < len(self._left_over) and self._left_over[place] == value

    def _agrees(self, block: int, offset: int, value: int) -> bool:
        """Whether in each column the slots that the hash asks for xor to what it expects."""
        narrow = sum(layer.blocks for layer in self._layers) - self._columns.wide_blocks
        count = self._columns.narrow + (block >= narrow)
        first = block * self._columns.narrow + max(0, block - narrow)
        asked, expected = coefficients_of(value) << offset, result_of(value)
        for column in range(count):
            here, behind = self._word(first + column), self._word(first + count + column)
            found = here & asked & MASK64 ^ behind & asked >> 64
            if (found.bit_count() ^ expected >> column) & 1:
                return False
        return True

    def _word(self, index: int) -> int:
        """A word of the columns."""
        number: int = _NUMBER.unpack_from(self._words, WORD_BYTES * index)[0]
        return number


def bands_of(mixed: Iterable[int], sizing: SizingParameter) -> tuple[list[Band], list[int]]:
    """Layer after layer of distinct salted digests, and the hashes of those left over."""
    bands: list[Band] = []
    hashes = sorted(map(stepped, mixed))
    while tries := bumped_ribbon.blocks_for(len(hashes), len(bands), sizing):
        tried = [band(hashes, blocks) for blocks in tries]
        bands.append(
            min(
                tried,
                key=lambda each: bumped_ribbon.words_taken(
                    each.layer.blocks, len(each.bumped), sizing
                ),
            )
        )
        hashes = sorted(map(stepped, bands[-1].bumped))
    return bands, hashes


def solve_all(bands: Sequence[Band], columns: Columns) -> list[int]:
    """The words of all layers."""
    narrow = sum(each.layer.blocks for each in bands) - columns.wide_blocks
    words: list[int] = []
    for each in bands:
        words += solve(each, narrow, columns)
        narrow -= each.layer.blocks
    return words
