"""Ascending numbers in nearly the fewest bits, of which an interval can be asked for."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.wide cimport lsm_load64, lsm_popcount, lsm_trailing_zeros


# LINE_BYTES of filters/elias_fano.py.
cdef enum:
    LINE_BYTES = 64
    LINE_BITS = 512


cdef struct EliasFano:
    const uint8_t *low
    const uint8_t *high
    const uint64_t *zeros_before  # each line of what is above the lowest bits
    uint64_t lines
    int low_bits


cdef inline uint64_t mask_of(int bits) noexcept nogil:
    """So many lowest bits set, at most 63."""
    return (<uint64_t>1 << bits) - 1


cdef inline uint64_t low_of(const EliasFano *numbers, uint64_t index) noexcept nogil:
    """The lowest bits of a number."""
    cdef uint64_t start = index * <uint64_t>numbers.low_bits
    cdef const uint8_t *place = numbers.low + (start >> 3)
    cdef int shift = <int>(start & 7)
    cdef uint64_t field = lsm_load64(place) >> shift
    if shift:
        field |= <uint64_t>place[8] << (64 - shift)
    return field & mask_of(numbers.low_bits)


cdef inline uint64_t zero_at(const EliasFano *numbers, uint64_t index) noexcept nogil:
    """The place of a zero above the lowest bits, by its index among all zeros; there is one."""
    cdef uint64_t line = 0, end = numbers.lines, middle, zeros
    cdef const uint8_t *place
    cdef uint64_t found
    while end - line > 1:
        middle = (line + end) // 2
        if numbers.zeros_before[middle] <= index:
            line = middle
        else:
            end = middle
    index -= numbers.zeros_before[line]
    place = numbers.high + LINE_BYTES * line
    zeros = ~lsm_load64(place)
    found = <uint64_t>lsm_popcount(zeros)
    while index >= found:
        index -= found
        place += 8
        zeros = ~lsm_load64(place)
        found = <uint64_t>lsm_popcount(zeros)
    while index:
        zeros &= zeros - 1
        index -= 1
    return 8 * <uint64_t>(place - numbers.high) + <uint64_t>lsm_trailing_zeros(zeros)


cdef inline uint64_t before(const EliasFano *numbers, uint64_t bucket) noexcept nogil:
    """How many numbers there are in the buckets before this one."""
    return zero_at(numbers, bucket - 1) - (bucket - 1) if bucket else 0


cdef inline uint64_t lower_bound(
    const EliasFano *numbers, uint64_t start, uint64_t end, uint64_t low
) noexcept nogil:
    """The first number of a bucket whose lowest bits are not below these, or its end."""
    cdef uint64_t middle
    while start < end:
        middle = (start + end) // 2
        if low_of(numbers, middle) < low:
            start = middle + 1
        else:
            end = middle
    return start


cdef inline bint any_between(
    const EliasFano *numbers, uint64_t first, uint64_t last
) noexcept nogil:
    """Whether one of the numbers lies from ``first`` to ``last``, both below the universe."""
    cdef uint64_t mask = mask_of(numbers.low_bits)
    cdef uint64_t lower = first >> numbers.low_bits, upper = last >> numbers.low_bits
    cdef uint64_t start = before(numbers, lower), end = before(numbers, lower + 1), found
    if lower == upper:
        found = lower_bound(numbers, start, end, first & mask)
        return found < end and low_of(numbers, found) <= last & mask
    if start < end and low_of(numbers, end - 1) >= first & mask:
        return True
    start = before(numbers, upper)
    if start > end:
        return True  # in a bucket between the two
    return start < before(numbers, upper + 1) and low_of(numbers, start) <= last & mask


cdef uint64_t count_zeros(const uint8_t *high, uint64_t size, uint64_t *zeros_before) noexcept nogil
cdef void encode(
    const uint64_t *numbers, uint64_t count, int low_bits, uint8_t *low, uint8_t *high
) noexcept nogil
