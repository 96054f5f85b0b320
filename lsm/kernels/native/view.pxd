"""Views: the memtables and the version that together are the whole database."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys


# The tables of a sorted level, from the first of them on: their upper bounds to search.
ctypedef struct lsm_level:
    lsm_sorted_keys highs
    uint32_t first


# The least or the greatest key of a table, and its first bytes as a number.
ctypedef struct Bound:
    uint64_t word
    const uint8_t *key
    uint32_t length


cdef class Levels:
    cdef list _kept
    cdef uint32_t count       # of all tables, those of level 0 first
    cdef uint32_t newest      # of these
    cdef uint32_t level_count
    cdef lsm_level *levels
    cdef PyObject **placed
    cdef PyObject **files
    cdef PyObject **tallies
    cdef Bound *lows
    cdef Bound *highs

    cdef int _take(self, tables, uint32_t first) except -1
    cdef int _seal(self, uint32_t number) except -1
    cdef int take_tally(self, uint32_t at, tally) except -1


cdef class View:
    cdef readonly tuple memtables
    cdef readonly object version
    cdef Levels levels
