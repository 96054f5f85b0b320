"""RocksDB's Bloom filter, built; ``rocksdb_filter.pyx`` reads it, ``line.h`` has its lines."""

from filters import rocksdb
from filters.columns import one_by_one
from filters.kernels.native.base cimport ask
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.foreign cimport distinct_neighbours
from filters.kernels.native.hashing cimport LSM_DIGEST_XXPH3_64
from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBBloomFilter(RocksDBFilter):
    """RocksDB's own Bloom filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    Any bytes are a filter, as they are to RocksDB; :attr:`form` says what they were taken for.
    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    family = rocksdb.FAMILY

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, bits_per_key=None, fpr=None, num_probes=None,
        optimize_filters_for_memory=True, nulls="error"
    ):
        """A cache-local filter of exactly these keys; one that equals the key before it is dropped.

        ``optimize_filters_for_memory`` is RocksDB's option of that name: the probes are chosen for
        the size after rounding to whole lines, not for the bits per key that were asked for.
        """
        cdef RocksDBBloomFilter self = cls.__new__(cls)
        cdef Digests hashes
        sizing = rocksdb.check(
            bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes,
            optimize_filters_for_memory=optimize_filters_for_memory,
        )
        hashes = distinct_neighbours(one_by_one(keys, nulls), LSM_DIGEST_XXPH3_64)
        geometry = rocksdb.plan(
            hashes.count, sizing, num_probes,
            optimize_filters_for_memory=optimize_filters_for_memory,
        )
        self.lay_out_lines(geometry)
        return self.filled(hashes)
