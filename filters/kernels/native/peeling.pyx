"""Construction by peeling, compiled: the twin of ``filters/kernels/python/peeling.py``.

A slot is one word: the sum of a part from each of its keys, which is a one, the fingerprint,
and how far away the key's other two slots are. With one key left the sum is that key, so peeling
needs neither hashes nor products. Among segments it follows words within a few neighbouring ones,
from the end of the array to its start; only counting reads and writes all over it, and fetches
ahead. Among blocks all of it reads and writes all over, and is fast while the array is in cache.

Words, waiting slots and order take 12 bytes per slot, which is 13.5 per key of a large binary fuse
shard and 14.8 of an xor shard, and 16 bytes per key more while a shard that failed is searched for
duplicates.
"""

from array import array

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport SIZE_MAX, UINT32_MAX, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from filters.peeled import Shard
from filters.kernels.native.sorting cimport sort_distinct
from filters.kernels.native.wide cimport lsm_load16, lsm_prefetch


cdef extern from "allocation.h" nogil:
    uint8_t *lsm_reserve(size_t size)
    void lsm_release(uint8_t *memory)


# The constants of filters/peeled.py and binary_fuse.py.
cdef enum:
    ARITY = 3
    MIN_SEGMENT_LENGTH = 4
    MAX_SEGMENT_LENGTH = 1 << 18
    SEEDS_PER_GEOMETRY = 100

cdef uint64_t FIRST_SEED_STATE = 0x726B_2B9D_438B_9D4D

# A word, from its lowest bit: 6 bits count keys, 16 are the fingerprint, 21 tell the way to the
# next slot and 21 to the last one, in the circle of a key's slots. A distance is below three
# segments or blocks, and has HERE added so that it is never negative.
cdef enum:
    COUNT = (1 << 6) - 1
    KEY = (1 << 22) - 1       # count and fingerprint: the same at all three slots
    FINGERPRINT_SHIFT = 6
    NEXT_SHIFT = 22
    LAST_SHIFT = 43
    DISTANCE = (1 << 21) - 1
    HERE = 1 << 20
    GROUP = 32                # keys whose slots are prefetched before the first is counted
    AHEAD = 16                # keys whose words are prefetched before they are filled in
    SEGMENTS_AHEAD = 6        # how far from the front of peeling words are prefetched
    BYTES_PER_KEY = 9         # of words, by which that front moves


cdef struct Peeling:
    Layout layout
    uint64_t slots
    uint64_t *words           # one more than slots; the last is 0, the sentinel
    uint32_t *waiting         # two more than slots; the order of peeling fills it from its end
    uint32_t *order


# Python's side -----------------------------------------------------------------------------------


def rehash(mixed, seed):
    """The finalizer of MurmurHash3 over salted digest plus seed: the hash that one attempt uses."""
    return hash_under(mixed, seed)


def fingerprint_of(value, fingerprint_bits):
    """The low bits of both halves of the hash."""
    return fingerprint_in(value, fingerprint_bits)


def seeds():
    """The seeds that are tried, in order."""
    cdef uint64_t state = FIRST_SEED_STATE
    return [next_seed(&state) for _ in range(SEEDS_PER_GEOMETRY)]


cdef object populated(object mixed, object geometry, Layout layout, object fingerprint_bits):
    """The shard of these distinct salted digests; None where no seed peels them."""
    cdef bytes digests = array("Q", mixed).tobytes()
    cdef bytes table = PyBytes_FromStringAndSize(NULL, geometry.slots * fingerprint_bits // 8)
    cdef const uint64_t *numbers = <const uint64_t *>PyBytes_AS_STRING(digests)
    cdef uint8_t *fingerprints = <uint8_t *>PyBytes_AS_STRING(table)
    cdef size_t count = len(digests) // sizeof(uint64_t)
    cdef int bits = fingerprint_bits, outcome
    cdef uint64_t seed
    with nogil:
        outcome = populate_shard(numbers, count, layout, bits, fingerprints, &seed)
    if outcome == NO_MEMORY:
        raise MemoryError(f"there is no memory to build a shard of {count} keys")
    return Shard(seed, geometry, table) if outcome == PEELED else None


# Without Python ----------------------------------------------------------------------------------


cdef int populate_shard(
    const uint64_t *mixed, size_t count, Layout layout, int fingerprint_bits, uint8_t *table,
    uint64_t *seed,
) noexcept nogil:
    """Find a seed and fill the table, which has room for all slots and needs no zeros.

    The digests may have any order. Unless it returns PEELED, the table is as it was.
    """
    cdef Peeling peeling
    cdef uint8_t *memory
    cdef int outcome
    if not is_allowed(layout, fingerprint_bits):
        return NO_SEED
    peeling.layout = layout
    peeling.slots = peeling.layout.starts + (ARITY - 1) * peeling.layout.length
    if peeling.slots >= min(<uint64_t>UINT32_MAX, SIZE_MAX // 16):
        return NO_MEMORY
    memory = lsm_reserve((peeling.slots + 1) * 8 + (peeling.slots + 2) * 4)
    if memory == NULL:
        return NO_MEMORY
    peeling.words = <uint64_t *>memory
    peeling.waiting = <uint32_t *>(peeling.words + peeling.slots + 1)
    outcome = find_seed(&peeling, mixed, count, fingerprint_bits, seed)
    if outcome == PEELED:
        assign(&peeling, count, fingerprint_bits, table)
    lsm_release(memory)
    return outcome


cdef bint is_allowed(Layout layout, int fingerprint_bits) noexcept nogil:
    """Whether a family has such shards; in others, distances might not fit in a slot's word."""
    if layout.starts == 0 or fingerprint_bits not in (8, 16):
        return False
    if layout.placement == BLOCKS:
        return ARITY * layout.length <= HERE
    return (
        MIN_SEGMENT_LENGTH <= layout.length <= MAX_SEGMENT_LENGTH
        and layout.length & (layout.length - 1) == 0
    )


cdef int find_seed(
    Peeling *self, const uint64_t *mixed, size_t count, int fingerprint_bits, uint64_t *seed
) noexcept nogil:
    """Peel under one seed after the other; only the first failure asks for duplicates."""
    cdef uint64_t state = FIRST_SEED_STATE
    cdef int attempt, outcome
    for attempt in range(SEEDS_PER_GEOMETRY):
        seed[0] = next_seed(&state)
        if peels(self, mixed, count, seed[0], fingerprint_bits):
            return PEELED
        if attempt == 0:
            outcome = look_for_duplicates(mixed, count)
            if outcome != NO_SEED:
                return outcome
    return NO_SEED


cdef bint peels(
    Peeling *self, const uint64_t *mixed, size_t count, uint64_t seed, int fingerprint_bits
) noexcept nogil:
    """Whether a seed peels the keys; the loops below take the placement as a constant."""
    if self.layout.placement == SEGMENTS:
        count_keys(self, SEGMENTS, mixed, count, seed, fingerprint_bits)
        return peel(self, SEGMENTS, count)
    count_keys(self, BLOCKS, mixed, count, seed, fingerprint_bits)
    return peel(self, BLOCKS, count)


cdef uint64_t next_seed(uint64_t *state) noexcept nogil:
    """The next number of splitmix64."""
    cdef uint64_t seed
    state[0] += <uint64_t>0x9E37_79B9_7F4A_7C15
    seed = state[0]
    seed = (seed ^ seed >> 30) * <uint64_t>0xBF58_476D_1CE4_E5B9
    seed = (seed ^ seed >> 27) * <uint64_t>0x94D0_49BB_1331_11EB
    return seed ^ seed >> 31


cdef int look_for_duplicates(const uint64_t *mixed, size_t count) noexcept nogil:
    """DUPLICATES, or NO_SEED where all are distinct, or NO_MEMORY."""
    cdef uint64_t *copy
    cdef size_t distinct
    if count > <size_t>SIZE_MAX // 16:
        return NO_MEMORY
    copy = <uint64_t *>lsm_reserve(2 * count * sizeof(uint64_t))
    if copy == NULL:
        return NO_MEMORY
    memcpy(copy, mixed, count * sizeof(uint64_t))
    distinct = sort_distinct(copy, copy + count, count)
    lsm_release(<uint8_t *>copy)
    return NO_SEED if distinct == count else DUPLICATES


cdef inline void count_keys(
    Peeling *self, Placement placement, const uint64_t *mixed, size_t count, uint64_t seed,
    int fingerprint_bits,
) noexcept nogil:
    """Add every key to its slots, in groups whose slots are prefetched first."""
    cdef uint64_t fingerprints[GROUP]
    cdef Slots slots[GROUP]
    cdef uint64_t *words = self.words
    cdef Layout layout = self.layout
    cdef uint64_t value
    cdef size_t i, group
    memset(words, 0, (self.slots + 1) * sizeof(uint64_t))
    while count > 0:
        group = min(<size_t>GROUP, count)
        for i in range(group):
            value = hash_under(mixed[i], seed)
            fingerprints[i] = fingerprint_in(value, fingerprint_bits)
            slots[i] = locate(value, layout, placement)
            lsm_prefetch(words + slots[i].first)
            lsm_prefetch(words + slots[i].second)
            lsm_prefetch(words + slots[i].third)
        for i in range(group):
            add_key(words, slots[i], fingerprints[i])
        mixed += group
        count -= group


cdef inline void add_key(uint64_t *words, Slots at, uint64_t fingerprint) noexcept nogil:
    """Count a key in its three words."""
    cdef uint64_t key = common_part(1 + (fingerprint << FINGERPRINT_SHIFT))
    words[at.first] += part_at(at.first, at.second, at.third, key)
    words[at.second] += part_at(at.second, at.third, at.first, key)
    words[at.third] += part_at(at.third, at.first, at.second, key)


cdef inline uint64_t part_at(
    uint64_t slot, uint64_t next, uint64_t last, uint64_t key
) noexcept nogil:
    """The part of one key in the word of one of its slots."""
    return key + (next - slot << NEXT_SHIFT) + (last - slot << LAST_SHIFT)


cdef inline uint64_t common_part(uint64_t key) noexcept nogil:
    """The part of one key that is the same in the words of all its slots."""
    return (key & KEY) + (<uint64_t>HERE << NEXT_SHIFT) + (<uint64_t>HERE << LAST_SHIFT)


cdef inline bint peel(Peeling *self, Placement placement, size_t count) noexcept nogil:
    """Store the slots that keys own, in the order of peeling; False where a core remains."""
    cdef size_t top = stack_singles(self, count)
    return top > 0 and follow(self, placement, top) == count


cdef size_t stack_singles(Peeling *self, size_t count) noexcept nogil:
    """Stack the slots that have one key, over a sentinel; 0 where a slot's count overflowed."""
    cdef uint64_t slot, keys, total = 0
    cdef size_t top = 1
    self.waiting[0] = <uint32_t>self.slots
    for slot in range(self.slots):
        keys = self.words[slot] & COUNT
        total += keys
        self.waiting[top] = <uint32_t>slot
        top += keys == 1
    # More than 63 keys in a slot are a failure; as counts start anew after 63, some are missing.
    return top if total == ARITY * <uint64_t>count else 0


cdef inline size_t follow(Peeling *self, Placement placement, size_t top) noexcept nogil:
    """Take out key after key, from the top of the stack down; how many there were.

    Whether a slot has one key left is a toss-up that no branch predictor wins, so nothing here
    branches on it: masks choose the slot to go on with, the last or the next one of the key just
    taken out, or the one on top of the stack.
    """
    cdef uint64_t *words = self.words
    cdef uint32_t *waiting = self.waiting
    cdef uint32_t *order = waiting + self.slots + 2
    cdef uintptr_t ahead = <uintptr_t>(words + self.slots)
    cdef uint64_t slot, word, key, next, last, next_word, last_word, on_top
    cdef uint64_t next_alone, last_alone, take_next, take_last, take_top
    ahead -= SEGMENTS_AHEAD * self.layout.length * sizeof(uint64_t)
    top -= 1
    slot = waiting[top]
    word = words[slot]
    while True:
        while word & COUNT != 1:
            if slot == self.slots:
                self.order = order
                return waiting + self.slots + 2 - order
            top -= 1
            slot = waiting[top]
            word = words[slot]
        order -= 1
        order[0] = <uint32_t>slot
        if placement == SEGMENTS:
            lsm_prefetch(<const void *>ahead)
            ahead -= BYTES_PER_KEY

        key = common_part(word)
        next = next_of(slot, word)
        last = last_of(slot, word)
        next_word = words[next]
        last_word = words[last]
        next_alone = next_word & COUNT == 2
        last_alone = last_word & COUNT == 2
        next_word -= part_at(next, last, slot, key)
        last_word -= part_at(last, slot, next, key)
        words[next] = next_word
        words[last] = last_word

        on_top = waiting[top - 1]
        take_last = 0 - last_alone
        take_next = 0 - next_alone & ~take_last
        take_top = ~(take_last | take_next)
        slot = last & take_last | next & take_next | on_top & take_top
        word = last_word & take_last | next_word & take_next | words[on_top] & take_top
        waiting[top] = <uint32_t>next
        top += next_alone + last_alone - 1


cdef inline uint64_t next_of(uint64_t slot, uint64_t word) noexcept nogil:
    """Where the next slot of the only key at this one is."""
    return slot + (word >> NEXT_SHIFT & DISTANCE) - HERE


cdef inline uint64_t last_of(uint64_t slot, uint64_t word) noexcept nogil:
    """Where the last slot of the only key at this one is."""
    return slot + (word >> LAST_SHIFT) - HERE


cdef void assign(
    const Peeling *self, size_t count, int fingerprint_bits, uint8_t *table
) noexcept nogil:
    """Fill the slots in reverse: each key's own slot makes its three xor to its fingerprint."""
    cdef uint64_t slot, word, next, last, value
    cdef size_t i
    memset(table, 0, self.slots * fingerprint_bits // 8)
    for i in range(count):
        lsm_prefetch(self.words + self.order[min(i + AHEAD, count - 1)])
        slot = self.order[i]
        word = self.words[slot]
        next = next_of(slot, word)
        last = last_of(slot, word)
        value = word >> FINGERPRINT_SHIFT
        if fingerprint_bits == 8:
            table[slot] = <uint8_t>(value ^ table[next] ^ table[last])
        else:
            value ^= lsm_load16(table + 2 * next) ^ lsm_load16(table + 2 * last)
            store16(table + 2 * slot, <uint16_t>value)


cdef inline void store16(uint8_t *to, uint16_t number) noexcept nogil:
    """Store a number little-endian, as the payload has it."""
    number = lsm_load16(<const uint8_t *>&number)
    memcpy(to, &number, 2)
