"""Which single bits of a filter hide a key when they flip, and whether anybody would notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import attrs

from lsm.survey.found import FilterFound, Guard
from lsm.survey.needed_bits import BitArray, array_of
from lsm.survey.reopening import Stored, stored

_CHUNK = 4096
_PART_BYTES = 1 << 20

# Where nobody knows which bits a key needs, every flip is tried on every key, so many at most.
_MOST_QUESTIONS = 20_000_000


@attrs.frozen(kw_only=True)
class Damage:
    """What a flipped bit does to a filter.

    A set bit of ``hiding`` is a bit of the filter whose flip would hide a key, or with ``is_exact``
    being False: could hide one, since its keys are not at hand, or are too many to try. All others
    hide none.
    """

    where: str
    offset: int | None
    """Where the first byte of ``hiding`` is in the file; None where that is not known."""
    guard: Guard
    hiding: bytes = attrs.field(repr=False)
    is_exact: bool
    why: str
    """How that is known, in words."""

    @property
    def bits(self) -> int:
        """The bits of the filter."""
        return 8 * len(self.hiding)

    @property
    def count(self) -> int:
        """How many of them hide a key."""
        starts = range(0, len(self.hiding), _PART_BYTES)
        parts = (self.hiding[start : start + _PART_BYTES] for start in starts)
        return sum(int.from_bytes(part, "little").bit_count() for part in parts)

    @property
    def is_guarded(self) -> bool:
        """Whether a checksum is over them, so that a flip is noticed by who compares it."""
        return self.guard.is_there

    def hides(self, bit: int) -> bool:
        """Whether the flip of this bit hides a key; bits are counted from each byte's lowest."""
        return bool(self.hiding[bit >> 3] >> (bit & 7) & 1)

    def places(self) -> Iterator[tuple[int, int]]:
        """Each such bit: the offset of its byte in the file, or in the filter, and 0 to 7."""
        start = self.offset or 0
        for at, byte in enumerate(self.hiding):
            for bit in range(8) if byte else ():
                if byte >> bit & 1:
                    yield start + at, bit


def damage(filter: FilterFound, *, watch: Callable[[int], None] = lambda count: None) -> Damage:
    """Which single bits of a filter hide a key when they flip: all of them, and with keys no other.

    ``watch`` is told of every some thousand keys that were tried. ValueError for a filter that
    cannot be asked.
    """
    if filter.reader is None:
        raise ValueError(
            f"{filter.where} cannot be asked: {filter.problem or 'nobody here reads it'}"
        )
    bytes_of = stored(filter)
    array = array_of(filter.reader, bytes_of)
    keys = filter.keys
    if bytes_of.is_sealed:
        hiding, is_exact = bytes(len(bytes_of.data)), True
        why = "a checksum within it is compared whenever it is opened, so that no flip is believed"
    elif array is not None and keys is not None:
        hiding, is_exact = _needed(filter.reader, bytes_of, array, keys(), watch), True
        why = "what each key needs was found, and each flip of the rest was tried"
    elif array is not None:
        hiding, is_exact = _perhaps_needed(filter.reader, bytes_of, array), False
        why = "its keys are not at hand: every bit that one may need is counted"
    else:
        tried = None if keys is None else _tried(filter.reader, bytes_of, keys(), watch)
        is_exact = tried is not None
        hiding = b"\xff" * len(bytes_of.data) if tried is None else tried
        why = (
            "each flip was tried on each key" if is_exact else "any bit may be one that a key needs"
        )
    return Damage(
        where=filter.where,
        offset=_offset(filter, bytes_of.data),
        guard=filter.guard,
        hiding=hiding,
        is_exact=is_exact,
        why=why,
    )


def _offset(filter: FilterFound, data: bytes) -> int | None:
    """Where a filter's own bytes begin, which may stand in a block with more."""
    return filter.offset if len(data) == filter.size else None


def _needed(
    reader: Any,
    bytes_of: Stored,
    array: BitArray,
    keys: Iterator[bytes],
    watch: Callable[[int], None],
) -> bytes:
    """The bits of the array that these keys need, and those of the rest by which one is denied."""
    hiding = bytearray(len(bytes_of.data))
    kept: dict[int, Any] | None = None
    for chunk in _found(reader, keys, watch):
        for key in chunk:
            array.mark(key, hiding)
        tried = kept.items() if kept is not None else _variants(reader, bytes_of, array)
        passed = []
        for bit, variant in tried:
            if _denies(variant, chunk):
                _mark(hiding, bit)
            else:
                passed.append(bit)
        # Nearly every one denies one of the first keys; only the others need bytes of their own.
        kept = {bit: kept[bit] if kept is not None else bytes_of.flipped(bit) for bit in passed}
    return bytes(hiding)


def _perhaps_needed(reader: Any, bytes_of: Stored, array: BitArray) -> bytes:
    """The bits that some key may need."""
    hiding = bytearray(len(bytes_of.data))
    inside = slice(array.start, array.end)
    hiding[inside] = (
        b"\xff" * (array.end - array.start) if array.zeros_count else (bytes_of.data[inside])
    )
    for bit, _ in _variants(reader, bytes_of, array):
        _mark(hiding, bit)
    return bytes(hiding)


def _variants(reader: Any, bytes_of: Stored, array: BitArray) -> Iterator[tuple[int, Any]]:
    """Each bit outside the array whose flip makes a filter that can deny more, and that filter.

    The filter lasts until the next one is asked for.
    """
    outside = (*range(array.start), *range(array.end, len(bytes_of.data)))
    bits = (8 * byte + bit for byte in outside for bit in range(8))
    for bit, variant in bytes_of.each_flipped(bits):
        if variant is not None and not _asks_less(variant, reader):
            yield bit, variant


def _asks_less(variant: Any, reader: Any) -> bool:
    """Whether it looks at no bit that the reader does not look at as well."""
    one, other = (
        (getattr(each, "form", ""), getattr(each, "num_bits", 0), getattr(each, "num_probes", 0))
        for each in (variant, reader)
    )
    return one[:2] == other[:2] and 1 <= one[2] <= other[2]


def _tried(
    reader: Any, bytes_of: Stored, keys: Iterator[bytes], watch: Callable[[int], None]
) -> bytes | None:
    """Each bit by whose flip a key is denied that is not denied before; None if that takes long."""
    bits = 8 * len(bytes_of.data)
    most = _MOST_QUESTIONS // max(bits, 1)
    asked = list(islice(keys, most + 1))
    if len(asked) > most:
        return None
    found = [key for chunk in _found(reader, iter(asked), watch) for key in chunk]
    hiding = bytearray(len(bytes_of.data))
    for bit, variant in bytes_of.each_flipped(range(bits)):
        if variant is not None and _denies(variant, found):
            _mark(hiding, bit)
    return bytes(hiding)


def _found(
    reader: Any, keys: Iterator[bytes], watch: Callable[[int], None]
) -> Iterator[list[bytes]]:
    """The keys that the filter does not deny as it is, some thousand at a time."""
    while chunk := list(islice(keys, _CHUNK)):
        answers = reader.might_contain_many(chunk)
        yield [key for key, answer in zip(chunk, answers, strict=True) if answer]
        watch(len(chunk))


def _denies(variant: Any, keys: list[bytes]) -> bool:
    return not all(variant.might_contain(key) for key in keys)


def _mark(hiding: bytearray, bit: int) -> None:
    hiding[bit >> 3] |= 1 << (bit & 7)
