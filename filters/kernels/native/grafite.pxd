"""The Grafite range filter, for other compiled modules."""

from libc.stdint cimport uint64_t

from filters.kernels.native.base cimport Filter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.elias_fano cimport EliasFano
from filters.kernels.native.key_numbers cimport Numbering
from filters.kernels.native.payload cimport Payload


cdef struct Grafite:
    Numbering numbering
    EliasFano codes
    uint64_t universe
    uint64_t[4] multipliers
    bint is_empty


cdef class GrafiteFilter(Filter):
    cdef Grafite _grafite
    cdef object _layout
    cdef object _numbering
    cdef Payload _zeros_before
    cdef uint64_t _num_keys
    cdef uint64_t _seed
    cdef uint64_t _salt

    cdef int lay_out(self, object layout, object numbering) except -1
    cdef Py_ssize_t missing(self, Digests numbers) noexcept nogil
