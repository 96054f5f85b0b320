"""pyfusefilter's C library as a builder of binary fuse shards.

Only the low layer is used, and only ``populate``: the package's class API hashes ``str(key)`` (a
TypeError with today's xxhash), reports failure by a False that is easily missed, and deserialises
without a check. ``populate`` itself sorts its input in place where it holds duplicates, in an
order that is none, and then may fail; here the digests are distinct and in a private array. The
bytes that result are those of ``filters/kernels/python/peeling.py``, bit for bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any

from filters.binary_fuse import Geometry
from filters.peeled import ARITY, Shard, empty_table, table_bytes

_FIELDS = {
    "Seed": "uint64_t",
    "Size": "uint32_t",
    "SegmentLength": "uint32_t",
    "SegmentLengthMask": "uint32_t",
    "SegmentCount": "uint32_t",
    "SegmentCountLength": "uint32_t",
    "ArrayLength": "uint32_t",
}


@cache
def why_not() -> str | None:
    """None where the library can build here, else the reason it cannot."""
    try:
        ffi, _ = _library()
    except ImportError as error:
        return f"pyfusefilter is not installed: {error}"
    for bits in (8, 16):
        fields = {
            name: field.type.cname for name, field in ffi.typeof(f"binary_fuse{bits}_t").fields
        }
        if fields != {**_FIELDS, "Fingerprints": f"uint{bits}_t *"}:
            return f"this pyfusefilter has another binary_fuse{bits}_t than 1.3: {fields}"
    return None


def populate(
    mixed: Sequence[int], geometry: Geometry, fingerprint_bits: int
) -> Shard[Geometry] | None:
    """The shard of these distinct salted digests; None where no seed peels them."""
    ffi, lib = _library()
    digests = array("Q", mixed)
    table = empty_table(geometry, fingerprint_bits)
    shard = ffi.new(f"binary_fuse{fingerprint_bits}_t *")
    shard.Size = len(digests)
    shard.SegmentLength = geometry.segment_length
    shard.SegmentLengthMask = geometry.segment_length - 1
    shard.SegmentCount = geometry.segment_count
    shard.SegmentCountLength = geometry.segment_count * geometry.segment_length
    shard.ArrayLength = shard.SegmentCountLength + (ARITY - 1) * geometry.segment_length
    fingerprints = ffi.from_buffer(f"uint{fingerprint_bits}_t[]", table, require_writable=True)
    shard.Fingerprints = fingerprints
    keys = ffi.from_buffer("uint64_t[]", digests)
    if not getattr(lib, f"binary_fuse{fingerprint_bits}_populate")(keys, len(digests), shard):
        return None
    return Shard(int(shard.Seed), geometry, table_bytes(table))


def _library() -> tuple[Any, Any]:
    from pyfusefilter._xorfilter import ffi, lib

    return ffi, lib
