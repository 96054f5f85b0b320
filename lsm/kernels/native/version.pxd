"""Versions, which Python has as ranks: minus these numbers."""

from libc.stdint cimport uint64_t


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef enum:
    MOST_BYTES = 0xFFFFFFFF   # of a key, by the format


cdef inline object rank_of(uint64_t version):
    """The rank of a version."""
    if version >> 63:
        return -<object>version
    return -<long long>version


cdef inline bint version_of(object rank, uint64_t *version) except -1:
    """The version of a rank, or the highest there is; False if the rank is behind all versions."""
    cdef int overflow
    cdef long long number = PyLong_AsLongLongAndOverflow(rank, &overflow)
    if overflow == 0:
        version[0] = <uint64_t>0 - <uint64_t>number
        return number <= 0
    rank = -rank
    version[0] = min(rank, <uint64_t>-1) if overflow < 0 else 0
    return overflow < 0
