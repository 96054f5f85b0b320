"""The binary fuse filter."""

from filters.kernels.native.peeled cimport PeeledFilter


cdef class BinaryFuseFilter(PeeledFilter):
    pass
