"""The classic Bloom filter, built and probed."""

from libc.stdint cimport uint8_t, uint64_t

from filters import classic
from filters.kernels.native.base cimport ask
from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.chain cimport (
    BIT, Cells, has_digest, has_key, has_many, insert_many, set_bits
)
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.probing cimport lsm_probing


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return has_key(<const Cells *>self, BIT, key, length)


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return has_digest(<const Cells *>self, BIT, digest)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    has_many(<const Cells *>self, BIT, hashes, count, ahead, answers)


cdef size_t add_many(
    void *self, const uint64_t *hashes, size_t count, size_t ahead, uint64_t *unchanged
) noexcept nogil:
    return insert_many(<Cells *>self, BIT, set_bits, hashes, count, ahead, unchanged)


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
        """The rate of independent probes: fill^num_probes."""
        return float(self.fill**self.num_probes)

    cdef int point(self) except -1:
        self._cells = Cells(
            self.payload.data, self._geometry.size, self.door.digest_seed, self.salt,
            self._geometry.num_probes,
        )
        return self.opened(&self._cells, &PROBING, LSM_DIGEST_XXH3_64, self.door.digest_seed)
