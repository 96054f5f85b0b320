"""The scalable Bloom filter, for other compiled modules."""

from libc.stdint cimport int64_t, uint64_t

from filters.kernels.native.base cimport SeededFilter
from filters.kernels.native.chain cimport Cells
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.payload cimport Payload


cdef enum:
    MOST_SLICES = 64  # MAX_SLICES of filters/scalable.py


# All slices there may ever be have their place from the start, so that growing moves nothing: a slice
# is written down before it is counted.
cdef struct Chain:
    Cells slices[MOST_SLICES]
    Py_ssize_t count
    int64_t room              # bits that may still be set in the newest slice
    uint64_t seed


cdef class ScalableBloomFilter(SeededFilter):
    cdef Chain _chain
    cdef bint _room_is_known
    cdef object _terms
    cdef list _geometries
    cdef list _arrays         # a Payload for each slice; the newest one is the filter's own, too
    cdef list _spare          # slices of before clear(), from the second on, for those to come

    cdef int _copy_to(self, ScalableBloomFilter copied) except -1
    cdef Payload room_for(self, object geometry)
    cdef int begin(self, object terms, object geometry, uint64_t seed, uint64_t salt) except -1
    cdef int append(self, object geometry, uint64_t salt, Payload bits) except -1
    cdef void _put_all(self, Digests digests) noexcept nogil
    cdef tuple _fill_and_fpr(self)
