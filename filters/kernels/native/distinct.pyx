"""How many numbers are distinct, where nearly all are known to be.

A key that set a new bit of a Bloom filter is surely new. Of the few that set none, some are
repeats and some are not; only these are looked up, so that a build need not sort its keys.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free


cdef struct Suspect:
    uint64_t number
    Py_ssize_t suspected      # how often it set nothing; 0 in an empty place of the table
    Py_ssize_t seen           # how often it came at all


cdef struct Suspects:
    Suspect *table
    uint8_t *marks            # a bit for each of many hashes: mostly "no", and in the fast cache
    int table_bits
    int mark_bits


cdef Py_ssize_t count_repeats(
    const uint64_t *numbers, Py_ssize_t count, const uint64_t *suspects, Py_ssize_t num_suspects
) noexcept nogil:
    """How many numbers came before; ``suspects`` are those that set nothing. -1: no memory."""
    cdef Suspects known
    cdef Py_ssize_t i, repeats = 0
    if num_suspects == 0:
        return 0
    if not open_suspects(&known, num_suspects):
        return -1
    for i in range(num_suspects):
        suspect(&known, suspects[i])
    for i in range(count):
        if is_marked(&known, numbers[i]):
            find(&known, numbers[i]).seen += 1
    for i in range(<Py_ssize_t>1 << known.table_bits):
        if known.table[i].suspected:
            # If it once set something, every time it set nothing is a repeat; else all but one.
            repeats += known.table[i].suspected
            repeats -= known.table[i].seen == known.table[i].suspected
    free(known.table)
    free(known.marks)
    return repeats


cdef bint open_suspects(Suspects *known, Py_ssize_t num_suspects) noexcept nogil:
    known.table_bits = 4
    while <Py_ssize_t>1 << known.table_bits < 2 * num_suspects:
        known.table_bits += 1
    known.mark_bits = known.table_bits + 5
    known.table = <Suspect *>calloc(<size_t>1 << known.table_bits, sizeof(Suspect))
    known.marks = <uint8_t *>calloc(<size_t>1 << (known.mark_bits - 3), 1)
    if known.table != NULL and known.marks != NULL:
        return True
    free(known.table)
    free(known.marks)
    return False


cdef void suspect(Suspects *known, uint64_t number) noexcept nogil:
    cdef uint64_t mark = number >> (64 - known.mark_bits)
    cdef Suspect *place = find(known, number)
    known.marks[mark >> 3] |= <uint8_t>(1 << (mark & 7))
    place.number = number
    place.suspected += 1


cdef inline bint is_marked(const Suspects *known, uint64_t number) noexcept nogil:
    cdef uint64_t mark = number >> (64 - known.mark_bits)
    return known.marks[mark >> 3] >> (mark & 7) & 1


cdef Suspect *find(const Suspects *known, uint64_t number) noexcept nogil:
    """The number's place in the table, or the empty one where it would be."""
    cdef uint64_t mask = (<uint64_t>1 << known.table_bits) - 1
    cdef uint64_t place = number & mask
    while known.table[place].suspected and known.table[place].number != number:
        place = (place + 1) & mask
    return &known.table[place]
