"""Keys of which only the digests are kept."""

from libc.stdint cimport uint64_t

from filters.kernels.native.hashing cimport lsm_digest
from filters.kernels.native.keys cimport KeySource


cdef class Digests:
    cdef uint64_t *numbers
    cdef Py_ssize_t count
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t words          # of each digest
    cdef lsm_digest _kind
    cdef uint64_t seed

    @staticmethod
    cdef Digests empty(lsm_digest kind, uint64_t seed)

    @staticmethod
    cdef Digests begun(object keys, lsm_digest kind, object seed)

    @staticmethod
    cdef Digests of(object keys, lsm_digest kind, object seed)

    cdef Digests copied(self)
    cdef void swap(self, Digests other) noexcept
    cdef Py_ssize_t sort_distinct(self) except -1
    cdef int reserve(self, Py_ssize_t more) except -1
    cdef int _add_bulk(self, KeySource source) except -1
    cdef int _add_items(self, KeySource source) except -1
    cdef int _add_packed(self, KeySource source) except -1


cdef lsm_digest kind_named(object name)
