"""What a key asks of a ribbon filter's columns."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "columns.h" nogil:
    ctypedef struct lsm_slots:
        const uint8_t *here
        const uint8_t *behind
        uint64_t low
        uint64_t high

    ctypedef int (*lsm_agreeing)(
        const lsm_slots *slots, uint32_t columns, uint32_t expected
    ) noexcept nogil

    const lsm_agreeing lsm_agree[]  # by simd.level()
