"""Measure a filter's rate on the filter itself."""

from filters.kernels.native.probing cimport lsm_probing

cdef double hit_rate(const lsm_probing *probing, const void *filter) noexcept nogil
cdef double wide_hit_rate(const lsm_probing *probing, const void *filter) noexcept nogil
