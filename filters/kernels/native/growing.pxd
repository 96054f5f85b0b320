"""What the filters share that keys are added to, and that never change their size."""

from libc.stdint cimport uint64_t

from filters.kernels.native.base cimport SaltedFilter


cdef class GrowingFilter(SaltedFilter):
    cdef object _geometry
    cdef uint64_t _capacity
    cdef uint64_t _most_keys  # past which somebody is told; UNLIMITED once that is done

    cdef int lay_out(self, object geometry, uint64_t seed, uint64_t salt, object buffer) except -1
    cdef int point(self) except -1
    cdef GrowingFilter copied(self)
    cdef int _copy_to(self, GrowingFilter copied) except -1
    cdef int over_filled(self) except -1
