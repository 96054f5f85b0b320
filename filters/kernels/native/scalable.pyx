"""The scalable Bloom filter, built and probed."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from filters import header, scalable
from filters.columns import one_by_one
from filters.hashing import checked64, next_salt
from filters.kernels.native.base cimport CHUNK, SeededFilter, add_all, ask, unmade
from filters.kernels.native.chain cimport (
    BIT, Cells, following, has, position, prefetch, set_bits
)
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64, lsm_mix, lsm_xxh3_64
from filters.kernels.native.keys cimport digest_of_key
from filters.kernels.native.payload cimport Payload, count_bits
from filters.kernels.native.probing cimport lsm_probing
from filters.sizing_parameters import check_like, checked_capacity


cdef enum:
    AHEAD = 16        # keys whose bits are prefetched before the first of them is set
    FIRST_PROBES = 3  # which deny seven absent keys in eight, and are looked at without branches
    LARGE_SLICES = 5  # those that lie outside of the processor's caches, where any do

if MOST_SLICES != scalable.MAX_SLICES:
    raise ImportError("filters/scalable.py and its compiled kernel differ: compile it again")


cdef inline int may_have(const Cells *slice, uint64_t mixed) noexcept nogil:
    """What the first probes say: without a branch, since they go either way."""
    cdef uint64_t place
    cdef uint8_t found = 1
    for _ in range(min(slice.num_probes, <uint32_t>FIRST_PROBES)):
        place = position(mixed, slice.size)
        found &= slice.data[place >> 3] >> (place & 7)
        mixed = following(mixed)
    return found


cdef inline int holds(const Chain *chain, uint64_t digest) noexcept nogil:
    """Whether any slice has it, the newest first: that has half of all keys.

    An absent key is denied by each of them, so the line that the first probe of each larger one
    reads is prefetched at once.
    """
    cdef Py_ssize_t i
    cdef const Cells *slice
    cdef uint64_t mixed
    for i in range(chain.count - 1, max(-1, chain.count - 1 - LARGE_SLICES), -1):
        slice = &chain.slices[i]
        prefetch(slice, BIT, lsm_mix(digest, slice.salt), 1)
    for i in range(chain.count - 1, -1, -1):
        slice = &chain.slices[i]
        mixed = lsm_mix(digest, slice.salt)
        if may_have(slice, mixed) and has(slice, BIT, mixed):
            return 1
    return 0


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Chain *chain = <const Chain *>self
    return holds(chain, lsm_xxh3_64(<const uint8_t *>key, length, chain.seed))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return holds(<const Chain *>self, digest)


cdef void test_slices(
    const Chain *chain, Py_ssize_t count, const uint64_t *digests, Py_ssize_t some,
    uint8_t *answers,
) noexcept nogil:
    """Ask the first ``count`` slices for up to a chunk of digests, slice by slice, newest first.

    The lines of all digests are prefetched before the first of them is looked at; those that a slice
    has are not asked about in the next one.
    """
    cdef uint16_t left[CHUNK]
    cdef uint64_t mixed[CHUNK]
    cdef const Cells *slice
    cdef Py_ssize_t i, j, waiting = some, denied
    for j in range(some):
        left[j] = <uint16_t>j
        answers[j] = 0
    for i in range(count - 1, -1, -1):
        slice = &chain.slices[i]
        for j in range(waiting):
            mixed[j] = lsm_mix(digests[left[j]], slice.salt)
            prefetch(slice, BIT, mixed[j], FIRST_PROBES)
        denied = 0
        for j in range(waiting):
            if may_have(slice, mixed[j]) and has(slice, BIT, mixed[j]):
                answers[left[j]] = 1
            else:
                left[denied] = left[j]
                denied += 1
        waiting = denied


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Chain *chain = <const Chain *>self
    cdef const Cells *newest = &chain.slices[chain.count - 1]
    cdef size_t i, done = 0, some
    for i in range(ahead):
        prefetch(newest, BIT, lsm_mix(hashes[count + i], newest.salt), FIRST_PROBES)
    while done < count:
        some = min(<size_t>CHUNK, count - done)
        test_slices(chain, chain.count, hashes + done, <Py_ssize_t>some, answers + done)
        done += some


cdef Py_ssize_t add_digests(
    Chain *chain, const uint64_t *digests, Py_ssize_t count, uint64_t *added
) noexcept nogil:
    """Add up to a chunk of digests, as far as there is room; how many were dealt with.

    Whatever the older slices have, which change no more, is found out for all of them at once.
    """
    cdef uint8_t known[CHUNK]
    cdef Cells *newest = &chain.slices[chain.count - 1]
    cdef Py_ssize_t i
    cdef uint64_t mixed
    cdef uint32_t fresh
    test_slices(chain, chain.count - 1, digests, count, known)
    for i in range(-AHEAD, count):
        if i + AHEAD < count and not known[i + AHEAD]:
            prefetch(newest, BIT, lsm_mix(digests[i + AHEAD], newest.salt), newest.num_probes)
        if i < 0 or known[i]:
            continue
        mixed = lsm_mix(digests[i], newest.salt)
        if chain.room < <int64_t>newest.num_probes:
            if has(newest, BIT, mixed):
                continue
            return i
        fresh = set_bits(newest, mixed)
        chain.room -= fresh
        added[0] += fresh > 0
    return count


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class ScalableBloomFilter(SeededFilter):
    """A Bloom filter that grows with its keys, and never exceeds ``fpr``, however many come.

    ``tightening`` (0.5 to 0.95) is how much lower each new slice's rate is than the one before,
    ``growth`` (2 or 4) how much larger it is.
    """

    family = scalable.FAMILY

    def __cinit__(self):
        self._spare = []

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, fpr=None, tightening=None, growth=None, seed=None, salt=None, nulls="error"
    ):
        """A filter of these keys in one slice, sized for how many distinct ones there are."""
        cdef ScalableBloomFilter self = cls.__new__(cls)
        cdef Digests digests
        terms = scalable.check(fpr=fpr, tightening=tightening, growth=growth)
        digests = Digests.of(one_by_one(keys, nulls), LSM_DIGEST_XXH3_64, seed)
        salt = checked64("salt", salt)
        terms = terms.built(digests.sort_distinct())
        self.begin(terms, scalable.first(terms), digests.seed, salt)
        with nogil:
            self._put_all(digests)
        self._num_keys = digests.count
        self.verify(digests)
        return self

    @classmethod
    def with_capacity(
        cls, num_keys=None, *, like=None, fpr=None, tightening=None, growth=None, seed=None,
        salt=None,
    ):
        """An empty filter whose first slice has room for so many keys (1024), or another one's."""
        cdef ScalableBloomFilter self = cls.__new__(cls), other
        others = {"fpr": fpr, "tightening": tightening, "growth": growth, "seed": seed}
        if like is not None:
            check_like(cls, like, num_keys=num_keys, salt=salt, **others)
            other = like
            if not other._chain.count:
                raise unmade(other)
            self.begin(
                other._terms, other._geometries[0], other.door.digest_seed,
                other._chain.slices[0].salt,
            )
            return self
        terms = scalable.check(fpr=fpr, tightening=tightening, growth=growth)
        if num_keys is None:
            num_keys = scalable.DEFAULT_CAPACITY
        terms = terms.begun(checked_capacity(num_keys))
        seed, salt = checked64("seed", seed), checked64("salt", salt)
        self.begin(terms, scalable.first(terms), seed, salt)
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef ScalableBloomFilter self = cls.__new__(cls)
        head, chain, arrays = scalable.decode(buffer)
        self._terms = chain.terms
        self._geometries, self._arrays = [], []
        self._num_keys = head.num_keys
        self._chain.seed = head.seed
        salt = head.salt
        for geometry, bits in zip(chain.slices, arrays):
            self.append(geometry, salt, Payload.view(bits))
            salt = next_salt(salt)
        return self

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        if not self._chain.count:
            raise unmade(self)
        # Together, before anything else runs: somebody may add a slice while they are written.
        geometries, arrays = self._geometries[:], self._arrays[:]
        head = header.Header(
            self.family, self._terms.growth, len(geometries), self._num_keys,
            seed=self._chain.seed, salt=self._chain.slices[0].salt,
        )
        return header.pack(head, scalable.head_of(self._terms, geometries), *arrays)

    @cython.critical_section
    def add(self, key):
        """Add a key; True if the filter did not answer "maybe" to it before.

        CapacityError, and no change, where the filter is full and may not grow any longer.
        """
        cdef uint64_t digest
        digest_of_key(LSM_DIGEST_XXH3_64, self.door.digest_seed, key, &digest)
        cdef uint64_t before = self._num_keys
        self.own()
        self.add_digests(&digest, 1)
        return self._num_keys > before

    def add_many(self, keys, *, nulls="error"):
        """Add many keys; on an error those before it are in."""
        add_all(self, keys, nulls)

    def update(self, *iterables, nulls="error"):
        """Add the keys of each, as ``add_many`` does; on an error those before it are in."""
        for each in iterables:
            self.add_many(each, nulls=nulls)

    @cython.critical_section
    def clear(self):
        """Take out all keys and all slices but the first; ``fpr``, the seed and the salt stay."""
        cdef Payload first
        if not self._chain.count:
            raise unmade(self)
        first = self._arrays[0]
        if first.writable:
            # A thread that probes meanwhile may be in any of them: they stay, for slices to come.
            self._spare = self._arrays[1:] + self._spare
            memset(first.data, 0, <size_t>first.size)
        else:
            first = Payload.zeroed(first.size)
            self._chain.slices[0].data = first.data
        self._chain.count = 1
        self._geometries, self._arrays = self._geometries[:1], [first]
        self._num_keys, self._room_is_known = 0, False
        self.payload = self.pointed_at = first

    def copy(self):
        """A filter of the same keys, slices, seed and salt, which goes its own way."""
        cdef ScalableBloomFilter copied = type(self).__new__(type(self))
        if not self._chain.count:
            raise unmade(self)
        self._copy_to(copied)
        return copied

    @cython.critical_section
    cdef int _copy_to(self, ScalableBloomFilter copied) except -1:
        cdef Payload bits
        cdef Py_ssize_t i
        copied._terms, copied._num_keys = self._terms, self._num_keys
        copied._geometries, copied._arrays = [], []
        copied._chain.seed = self._chain.seed
        for i in range(self._chain.count):
            bits = self._arrays[i]
            copied.append(self._geometries[i], self._chain.slices[i].salt, bits.copy())
        return 0

    @property
    def num_slices(self):
        """How many slices there are."""
        return self._chain.count

    @property
    def capacity(self):
        """About how many keys the slices there are have room for."""
        return scalable.capacity(self._terms, self._chain.count)

    @property
    def fpr(self):
        """The rate that was asked for, which no number of keys exceeds."""
        return self._terms.fpr

    @property
    def size_in_bytes(self):
        """The length of ``to_bytes()``."""
        if not self._chain.count:
            return header.OVERHEAD
        return header.OVERHEAD + scalable.payload_bytes(
            scalable.Chain(self._terms, tuple(self._geometries))
        )

    @property
    def fill(self):
        """The share of all slices' bits that are set."""
        return self._fill_and_fpr()[0]

    @property
    def expected_fpr(self):
        """The chance that any slice passes an absent key, fill^num_probes each."""
        return self._fill_and_fpr()[1]

    cdef tuple _fill_and_fpr(self):
        cdef Payload bits
        counts = []
        for bits in self._arrays:
            counts.append(count_bits(bits, bits.size))
        return scalable.fill_and_fpr(self._geometries, counts)

    cdef int begin(self, object terms, object geometry, uint64_t seed, uint64_t salt) except -1:
        """Start a chain of these terms with an empty first slice."""
        self._terms = terms
        self._geometries, self._arrays = [], []
        self._chain.seed = seed
        return self.append(geometry, salt, Payload.zeroed(geometry.bits // 8))

    cdef int append(self, object geometry, uint64_t salt, Payload bits) except -1:
        """Append a slice, which keys are added to and probed in from now on."""
        self._geometries.append(geometry)
        self._arrays.append(bits)
        self._chain.slices[self._chain.count] = Cells(
            bits.data, geometry.bits, self._chain.seed, salt, geometry.num_probes
        )
        self._chain.count += 1
        self._room_is_known = False
        self.payload = bits
        return self.opened(&self._chain, &PROBING, LSM_DIGEST_XXH3_64, self._chain.seed)

    cdef int own(self) except -1:
        """Prepare the chain for adding: copy views, and count the bits set in the newest slice.

        A thread that probes meanwhile holds the newest view, which keeps the buffer of all alive.
        """
        cdef Py_ssize_t newest = self._chain.count - 1, i
        cdef Payload bits
        if newest < 0:
            raise unmade(self)
        if not self._room_is_known:
            limit = self._terms.limit_of(newest, self._geometries[newest])
            self._chain.room = limit - count_bits(self.payload, self.payload.size)
            self._room_is_known = True
        if not self.payload.writable:
            for i in range(newest + 1):
                bits = self._arrays[i]
                bits = self._arrays[i] = bits.copy()
                self._chain.slices[i].data = bits.data
            self.payload = self.pointed_at = bits
        return 0

    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1:
        """Add digests in order, growing where there is no room."""
        cdef Py_ssize_t done = 0
        cdef uint64_t added
        while True:
            added = 0
            done += add_digests(&self._chain, digests + done, count - done, &added)
            self._num_keys += added
            if done == count:
                return 0
            geometry = scalable.following(self._terms, self._geometries)
            salt = next_salt(self._chain.slices[self._chain.count - 1].salt)
            self.append(geometry, salt, self.room_for(geometry))
            self.own()

    cdef Payload room_for(self, object geometry):
        """The zeroed bits of the next slice: where one like it was before clear(), its memory."""
        cdef Payload bits
        cdef Py_ssize_t size = geometry.bits // 8
        if not self._spare:
            return Payload.zeroed(size)
        bits = self._spare[0]
        if bits.size != size:
            return Payload.zeroed(size)
        del self._spare[0]
        memset(bits.data, 0, <size_t>size)
        return bits

    cdef void _put_all(self, Digests digests) noexcept nogil:
        """Set the bits of all these keys in the first slice."""
        cdef Cells *first = &self._chain.slices[0]
        cdef Py_ssize_t i
        for i in range(-AHEAD, digests.count):
            if i + AHEAD < digests.count:
                prefetch(
                    first, BIT, lsm_mix(digests.numbers[i + AHEAD], first.salt), first.num_probes
                )
            if i >= 0:
                set_bits(first, lsm_mix(digests.numbers[i], first.salt))
