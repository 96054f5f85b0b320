"""RocksDB's Ribbon filter, built; ``equations.pyx`` solves its equations, ``ribbon.h`` asks it."""

from libc.stdint cimport uint32_t

from filters import ribbon, rocksdb
from filters.columns import one_by_one
from filters.kernels.native.equations cimport NO_MEMORY, SOLVED, Blocks, blocks_of, solve
from filters.kernels.native.base cimport ask
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.foreign cimport distinct_neighbours
from filters.kernels.native.hashing cimport LSM_DIGEST_XXPH3_64
from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBRibbonFilter(RocksDBFilter):
    """RocksDB's own Ribbon filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    ``bits_per_key`` are those of the Bloom filter whose rate is asked for; the filter takes about
    seven for ten. Of few keys RocksDB builds that very Bloom filter, where it is smaller.
    """

    family = ribbon.FAMILY

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, bits_per_key=None, fpr=None, optimize_filters_for_memory=True, nulls="error"
    ):
        """A filter of exactly these keys; one that equals the key before it is dropped.

        ``optimize_filters_for_memory`` is RocksDB's option of that name, and of consequence for
        the probes of a Bloom filter only.
        """
        cdef RocksDBRibbonFilter self = cls.__new__(cls)
        cdef Digests hashes
        sizing = ribbon.check(
            bits_per_key=bits_per_key, fpr=fpr,
            optimize_filters_for_memory=optimize_filters_for_memory,
        )
        hashes = distinct_neighbours(one_by_one(keys, nulls), LSM_DIGEST_XXPH3_64)
        if self._solve(hashes, sizing, optimize_filters_for_memory):
            self._num_keys = hashes.count
            self.verify(hashes)
            return self
        self.lay_out_lines(
            ribbon.bloom_plan(
                hashes.count, sizing, optimize_filters_for_memory=optimize_filters_for_memory
            )
        )
        return self.filled(hashes)

    cdef bint _solve(self, Digests hashes, object sizing, object adaptive) except -1:
        """Become the Ribbon filter of these hashes; False where a Bloom filter is to be built."""
        cdef Blocks blocks
        cdef uint32_t mask
        cdef int outcome
        if hashes.count == 0:
            return False
        geometry = ribbon.plan(
            hashes.count, sizing, first_hash=hashes.numbers[0], optimize_filters_for_memory=adaptive
        )
        if isinstance(geometry, rocksdb.Geometry):
            return False
        blocks = blocks_of(geometry)
        for seed in ribbon.seeds(hashes.numbers[0]):
            self.lay_out(ribbon.payload_bytes(geometry), ribbon.trailer(geometry, seed))
            mask = ribbon.seed_mask(seed)
            with nogil:
                outcome = solve(hashes.numbers, hashes.count, blocks, mask, self.payload.data)
            if outcome == SOLVED:
                return True
            if outcome == NO_MEMORY:
                raise MemoryError(f"there is no memory to solve the equations of {hashes.count} keys")
        return False
