"""Where a log ends: what a commit has to know of the log that it goes to."""

from libc.stdint cimport uint64_t


cdef class LogEnd:
    cdef public uint64_t end
    cdef public bint is_torn
    cdef public int descriptor
