"""The classic Bloom filter, for other compiled modules."""

from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.chain cimport Cells


cdef class ClassicBloomFilter(BitFilter):
    cdef Cells _cells
