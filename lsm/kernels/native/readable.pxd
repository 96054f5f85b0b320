"""What readers read: the state of an open database that a lookup begins with."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.iterator cimport Walkers


cdef class Readable:
    cdef public object view
    cdef public object tables
    cdef public object closed_by
    cdef public Walkers walkers
    cdef uint64_t version
