"""The multiply chain: where a key's bits or counters are, and what stands there.

The functions take the kind of cell as a constant, so that each family's are compiled for its own.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.hashing cimport lsm_mix, lsm_xxh3_64
from filters.kernels.native.wide cimport lsm_fold, lsm_prefetch, lsm_reduce


cdef enum Cell:
    BIT                       # eight in a byte
    COUNTER                   # two in a byte


cdef struct Cells:
    uint8_t *data
    uint64_t size             # how many cells there are
    uint64_t seed
    uint64_t salt
    uint32_t num_probes


cdef inline uint64_t position(uint64_t mixed, uint64_t size) noexcept nogil:
    """Where the probe at hand falls."""
    return lsm_reduce(mixed, size)


cdef inline uint64_t following(uint64_t mixed) noexcept nogil:
    """The number of the next probe; the constant is ``CHAIN`` of the Python kernel."""
    return lsm_fold(mixed, <uint64_t>0xC13F_A9A9_02A6_328F)


cdef inline int value_at(const Cells *cells, Cell cell, uint64_t place) noexcept nogil:
    """What a cell holds: 0 or 1 if it is a bit, 0 to 15 if it is a counter."""
    if cell == BIT:
        return cells.data[place >> 3] >> (place & 7) & 1
    return cells.data[place >> 1] >> (4 * (place & 1)) & 0x0F


cdef inline int has(const Cells *cells, Cell cell, uint64_t mixed) noexcept nogil:
    """Whether none of the key's cells is zero."""
    for _ in range(cells.num_probes):
        if not value_at(cells, cell, position(mixed, cells.size)):
            return 0
        mixed = following(mixed)
    return 1


cdef inline int has_key(
    const Cells *cells, Cell cell, const char *key, size_t length
) noexcept nogil:
    cdef uint64_t digest = lsm_xxh3_64(<const uint8_t *>key, length, cells.seed)
    return has(cells, cell, lsm_mix(digest, cells.salt))


cdef inline int has_digest(const Cells *cells, Cell cell, uint64_t digest) noexcept nogil:
    return has(cells, cell, lsm_mix(digest, cells.salt))


cdef inline void prefetch(
    const Cells *cells, Cell cell, uint64_t mixed, uint32_t probes
) noexcept nogil:
    """Prefetch the first so many cells of a key."""
    for _ in range(probes):
        lsm_prefetch(cells.data + (position(mixed, cells.size) >> (3 if cell == BIT else 1)))
        mixed = following(mixed)


cdef inline void has_many(
    const Cells *cells, Cell cell, const uint64_t *hashes, size_t count, size_t ahead,
    uint8_t *answers,
) noexcept nogil:
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(cells, cell, hashes[count + i], cells.num_probes)
        if i < count:
            answers[i] = <uint8_t>has(cells, cell, hashes[i])


# Adds a key; how many of its cells were zero.
ctypedef uint32_t (*Insert)(Cells *cells, uint64_t mixed) noexcept nogil


cdef inline size_t insert_many(
    Cells *cells, Cell cell, Insert insert, const uint64_t *hashes, size_t count, size_t ahead,
    uint64_t *unchanged,
) noexcept nogil:
    cdef size_t i, found = 0
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(cells, cell, hashes[count + i], cells.num_probes)
        if i < count:
            unchanged[found] = hashes[i]
            found += insert(cells, hashes[i]) == 0
    return found


cdef inline uint32_t set_bits(Cells *cells, uint64_t mixed) noexcept nogil:
    """Set the key's bits; how many of them were not set."""
    cdef uint64_t place
    cdef uint8_t old
    cdef uint32_t fresh = 0
    for _ in range(cells.num_probes):
        place = position(mixed, cells.size)
        old = cells.data[place >> 3]
        fresh += not (old >> (place & 7) & 1)
        cells.data[place >> 3] = <uint8_t>(old | 1 << (place & 7))
        mixed = following(mixed)
    return fresh
