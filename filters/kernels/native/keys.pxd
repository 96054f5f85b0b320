"""Keys in whatever form a caller has them, turned into digests."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from filters.kernels.native.hashing cimport lsm_digest


# How the values of a piece lie in it.
cdef enum Layout:
    EQUALLY_WIDE
    PADDED                    # with zeros, up to a width
    BY_OFFSETS
    BY_VIEWS                  # of Arrow


cdef struct Piece:
    Layout layout
    const uint8_t *data       # or the views
    size_t size
    size_t width
    const void *offsets
    bint wide                 # offsets of 64 bits, else of 32
    bint unsigned
    const Py_buffer *others   # which views point into
    Py_ssize_t num_others
    Py_ssize_t values         # that there are
    int64_t *rows             # which of the values are keys; NULL for all
    void *own                 # memory of its own; NULL for none
    Py_ssize_t first          # keys before this piece
    Py_ssize_t count


# Keys that are read without Python: packed ones, or a column in pieces.
cdef struct Packed:
    const Piece *pieces
    Py_ssize_t num_pieces
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
    cdef Piece *_pieces
    cdef Py_buffer *_held
    cdef Py_ssize_t _num_held
    cdef Py_ssize_t _most_held
    cdef Piece _only_piece    # packed keys take no other memory than these
    cdef Py_buffer _first_held[2]

    @staticmethod
    cdef KeySource of(object keys)

    cdef int digest(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1

    cdef int ask(self, probe_type probe, const void *filter, uint8_t *answers) except -1
    cdef int _ask_items(self, probe_type probe, const void *filter, uint8_t *answers) except -1
    cdef object bad_offsets(self, Py_ssize_t index)
    cdef int _reserve(self, Py_ssize_t pieces, Py_ssize_t buffers) except -1
    cdef const Py_buffer *_hold(self, object view) except NULL
    cdef int _open_packed(self, object keys) except -1
    cdef int _open_column(self, object column) except -1
    cdef int _append(self, object values, object present, object codes) except -1
    cdef int _choose(self, Piece *piece, object present, object codes) except -1
    cdef int _describe(self, Piece *piece, object values) except -1
    cdef int _encode(self, Piece *piece, object texts) except -1
    cdef int _digest_items(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1
    cdef object _changed(self)
