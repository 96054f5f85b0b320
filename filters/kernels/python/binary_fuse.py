"""The binary fuse filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from filters import binary_fuse
from filters.binary_fuse import Geometry
from filters.kernels import fuse_library
from filters.kernels.python import peeling
from filters.kernels.python.peeled import Layout, PeeledFilter
from filters.peeled import Shard

Populate = Callable[[Sequence[int], Geometry, int], Shard[Geometry] | None]


def slots_of(value: int, geometry: Geometry) -> tuple[int, int, int]:
    """The three slots of a hash, in three neighbouring segments."""
    length = geometry.segment_length
    first = value * (geometry.segment_count * length) >> 64
    return (
        first,
        (first + length) ^ (value >> 18 & length - 1),
        (first + 2 * length) ^ (value & length - 1),
    )


def populate(
    mixed: Sequence[int], geometry: Geometry, fingerprint_bits: int
) -> Shard[Geometry] | None:
    """The shard of these distinct salted digests; None where no seed peels them."""
    return peeling.populate(mixed, geometry, fingerprint_bits, slots_of)


def build_shard(
    mixed: Sequence[int], fingerprint_bits: int, using: Populate | None = None
) -> Shard[Geometry]:
    """The shard of ascending distinct salted digests, in the first geometry that peels them.

    The pyfusefilter library does the construction where it is installed, Python where it is not;
    the bytes are the same.
    """
    if using is None:
        using = populate if fuse_library.why_not() else fuse_library.populate
    return binary_fuse.build_shard(
        len(mixed), lambda geometry: using(mixed, geometry, fingerprint_bits)
    )


class BinaryFuseFilter(PeeledFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family = binary_fuse.FAMILY
    layout: ClassVar[Layout] = binary_fuse

    _build_shard = staticmethod(build_shard)
    _slots_of = staticmethod(slots_of)
