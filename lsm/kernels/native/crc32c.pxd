"""What ``crc32c.h`` offers."""

from libc.stdint cimport uint8_t, uint32_t


cdef extern from "crc32c.h" nogil:
    int lsm_crc_has_instructions()
    uint32_t lsm_crc32c_portable(uint32_t crc, const uint8_t *data, size_t size)
    uint32_t lsm_crc32c(uint32_t crc, const uint8_t *data, size_t size)
    uint32_t lsm_crc32c_mask(uint32_t crc)
