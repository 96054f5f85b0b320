"""Ribbon's equations, made and solved: the twin of ``filters/kernels/python/equations.py``.

Equations come in the order of their starts, near enough: hashes are first distributed over parts of
the slots that stay within the processor's cache. Their order does not matter to the
solution: which slots have a row in the end is the same in any.

Rows and results take 20 bytes a slot, 21 bytes a key, and the distributed hashes 8 bytes a key.
"""

from array import array

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from filters.kernels.native cimport simd
from filters.kernels.native.wide cimport lsm_reduce, lsm_store64, lsm_trailing_zeros
from filters.ribbon import seed_mask


cdef extern from "ribbon.h" nogil:
    ctypedef void (*lsm_substitution)(
        const lsm_row *rows, const uint32_t *results, uint32_t columns, lsm_row *windows
    ) noexcept nogil

    const lsm_substitution lsm_substitute[]
    enum:
        LSM_BLOCK_SLOTS
        LSM_SEGMENT_BYTES
        LSM_MAX_COLUMNS

    uint64_t lsm_start_number(uint64_t hash, uint32_t mask)
    lsm_equation lsm_equation_of(uint64_t number, uint64_t starts)


cdef extern from "allocation.h" nogil:
    uint8_t *lsm_allocate(size_t size)
    uint8_t *lsm_reserve(size_t size)
    void lsm_release(uint8_t *memory)


cdef enum:
    SLOTS_PER_PART = 4096     # whose rows take 80 KiB
    MAX_PARTS = 1024          # more streams than this would miss the translation cache


cdef struct Band:
    lsm_row *rows
    uint32_t *results
    uint64_t starts


# Python's side -----------------------------------------------------------------------------------


cdef Blocks blocks_of(object geometry) except *:
    """A geometry as a plain struct."""
    cdef Blocks blocks
    blocks.count = geometry.blocks
    blocks.segments = geometry.segments
    blocks.columns = geometry.columns
    blocks.narrow = geometry.narrow_blocks
    return blocks


def solution(hashes, geometry, seed):
    """The segments that satisfy all keys' equations under a seed; None where nothing does."""
    cdef bytes numbers = array("Q", hashes).tobytes()
    cdef bytes segments = PyBytes_FromStringAndSize(NULL, geometry.segments * LSM_SEGMENT_BYTES)
    cdef const uint64_t *each = <const uint64_t *>PyBytes_AS_STRING(numbers)
    cdef size_t count = len(numbers) // sizeof(uint64_t)
    cdef Blocks blocks = blocks_of(geometry)
    cdef uint32_t mask = seed_mask(seed)
    cdef uint8_t *target = <uint8_t *>PyBytes_AS_STRING(segments)
    cdef int outcome
    with nogil:
        outcome = solve(each, count, blocks, mask, target)
    if outcome == NO_MEMORY:
        raise MemoryError(f"there is no memory to solve the equations of {count} keys")
    return segments if outcome == SOLVED else None


# Without Python ----------------------------------------------------------------------------------


cdef int solve(
    const uint64_t *hashes, size_t count, Blocks blocks, uint32_t mask, uint8_t *segments
) noexcept nogil:
    """Fill the segments. Unless it returns SOLVED, they are as they were."""
    cdef uint64_t slots = blocks.count * LSM_BLOCK_SLOTS
    cdef Band band
    cdef uint8_t *memory
    cdef int outcome
    if slots > SIZE_MAX // 64 or count > SIZE_MAX // 64:
        return NO_MEMORY
    memory = lsm_allocate(slots * (sizeof(lsm_row) + sizeof(uint32_t)))
    if memory == NULL:
        return NO_MEMORY
    band.rows = <lsm_row *>memory
    band.results = <uint32_t *>(band.rows + slots)
    band.starts = slots - LSM_BLOCK_SLOTS + 1
    outcome = eliminate_all(&band, hashes, count, mask)
    if outcome == SOLVED:
        substitute(&band, blocks, segments)
    lsm_release(memory)
    return outcome


cdef int eliminate_all(
    Band *band, const uint64_t *hashes, size_t count, uint32_t mask
) noexcept nogil:
    """Eliminate every equation, one part of the slots after the other."""
    cdef uint64_t *numbers = <uint64_t *>lsm_reserve(count * sizeof(uint64_t))
    cdef int outcome = SOLVED
    cdef size_t i
    if numbers == NULL:
        return NO_MEMORY
    distribute(band.starts, hashes, count, mask, numbers)
    for i in range(count):
        if not eliminate(band, numbers[i]):
            outcome = CONTRADICTION
            break
    lsm_release(<uint8_t *>numbers)
    return outcome


cdef void distribute(
    uint64_t starts, const uint64_t *hashes, size_t count, uint32_t mask, uint64_t *numbers
) noexcept nogil:
    """The hashes under the seed, those of one part of the slots together."""
    cdef size_t ends[MAX_PARTS + 1]
    cdef uint64_t parts = min(<uint64_t>MAX_PARTS, starts // SLOTS_PER_PART + 1)
    cdef uint64_t number, part
    cdef size_t i
    memset(ends, 0, sizeof(ends))
    for i in range(count):
        ends[lsm_reduce(lsm_start_number(hashes[i], mask), parts) + 1] += 1
    for part in range(parts):
        ends[part + 1] += ends[part]
    for i in range(count):
        number = lsm_start_number(hashes[i], mask)
        part = lsm_reduce(number, parts)
        numbers[ends[part]] = number
        ends[part] += 1


cdef inline bint eliminate(Band *band, uint64_t number) noexcept nogil:
    """Eliminate one equation; False where it contradicts those before."""
    cdef lsm_equation equation = lsm_equation_of(number, band.starts)
    cdef lsm_row row = equation.row
    cdef uint32_t result = equation.result
    cdef uint64_t slot = equation.start
    cdef lsm_row *taken
    cdef int zeros
    while True:
        taken = band.rows + slot
        if not taken.low:  # its lowest bit is the slot itself
            taken[0] = row
            band.results[slot] = result
            return True
        row.low ^= taken.low
        row.high ^= taken.high
        result ^= band.results[slot]
        if not row.low:
            if not row.high:
                return result == 0
            row.low = row.high
            row.high = 0
            slot += 64
        zeros = lsm_trailing_zeros(row.low)
        slot += zeros
        if zeros:
            row.low = row.low >> zeros | row.high << (64 - zeros)
            row.high >>= zeros


cdef void substitute(const Band *band, Blocks blocks, uint8_t *segments) noexcept nogil:
    """Solve from the last slot backwards, and store each block's columns as it is complete."""
    cdef lsm_substitution solve_block = lsm_substitute[simd.level()]
    cdef lsm_row windows[LSM_MAX_COLUMNS]
    cdef uint64_t block = blocks.count, slot
    cdef uint32_t columns, column
    cdef uint8_t *end = segments + blocks.segments * LSM_SEGMENT_BYTES
    memset(windows, 0, sizeof(windows))
    while block > 0:
        block -= 1
        slot = block * LSM_BLOCK_SLOTS
        solve_block(band.rows + slot, band.results + slot, blocks.columns, windows)
        columns = blocks.columns - (block < blocks.narrow)
        end -= columns * LSM_SEGMENT_BYTES
        for column in range(columns):
            lsm_store64(end + column * LSM_SEGMENT_BYTES, windows[column].low)
            lsm_store64(end + column * LSM_SEGMENT_BYTES + 8, windows[column].high)
