"""The blocked Bloom filter; how it is built and probed is in ``line.h``."""

from filters import blocked
from filters.kernels.native cimport simd
from filters.kernels.native.base cimport ask
from filters.kernels.native.bloom cimport BitFilter
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.line cimport (
    count_lines, lsm_blocked_probing, lsm_lines
)
from filters.occupancy import mean_line_fpr


cdef class BlockedBloomFilter(BitFilter):
    """A Bloom filter with one cache line per key; sized by ``bits_per_key`` or ``fpr``."""

    family = blocked.FAMILY
    layout = blocked

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @property
    def num_bits(self):
        """The bits of all lines."""
        return 8 * self.payload.size

    @property
    def num_lines(self):
        """How many 512-bit lines there are."""
        return self._geometry.size

    @property
    def expected_fpr(self):
        """The mean over all lines of fill^num_probes."""
        counts = count_lines(self.payload.data, self._lines.count, blocked.LINE_BYTES)
        return mean_line_fpr(counts, blocked.LINE_BITS, self._geometry.num_probes)

    cdef int point(self) except -1:
        self._lines = lsm_lines(
            self.payload.data, self._geometry.size, self.door.digest_seed, self.salt,
            self._geometry.num_probes,
        )
        return self.opened(
            &self._lines, &lsm_blocked_probing[simd.level()], LSM_DIGEST_XXH3_64,
            self.door.digest_seed,
        )
