"""The multiply chain: probe positions of the classic and the counting filter."""

from libc.stdint cimport uint64_t

from filters.kernels.native.wide cimport lsm_fold, lsm_reduce


cdef inline uint64_t position(uint64_t mixed, uint64_t size) noexcept nogil:
    """Where the probe at hand falls."""
    return lsm_reduce(mixed, size)


cdef inline uint64_t following(uint64_t mixed) noexcept nogil:
    """The number of the next probe; the constant is ``CHAIN`` of the Python kernel."""
    return lsm_fold(mixed, <uint64_t>0xC13F_A9A9_02A6_328F)
