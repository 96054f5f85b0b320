"""Keys in whatever form a caller has them, turned into digests."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.hashing cimport lsm_digest


cdef struct Packed:
    const uint8_t *data
    size_t size
    size_t width              # 0 where offsets tell
    const void *offsets
    bint wide                 # offsets of 64 bits, else of 32
    bint unsigned
    Py_ssize_t count


ctypedef int (*probe_type)(const void *filter, const char *key, size_t length) noexcept nogil

cdef bint is_bulk(object keys)
cdef uint64_t digest_number(object digest) except? 0
cdef int digest_words(lsm_digest kind, object digest, uint64_t *words) except -1
cdef int digest_of_key(lsm_digest kind, uint64_t seed, object key, uint64_t *digest) except -1
cdef const uint8_t *packed_key(
    const Packed *keys, Py_ssize_t index, size_t *size
) noexcept nogil
cdef Py_ssize_t digest_packed(
    const Packed *keys, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed,
    uint64_t *digests,
) noexcept nogil


cdef class KeySource:
    cdef Py_ssize_t count
    cdef Py_ssize_t digested  # by the last call of digest(), which an error may have ended early
    cdef bint is_packed
    cdef Packed packed
    cdef object _keys
    cdef bint _viewing
    cdef Py_buffer _data
    cdef Py_buffer _offsets

    @staticmethod
    cdef KeySource of(object keys)

    cdef int digest(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1

    cdef int ask(self, probe_type probe, const void *filter, uint8_t *answers) except -1
    cdef int _ask_items(self, probe_type probe, const void *filter, uint8_t *answers) except -1
    cdef object bad_offsets(self, Py_ssize_t index)
    cdef int _open_packed(self, object keys) except -1
    cdef Py_ssize_t _keys_there_are(self) except -1
    cdef int _digest_items(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1
    cdef object _changed(self)
