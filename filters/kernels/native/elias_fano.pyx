"""Ascending numbers in nearly the fewest bits: written, and counted when they are read.

What is asked of them stands in ``elias_fano.pxd``, for the modules that ask.
"""

from libc.stdint cimport uint8_t, uint64_t

from filters import elias_fano
from filters.kernels.native.wide cimport lsm_load64, lsm_popcount, lsm_store64

if LINE_BYTES != elias_fano.LINE_BYTES:
    raise ImportError("filters/elias_fano.py and its compiled kernel differ: compile it again")


cdef uint64_t count_zeros(
    const uint8_t *high, uint64_t size, uint64_t *zeros_before
) noexcept nogil:
    """Count the zeros before each line; how many ones there are in all."""
    cdef uint64_t byte = 0, ones = 0
    while byte < size:
        if byte % LINE_BYTES == 0:
            zeros_before[byte // LINE_BYTES] = 8 * byte - ones
        if size - byte >= 8:
            ones += <uint64_t>lsm_popcount(lsm_load64(high + byte))
            byte += 8
        else:
            ones += <uint64_t>lsm_popcount(high[byte])
            byte += 1
    return ones


cdef void encode(
    const uint64_t *numbers, uint64_t count, int low_bits, uint8_t *low, uint8_t *high
) noexcept nogil:
    """Write ascending distinct numbers into zeros, behind which 9 more bytes can be written."""
    cdef uint64_t i, start, field, bit
    cdef uint8_t *place
    cdef int shift
    for i in range(count):
        start = i * <uint64_t>low_bits
        place, shift = low + (start >> 3), <int>(start & 7)
        field = numbers[i] & mask_of(low_bits)
        lsm_store64(place, lsm_load64(place) | field << shift)
        if shift:
            place[8] |= <uint8_t>(field >> (64 - shift))
        bit = (numbers[i] >> low_bits) + i
        high[bit >> 3] |= <uint8_t>(1 << (bit & 7))
