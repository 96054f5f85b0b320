"""The shape all families share, and what the salted ones have in common."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport lsm_digest
from filters.kernels.native.keys cimport KeySource, Packed
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.text cimport lsm_ascii_bytes


cdef extern from "lsm_probe.h" nogil:
    ctypedef struct lsm_probe_v1:
        uint32_t struct_size
        uint32_t digest_kind
        uint64_t digest_seed
        const void *self
        int (*probe)(const void *filter, const char *key, size_t length) noexcept nogil
        int (*probe_digest)(const void *filter, uint64_t digest) noexcept nogil


# Keys are answered in groups, one group behind the one that is digested: meanwhile the lines that
# were prefetched arrive. It takes about so many lines in flight to keep memory busy.
cdef enum:
    GROUP = 128
    CHUNK = 256               # digests that are dealt with on the stack


cdef class Filter:
    cdef object __weakref__
    cdef lsm_probe_v1 door
    cdef Payload payload

    cdef list _answers_as_list(self, KeySource source)
    cdef int _answer(self, KeySource source, uint8_t *answers) except -1
    cdef int check_missed(self, Py_ssize_t count, Py_ssize_t missed) except -1


cdef class DigestFilter(Filter):
    cdef const lsm_probing *probing
    cdef Payload pointed_at   # by the family's struct, which follows the payload a moment later
    cdef bint is_salted
    cdef uint64_t salt

    cdef int opened(
        self, const void *filter, const lsm_probing *probing, lsm_digest kind, uint64_t seed
    ) except -1
    cdef int always(self, bint answer, lsm_digest kind, uint64_t seed) except -1
    cdef void hashes_of(self, uint64_t *digests, Py_ssize_t count) noexcept nogil
    cdef Py_ssize_t missing(self, const uint64_t *hashes, Py_ssize_t count) noexcept nogil
    cdef int verify(self, Digests hashes) except -1
    cdef Py_ssize_t _answer_packed(self, const Packed *keys, uint8_t *answers) noexcept nogil
    cdef void _answer_group(
        self, uint64_t *hashes, Py_ssize_t waiting, Py_ssize_t some, uint8_t *answers
    ) noexcept nogil


cdef class SeededFilter(DigestFilter):
    cdef uint64_t _num_keys

    cdef int own(self) except -1
    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1
    cdef int _add_key(self, object key) except -1
    cdef int _add_bulk(self, KeySource source) except -1


cdef class SaltedFilter(SeededFilter):
    cdef uint64_t hash_of(self, object key) except? 0
    cdef bytes packed(self, uint64_t parameter, uint64_t size)


cdef int add_all(SeededFilter self, object keys, object nulls) except -1
cdef object ask_buffer(Filter self, object key)
cdef object unmade(Filter self)


cdef inline object ask(Filter self, object key):
    """What every family's ``might_contain`` does.

    Each class defines that method anew: CPython calls one fast only where the very class of the
    object defines it, and an inherited one costs 10 ns more.
    """
    cdef const uint8_t *text
    cdef size_t size
    if not PyBytes_CheckExact(key):
        text = lsm_ascii_bytes(<PyObject *>key, &size)
        if text == NULL:
            return ask_buffer(self, key)
        return True if self.door.probe(self.door.self, <const char *>text, size) else False
    return True if self.door.probe(
        self.door.self, PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key)
    ) else False
