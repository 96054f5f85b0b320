"""The counting Bloom filter, built and probed."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters import counting, unions
from filters.columns import one_by_one
from filters.kernels.native.base cimport ask
from filters.kernels.native.bloom cimport BloomFilter
from filters.kernels.native.chain cimport (
    COUNTER, Cells, following, has, has_digest, has_key, has_many, insert_many, position, value_at
)
from filters.kernels.native.classic cimport ClassicBloomFilter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.probing cimport lsm_probing


cdef enum:
    STUCK = 15  # as in filters/counting.py: a full counter has lost its count, and stays full
    MAX_PROBES = 64


cdef inline void change(Cells *cells, uint64_t place, int by) noexcept nogil:
    """Raise or lower a counter that is neither stuck nor brought below zero by it."""
    cells.data[place >> 1] = <uint8_t>(cells.data[place >> 1] + (by << 4 * (place & 1)))


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return has_key(<const Cells *>self, COUNTER, key, length)


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return has_digest(<const Cells *>self, COUNTER, digest)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    has_many(<const Cells *>self, COUNTER, hashes, count, ahead, answers)


cdef size_t add_many(
    void *self, const uint64_t *hashes, size_t count, size_t ahead, uint64_t *unchanged
) noexcept nogil:
    return insert_many(<Cells *>self, COUNTER, insert, hashes, count, ahead, unchanged)


cdef uint32_t distinct_places(const Cells *cells, uint64_t mixed, uint64_t *places) noexcept nogil:
    """Where the key's counters are, each once, so that removing undoes adding; how many."""
    cdef uint32_t found = 0, i
    cdef uint64_t place
    for _ in range(cells.num_probes):
        place = position(mixed, cells.size)
        mixed = following(mixed)
        for i in range(found):
            if places[i] == place:
                break
        else:
            places[found] = place
            found += 1
    return found


cdef inline uint32_t insert(Cells *cells, uint64_t mixed) noexcept nogil:
    """Raise the key's counters; how many of them were zero."""
    cdef uint64_t places[MAX_PROBES]
    cdef uint32_t found = distinct_places(cells, mixed, places), fresh = 0, i
    cdef int count
    for i in range(found):
        count = value_at(cells, COUNTER, places[i])
        fresh += count == 0
        if count < STUCK:
            change(cells, places[i], 1)
    return fresh


cdef void lower(Cells *cells, uint64_t mixed) noexcept nogil:
    """Lower the key's counters, but for those that have lost their count."""
    cdef uint64_t places[MAX_PROBES]
    cdef uint32_t found = distinct_places(cells, mixed, places), i
    for i in range(found):
        if value_at(cells, COUNTER, places[i]) != STUCK:
            change(cells, places[i], -1)


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
        cls, keys, *, counters_per_key=None, fpr=None, num_probes=None, seed=None, salt=None,
        nulls="error"
    ):
        """A filter of exactly these keys, each counted once and sized for the distinct ones."""
        return cls._build(
            one_by_one(keys, nulls), seed, salt, counters_per_key=counters_per_key, fpr=fpr,
            num_probes=num_probes,
        )

    @classmethod
    def with_capacity(
        cls, num_keys=None, *, like=None, counters_per_key=None, fpr=None, num_probes=None,
        seed=None, salt=None,
    ):
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt.

        A UserWarning tells once who adds more than that. A filter's bytes do not hold the number,
        so one that was opened or unpickled tells nobody.
        """
        return cls._with_capacity(
            num_keys, like, seed, salt, counters_per_key=counters_per_key, fpr=fpr,
            num_probes=num_probes,
        )

    @cython.critical_section
    def add(self, key):
        """Add one copy of a key; True if the filter did not answer "maybe" to it before."""
        cdef uint64_t mixed = self.hash_of(key)
        self.own()
        cdef bint new = self._insert(&mixed, 1) == 0
        self._num_keys += 1
        if self._num_keys > self._most_keys:
            self.over_filled()
        return new

    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1:
        self.hashes_of(digests, count)
        self._insert(digests, count)
        self._num_keys += count
        return 0

    @cython.critical_section
    def remove(self, key):
        """Remove one copy; False, and no change, for a key that is surely not in."""
        cdef uint64_t mixed = self.hash_of(key)
        if not has(&self._cells, COUNTER, mixed):
            return False
        self.own()
        lower(&self._cells, mixed)
        self._num_keys -= self._num_keys > 0
        return True

    def union(self, *others):
        """A filter of the keys of all, with their counts added; they must agree as elsewhere."""
        return BloomFilter.union(self, *others)

    def _keys_of_union(self, counts):
        return unions.added(counts)

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
            for i in range(self._cells.size):
                if value_at(&self._cells, COUNTER, i):
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
        """The rate of independent probes: fill^num_probes."""
        return self.collapse().expected_fpr

    cdef int point(self) except -1:
        self._cells = Cells(
            self.payload.data, self._geometry.size, self.door.digest_seed, self.salt,
            self._geometry.num_probes,
        )
        return self.opened(&self._cells, &PROBING, LSM_DIGEST_XXH3_64, self.door.digest_seed)

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

    cdef void unite(self, const uint8_t *theirs) noexcept nogil:
        """Add the other one's counts; what exceeds a counter is stuck."""
        cdef Cells *mine = &self._cells
        cdef Cells its = mine[0]
        cdef uint64_t i
        cdef uint8_t before, more
        its.data = <uint8_t *>theirs
        for i in range(mine.size):
            before, more = value_at(mine, COUNTER, i), value_at(&its, COUNTER, i)
            change(mine, i, min(STUCK - before, more))
