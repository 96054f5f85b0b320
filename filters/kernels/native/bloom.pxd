"""What the Bloom filters of our own share: everything but where a key's bits are."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.growing cimport GrowingFilter
from filters.kernels.native.keys cimport KeySource, Packed


cdef class BloomFilter(GrowingFilter):
    cdef int fill_with(self, object keys, object seed, object plan) except -1
    cdef int _unite_in_place(self, BloomFilter other) except -1
    cdef void unite(self, const uint8_t *theirs) noexcept nogil
    cdef int count_united(self, list counts) except -1
    cdef Py_ssize_t insert_hashes(
        self, const uint64_t *hashes, Py_ssize_t count, uint64_t *unchanged
    ) noexcept nogil
    cdef Py_ssize_t _insert(self, const uint64_t *hashes, Py_ssize_t count) noexcept nogil


cdef class BitFilter(BloomFilter):
    cdef Py_ssize_t _count_distinct(self, Digests hashes, Digests unchanged) except -1
    cdef int _insert_all(self, Digests hashes, Digests unchanged) except -1
    cdef int _insert_keys(self, KeySource source, Digests hashes, Digests unchanged) except -1
    cdef int _insert_items(
        self, KeySource source, Py_ssize_t count, Digests hashes, Digests unchanged
    ) except -1
    cdef Py_ssize_t _insert_packed(
        self, const Packed *keys, Py_ssize_t count, Digests hashes, Digests unchanged
    ) noexcept nogil
    cdef void _insert_group(
        self, Digests hashes, Py_ssize_t some, Py_ssize_t waiting, Digests unchanged
    ) noexcept nogil
