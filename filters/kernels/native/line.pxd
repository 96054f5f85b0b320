"""Filters whose probes of a key all fall into one line of 512 bits."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.wide cimport lsm_popcount


cdef extern from "line.h" nogil:
    ctypedef struct lsm_lines:
        uint8_t *lines
        uint64_t count
        uint64_t seed
        uint64_t salt
        uint32_t num_probes

    const lsm_probing lsm_blocked_probing[]
    const lsm_probing lsm_fast_local_probing[]


cdef inline dict count_lines(const uint8_t *lines, Py_ssize_t count, Py_ssize_t line_bytes):
    """How many lines have how many bits set."""
    cdef dict counts = {}
    cdef Py_ssize_t line, at, bits
    for line in range(count):
        bits = 0
        for at in range(line_bytes):
            bits += lsm_popcount(lines[line * line_bytes + at])
        counts[bits] = counts.get(bits, 0) + 1
    return counts
