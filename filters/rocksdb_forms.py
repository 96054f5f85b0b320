"""What any bytes are to RocksDB's filter reader: a form of filter, told by the last five of them.

- ff: the cache-local Bloom filter of format version 5 and later.
- fe: the Ribbon filter, whatever the version.
- 1 to 127, a number of probes: the Bloom filter of format versions 2 to 4, whose 32-bit hash steps
  evenly through a line. Every 512th key stands still in its line: 1.1 % pass instead of 0.95 % at
  10 bits per key, four times theory at 16. That rate is therefore measured on the filter itself.

What is none of these answers "maybe", as it does to RocksDB; what has no byte before the five is
empty, and answers "no".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from filters import ribbon, rocksdb
from filters.header import immutable_view

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.kernels.python.rocksdb_filter import RocksDBFilter

EMPTY = "empty"
FAST_LOCAL = "fast-local"
LEGACY = "legacy"
RIBBON = "ribbon"
ALWAYS_MAYBE = "always-maybe"

TRAILER_BYTES = rocksdb.TRAILER_BYTES
_FAST_LOCAL_KIND = 0xFF
_FIRST_RESERVED_KIND = 0x80


@attrs.frozen
class Form:
    """What some bytes are to RocksDB: the kind, and for an always-maybe one the reason.

    ``lines`` of ``line_bits`` bits and the probes are those of fast-local and legacy filters; the
    geometry of blocks and the seed those of a Ribbon filter.
    """

    kind: str
    reason: str = ""
    lines: int = 0
    line_bits: int = 0
    num_probes: int = 0
    blocks: ribbon.Geometry | None = None
    seed: int = 0

    @property
    def num_bits(self) -> int:
        """The bits of all lines or segments."""
        if self.blocks is not None:
            return self.blocks.segments * ribbon.BLOCK_SLOTS
        return self.lines * self.line_bits

    @property
    def num_slots(self) -> int:
        """The slots of a Ribbon filter."""
        return self.blocks.slots if self.blocks is not None else 0

    def __str__(self) -> str:
        return f"{self.kind} ({self.reason})" if self.reason else self.kind


def decode(buffer: Buffer) -> tuple[Form, memoryview]:
    """What these bytes are to RocksDB, and all of the bytes. Nothing is refused."""
    data = immutable_view(buffer)
    if len(data) <= TRAILER_BYTES:
        return Form(EMPTY), data
    size = len(data) - TRAILER_BYTES
    return _form(size, data[size], bytes(data[size + 1 :])), data


def _form(size: int, kind: int, rest: bytes) -> Form:
    if kind == _FAST_LOCAL_KIND:
        return _fast_local(size, rest)
    if kind == ribbon.KIND:
        return _ribbon(size, seed=rest[0], blocks=int.from_bytes(rest[1:], "little"))
    if kind >= _FIRST_RESERVED_KIND:
        return _always_maybe(f"reserved kind {kind:#x}")
    if kind == 0:
        return _always_maybe("no probes")
    return _legacy(size, int.from_bytes(rest, "little"), num_probes=kind)


def _always_maybe(reason: str) -> Form:
    return Form(ALWAYS_MAYBE, reason)


def _fast_local(size: int, rest: bytes) -> Form:
    implementation, line_and_probes = rest[0], rest[1]
    num_probes = line_and_probes & 31
    if implementation != 0:
        return _always_maybe(f"unknown implementation {implementation}")
    if line_and_probes > 31:
        return _always_maybe(f"lines of {64 << (line_and_probes >> 5)} bytes")
    if not 1 <= num_probes <= rocksdb.MAX_PROBES:
        return _always_maybe(f"{num_probes} probes, allowed are 1 to {rocksdb.MAX_PROBES}")
    if rest[2] or rest[3]:
        return _always_maybe("reserved bytes in use")
    lines, odd_bytes = divmod(size, rocksdb.LINE_BYTES)
    if odd_bytes:
        return _always_maybe(f"{size} bytes are no whole lines of {rocksdb.LINE_BYTES}")
    return Form(FAST_LOCAL, lines=lines, line_bits=rocksdb.LINE_BITS, num_probes=num_probes)


def _ribbon(size: int, seed: int, blocks: int) -> Form:
    if blocks < ribbon.MIN_BLOCKS:
        return _always_maybe(f"{blocks} blocks, a Ribbon filter has {ribbon.MIN_BLOCKS} or more")
    segments, odd_bytes = divmod(size, ribbon.SEGMENT_BYTES)
    if odd_bytes:
        return _always_maybe(f"{size} bytes are no whole segments of {ribbon.SEGMENT_BYTES}")
    return Form(RIBBON, blocks=ribbon.Geometry(blocks, segments), seed=seed)


def _legacy(size: int, lines: int, num_probes: int) -> Form:
    """Lines have 64 bytes, or the power of two that the machine it was built on had."""
    if lines == 0 or size % lines:
        return _always_maybe(f"{size} bytes are no {lines} equal lines")
    line_bytes = size // lines
    if line_bytes & (line_bytes - 1):
        return _always_maybe(f"lines of {line_bytes} bytes, which is no power of two")
    return Form(LEGACY, lines=lines, line_bits=8 * line_bytes, num_probes=num_probes)


def estimate_num_keys(built: RocksDBFilter) -> float:
    """How many keys a filter holds, as its fill suggests, or the slots of a Ribbon filter."""
    if built.num_slots:
        return float(built.num_keys or ribbon.keys_for(built.num_slots))
    lines = -(-built.num_bits // rocksdb.LINE_BITS)
    return rocksdb.count_from_fill(built.fill, rocksdb.Geometry(lines, built.num_probes))
