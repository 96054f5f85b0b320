"""Binary fuse construction, compiled; and where a key's slots are, which a probe needs too."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.wide cimport lsm_reduce


cdef enum Outcome:
    PEELED
    NO_SEED                   # all seeds failed: a larger geometry may do
    DUPLICATES                # no seed and no geometry will do
    NO_MEMORY


cdef struct Layout:
    uint64_t starts           # how many slots can be a key's first one
    uint64_t length           # of a segment, a power of two


cdef struct Slots:
    uint64_t first
    uint64_t second
    uint64_t third


cdef int populate_shard(
    const uint64_t *mixed, size_t count, uint32_t segment_length, uint32_t segment_count,
    int fingerprint_bits, uint8_t *table, uint64_t *seed,
) noexcept nogil


cdef inline Layout layout_of(uint32_t segment_length, uint32_t segment_count) noexcept nogil:
    """What a geometry comes to."""
    cdef Layout layout
    layout.starts = <uint64_t>segment_count * segment_length
    layout.length = segment_length
    return layout


cdef inline uint64_t hash_under(uint64_t mixed, uint64_t seed) noexcept nogil:
    """The finalizer of MurmurHash3 over salted digest plus seed."""
    cdef uint64_t value = mixed + seed
    value = (value ^ value >> 33) * <uint64_t>0xFF51_AFD7_ED55_8CCD
    value = (value ^ value >> 33) * <uint64_t>0xC4CE_B9FE_1A85_EC53
    return value ^ value >> 33


cdef inline Slots locate(uint64_t value, Layout layout) noexcept nogil:
    """The three slots of a hash, in three neighbouring segments."""
    cdef Slots slots
    slots.first = lsm_reduce(value, layout.starts)
    slots.second = (slots.first + layout.length) ^ (value >> 18 & layout.length - 1)
    slots.third = (slots.first + 2 * layout.length) ^ (value & layout.length - 1)
    return slots


cdef inline uint64_t fingerprint_in(uint64_t value, int fingerprint_bits) noexcept nogil:
    """The low bits of both halves of the hash."""
    return (value ^ value >> 32) & (<uint64_t>1 << fingerprint_bits) - 1
