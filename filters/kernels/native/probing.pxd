"""How a family is asked: the few functions behind every form of a probe."""

from libc.stdint cimport uint8_t, uint64_t


cdef extern from "probing.h" nogil:
    ctypedef struct lsm_probing:
        int (*probe)(const void *filter, const char *key, size_t length) noexcept nogil
        int (*probe_digest)(const void *filter, uint64_t digest) noexcept nogil
        void (*test_many)(
            const void *filter, const uint64_t *hashes, size_t count, size_t ahead,
            uint8_t *answers,
        ) noexcept nogil
        size_t (*add_many)(
            void *filter, const uint64_t *hashes, size_t count, size_t ahead, uint64_t *unchanged
        ) noexcept nogil
