"""How many numbers are distinct, where nearly all are known to be."""

from libc.stdint cimport uint64_t

cdef Py_ssize_t count_repeats(
    const uint64_t *numbers, Py_ssize_t count, const uint64_t *suspects, Py_ssize_t num_suspects
) noexcept nogil
