"""The partitions of a table's filter: their last keys, and the filters that readers find here."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys


cdef extern from "partitions.h" nogil:
    ctypedef struct lsm_partition:
        int (*probe_digest)(const void *filter, uint64_t digest) noexcept nogil
        const void *filter
        uint64_t digest_seed
        uint32_t digest_kind
        bint used

    ctypedef struct lsm_partitions:
        lsm_sorted_keys lasts
        lsm_partition *slots
        bint used

    uint32_t lsm_partitions_find(
        const lsm_partitions *self, const uint8_t *key, uint32_t length, int simd
    )
    lsm_partition *lsm_partitions_seek(
        const lsm_partitions *self, const uint8_t *key, uint32_t length, int simd
    )


cdef class Partitions:
    cdef readonly object charge
    cdef lsm_partitions c
    cdef uint8_t *_keys
    cdef uint64_t *_places    # of each filter where it begins, and its size
    cdef PyObject **_filters  # that readers find here
    cdef object __weakref__

    cdef object found(self, uint32_t number)
    cdef void offer_door(self, uint32_t number, loaded) noexcept
    cdef int _reserve(self, size_t count, size_t key_bytes) except -1
