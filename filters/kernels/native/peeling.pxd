"""Construction by peeling, compiled; and where a key's slots are, which a probe needs too."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.wide cimport lsm_reduce


cdef enum Outcome:
    PEELED
    NO_SEED                   # all seeds failed: a larger geometry may do
    DUPLICATES                # no seed and no geometry will do
    NO_MEMORY


cdef enum Placement:
    SEGMENTS                  # binary fuse: in three neighbouring segments of many
    BLOCKS                    # xor: in three blocks, which are all there is


cdef struct Layout:
    uint64_t starts           # how many slots can be a key's first one
    uint64_t length           # of a segment, a power of two, or of a block
    Placement placement


cdef struct Slots:
    uint64_t first
    uint64_t second
    uint64_t third


cdef object populated(object mixed, object geometry, Layout layout, object fingerprint_bits)

cdef int populate_shard(
    const uint64_t *mixed, size_t count, Layout layout, int fingerprint_bits, uint8_t *table,
    uint64_t *seed,
) noexcept nogil


cdef inline uint64_t hash_under(uint64_t mixed, uint64_t seed) noexcept nogil:
    """The finalizer of MurmurHash3 over salted digest plus seed."""
    cdef uint64_t value = mixed + seed
    value = (value ^ value >> 33) * <uint64_t>0xFF51_AFD7_ED55_8CCD
    value = (value ^ value >> 33) * <uint64_t>0xC4CE_B9FE_1A85_EC53
    return value ^ value >> 33


cdef inline Slots locate(uint64_t value, Layout layout, Placement placement) noexcept nogil:
    """The three slots of a hash; who knows the placement beforehand need not look it up."""
    return in_segments(value, layout) if placement == SEGMENTS else in_blocks(value, layout)


cdef inline Slots in_segments(uint64_t value, Layout layout) noexcept nogil:
    """In three neighbouring segments."""
    cdef Slots slots
    slots.first = lsm_reduce(value, layout.starts)
    slots.second = (slots.first + layout.length) ^ (value >> 18 & layout.length - 1)
    slots.third = (slots.first + 2 * layout.length) ^ (value & layout.length - 1)
    return slots


cdef inline Slots in_blocks(uint64_t value, Layout layout) noexcept nogil:
    """One in each block: by the hash's bits from above, from 42 and from 21 on."""
    cdef Slots slots
    slots.first = lsm_reduce(value, layout.length)
    slots.second = layout.length + lsm_reduce(value << 21 | value >> 43, layout.length)
    slots.third = 2 * layout.length + lsm_reduce(value << 42 | value >> 22, layout.length)
    return slots


cdef inline uint64_t fingerprint_in(uint64_t value, int fingerprint_bits) noexcept nogil:
    """The low bits of both halves of the hash."""
    return (value ^ value >> 32) & (<uint64_t>1 << fingerprint_bits) - 1
