"""What ``key_words.h`` offers."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "key_words.h" nogil:
    uint64_t lsm_word(const uint8_t *key, size_t length)
    int lsm_compare_keys(
        const uint8_t *one, uint32_t one_length, const uint8_t *other, uint32_t other_length
    )
