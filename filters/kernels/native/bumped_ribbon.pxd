"""The bumped ribbon filter, for other compiled modules."""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.base cimport SaltedFilter
from filters.kernels.native.columns cimport lsm_agreeing


# MAX_LAYERS of filters/bumped_ribbon.py.
cdef enum:
    MAX_LAYERS = 8


cdef struct Layer:
    uint64_t starts
    uint64_t first_block
    uint64_t first_bucket


cdef struct Ribbon:
    const uint8_t *codes      # of all buckets, two bits each
    const uint8_t *words
    const uint8_t *left_over
    uint64_t num_left_over
    uint64_t narrow_blocks    # of all layers' blocks those that come first
    uint64_t columns          # of a narrow block
    int num_layers
    Layer layers[MAX_LAYERS]
    uint64_t seed
    uint64_t salt
    lsm_agreeing agree


cdef class BumpedRibbonFilter(SaltedFilter):
    cdef Ribbon _ribbon
    cdef object _layers
    cdef object _columns

    cdef int lay_out(self, list layers, object columns, uint64_t seed) except -1
