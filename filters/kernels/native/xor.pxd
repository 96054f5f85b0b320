"""The xor filter."""

from filters.kernels.native.peeled cimport PeeledFilter


cdef class XorFilter(PeeledFilter):
    pass
