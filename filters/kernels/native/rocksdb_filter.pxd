"""What RocksDB's filters share."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.equations cimport lsm_ribbon
from filters.kernels.native.foreign cimport ForeignFilter
from filters.kernels.native.line cimport lsm_lines


cdef struct Legacy:
    uint8_t *data
    uint32_t lines
    uint64_t line_bits        # a power of two
    uint32_t num_probes


cdef class RocksDBFilter(ForeignFilter):
    cdef lsm_lines _lines
    cdef Legacy _legacy
    cdef lsm_ribbon _ribbon
    cdef object _form

    cdef int lay_out(self, Py_ssize_t size, bytes trailer) except -1
    cdef int lay_out_lines(self, object geometry) except -1
    cdef int point(self) except -1
