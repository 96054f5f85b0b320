"""The binary fuse filter, built and probed."""

from libc.stdint cimport uint64_t

from filters import binary_fuse
from filters.kernels.native.base cimport ask
from filters.kernels.native.peeled cimport PeeledFilter
from filters.kernels.native.peeling cimport SEGMENTS, Layout, in_segments, populated


cdef Layout layout_of(object geometry) except *:
    """The layout that probes and the peeling take for a geometry."""
    cdef uint64_t length = geometry.segment_length, segments = geometry.segment_count
    return Layout(segments * length, length, SEGMENTS)


def slots_of(value, geometry):
    """The three slots of a hash, in three neighbouring segments."""
    slots = in_segments(value, layout_of(geometry))
    return slots.first, slots.second, slots.third


def populate(mixed, geometry, fingerprint_bits):
    """The shard of these distinct salted digests; None where no seed peels them."""
    return populated(mixed, geometry, layout_of(geometry), fingerprint_bits)


def build_shard(mixed, fingerprint_bits, using=populate):
    """The shard of distinct salted digests, in the first geometry that peels them."""
    return binary_fuse.build_shard(
        len(mixed), lambda geometry: using(mixed, geometry, fingerprint_bits)
    )


cdef class BinaryFuseFilter(PeeledFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    family = binary_fuse.FAMILY
    layout = binary_fuse

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    cdef Layout layout_of(self, object geometry) except *:
        return layout_of(geometry)
