"""RocksDB's Bloom filter, for other compiled modules."""

from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBBloomFilter(RocksDBFilter):
    pass
