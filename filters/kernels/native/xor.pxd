"""The xor filter, for other compiled modules."""

from filters.kernels.native.peeled cimport PeeledFilter


cdef class XorFilter(PeeledFilter):
    pass
