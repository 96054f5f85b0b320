"""Sort 64-bit numbers and keep each once, in time that no input can make worse than linear.

A radix sort from the top digit down: numbers go into buckets by their highest bits that differ,
and each bucket is sorted likewise; digits that all numbers share cost nothing. Buckets soon hold
a few numbers each, and those are put in order by comparing neighbours.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from filters.kernels.native.wide cimport lsm_popcount


cdef enum:
    FEW = 24                  # so many numbers are not worth buckets
    ROUNDS = 3                # of swapping neighbours; insertion does the rest
    MIN_DIGIT_BITS = 4
    MAX_DIGIT_BITS = 10       # a digit's counters take 8 KiB, and digits nest at most 16 deep
    MAX_BITS_OF_MANY = 8      # more streams than 256 would miss the translation cache


cdef inline size_t sort_distinct(
    uint64_t *numbers, uint64_t *scratch, size_t count
) noexcept nogil:
    """Bring numbers into ascending order, each once; how many remain. Scratch is as long."""
    cdef size_t i, kept = 0
    if count == 0:
        return 0
    sort_into(numbers, numbers, scratch, count)
    for i in range(count - 1):
        numbers[kept] = numbers[i]
        kept += numbers[i] != numbers[i + 1]
    numbers[kept] = numbers[count - 1]
    return kept + 1


cdef inline void sort_into(
    uint64_t *target, uint64_t *numbers, uint64_t *other, size_t count
) noexcept nogil:
    """Sort into ``target``, which is one of the two arrays; both are overwritten."""
    cdef size_t ends[1 << MAX_DIGIT_BITS]
    cdef uint64_t differing
    cdef int top, bits
    if count <= FEW:
        insert(target, numbers, count)
        return
    differing = differences(numbers, count)
    if differing == 0:
        if target != numbers:
            memcpy(target, numbers, count * sizeof(uint64_t))
        return
    top = bit_length(differing)
    bits = min(digit_bits(count), top)
    distribute(other, numbers, count, ends, top - bits, bits)
    # What was the other array holds the buckets now, and what held the numbers is free.
    sort_buckets(target, other, numbers, ends, <size_t>1 << bits)


cdef inline void sort_buckets(
    uint64_t *target, uint64_t *numbers, uint64_t *other, const size_t *ends, size_t buckets
) noexcept nogil:
    """Sort each large bucket for itself, and small neighbours together."""
    cdef size_t bucket, small = 0, start = 0, end
    for bucket in range(buckets):
        end = ends[bucket]
        if end - start > FEW:
            insert(target + small, numbers + small, start - small)
            sort_into(target + start, numbers + start, other + start, end - start)
            small = end
        start = end
    insert(target + small, numbers + small, start - small)


cdef inline void distribute(
    uint64_t *target, const uint64_t *numbers, size_t count, size_t *ends, int shift, int bits
) noexcept nogil:
    """Bring numbers into the order of one digit, and tell where each of its values ends."""
    cdef size_t i, size, start = 0, values = <size_t>1 << bits
    cdef uint64_t number, mask = values - 1
    memset(ends, 0, values * sizeof(size_t))
    for i in range(count):
        ends[numbers[i] >> shift & mask] += 1
    for i in range(values):
        size = ends[i]
        ends[i] = start
        start += size
    for i in range(count):
        number = numbers[i]
        target[ends[number >> shift & mask]] = number
        ends[number >> shift & mask] += 1


cdef inline void insert(uint64_t *target, const uint64_t *numbers, size_t count) noexcept nogil:
    """Sort numbers that are few, or nearly in order."""
    cdef size_t i, place
    cdef uint64_t number
    if count == 0:
        return
    swap_neighbours(target, numbers, count)
    for _ in range(ROUNDS - 1):
        swap_neighbours(target, target, count)
    for i in range(1, count):
        number = target[i]
        place = i
        while place > 0 and target[place - 1] > number:
            target[place] = target[place - 1]
            place -= 1
        target[place] = number


cdef inline void swap_neighbours(
    uint64_t *target, const uint64_t *numbers, size_t count
) noexcept nogil:
    """One round of bubble sort, which no branch predictor can lose."""
    cdef uint64_t number, largest = numbers[0]
    cdef size_t i
    for i in range(1, count):
        number = numbers[i]
        target[i - 1] = min(number, largest)
        largest = max(number, largest)
    target[count - 1] = largest


cdef inline uint64_t differences(const uint64_t *numbers, size_t count) noexcept nogil:
    """The bits in which not all numbers agree."""
    cdef uint64_t first = numbers[0], differing = 0
    cdef size_t i
    for i in range(count):
        differing |= numbers[i] ^ first
    return differing


cdef inline int digit_bits(size_t count) noexcept nogil:
    """Bits enough for buckets of two to four random numbers; half of them, where these are many."""
    cdef int bits = bit_length(count) - 2
    if bits <= MAX_DIGIT_BITS:
        return max(MIN_DIGIT_BITS, bits)
    return min(MAX_BITS_OF_MANY, (bits + 1) // 2)


cdef inline int bit_length(uint64_t number) noexcept nogil:
    """How many bits there are up to the highest that is set."""
    cdef int step
    for step in range(6):
        number |= number >> (1 << step)
    return lsm_popcount(number)
