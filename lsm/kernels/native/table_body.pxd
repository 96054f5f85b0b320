"""The body of a table that is being written: what ``table_body.h`` offers."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.block_builder cimport lsm_block_builder, lsm_buffer


cdef extern from "table_body.h" nogil:
    enum:
        LSM_BODY_COMPRESS

    ctypedef struct lsm_finished_block:
        uint64_t keys
        uint64_t offset

    ctypedef struct lsm_table_body:
        lsm_block_builder block
        lsm_buffer finished
        int descriptor
        uint64_t drained
        lsm_buffer blocks
        lsm_buffer keys
        lsm_buffer key_ends
        lsm_buffer index
        lsm_buffer smallest
        lsm_buffer largest
        uint64_t offset
        uint64_t entries
        size_t block_size
        int compression
        int has_keys

    void lsm_table_body_free(lsm_table_body *self)
    uint64_t lsm_table_body_size(const lsm_table_body *self)
    int lsm_table_body_index(lsm_table_body *self)
    int lsm_body_store(lsm_table_body *self, const uint8_t *bytes, size_t size, int compression)
    int lsm_body_close(lsm_table_body *self)
    bint lsm_body_compresses(const lsm_table_body *self)
    bint lsm_body_is_open(const lsm_table_body *self)
    int lsm_body_add(
        lsm_table_body *self, const uint8_t *key, uint32_t key_length, uint64_t version,
        const uint8_t *value, uint32_t value_length,
    )
    bint lsm_body_take_keys(lsm_table_body *self, lsm_buffer *keys, lsm_buffer *key_ends)


@cython.final
@cython.no_gc
cdef class Taken:
    cdef lsm_buffer c


@cython.final
@cython.no_gc
cdef class TableBody:
    cdef lsm_table_body c

    cdef int compress(self) except -1
