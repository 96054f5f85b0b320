"""What the filters of other engines share."""

from filters.kernels.native.base cimport DigestFilter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport lsm_digest


cdef class ForeignFilter(DigestFilter):
    cdef object _num_keys
    cdef object _measured_fpr

    cdef object filled(self, Digests hashes)
    cdef int insert_all(self, Digests hashes) except -1


cdef Digests distinct_neighbours(object keys, lsm_digest kind)
