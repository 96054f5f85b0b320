"""Ribbon's equations, made and solved; and what asking a filter needs of them."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.probing cimport lsm_probing


cdef extern from "ribbon.h" nogil:
    ctypedef struct lsm_row:
        uint64_t low
        uint64_t high

    ctypedef struct lsm_equation:
        uint64_t start
        lsm_row row
        uint32_t result

    ctypedef struct lsm_ribbon:
        const uint8_t *segments
        uint64_t starts
        uint32_t mask
        uint32_t columns
        uint32_t narrow_blocks

    const lsm_probing lsm_ribbon_probing[]


cdef enum Outcome:
    SOLVED
    CONTRADICTION             # another seed may do
    NO_MEMORY


cdef struct Blocks:
    uint64_t count
    uint64_t segments
    uint32_t columns
    uint64_t narrow


cdef Blocks blocks_of(object geometry) except *
cdef int solve(
    const uint64_t *hashes, size_t count, Blocks blocks, uint32_t mask, uint8_t *segments
) noexcept nogil
