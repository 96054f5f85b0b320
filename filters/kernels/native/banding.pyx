"""Ribbon construction, compiled: the twin of ``filters/kernels/python/banding.py``.

Where a row goes next is known only once it was added to the one before, some twenty times a key. So
that the processor need not wait for each, a large layer is banded in four sections at a time, by a
lane each. A section's first bucket is done before all others, and no row comes into a slot that no
key of its bucket asks for: so the section to its left reaches no farther than into this bucket, and
it does not matter which lane is ahead.

Coefficients and results take 12 bytes per slot. The hashes that are banded, 8 bytes a key, are in
the order of their starts, so that everything is read and written once, from left to right.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from filters import bumped_ribbon
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.wide cimport (
    lsm_parity, lsm_reduce, lsm_store64, lsm_trailing_zeros
)


cdef extern from "allocation.h" nogil:
    uint8_t *lsm_reserve(size_t size)
    void lsm_release(uint8_t *memory)


cdef enum:
    MAX_PLACED = BUCKET_STARTS + BLOCK_SLOTS - 1  # in the slots that a bucket's rows ask for
    LANES = 4


cdef struct Banding:
    const uint64_t *hashes
    size_t count
    uint64_t starts
    uint64_t *coefficients
    uint32_t *results
    uint8_t *codes


cdef struct Row:
    uint64_t coefficients     # 0 where there is none in hand
    uint64_t slot             # that it came to
    uint32_t result


cdef struct Lane:
    size_t first              # the bucket's hashes; those before "next" still wait
    size_t next
    size_t end
    uint32_t offset           # in the bucket, of the start of the row in hand
    uint64_t bucket
    uint64_t reach            # the first slot that its rows may not come into
    uint64_t following
    uint64_t stop             # the first bucket that is not this lane's
    size_t num_placed
    uint8_t offsets[MAX_PLACED]
    uint8_t slots[MAX_PLACED]  # from the bucket's first on


cdef class Band:
    """The rows of one layer in echelon form, and the hashes that were bumped."""

    @staticmethod
    cdef Band of(Digests hashes, object blocks):
        """The band of these ascending, distinct hashes in a layer of so many blocks."""
        cdef Band self = Band.__new__(Band)
        cdef Banding banding
        cdef Lane lanes[LANES]
        cdef size_t slots = blocks * BLOCK_SLOTS
        cdef int section, sections
        codes = bytearray(bumped_ribbon.buckets_of(blocks))
        self.layer = bumped_ribbon.Layer(blocks, codes)
        self.blocks = blocks
        self.coefficients = <uint64_t *>lsm_reserve(slots * sizeof(uint64_t))
        self.results = <uint32_t *>lsm_reserve(slots * sizeof(uint32_t))
        if self.coefficients == NULL or self.results == NULL:
            raise MemoryError(f"there is no memory to build a layer of {hashes.count} keys")
        banding = Banding(
            hashes.numbers, <size_t>hashes.count, self.layer.starts, self.coefficients,
            self.results, <uint8_t *>PyByteArray_AS_STRING(codes),
        )
        firsts = bumped_ribbon.sections_of(len(codes))
        sections = len(firsts)
        for section in range(sections):
            stop = firsts[section + 1] if section + 1 < sections else len(codes)
            begin(&banding, &lanes[section], firsts[section], stop)
        with nogil:
            memset(self.coefficients, 0, slots * sizeof(uint64_t))
            band(&banding, lanes, sections)
        self.collect(hashes)
        return self

    cdef int collect(self, Digests hashes) except -1:
        """Store the next layer's hashes of the keys that were bumped, in ascending order."""
        cdef const uint8_t *codes = <const uint8_t *>PyByteArray_AS_STRING(self.layer.codes)
        cdef uint64_t starts = self.layer.starts, start
        cdef size_t slot, slots = <size_t>self.blocks * BLOCK_SLOTS
        cdef Py_ssize_t i, left = hashes.count
        self.bumped = Digests.empty(LSM_DIGEST_XXH3_64, 0)
        with nogil:
            for slot in range(slots):
                left -= self.coefficients[slot] != 0  # every key that stays has one of its own
        self.bumped.reserve(left)
        with nogil:
            for i in range(hashes.count):
                start = lsm_reduce(hashes.numbers[i], starts)
                if start % BUCKET_STARTS < threshold_of(codes[start // BUCKET_STARTS]):
                    self.bumped.numbers[self.bumped.count] = stepped(hashes.numbers[i])
                    self.bumped.count += 1
        self.bumped.sort_distinct()
        return 0

    cdef void solve(self, int64_t narrow, int columns, uint8_t *words) noexcept nogil:
        """Fill in the words of a layer that end here; its first blocks, so many, are narrow."""
        cdef uint64_t state[MAX_COLUMNS]  # of each column, the 64 bits from the slot at hand on
        cdef int64_t block = self.blocks
        cdef uint64_t row, bits
        cdef uint32_t result
        cdef size_t slot
        cdef int column, count
        memset(state, 0, sizeof(state))
        while block > 0:
            block -= 1
            count = columns + (block >= narrow)
            slot = <size_t>(block + 1) * BLOCK_SLOTS
            for _ in range(BLOCK_SLOTS):
                slot -= 1
                row = self.coefficients[slot]
                result = self.results[slot] if row else 0
                for column in range(count):
                    bits = state[column] << 1
                    state[column] = bits | (lsm_parity(bits & row) ^ (result >> column & 1))
            words -= count * sizeof(uint64_t)
            for column in range(count):
                lsm_store64(words + column * sizeof(uint64_t), state[column])

    def __dealloc__(self):
        lsm_release(<uint8_t *>self.coefficients)
        lsm_release(<uint8_t *>self.results)


cdef void begin(
    const Banding *banding, Lane *lane, uint64_t bucket, uint64_t stop
) noexcept nogil:
    """Place the lane before this bucket, without a current row."""
    cdef size_t low = 0, high = banding.count, middle
    while low < high:
        middle = (low + high) // 2
        if lsm_reduce(banding.hashes[middle], banding.starts) < bucket * BUCKET_STARTS:
            low = middle + 1
        else:
            high = middle
    lane.first = lane.next = lane.end = low
    lane.following = bucket
    lane.stop = stop


cdef void band(const Banding *banding, Lane *lanes, int sections) noexcept nogil:
    """Band all sections: the first bucket of each, then what is left, side by side where that pays."""
    cdef uint64_t stop
    cdef int section
    for section in range(sections):
        stop = lanes[section].stop
        lanes[section].stop = min(stop, lanes[section].following + 1)
        finish(banding, &lanes[section], take(banding, &lanes[section]))
        lanes[section].stop = stop
    if sections == LANES:
        run_side_by_side(banding, lanes)
    else:
        finish(banding, lanes, take(banding, lanes))


cdef void run_side_by_side(const Banding *banding, Lane *lanes) noexcept nogil:
    """Advance the lanes in turn until one is done, then each of the others to its end."""
    cdef Row one = take(banding, &lanes[0]), two = take(banding, &lanes[1])
    cdef Row three = take(banding, &lanes[2]), four = take(banding, &lanes[3])
    while one.coefficients and two.coefficients and three.coefficients and four.coefficients:
        one = turn(banding, &lanes[0], one)
        two = turn(banding, &lanes[1], two)
        three = turn(banding, &lanes[2], three)
        four = turn(banding, &lanes[3], four)
    finish(banding, &lanes[0], one)
    finish(banding, &lanes[1], two)
    finish(banding, &lanes[2], three)
    finish(banding, &lanes[3], four)


cdef void finish(const Banding *banding, Lane *lane, Row row) noexcept nogil:
    """Run one lane to its end."""
    while row.coefficients:
        row = turn(banding, lane, row)


cdef inline Row turn(const Banding *banding, Lane *lane, Row row) noexcept nogil:
    """Move the current row one step on, or begin the next one."""
    cdef uint64_t other = banding.coefficients[row.slot]
    cdef int zeros
    if other == 0:
        place(banding, lane, row)
        return take(banding, lane)
    row.coefficients ^= other
    row.result ^= banding.results[row.slot]
    if row.coefficients:
        zeros = lsm_trailing_zeros(row.coefficients)
        row.coefficients >>= zeros
        row.slot += zeros
        if row.slot < lane.reach:
            return row
    bump(banding, lane)
    return take(banding, lane)


cdef Row take(const Banding *banding, Lane *lane) noexcept nogil:
    """The next row, from the end of the bucket to its start; none after the last."""
    cdef Row row = Row(0, 0, 0)
    cdef uint64_t value
    while lane.next == lane.first:
        if lane.following >= lane.stop:
            return row
        enter(banding, lane)
    lane.next -= 1
    value = banding.hashes[lane.next]
    row.slot = lsm_reduce(value, banding.starts)
    row.coefficients = coefficients_of(value)
    row.result = result_of(value)
    lane.offset = <uint32_t>(row.slot % BUCKET_STARTS)
    return row


cdef inline void enter(const Banding *banding, Lane *lane) noexcept nogil:
    """Go on to the next bucket."""
    cdef uint64_t stop
    lane.bucket = lane.following
    lane.following += 1
    lane.num_placed = 0
    lane.first = lane.end
    stop = lane.following * BUCKET_STARTS
    lane.reach = lane.bucket * BUCKET_STARTS + MAX_PLACED
    while (
        lane.end < banding.count
        and lsm_reduce(banding.hashes[lane.end], banding.starts) < stop
    ):
        lane.end += 1
    lane.next = lane.end


cdef inline void place(const Banding *banding, Lane *lane, Row row) noexcept nogil:
    """Store the current row in the slot it has reached, and remember that slot."""
    banding.coefficients[row.slot] = row.coefficients
    banding.results[row.slot] = row.result
    lane.offsets[lane.num_placed] = <uint8_t>lane.offset
    lane.slots[lane.num_placed] = <uint8_t>(row.slot - lane.bucket * BUCKET_STARTS)
    lane.num_placed += 1


cdef inline void bump(const Banding *banding, Lane *lane) noexcept nogil:
    """The current row has vanished: bump its start and those before, up to the next threshold."""
    cdef uint64_t threshold
    cdef int code = 1
    while threshold_of(code) <= lane.offset:
        code += 1
    banding.codes[lane.bucket] = <uint8_t>code
    threshold = threshold_of(code)
    while lane.num_placed and lane.offsets[lane.num_placed - 1] < threshold:
        lane.num_placed -= 1
        banding.coefficients[
            lane.bucket * BUCKET_STARTS + lane.slots[lane.num_placed]
        ] = 0
    lane.next = lane.first
