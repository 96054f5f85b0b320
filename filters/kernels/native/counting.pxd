"""The counting Bloom filter, for other compiled modules."""

from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.chain cimport Cells


cdef class CountingBloomFilter(BloomFilter):
    cdef Cells _cells
