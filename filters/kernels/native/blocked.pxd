"""The blocked Bloom filter, for other compiled modules."""

from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.line cimport lsm_lines


cdef class BlockedBloomFilter(BitFilter):
    cdef lsm_lines _lines
