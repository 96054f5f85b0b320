"""The binary fuse filter."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.base cimport SaltedFilter
from filters.kernels.native.peeling cimport Layout


cdef struct Shard:
    uint64_t seed
    Layout layout
    const uint8_t *table


cdef struct Fuse:
    const Shard *shards
    int shard_bits
    int fingerprint_bits
    uint64_t seed
    uint64_t salt


cdef class BinaryFuseFilter(SaltedFilter):
    cdef Fuse _fuse
    cdef Shard *_shards
    cdef Py_ssize_t _num_shards
    cdef Py_ssize_t _slots

    cdef int lay_out(self, list shards, int fingerprint_bits, uint64_t seed, object buffer) except -1
