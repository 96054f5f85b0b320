"""The classic Bloom filter."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.chain cimport following, position


cdef struct Bits:
    uint8_t *bits
    uint64_t size
    uint64_t seed
    uint64_t salt
    uint32_t num_probes


cdef inline int has(const Bits *filter, uint64_t mixed) noexcept nogil:
    cdef uint64_t place
    for _ in range(filter.num_probes):
        place = position(mixed, filter.size)
        if not filter.bits[place >> 3] >> (place & 7) & 1:
            return 0
        mixed = following(mixed)
    return 1


cdef class ClassicBloomFilter(BitFilter):
    cdef Bits _bits
