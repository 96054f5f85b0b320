"""What ``operations.h`` offers: operations as the records of a log have them."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "operations.h" nogil:
    enum:
        LSM_BATCH_HEADER
        LSM_COUNT_AT
        LSM_DELETE
        LSM_PUT

    ctypedef struct lsm_operation:
        int kind
        uint32_t key_length
        uint32_t value_length
        const uint8_t *key
        const uint8_t *value

    uint64_t lsm_operation_bound(uint32_t key_length, uint32_t value_length)
    uint8_t *lsm_operation_write(uint8_t *to, const lsm_operation *operation)
    void lsm_batch_stamp(uint8_t *record, uint64_t sequence, uint32_t count)
