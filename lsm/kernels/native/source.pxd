"""One run of entries, as ``source.h`` reads it, and what keeps its memory."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.block cimport lsm_block
from lsm.kernels.native.block_builder cimport lsm_buffer
from lsm.kernels.native.memtable cimport Run, lsm_node
from lsm.kernels.native.table cimport Table


cdef extern from "source.h" nogil:
    enum:
        LSM_STEP_HERE
        LSM_STEP_END
        LSM_STEP_CUT
        LSM_STEP_MOST
        LSM_STEP_PAUSE
        LSM_STEP_TABLE
        LSM_STEP_BLOCK
        LSM_STEP_ORDER
        LSM_STEP_COMPRESS
        LSM_STEP_REFUSED

    ctypedef struct lsm_source:
        uint32_t rank
        lsm_node **nodes
        size_t node_count
        const uint8_t *file
        size_t file_size
        const uint64_t *offsets
        const uint64_t *sizes
        uint32_t block
        uint32_t block_count
        lsm_buffer internal

    void lsm_source_free(lsm_source *self)
    bint lsm_source_load(lsm_source *self, const uint8_t *data, size_t size)
    int lsm_source_next(lsm_source *self)


@cython.final
cdef class Source:
    cdef lsm_source c
    cdef Run run              # of a memtable, or None
    cdef object tables        # that follow, opened when it is their turn
    cdef Table table
    cdef Py_buffer view       # of its file
    cdef bint has_view
    cdef bytes contents       # of a block that C has not read itself

    cdef void release(self) noexcept
    cdef bint open_next(self) except -1
    cdef int read_block(self) except -1
    cdef object disorder(self)
