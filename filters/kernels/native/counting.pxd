"""The counting Bloom filter."""



from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.classic cimport Bits


cdef class CountingBloomFilter(BloomFilter):
    cdef Bits _counters
