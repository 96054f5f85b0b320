"""The counting Bloom filter."""



from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.classic cimport Bits
from filters.kernels.native.digests cimport Digests


cdef class CountingBloomFilter(BloomFilter):
    cdef Bits _counters

    cdef int _insert_distinct(self, Digests hashes) except -1
