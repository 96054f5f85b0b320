"""The cuckoo filter, for other compiled modules."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.growing cimport GrowingFilter


cdef struct Table:
    uint8_t *slots
    uint64_t buckets
    uint64_t seed
    uint64_t salt
    uint32_t bits             # of a fingerprint
    uint64_t mask             # of a fingerprint
    uint64_t ones             # the lowest bit of each of a bucket's lanes, where these fit a word
    uint64_t tops             # the highest one


cdef class CuckooFilter(GrowingFilter):
    cdef Table _table

    cdef bint _fill(self, Digests hashes) noexcept nogil
    cdef int _add_hash(self, uint64_t mixed) except -1
