"""The blocked Bloom filter."""

from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.line cimport lsm_lines


cdef class BlockedBloomFilter(BitFilter):
    cdef lsm_lines _lines
