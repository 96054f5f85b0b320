"""What readers read: the state of an open database that a lookup begins with."""

from libc.stdint cimport uint64_t


cdef class Readable:
    cdef public object view
    cdef public object tables
    cdef uint64_t version
