"""Lookups of many keys at a time."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.view cimport View


cdef enum:
    GROUP = 32                # enough for memory to be busy


cdef int lookup_group(
    View view, object tables, list keys, uint64_t version, list values, Py_ssize_t first
) except -1
