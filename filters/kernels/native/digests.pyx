"""Keys of which only the digests are kept: 8 or 16 bytes each, however long they are."""

cimport cython
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from filters import hashing
from filters.columns import one_by_one
from filters.digest_kinds import (
    CASSANDRA, LEVELDB, ROCKSDB, UNCOPIED, XXH3, XXPH3, check_digests, check_width
)
from filters.kernels.native.hashing cimport (
    LSM_DIGEST_XXH3_64, MOST_WORDS, lsm_digest, words_of
)
from filters.kernels.native.keys cimport (
    KeySource, is_bulk, digest_of_key, digest_packed, digest_words
)
from filters.kernels.native.sorting cimport sort_distinct


cdef extern from "allocation.h" nogil:
    uint8_t *lsm_reserve(size_t size)
    void lsm_release(uint8_t *memory)


cdef enum:
    CHUNK = 256

# In the order of enum lsm_digest.
cdef tuple KINDS = (XXH3, XXPH3, LEVELDB, ROCKSDB, CASSANDRA)


cdef lsm_digest kind_named(object name):
    """A kind of digests by the name that ``filters.digest_kinds`` has for it."""
    return <lsm_digest><int>KINDS.index(name)


cdef inline void append(Digests self, const uint64_t *digest) noexcept:
    """Add a digest where there is room."""
    cdef uint64_t *place = self.numbers + self.words * self.count
    place[0] = digest[0]
    if self.words > 1:
        place[1] = digest[1]
    self.count += 1


cdef class Digests:
    """The digests of keys, in the order they came; the twin of the Python kernel's.

    A filter class's ``digests()`` makes one; ``build`` takes it in the place of keys, and
    ``count_missing`` tells how many of its keys a filter denies.
    """

    def __cinit__(self):
        self.words = 1

    def __init__(self, *args, **kwargs):
        raise TypeError("digests for a filter come from its class: BlockedBloomFilter.digests()")

    @staticmethod
    cdef Digests empty(lsm_digest kind, uint64_t seed):
        """An empty collection of one kind of digests."""
        cdef Digests self = Digests.__new__(Digests)
        self._kind = kind
        self.words = words_of(kind)
        self.seed = seed
        return self

    @staticmethod
    cdef Digests begun(object keys, lsm_digest kind, object seed):
        """A collection for these keys, still empty, or a copy of the digests in their place."""
        cdef Digests given
        if type(keys) is Digests:
            given = keys
            check_digests(given.kind, given.seed, KINDS[kind], seed)
            return given.copied()
        if kind == LSM_DIGEST_XXH3_64:
            return Digests.empty(kind, hashing.checked64("seed", seed))
        return Digests.empty(kind, 0)

    @staticmethod
    cdef Digests of(object keys, lsm_digest kind, object seed):
        """A new collection of these keys' digests, or of the digests given in their place."""
        cdef Digests self = Digests.begun(keys, kind, seed)
        if type(keys) is not Digests:
            self.add_many(keys)
        return self

    cdef Digests copied(self):
        """The same digests in memory of their own."""
        cdef Digests copy = Digests.empty(self._kind, self.seed)
        if self.count:
            copy.reserve(self.count)
            memcpy(
                copy.numbers, self.numbers, <size_t>(self.words * self.count) * sizeof(uint64_t)
            )
        copy.count = self.count
        return copy

    cdef void swap(self, Digests other) noexcept:
        """Exchange the numbers with the other's."""
        self.numbers, other.numbers = other.numbers, self.numbers
        self.count, other.count = other.count, self.count
        self._capacity, other._capacity = other._capacity, self._capacity

    cdef Py_ssize_t sort_distinct(self) except -1:
        """Bring the numbers into ascending order, each once; how many remain."""
        cdef uint64_t *scratch = <uint64_t *>lsm_reserve(<size_t>self.count * sizeof(uint64_t))
        if scratch == NULL:
            raise MemoryError(f"there is no memory to sort the digests of {self.count} keys")
        with nogil:
            self.count = <Py_ssize_t>sort_distinct(self.numbers, scratch, <size_t>self.count)
        lsm_release(<uint8_t *>scratch)
        return self.count

    @property
    def kind(self):
        """What the digests are, as ``filters.digest_kinds`` names it."""
        return KINDS[self._kind]

    @property
    def digest_seed(self):
        """The secret seed the digests are taken under; 0 for a kind that has none."""
        return self.seed

    @cython.critical_section
    def add(self, key):
        """Add the digest of a key."""
        cdef uint64_t digest[MOST_WORDS]
        digest_of_key(self._kind, self.seed, key, digest)
        if self.count >= self._capacity:
            self.reserve(1)
        append(self, digest)

    def add_many(self, keys, *, nulls="error"):
        """Add the digests of many keys; on an error those before it are in."""
        if nulls != "error" or not is_bulk(keys):
            keys = one_by_one(keys, nulls)
        if is_bulk(keys):
            self._add_bulk(KeySource.of(keys))
        else:
            for key in keys:
                self.add(key)

    @cython.critical_section
    cdef int _add_bulk(self, KeySource source) except -1:
        if source.is_packed:
            self._add_packed(source)
        else:
            self._add_items(source)
        return 0

    @cython.critical_section
    def add_digest(self, digest):
        """Add a key's digest, computed elsewhere under the same seed."""
        cdef uint64_t words[MOST_WORDS]
        digest_words(self._kind, digest, words)
        if self.words == 1:
            check_width(KINDS[self._kind], words[0])
        self.reserve(1)
        append(self, words)

    def __reduce__(self):
        raise TypeError(UNCOPIED)

    def __len__(self):
        return self.count

    def __repr__(self):
        return f"<Digests: {self.count} keys, {self.kind}>"

    cdef int _add_items(self, KeySource source) except -1:
        cdef uint64_t digests[CHUNK * MOST_WORDS]
        cdef Py_ssize_t done = 0, some
        self.reserve(source.count)
        while done < source.count:
            some = min(CHUNK, source.count - done)
            try:
                # Not straight into place: a key's own buffer code could come back and add to this.
                source.digest(done, some, self._kind, self.seed, digests)
            finally:  # those before a wrong key are in
                self.reserve(source.digested)
                memcpy(
                    self.numbers + self.words * self.count, digests,
                    <size_t>(self.words * source.digested) * sizeof(uint64_t),
                )
                self.count += source.digested
            done += some
        return 0

    cdef int _add_packed(self, KeySource source) except -1:
        cdef Py_ssize_t done, capacity
        self.reserve(source.count)
        # Without a capacity, whoever else adds meanwhile is refused: see reserve().
        capacity = self._capacity
        self._capacity = -1
        with nogil:
            done = digest_packed(
                &source.packed, 0, source.count, self._kind, self.seed,
                self.numbers + self.words * self.count,
            )
        self._capacity = capacity
        self.count += done
        if done < source.count:
            raise source.bad_offsets(done)
        return 0

    cdef int reserve(self, Py_ssize_t more) except -1:
        """Room for so many more; at least doubled, so that adding one by one stays linear."""
        cdef Py_ssize_t capacity = self.count + more
        cdef uint64_t *numbers
        if self._capacity < 0:
            raise RuntimeError("two threads add to one collection of digests at a time")
        if capacity <= self._capacity:
            return 0
        capacity = max(capacity, min(2 * self._capacity, capacity + (1 << 26)), 64)
        numbers = <uint64_t *>lsm_reserve(<size_t>(self.words * capacity) * sizeof(uint64_t))
        if numbers == NULL:
            raise MemoryError(f"there is no memory for the digests of {capacity} keys")
        if self.count:
            memcpy(numbers, self.numbers, <size_t>(self.words * self.count) * sizeof(uint64_t))
        lsm_release(<uint8_t *>self.numbers)
        self.numbers = numbers
        self._capacity = capacity
        return 0

    def __dealloc__(self):
        lsm_release(<uint8_t *>self.numbers)
