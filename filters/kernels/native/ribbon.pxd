"""RocksDB's Ribbon filter."""

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBRibbonFilter(RocksDBFilter):
    cdef bint _solve(self, Digests hashes, object sizing, object adaptive) except -1
