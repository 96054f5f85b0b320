"""The classic Bloom filter."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.bloom cimport BitFilter


cdef struct Bits:
    uint8_t *bits
    uint64_t size
    uint64_t seed
    uint64_t salt
    uint32_t num_probes


cdef class ClassicBloomFilter(BitFilter):
    cdef Bits _bits
