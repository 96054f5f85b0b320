"""A filter of the same bytes, but for some: read as the store reads it that they belong to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from filters import cassandra, header
from filters.errors import FilterError
from filters.kernels.python.cassandra import CassandraBloomFilter
from lsm.errors import CorruptionError
from lsm.survey.found import FilterFound
from policies.block import EmptyReader

# Cassandra takes any number of probes; of those of an absent key one of the first finds a 0.
_PROBES_TRIED = 4096


@attrs.frozen
class Stored:
    """The bytes of a filter, and what reads others in their place, None for what is refused."""

    data: bytes
    reopen: Callable[[bytes | memoryview], Any | None]
    layout: cassandra.Layout | None = None
    """How words and hashes are ordered, where that is Cassandra's."""

    @property
    def is_sealed(self) -> bool:
        """Whether a checksum is within, which all who read it compare."""
        return self.data.startswith(header.MAGIC)

    def flipped(self, bit: int) -> Any | None:
        """A reader of the bytes with this bit flipped."""
        changed = bytearray(self.data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        return self.reopen(bytes(changed))

    def each_flipped(self, bits: Iterable[int]) -> Iterator[tuple[int, Any | None]]:
        """Each of these bits, and a reader of the bytes with it flipped, until the next is asked.

        They have one copy of the bytes in common, so that a large filter is not copied for each.
        """
        changed = bytearray(self.data)
        view = memoryview(changed).toreadonly()
        for bit in bits:
            changed[bit >> 3] ^= 1 << (bit & 7)
            yield bit, self.reopen(view)
            changed[bit >> 3] ^= 1 << (bit & 7)


def stored(filter: FilterFound) -> Stored:
    """The bytes of a filter that can be asked; ValueError where its reader does not give them."""
    reader = filter.reader
    if getattr(reader, "family", None) == cassandra.FAMILY:
        version = filter.parameters.get("sstable version") or cassandra.latest_version(reader)
        layout = cassandra.layout_of(version)
        return Stored(
            reader.to_bytes(sstable_version=version),
            lambda data: _as_cassandra_reads(data, layout),
            layout,
        )
    if isinstance(reader, EmptyReader):
        return Stored(b"", lambda data: None)  # a block without a filter
    if not hasattr(reader, "to_bytes"):
        raise ValueError(f"{filter.where}: nobody here has the bytes of a filter of this form")
    read = type(reader).from_bytes

    def reopen(data: bytes | memoryview) -> Any | None:
        try:
            return read(data)
        except (FilterError, CorruptionError):
            return None

    return Stored(reader.to_bytes(), reopen)


def _as_cassandra_reads(data: bytes | memoryview, layout: cassandra.Layout) -> Any | None:
    """The filter that Cassandra takes these bytes for, which checks less than is checked here.

    It reads as many words as the header says and leaves what follows alone, and takes any number
    of probes; of none or fewer it asks nothing, so that no key is denied: None, as where it fails
    and builds the filter anew.
    """
    if not data:
        return None
    num_probes, words = struct.unpack_from(">ii", data)
    if num_probes < 1 or words < 1 or cassandra.HEADER_BYTES + 8 * words > len(data):
        return None
    geometry = cassandra.Geometry(64 * words, min(num_probes, _PROBES_TRIED))
    return CassandraBloomFilter(geometry, layout, memoryview(data), None)
