"""Cassandra's Bloom filter, for other compiled modules."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.foreign cimport ForeignFilter


cdef struct Array:
    uint8_t *bits
    uint64_t size
    uint64_t reciprocal       # of the size, for a modulo without a division
    uint64_t flip             # of a byte's place: 7 where the bytes of every word are reversed
    uint32_t num_probes
    uint32_t first            # which of a hash's two words the probes begin at


cdef class CassandraBloomFilter(ForeignFilter):
    cdef Array _array
    cdef object _layout

    cdef int point(self, object geometry, object layout) except -1
