"""Ascending positions, a key and a version each, to search."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "sorted_keys.h" nogil:
    ctypedef struct lsm_sorted_keys:
        uint32_t count
        uint64_t *versions
        const uint8_t **keys
        uint32_t *lengths

    int lsm_sorted_keys_reserve(lsm_sorted_keys *self, size_t count)
    void lsm_sorted_keys_seal(lsm_sorted_keys *self)
    void lsm_sorted_keys_free(lsm_sorted_keys *self)
    uint32_t lsm_sorted_keys_seek(
        const lsm_sorted_keys *self, const uint8_t *key, uint32_t length, uint64_t version,
        int simd,
    )
