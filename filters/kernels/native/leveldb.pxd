"""LevelDB's Bloom filter, for other compiled modules."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.foreign cimport ForeignFilter


cdef struct Array:
    uint8_t *bits
    uint64_t size
    uint64_t reciprocal       # of the size, for a modulo without a division
    uint32_t num_probes


cdef class LevelDBBloomFilter(ForeignFilter):
    cdef Array _array

    cdef int point(self, object geometry) except -1
