"""A commit that nobody is in the way of, in one go."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

from lsm.kernels.native.readable cimport Readable


cdef bint commit_alone(
    Readable store, uint8_t *record, size_t size, uint64_t count, uint64_t payload
) noexcept
