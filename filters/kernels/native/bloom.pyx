"""What the Bloom filters of our own share: everything but where a key's bits are."""

cimport cython
from libc.stdint cimport uint8_t, uint64_t

from filters import over_filling, unions
from filters.columns import one_by_one
from filters.errors import GeometryMismatchError
from filters.hashing import checked64
from filters.kernels.native.base cimport CHUNK, GROUP
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.distinct cimport count_repeats
from filters.kernels.native.growing cimport GrowingFilter
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.keys cimport KeySource, is_bulk, Packed, digest_packed
from filters.kernels.native.payload cimport Payload, count_bits
from filters.kernels.native.wide cimport lsm_load64, lsm_store64


cdef enum:
    BATCH = 1 << 16  # keys inserted between two calls of reserve()

    # With more suspects of being repeats than one key in so many, sorting is the faster way.
    MANY_SUSPECTS = 8


cdef class BloomFilter(GrowingFilter):
    """A Bloom filter of bits or counters; keys can be added at any time."""

    @classmethod
    def _planner(cls, *, num_probes, **given):
        sizing = cls.layout.check(num_probes=num_probes, **given)
        return lambda num_keys: cls.layout.plan(num_keys, sizing, num_probes)

    @classmethod
    def _build(cls, keys, seed, salt, **given):
        cdef BloomFilter self = cls.__new__(cls)
        plan = cls._planner(**given)
        self.salt, self.is_salted = checked64("salt", salt), True
        self.fill_with(keys, seed, plan)
        return self

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self.packed(self._geometry.num_probes, self._geometry.size)

    @cython.critical_section
    def add(self, key):
        """Add a key; True if the filter did not answer "maybe" to it before."""
        cdef uint64_t mixed = self.hash_of(key)
        self.own()
        cdef bint new = self._insert(&mixed, 1) == 0
        self._num_keys += new
        if self._num_keys > self._most_keys:
            self.over_filled()
        return new

    def union(self, *others):
        """A filter of the keys of all; they must agree in geometry, seed and salt.

        ``num_keys`` is estimated from the fill, between the largest count and the sum, so that one
        call gives the same bytes in any order. Without others it is a copy.
        """
        cdef BloomFilter union, other
        cdef Payload theirs
        self._check_alike(others)
        union = self.copied()
        counts = [union._num_keys]
        for other in others:
            theirs = other.payload  # in use without the GIL, whatever others do
            counts.append(other._num_keys)
            with nogil:
                union.unite(theirs.data)
        union.count_united(counts)
        return union

    def __or__(self, other):
        """The union of two; of more than two, ``union`` makes one in a single call."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return self.union(other)

    def __ior__(self, other):
        """Add the keys of another filter, as ``union`` does; on an error nothing is changed."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        self._check_alike((other,))
        self._unite_in_place(other)
        return self

    @cython.critical_section
    cdef int _unite_in_place(self, BloomFilter other) except -1:
        self.own()
        counts = [self._num_keys, other._num_keys]
        # With the GIL: a key that another thread adds meanwhile could be overwritten.
        self.unite(other.payload.data)
        return self.count_united(counts)

    def _check_alike(self, others):
        for other in others:
            if not isinstance(other, BloomFilter):
                raise TypeError(f"union takes a {self.family} filter, not {type(other).__name__}")
            self._check_one_alike(other)

    def _check_one_alike(self, BloomFilter theirs):
        for name, mine, its in (
            ("family", self.family, theirs.family),
            ("size", self._geometry.size, theirs._geometry.size),
            ("num_probes", self._geometry.num_probes, theirs._geometry.num_probes),
            ("seed", self.door.digest_seed, theirs.door.digest_seed),
            ("salt", self.salt, theirs.salt),
            ("length", self.payload.size, theirs.payload.size),
        ):
            if mine != its:
                raise GeometryMismatchError(
                    f"a {self.family} filter can be united only with one of equal {name}: "
                    "create the second one with_capacity(like=first)"
                )

    @property
    def num_probes(self):
        """How many bits or counters a key takes."""
        return self._geometry.num_probes

    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1:
        self.hashes_of(digests, count)
        self._num_keys += count - self._insert(digests, count)
        return 0

    cdef int fill_with(self, object keys, object seed, object plan) except -1:
        """Lay out and fill a filter of exactly these keys, or of the digests in their place."""
        raise NotImplementedError

    cdef void unite(self, const uint8_t *theirs) noexcept nogil:
        """Merge another filter's payload, which is as long, into this one's, which is its own."""
        pass

    cdef int count_united(self, list counts) except -1:
        """Find out how many keys there are, once the payload is that of filters of so many."""
        self._num_keys = unions.added(counts)
        self._num_keys = self._keys_of_union(counts)
        if self._num_keys > over_filling.limit_of_union(self._most_keys):
            return self.over_filled()
        self._most_keys = max(self._most_keys, self._num_keys)
        return 0

    def _keys_of_union(self, counts):
        estimate = self.layout.count_from_fill(self.fill, self._geometry)
        return unions.distinct(estimate, counts)

    cdef Py_ssize_t insert_hashes(
        self, const uint64_t *hashes, Py_ssize_t count, uint64_t *unchanged
    ) noexcept nogil:
        """Insert hashes; how many found no zero. These go into ``unchanged``, unless it is NULL."""
        cdef uint64_t forgotten[GROUP]
        cdef uint64_t *kept = forgotten
        cdef Py_ssize_t done = 0, some, found = 0
        while done < count:
            some = min(GROUP, count - done)
            if unchanged != NULL:
                kept = unchanged + found
            found += <Py_ssize_t>self.probing.add_many(
                <void *>self.door.self, hashes + done, <size_t>some,
                <size_t>min(GROUP, count - done - some), kept,
            )
            done += some
        return found

    cdef Py_ssize_t _insert(self, const uint64_t *hashes, Py_ssize_t count) noexcept nogil:
        """Insert up to a chunk of hashes; how many of them found no zero."""
        cdef uint64_t unchanged[CHUNK]
        return <Py_ssize_t>self.probing.add_many(
            <void *>self.door.self, hashes, <size_t>count, 0, unchanged
        )


cdef class BitFilter(BloomFilter):
    """A Bloom filter of bits: its size is asked for in bits per key."""

    @classmethod
    def build(
        cls, keys, *, bits_per_key=None, fpr=None, num_probes=None, seed=None, salt=None,
        nulls="error"
    ):
        """A filter of exactly these keys, sized for how many distinct ones there are."""
        return cls._build(
            one_by_one(keys, nulls), seed, salt, bits_per_key=bits_per_key, fpr=fpr,
            num_probes=num_probes,
        )

    @classmethod
    def with_capacity(
        cls, num_keys=None, *, like=None, bits_per_key=None, fpr=None, num_probes=None, seed=None,
        salt=None,
    ):
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt.

        A UserWarning tells once who adds more than that. A filter's bytes do not hold the number,
        so one that was opened or unpickled tells nobody.
        """
        return cls._with_capacity(
            num_keys, like, seed, salt, bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes
        )

    @property
    def fill(self):
        """The share of bits that are set."""
        return count_bits(self.payload, self.payload.size) / self.num_bits

    cdef int fill_with(self, object keys, object seed, object plan) except -1:
        """Add all keys as if they were distinct, and start again where that changes the size."""
        cdef bint bulk = is_bulk(keys)
        cdef Digests hashes = (
            Digests.begun(keys, LSM_DIGEST_XXH3_64, seed) if bulk
            else Digests.of(keys, LSM_DIGEST_XXH3_64, seed)
        )
        cdef Digests unchanged = Digests.empty(LSM_DIGEST_XXH3_64, 0)
        cdef KeySource source = KeySource.of(keys) if bulk else None
        cdef Py_ssize_t count = hashes.count if source is None else source.count
        geometry = plan(count)
        self.lay_out(geometry, hashes.seed, self.salt, None)
        if source is None:
            self.hashes_of(hashes.numbers, count)
            self._insert_all(hashes, unchanged)
        else:
            self._insert_keys(source, hashes, unchanged)
        self._num_keys = self._count_distinct(hashes, unchanged)
        if self._num_keys < count:
            smaller = plan(self._num_keys)
            if smaller != geometry:
                self.lay_out(smaller, hashes.seed, self.salt, None)
                unchanged.count = 0
                self._insert_all(hashes, unchanged)
        self.verify(hashes)
        return 0

    cdef int _insert_keys(self, KeySource source, Digests hashes, Digests unchanged) except -1:
        """Insert all keys; keep their hashes, and apart those that set no new bit."""
        cdef Py_ssize_t first, some, good
        hashes.reserve(source.count)
        while hashes.count < source.count:
            some = min(BATCH, source.count - hashes.count)
            unchanged.reserve(some)
            if source.is_packed:
                first = hashes.count
                with nogil:
                    good = self._insert_packed(&source.packed, some, hashes, unchanged)
                if good < some:
                    raise source.bad_offsets(first + good)
            else:
                self._insert_items(source, some, hashes, unchanged)
        return 0

    cdef int _insert_items(
        self, KeySource source, Py_ssize_t count, Digests hashes, Digests unchanged
    ) except -1:
        cdef Py_ssize_t start = hashes.count, done = 0, some
        while done < count:
            some = min(GROUP, count - done)
            source.digest(
                start + done, some, LSM_DIGEST_XXH3_64, hashes.seed, hashes.numbers + start + done
            )
            self._insert_group(hashes, some, start + done - hashes.count, unchanged)
            done += some
        self._insert_group(hashes, 0, start + count - hashes.count, unchanged)
        return 0

    cdef Py_ssize_t _insert_packed(
        self, const Packed *keys, Py_ssize_t count, Digests hashes, Digests unchanged
    ) noexcept nogil:
        """How many keys came before bad offsets, if any."""
        cdef Py_ssize_t start = hashes.count, done = 0, some, good
        while done < count:
            some = min(GROUP, count - done)
            good = digest_packed(
                keys, start + done, some, LSM_DIGEST_XXH3_64, hashes.seed,
                hashes.numbers + start + done,
            )
            if good < some:
                return done + good
            self._insert_group(hashes, some, start + done - hashes.count, unchanged)
            done += some
        self._insert_group(hashes, 0, start + count - hashes.count, unchanged)
        return count

    cdef void _insert_group(
        self, Digests hashes, Py_ssize_t some, Py_ssize_t waiting, Digests unchanged
    ) noexcept nogil:
        """Insert the ``waiting`` hashes; salt, and prefetch for, the ``some`` digests behind them.

        These are the group that the next call inserts.
        """
        cdef uint64_t *numbers = hashes.numbers + hashes.count
        self.hashes_of(numbers + waiting, some)
        unchanged.count += <Py_ssize_t>self.probing.add_many(
            <void *>self.door.self, numbers, <size_t>waiting, <size_t>some,
            unchanged.numbers + unchanged.count,
        )
        hashes.count += waiting

    cdef int _insert_all(self, Digests hashes, Digests unchanged) except -1:
        """Insert all hashes; keep those that set no new bit."""
        cdef Py_ssize_t done = 0, some
        while done < hashes.count:
            some = min(BATCH, hashes.count - done)
            unchanged.reserve(some)
            with nogil:
                unchanged.count += self.insert_hashes(
                    hashes.numbers + done, some, unchanged.numbers + unchanged.count
                )
            done += some
        return 0

    cdef Py_ssize_t _count_distinct(self, Digests hashes, Digests unchanged) except -1:
        cdef Py_ssize_t repeats = 0
        cdef Digests copy
        if unchanged.count > hashes.count // MANY_SUSPECTS:
            copy = hashes.copied()
            return copy.sort_distinct()
        with nogil:
            repeats = count_repeats(
                hashes.numbers, hashes.count, unchanged.numbers, unchanged.count
            )
        if repeats < 0:
            raise MemoryError(f"there is no memory to tell repeats among {hashes.count} keys")
        return hashes.count - repeats

    cdef void unite(self, const uint8_t *theirs) noexcept nogil:
        """Set the other one's bits too."""
        cdef Py_ssize_t i, words = self.payload.size >> 3
        cdef uint8_t *mine = self.payload.data
        for i in range(words):
            lsm_store64(mine + 8 * i, lsm_load64(mine + 8 * i) | lsm_load64(theirs + 8 * i))
        for i in range(8 * words, self.payload.size):
            mine[i] |= theirs[i]
