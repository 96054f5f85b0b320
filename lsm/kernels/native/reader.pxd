"""What readers of databases share, of their parts and of snapshots."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.readable cimport Readable


cdef class Reader:
    cdef public Readable _store
    cdef public object _pinned_db
    cdef bytes prefix
    cdef uint64_t version
    cdef bint is_fixed
