"""RocksDB's Ribbon filter, for other compiled modules."""

from filters.kernels.native.digests cimport Digests
from filters.kernels.native.rocksdb_filter cimport RocksDBFilter


cdef class RocksDBRibbonFilter(RocksDBFilter):
    cdef bint _solve(self, Digests hashes, object sizing, object adaptive) except -1
