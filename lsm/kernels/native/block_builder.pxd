"""Building blocks: what ``buffer.h`` and ``block_builder.h`` offer."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "block_builder.h" nogil:
    enum:
        LSM_ADDED
        LSM_ADD_NO_MEMORY
        LSM_ADD_TOO_LARGE

    ctypedef struct lsm_buffer:
        uint8_t *bytes
        size_t size
        size_t room

    ctypedef struct lsm_block_builder:
        lsm_buffer entries
        lsm_buffer last
        uint32_t interval

    void lsm_buffer_free(lsm_buffer *self)
    void lsm_block_builder_free(lsm_block_builder *self)
    size_t lsm_block_builder_size(const lsm_block_builder *self)
    int lsm_block_builder_add(
        lsm_block_builder *self, const uint8_t *key, uint32_t key_length, uint64_t version,
        const uint8_t *value, uint32_t value_length,
    )
    int lsm_block_builder_finish(lsm_block_builder *self)
    void lsm_block_builder_start(lsm_block_builder *self)


cdef struct Given:
    # An entry as Python has it.
    const uint8_t *key
    const uint8_t *value
    uint32_t key_length
    uint32_t value_length
    uint64_t version


cdef int take_entry(object entry, Given *given) except -1
cdef int refuse(int refused) except -1


@cython.final
@cython.no_gc
cdef class BlockBuilder:
    cdef lsm_block_builder c
