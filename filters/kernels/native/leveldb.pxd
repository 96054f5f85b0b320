"""LevelDB's Bloom filter."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport Filter
from filters.kernels.native.digests cimport Digests


cdef struct Array:
    uint8_t *bits
    uint64_t size
    uint64_t reciprocal       # of the size, for a modulo without a division
    uint32_t num_probes


cdef class LevelDBBloomFilter(Filter):
    cdef Array _array
    cdef object _num_keys
    cdef object _measured_fpr

    cdef int point(self, object geometry) except -1
    cdef int _insert_all(self, Digests hashes) except -1
