"""One key's newest version, as the compiled kernel finds it."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.view cimport View


cdef object lookup(
    View view, object tables, bytes key, uint64_t version, bint fill_cache, object listener
)
