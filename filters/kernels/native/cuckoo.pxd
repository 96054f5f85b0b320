"""The cuckoo filter."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport SaltedFilter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.keys cimport KeySource


cdef struct Table:
    uint8_t *slots
    uint64_t buckets
    uint64_t seed
    uint64_t salt
    uint32_t bits             # of a fingerprint
    uint64_t mask             # of a fingerprint
    uint64_t ones             # the lowest bit of each of a bucket's lanes, where these fit a word
    uint64_t tops             # the highest one


cdef class CuckooFilter(SaltedFilter):
    cdef object _geometry
    cdef Table _table

    cdef int lay_out(self, object geometry, uint64_t seed, uint64_t salt, object buffer) except -1
    cdef int point(self) except -1
    cdef int own(self) except -1
    cdef bint _fill(self, Digests hashes) noexcept nogil
    cdef int _add_hash(self, uint64_t mixed) except -1
    cdef int _add_at_once(self, KeySource source) except -1
