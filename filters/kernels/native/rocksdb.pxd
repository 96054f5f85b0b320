"""RocksDB's Bloom filter."""

from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBBloomFilter(RocksDBFilter):
    pass
