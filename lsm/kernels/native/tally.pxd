"""Tallies: what became of lookups at one level whose tables carry one policy's filters."""

from libc.stdint cimport uint64_t


cdef class Tally:
    cdef public uint64_t skipped
    cdef public uint64_t true_positives
    cdef public uint64_t false_positives
    cdef public uint64_t none
    cdef public uint64_t unknown
    cdef public uint64_t corrupt
    cdef public uint64_t failed
    cdef public uint64_t declined
    cdef public uint64_t unloaded

    cpdef count(self, state)
