"""The multiply chain: probe positions of the classic and the counting filter."""

from libc.stdint cimport uint64_t


def positions(mixed, size, num_probes):
    """``num_probes`` positions below ``size``, which may be anything up to 2^40."""
    cdef uint64_t number = mixed, bits = size
    result = []
    for _ in range(num_probes):
        result.append(position(number, bits))
        number = following(number)
    return result
