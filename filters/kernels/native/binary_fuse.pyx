"""The binary fuse filter, built and probed."""

from libc.stdint cimport uint8_t, uint64_t

from filters import binary_fuse
from filters.kernels.native.base cimport ask
from filters.kernels.native.peeled cimport Peeled, PeeledFilter, has_digest, has_key, has_many
from filters.kernels.native.peeling cimport SEGMENTS, Layout, in_segments, populated
from filters.kernels.native.probing cimport lsm_probing


cdef Layout layout_of(object geometry) except *:
    """What a geometry comes to."""
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


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return has_key(<const Peeled *>self, SEGMENTS, key, length)


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return has_digest(<const Peeled *>self, SEGMENTS, digest)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    has_many(<const Peeled *>self, SEGMENTS, hashes, count, ahead, answers)


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class BinaryFuseFilter(PeeledFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    family = binary_fuse.FAMILY
    layout = binary_fuse

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    cdef Layout layout_of(self, object geometry) except *:
        return layout_of(geometry)

    cdef const lsm_probing *probes(self) noexcept:
        return &PROBING
