"""The counting Bloom filter."""

from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.chain cimport Cells


cdef class CountingBloomFilter(BloomFilter):
    cdef Cells _cells
