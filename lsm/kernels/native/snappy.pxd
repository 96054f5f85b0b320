"""What ``snappy.h`` offers."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t


cdef extern from "snappy.h" nogil:
    enum:
        LSM_SNAPPY_TABLE

    size_t lsm_snappy_bound(size_t size)
    size_t lsm_snappy_compress(const uint8_t *data, size_t size, uint8_t *out, uint16_t *table)
    int lsm_snappy_length(const uint8_t *data, size_t size, uint32_t *length, size_t *at)
    int lsm_snappy_decompress(const uint8_t *data, size_t size, uint8_t *out, size_t length)
