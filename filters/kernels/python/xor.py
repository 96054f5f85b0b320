"""The xor filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from filters import xor
from filters.hashing import MASK64
from filters.kernels.python import peeling
from filters.kernels.python.peeled import Layout, PeeledFilter
from filters.peeled import Shard
from filters.xor import Geometry


def slots_of(value: int, geometry: Geometry) -> tuple[int, int, int]:
    """The three slots of a hash, one in each block: its bits from above, from 42 and from 21 on."""
    length = geometry.block_length
    return (
        value * length >> 64,
        length + (_rotated(value, 21) * length >> 64),
        2 * length + (_rotated(value, 42) * length >> 64),
    )


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & MASK64


def populate(
    mixed: Sequence[int], geometry: Geometry, fingerprint_bits: int
) -> Shard[Geometry] | None:
    """The shard of these distinct salted digests; None where no seed peels them."""
    return peeling.populate(mixed, geometry, fingerprint_bits, slots_of)


def build_shard(mixed: Sequence[int], fingerprint_bits: int) -> Shard[Geometry]:
    """The shard of distinct salted digests, in the first geometry that peels them."""
    return xor.build_shard(len(mixed), lambda geometry: populate(mixed, geometry, fingerprint_bits))


class XorFilter(PeeledFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family = xor.FAMILY
    layout: ClassVar[Layout] = xor

    _build_shard = staticmethod(build_shard)
    _slots_of = staticmethod(slots_of)
