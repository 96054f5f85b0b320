"""The counting Bloom filter, built and probed."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters import counting
from filters.kernels.native.base cimport ask
from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.chain cimport following, position
from filters.kernels.native.classic cimport Bits, ClassicBloomFilter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64, lsm_mix, lsm_xxh3_64
from filters.kernels.native.keys cimport KeySource
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.wide cimport lsm_prefetch


cdef enum:
    STUCK = 15  # as in filters/counting.py: a counter that is full has lost its count, and stays
    MAX_PROBES = 64
    CHUNK = 256


cdef inline uint8_t count_at(const Bits *filter, uint64_t place) noexcept nogil:
    return filter.bits[place >> 1] >> (4 * (place & 1)) & 0x0F


cdef inline void change(Bits *filter, uint64_t place, int by) noexcept nogil:
    """Raise or lower a counter that is neither stuck nor brought below zero by it."""
    filter.bits[place >> 1] = <uint8_t>(filter.bits[place >> 1] + (by << 4 * (place & 1)))


cdef int has(const Bits *filter, uint64_t mixed) noexcept nogil:
    for _ in range(filter.num_probes):
        if not count_at(filter, position(mixed, filter.size)):
            return 0
        mixed = following(mixed)
    return 1


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Bits *filter = <const Bits *>self
    return has(filter, lsm_mix(lsm_xxh3_64(<const uint8_t *>key, length, filter.seed), filter.salt))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    cdef const Bits *filter = <const Bits *>self
    return has(filter, lsm_mix(digest, filter.salt))


cdef inline void prefetch(const Bits *filter, uint64_t mixed) noexcept nogil:
    for _ in range(filter.num_probes):
        lsm_prefetch(filter.bits + (position(mixed, filter.size) >> 1))
        mixed = following(mixed)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Bits *filter = <const Bits *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(filter, hashes[count + i])
        if i < count:
            answers[i] = <uint8_t>has(filter, hashes[i])


cdef size_t add_many(
    void *self, const uint64_t *hashes, size_t count, size_t ahead, uint64_t *unchanged
) noexcept nogil:
    cdef Bits *filter = <Bits *>self
    cdef size_t i, found = 0
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(filter, hashes[count + i])
        if i < count:
            unchanged[found] = hashes[i]
            found += not insert(filter, hashes[i])
    return found


cdef uint32_t distinct_places(const Bits *filter, uint64_t mixed, uint64_t *places) noexcept nogil:
    """Where the key's counters are, each once, so that removing undoes adding; how many."""
    cdef uint32_t found = 0, i
    cdef uint64_t place
    for _ in range(filter.num_probes):
        place = position(mixed, filter.size)
        mixed = following(mixed)
        for i in range(found):
            if places[i] == place:
                break
        else:
            places[found] = place
            found += 1
    return found


cdef bint insert(Bits *filter, uint64_t mixed) noexcept nogil:
    cdef uint64_t places[MAX_PROBES]
    cdef uint32_t found = distinct_places(filter, mixed, places), i
    cdef uint8_t count
    cdef bint new = False
    for i in range(found):
        count = count_at(filter, places[i])
        new |= count == 0
        if count < STUCK:
            change(filter, places[i], 1)
    return new


cdef void take_out(Bits *filter, uint64_t mixed) noexcept nogil:
    cdef uint64_t places[MAX_PROBES]
    cdef uint32_t found = distinct_places(filter, mixed, places), i
    for i in range(found):
        if count_at(filter, places[i]) != STUCK:
            change(filter, places[i], -1)


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, add_many)


cdef class CountingBloomFilter(BloomFilter):
    """A Bloom filter that keys can be removed from; sized by ``counters_per_key`` or ``fpr``.

    Every ``add`` counts, of one key too, and each is to be removed again. Remove only what was
    added: removing a false positive takes counts away from other keys, which then may be denied.
    """

    family = counting.FAMILY
    layout = counting

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, counters_per_key=None, fpr=None, num_probes=None, seed=None, salt=None
    ):
        """A filter of exactly these keys, each counted once and sized for the distinct ones."""
        return cls._build(
            keys, counters_per_key=counters_per_key, fpr=fpr, num_probes=num_probes, seed=seed,
            salt=salt,
        )

    @classmethod
    def with_capacity(
        cls, num_keys=None, *, like=None, counters_per_key=None, fpr=None, num_probes=None,
        seed=None, salt=None,
    ):
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt."""
        return cls._with_capacity(
            num_keys, like, counters_per_key=counters_per_key, fpr=fpr, num_probes=num_probes,
            seed=seed, salt=salt,
        )

    @cython.critical_section
    def add(self, key):
        """Add one copy of a key; True if the filter did not answer "maybe" to it before."""
        cdef uint64_t mixed = self.hash_of(key)
        self.own()
        cdef bint new = self._insert(&mixed, 1) == 0
        self._num_keys += 1
        return new

    @cython.critical_section
    cdef int _add_at_once(self, KeySource source) except -1:
        cdef uint64_t hashes[CHUNK]
        cdef Py_ssize_t done = 0, some
        self.own()
        while done < source.count:
            some = min(CHUNK, source.count - done)
            try:
                source.digest(done, some, LSM_DIGEST_XXH3_64, self.door.digest_seed, hashes)
            finally:  # those before a wrong key are in
                self.hashes_of(hashes, source.digested)
                self._insert(hashes, source.digested)
                self._num_keys += source.digested
            done += some
        return 0

    @cython.critical_section
    def remove(self, key):
        """Remove one copy; False, and no change, for a key that is surely not in."""
        cdef uint64_t mixed = self.hash_of(key)
        if not has(&self._counters, mixed):
            return False
        self.own()
        take_out(&self._counters, mixed)
        self._num_keys -= self._num_keys > 0
        return True

    def union(self, other):
        """A filter of the keys of both, with their counts added; they must agree as elsewhere."""
        cdef CountingBloomFilter union = BloomFilter.union(self, other)
        union._num_keys = self._num_keys + other.num_keys
        return union

    def collapse(self):
        """The classic filter of the same keys: a bit where a counter is not zero.

        This is what a table stores, since tables never delete.
        """
        cdef ClassicBloomFilter collapsed = ClassicBloomFilter.__new__(ClassicBloomFilter)
        cdef uint8_t *bits
        cdef uint64_t i
        collapsed.lay_out(self._geometry, self.door.digest_seed, self.salt, None)
        collapsed._num_keys = self._num_keys
        bits = collapsed.payload.data
        with nogil:
            for i in range(self._counters.size):
                if count_at(&self._counters, i):
                    bits[i >> 3] |= <uint8_t>(1 << (i & 7))
        return collapsed

    @property
    def num_counters(self):
        """The length of the counter array."""
        return self._geometry.size

    @property
    def fill(self):
        """The share of counters that are not zero."""
        return self.collapse().fill

    @property
    def expected_fpr(self):
        """fill^num_probes."""
        return self.collapse().expected_fpr

    cdef int point(self) except -1:
        self._counters = Bits(
            self.payload.data, self._geometry.size, self.door.digest_seed, self.salt,
            self._geometry.num_probes,
        )
        return self.opened(&self._counters, &PROBING, LSM_DIGEST_XXH3_64, self.door.digest_seed)

    cdef int fill_with(self, object keys, object seed, object plan) except -1:
        """Add each distinct key once; a repeat would raise its counters again."""
        cdef Digests hashes = Digests.of(keys, LSM_DIGEST_XXH3_64, seed)
        self.hashes_of(hashes.numbers, hashes.count)
        self._num_keys = hashes.sort_distinct()
        self.lay_out(plan(self._num_keys), hashes.seed, self.salt, None)
        with nogil:
            self.insert_hashes(hashes.numbers, hashes.count, NULL)
        self.verify(hashes)
        return 0

    cdef int unite(self, BloomFilter other) except -1:
        """Add the other one's counts; what exceeds a counter is stuck."""
        cdef const Bits *its = &(<CountingBloomFilter>other)._counters
        cdef Bits *mine = &self._counters
        cdef uint64_t i
        cdef uint8_t before, more
        with nogil:
            for i in range(mine.size):
                before, more = count_at(mine, i), count_at(its, i)
                change(mine, i, min(STUCK - before, more))
        return 0
