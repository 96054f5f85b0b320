"""Ribbon construction, compiled; and the equation of a hash, which a probe needs too."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.peeling cimport hash_under
from filters.kernels.native.wide cimport lsm_fold


# The constants of filters/bumped_ribbon.py.
cdef enum:
    BLOCK_SLOTS = 64
    BUCKET_STARTS = 128
    MAX_COLUMNS = 32
    CODES_PER_BYTE = 4
    THRESHOLDS = 0x80_20_0E_00  # a byte for each code, from the lowest on


cdef class Band:
    cdef readonly object layer
    cdef int64_t blocks
    cdef uint64_t *coefficients
    cdef uint32_t *results
    cdef Digests bumped

    @staticmethod
    cdef Band of(Digests hashes, object blocks)

    cdef int collect(self, Digests hashes) except -1
    cdef void solve(self, int64_t narrow, int columns, uint8_t *words) noexcept nogil


cdef inline uint64_t stepped(uint64_t value) noexcept nogil:
    """The hash of a key for the next layer."""
    return hash_under(value, <uint64_t>0x9E37_79B9_7F4A_7C15)


cdef inline uint64_t coefficients_of(uint64_t value) noexcept nogil:
    """Which slots a hash's equation has, from its start on: a bit for each."""
    return lsm_fold(value, <uint64_t>0xC13F_A9A9_02A6_328F) | 1


cdef inline uint32_t result_of(uint64_t value) noexcept nogil:
    """The result of a hash's equation, a bit in each column."""
    return <uint32_t>(value * <uint64_t>0xD6E8_FEB8_6659_FD93 >> 32)


cdef inline uint64_t threshold_of(int code) noexcept nogil:
    """The threshold of a code: keys that start before it in their bucket are bumped."""
    return <uint64_t>THRESHOLDS >> 8 * code & 0xFF
