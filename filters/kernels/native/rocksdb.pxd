"""RocksDB's Bloom filters."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport Filter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.line cimport lsm_lines


cdef struct Legacy:
    uint8_t *data
    uint32_t lines
    uint64_t line_bits        # a power of two
    uint32_t num_probes


cdef class RocksDBBloomFilter(Filter):
    cdef lsm_lines _lines
    cdef Legacy _legacy
    cdef object _form
    cdef object _num_keys
    cdef object _measured_fpr

    cdef int _lay_out(self, object geometry) except -1
    cdef int point(self) except -1
    cdef int _insert_all(self, Digests hashes) except -1
