"""The classic Bloom filter, built and probed."""

from libc.stdint cimport uint8_t, uint64_t

from filters import classic
from filters.kernels.native.base cimport ask
from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.chain cimport following, position
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64, lsm_mix, lsm_xxh3_64
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.wide cimport lsm_prefetch


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Bits *filter = <const Bits *>self
    return has(filter, lsm_mix(lsm_xxh3_64(<const uint8_t *>key, length, filter.seed), filter.salt))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    cdef const Bits *filter = <const Bits *>self
    return has(filter, lsm_mix(digest, filter.salt))


cdef inline void prefetch(const Bits *filter, uint64_t mixed) noexcept nogil:
    for _ in range(filter.num_probes):
        lsm_prefetch(filter.bits + (position(mixed, filter.size) >> 3))
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


cdef bint insert(Bits *filter, uint64_t mixed) noexcept nogil:
    cdef uint64_t place
    cdef uint8_t old
    cdef bint new = False
    for _ in range(filter.num_probes):
        place = position(mixed, filter.size)
        old = filter.bits[place >> 3]
        new |= not (old >> (place & 7) & 1)
        filter.bits[place >> 3] = <uint8_t>(old | 1 << (place & 7))
        mixed = following(mixed)
    return new


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, add_many)


cdef class ClassicBloomFilter(BitFilter):
    """A Bloom filter of any size up to 2^40 bits; sized by ``bits_per_key`` or ``fpr``."""

    family = classic.FAMILY
    layout = classic

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @property
    def num_bits(self):
        """The length of the bit array."""
        return self._geometry.size

    @property
    def expected_fpr(self):
        """fill^num_probes."""
        return float(self.fill**self.num_probes)

    cdef int point(self) except -1:
        self._bits = Bits(
            self.payload.data, self._geometry.size, self.door.digest_seed, self.salt,
            self._geometry.num_probes,
        )
        return self.opened(&self._bits, &PROBING, LSM_DIGEST_XXH3_64, self.door.digest_seed)
