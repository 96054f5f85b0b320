"""The xor filter, built and probed."""

from libc.stdint cimport uint64_t

from filters import xor
from filters.kernels.native.base cimport ask
from filters.kernels.native.peeled cimport PeeledFilter
from filters.kernels.native.peeling cimport BLOCKS, Layout, in_blocks, populated


cdef Layout layout_of(object geometry) except *:
    """The layout that probes and the peeling take for a geometry."""
    cdef uint64_t length = geometry.block_length
    return Layout(length, length, BLOCKS)


def slots_of(value, geometry):
    """The three slots of a hash, one in each block: its bits from above, from 42 and from 21 on."""
    slots = in_blocks(value, layout_of(geometry))
    return slots.first, slots.second, slots.third


def populate(mixed, geometry, fingerprint_bits):
    """The shard of these distinct salted digests; None where no seed peels them."""
    return populated(mixed, geometry, layout_of(geometry), fingerprint_bits)


def build_shard(mixed, fingerprint_bits):
    """The shard of distinct salted digests, in the first geometry that peels them."""
    return xor.build_shard(len(mixed), lambda geometry: populate(mixed, geometry, fingerprint_bits))


cdef class XorFilter(PeeledFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    family = xor.FAMILY
    layout = xor

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    cdef Layout layout_of(self, object geometry) except *:
        return layout_of(geometry)
