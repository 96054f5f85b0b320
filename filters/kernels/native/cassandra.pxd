"""Cassandra's Bloom filter."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport Filter
from filters.kernels.native.digests cimport Digests


cdef struct Array:
    uint8_t *bits
    uint64_t size
    uint64_t reciprocal       # of the size, for a modulo without a division
    uint64_t flip             # of a byte's place: 7 where the bytes of every word are reversed
    uint32_t num_probes
    uint32_t first            # which of a hash's two words the probes begin at


cdef class CassandraBloomFilter(Filter):
    cdef Array _array
    cdef object _layout
    cdef object _num_keys
    cdef object _measured_fpr

    cdef int point(self, object geometry, object layout) except -1
    cdef int _insert_all(self, Digests hashes) except -1
