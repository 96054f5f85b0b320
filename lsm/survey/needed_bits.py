"""Which bits of a filter a key needs, family by family: those that it is denied without.

A Bloom filter's are the bits that the key sets. Of a Ribbon filter, whose slots xor to what a key
expects, they are all bits of the slots in its row, those that are 0 as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from filters import cassandra, leveldb, ribbon, rocksdb, rocksdb_forms
from filters.compat_hashing import (
    MASK32,
    MASK64,
    cassandra_hash,
    leveldb_hash,
    rocksdb_hash,
    xxph3_64,
)
from filters.kernels.python.equations import equation
from lsm.survey.reopening import Stored

Places = Iterable[tuple[int, int]]


@attrs.frozen
class BitArray:
    """The part of a filter's bytes in which keys have their bits; the rest says how to read it.

    ``places`` gives those of a key: a byte of the filter, and a mask of so many from there on as
    ``width`` says, little-endian. With ``zeros_count`` a key needs a 0 where one is, too.
    """

    start: int
    end: int
    places: Callable[[bytes], Places]
    zeros_count: bool = False
    width: int = 1

    def mark(self, key: bytes, needed: bytearray) -> None:
        """Set the bits that a key needs."""
        if self.width == 1:
            for byte, mask in self.places(key):
                needed[byte] |= mask
            return
        for byte, mask in self.places(key):
            part = slice(byte, byte + self.width)
            marked = int.from_bytes(needed[part], "little") | mask
            needed[part] = marked.to_bytes(self.width, "little")


def array_of(reader: Any, bytes_of: Stored) -> BitArray | None:
    """The array in the bytes of a filter; None for a form of which nobody here knows the bits."""
    data = bytes_of.data
    if hasattr(reader, "bits_of"):
        inside, zeros_count = reader.array_bytes, getattr(reader, "zeros_count", False)
        return BitArray(inside.start, inside.stop, reader.bits_of, zeros_count)
    family = getattr(reader, "family", None)
    if family == leveldb.FAMILY:
        return _leveldb(reader, data)
    if bytes_of.layout is not None:
        return _cassandra(reader, data, bytes_of.layout)
    if family in (rocksdb.FAMILY, ribbon.FAMILY):
        return _rocksdb(data)
    return None


def _leveldb(reader: Any, data: bytes) -> BitArray:
    bits, num_probes = reader.num_bits, reader.num_probes
    if num_probes > leveldb.MAX_PROBES:
        num_probes = 0  # every key may be there

    def places(key: bytes) -> Iterator[tuple[int, int]]:
        hashed = leveldb_hash(key)
        step = hashed >> 17 | hashed << 15 & MASK32
        for _ in range(num_probes):
            yield hashed % bits >> 3, 1 << (hashed % bits & 7)
            hashed = hashed + step & MASK32

    return BitArray(0, max(len(data) - 1, 0), places)


def _cassandra(reader: Any, data: bytes, layout: cassandra.Layout) -> BitArray:
    bits, num_probes, start = reader.num_bits, reader.num_probes, cassandra.HEADER_BYTES
    flip = 7 if layout.reversed_words else 0

    def places(key: bytes) -> Iterator[tuple[int, int]]:
        hashed = cassandra_hash(key)
        number, step = hashed & MASK64, hashed >> 64
        if layout.old_order:
            number, step = step, number
        for _ in range(num_probes):
            place = (-number & MASK64 if number >> 63 else number) % bits
            yield start + (place >> 3 ^ flip), 1 << (place & 7)
            number = number + step & MASK64

    return BitArray(min(start, len(data)), len(data), places)


def _rocksdb(data: bytes) -> BitArray:
    form, _ = rocksdb_forms.decode(data)
    end = max(len(data) - rocksdb_forms.TRAILER_BYTES, 0)
    if form.kind == rocksdb_forms.FAST_LOCAL:
        return BitArray(0, end, lambda key: _fast_local(key, form))
    if form.kind == rocksdb_forms.LEGACY:
        return BitArray(0, end, lambda key: _legacy(key, form))
    if form.blocks is not None:
        geometry, seed = form.blocks, ribbon.seed_mask(form.seed)
        return BitArray(
            0,
            end,
            lambda key: _ribbon(key, geometry, seed),
            zeros_count=True,
            width=ribbon.SEGMENT_BYTES,
        )
    return BitArray(0, end, lambda key: ())


def _fast_local(key: bytes, form: rocksdb_forms.Form) -> Places:
    hashed = xxph3_64(key)
    line, h = (hashed & MASK32) * form.lines >> 32 << 6, hashed >> 32
    for _ in range(form.num_probes):
        yield line + (h >> 26), 1 << (h >> 23 & 7)
        h = h * rocksdb.PROBE_MULTIPLIER & MASK32


def _legacy(key: bytes, form: rocksdb_forms.Form) -> Places:
    hashed = rocksdb_hash(key)
    line = hashed % form.lines * (form.line_bits >> 3)
    step = hashed >> 17 | hashed << 15 & MASK32
    for _ in range(form.num_probes):
        bit = hashed & (form.line_bits - 1)
        yield line + (bit >> 3), 1 << (bit & 7)
        hashed = hashed + step & MASK32


def _ribbon(key: bytes, geometry: ribbon.Geometry, seed: int) -> Places:
    start, row, _ = equation(xxph3_64(key), geometry.starts, seed)
    block, offset = divmod(start, ribbon.BLOCK_SLOTS)
    columns = geometry.columns - (block < geometry.narrow_blocks)
    first = block * geometry.columns - min(block, geometry.narrow_blocks)
    for is_behind, mask in enumerate(divmod(row << offset, 1 << ribbon.BLOCK_SLOTS)[::-1]):
        segment = first + is_behind * columns
        for column in range(columns) if mask else ():
            yield (segment + column) * ribbon.SEGMENT_BYTES, mask
