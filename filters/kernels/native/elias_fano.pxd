"""Ascending numbers in nearly the fewest bits, of which an interval can be asked for."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.wide cimport lsm_load64, lsm_popcount, lsm_trailing_zeros


# LINE_BYTES of filters/elias_fano.py.
cdef enum:
    LINE_BYTES = 64


cdef struct EliasFano:
    const uint8_t *low
    uint64_t count
    const uint8_t *high
    const uint8_t *high_end
    const uint64_t *zeros_before  # each line of what is above the lowest bits
    uint64_t lines
    double lines_per_bucket       # on average
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


cdef inline uint64_t line_of(const EliasFano *numbers, uint64_t index) noexcept nogil:
    """The line of a zero: mostly where an average has it, else by halves from there."""
    cdef const uint64_t *before = numbers.zeros_before
    cdef uint64_t line = <uint64_t>(<double>index * numbers.lines_per_bucket)
    cdef uint64_t end, middle, step = 1
    line = min(line, numbers.lines - 1)
    end = line + 1
    while end < numbers.lines and before[end] <= index:
        line = end
        end += step
        step *= 2
    end = min(end, numbers.lines)
    while before[line] > index:
        end = line
        line = line - step if line > step else 0
        step *= 2
    while end - line > 1:
        middle = (line + end) // 2
        if before[middle] <= index:
            line = middle
        else:
            end = middle
    return line


cdef inline uint64_t zero_at(const EliasFano *numbers, uint64_t index) noexcept nogil:
    """The place of a zero above the lowest bits, by its index among all zeros.

    There is one, unless somebody writes where nobody may; then it is some place up to the end.
    """
    cdef uint64_t line = line_of(numbers, index), zeros, found
    cdef uint64_t bits = 8 * <uint64_t>(numbers.high_end - numbers.high)
    cdef const uint8_t *place = numbers.high + LINE_BYTES * line
    index -= numbers.zeros_before[line]
    zeros = ~lsm_load64(place)
    found = <uint64_t>lsm_popcount(zeros)
    while index >= found:
        index -= found
        place += 8
        if place >= numbers.high_end:
            return bits
        zeros = ~lsm_load64(place)
        found = <uint64_t>lsm_popcount(zeros)
    while index:
        zeros &= zeros - 1
        index -= 1
    found = 8 * <uint64_t>(place - numbers.high) + <uint64_t>lsm_trailing_zeros(zeros)
    return min(found, bits)


cdef inline void find_bucket(
    const EliasFano *numbers, uint64_t bucket, uint64_t *start, uint64_t *end
) noexcept nogil:
    """The first number of a bucket, and the first behind it; its zero mostly is in one word."""
    cdef uint64_t place = zero_at(numbers, bucket - 1) + 1 if bucket else 0
    cdef uint64_t zeros = ~lsm_load64(numbers.high + (place >> 3)) >> (place & 7)
    start[0] = min(place - bucket, numbers.count)
    if zeros:
        end[0] = min(start[0] + <uint64_t>lsm_trailing_zeros(zeros), numbers.count)
    else:
        end[0] = min(zero_at(numbers, bucket) - bucket, numbers.count)


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
    cdef uint64_t start, end, found, stop
    find_bucket(numbers, lower, &start, &end)
    if lower == upper:
        found = lower_bound(numbers, start, end, first & mask)
        return found < end and low_of(numbers, found) <= last & mask
    if start < end and low_of(numbers, end - 1) >= first & mask:
        return True
    find_bucket(numbers, upper, &start, &stop)
    if start > end:
        return True  # in a bucket between the two
    return start < stop and low_of(numbers, start) <= last & mask


cdef uint64_t count_zeros(const uint8_t *high, uint64_t size, uint64_t *zeros_before) noexcept nogil
cdef void encode(
    const uint64_t *numbers, uint64_t count, int low_bits, uint8_t *low, uint8_t *high
) noexcept nogil
