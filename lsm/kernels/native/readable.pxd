"""What readers read: the state of an open database that lookups and lone commits begin with."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.iterator cimport Walkers


cdef class Readable:
    cdef public object view
    cdef public object tables
    cdef public object closed_by
    cdef public Walkers walkers
    cdef public object pending
    cdef public bint is_unhindered
    cdef public uint64_t unhindered_size
    cdef public uint64_t user_bytes
    cdef public uint64_t log_bytes
    cdef uint64_t version
