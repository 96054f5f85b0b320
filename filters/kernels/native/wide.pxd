"""What ``wide.h`` offers: 128-bit products, little-endian loads, prefetch, bit counts."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "wide.h" nogil:
    uint64_t lsm_multiply(uint64_t a, uint64_t b, uint64_t *high)
    uint64_t lsm_fold(uint64_t a, uint64_t b)
    uint64_t lsm_reduce(uint64_t hash, uint64_t size)
    uint64_t lsm_load64(const uint8_t *source)
    uint32_t lsm_load32(const uint8_t *source)
    uint16_t lsm_load16(const uint8_t *source)
    void lsm_store64(uint8_t *to, uint64_t word)
    uint32_t lsm_rotate_left32(uint32_t x, int by)
    void lsm_prefetch(const void *address)
    int lsm_popcount(uint64_t x)
    int lsm_parity(uint64_t x)
    int lsm_trailing_zeros(uint64_t x)
