"""Keys as numbers that keep their order, and a collection of them."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp

from filters.kernels.native.digests cimport Digests


# MAX_WIDTH of filters/key_numbers.py.
cdef enum:
    MAX_WIDTH = 8


cdef struct Numbering:
    const uint8_t *prefix
    size_t length             # of the prefix
    size_t width              # of a number, in bytes


cdef struct Bound:
    const uint8_t *key        # NULL: no bound
    size_t size


cdef inline uint64_t number_at(
    const uint8_t *key, size_t size, size_t start, size_t width
) noexcept nogil:
    """The number of so many bytes from a place on, zeros where the key has ended."""
    cdef uint64_t number = 0
    cdef size_t i
    for i in range(start, start + width):
        number = number << 8 | (key[i] if i < size else 0)
    return number


cdef inline uint64_t number_behind(
    const Numbering *numbering, const uint8_t *key, size_t size
) noexcept nogil:
    """The number of a key that begins with the prefix."""
    return number_at(key, size, numbering.length, numbering.width)


cdef inline uint64_t greatest(const Numbering *numbering) noexcept nogil:
    """The greatest number of a key."""
    return <uint64_t>-1 >> (64 - 8 * numbering.width) if numbering.width else 0


cdef inline bint begins(const Numbering *numbering, const uint8_t *key, size_t size) noexcept nogil:
    """Whether a key begins with the prefix."""
    return size >= numbering.length and memcmp(key, numbering.prefix, numbering.length) == 0


cdef inline int compare(
    const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size
) noexcept nogil:
    """Below 0, 0 or above 0, as one key lies to the other."""
    cdef int order = memcmp(one, other, min(one_size, other_size))
    return order if order else (one_size > other_size) - (one_size < other_size)


cdef inline bint has_bounds(
    const Numbering *numbering, Bound low, Bound high, uint64_t *first, uint64_t *last
) noexcept nogil:
    """Whether keys with this prefix can lie in a range; if so, their least and greatest number."""
    cdef bint shares
    first[0], last[0] = 0, greatest(numbering)
    if low.key != NULL and high.key != NULL:
        if compare(low.key, low.size, high.key, high.size) >= 0:
            return False
    if low.key != NULL and compare(low.key, low.size, numbering.prefix, numbering.length) > 0:
        if not begins(numbering, low.key, low.size):
            return False
        first[0] = number_behind(numbering, low.key, low.size)
    if high.key != NULL:
        if compare(high.key, high.size, numbering.prefix, numbering.length) <= 0:
            return False
        if begins(numbering, high.key, high.size):
            # See Numbering of filters/key_numbers.py.
            shares = high.size > numbering.length + numbering.width or high.key[high.size - 1] == 0
            last[0] = number_behind(numbering, high.key, high.size) - (not shares)
    return first[0] <= last[0]


cdef class KeyNumbers:
    cdef Digests _kept
    cdef bytes _first
    cdef Py_ssize_t _prefix   # how many bytes are shared by now
    cdef Py_ssize_t _longest
    cdef list _shared

    @staticmethod
    cdef KeyNumbers empty(uint64_t seed)

    @staticmethod
    cdef KeyNumbers of(object keys, object seed)

    cdef int take(self, bytes key) except -1
    cdef Digests numbers(self)
