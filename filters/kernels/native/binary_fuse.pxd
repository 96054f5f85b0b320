"""The binary fuse filter, for other compiled modules."""

from filters.kernels.native.peeled cimport PeeledFilter


cdef class BinaryFuseFilter(PeeledFilter):
    pass
