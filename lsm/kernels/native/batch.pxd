"""Write batches, which are the records of a log as they will be written."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.operations cimport lsm_operation
from lsm.kernels.native.readable cimport Readable


cdef class Batch:
    cdef public Readable _store
    cdef bytes prefix
    cdef uint8_t *record      # a header to be stamped, and the operations; NULL before the first
    cdef size_t size          # of the record
    cdef size_t room
    cdef uint64_t operations
    cdef uint64_t payload_bytes

    cdef uint8_t *more(self, uint64_t size) except NULL
    cdef int add(self, bytes key, bytes value) except -1


cdef int operation_of(bytes key, bytes value, lsm_operation *operation) except -1
