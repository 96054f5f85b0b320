"""A block of a table: the plain struct of ``block.h``, and the object that keeps its bytes."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "block.h" nogil:
    enum:
        LSM_BLOCK_TOO_LARGE
        LSM_BLOCK_NO_ROOM
        LSM_BLOCK_OUTSIDE
        LSM_BLOCK_MALFORMED
        LSM_BLOCK_NO_MEMORY

    ctypedef struct lsm_block:
        const uint8_t *data
        uint32_t size
        uint32_t end
        uint32_t restarts
        uint32_t count
        uint32_t common
        const uint8_t *first
        uint64_t *words
        uint64_t *versions

    ctypedef struct lsm_entry:
        uint64_t version
        const uint8_t *value
        uint32_t value_length
        uint32_t key_length

    ctypedef struct lsm_lengths:
        uint32_t shared
        uint32_t unshared
        uint32_t value_length
        const uint8_t *key

    int lsm_block_load(lsm_block *self, const uint8_t *data, size_t size, uint32_t *at)
    void lsm_block_free(lsm_block *self)
    size_t lsm_block_bytes(const lsm_block *self)
    uint32_t lsm_block_seek(
        const lsm_block *self, const uint8_t *key, uint32_t length, uint64_t version, int simd,
        int *same,
    )
    void lsm_block_entry(const lsm_block *self, uint32_t index, lsm_entry *entry)
    void lsm_block_key(const lsm_block *self, uint32_t index, uint8_t *out)
    void lsm_block_prefetch_struct(const lsm_block *self)
    void lsm_block_prefetch(const lsm_block *self)
    void lsm_block_prefetch_entry(const lsm_block *self, uint32_t index)
    uint32_t lsm_block_guess(
        const lsm_block *self, const uint8_t *key, uint32_t length, int simd
    )
    lsm_lengths lsm_block_lengths(const lsm_block *self, uint32_t index)
    uint64_t lsm_version_of(const lsm_block *self, uint32_t index, const lsm_lengths *lengths)
    uint32_t lsm_user_length(const lsm_lengths *lengths)


@cython.final
@cython.no_gc
cdef class Block:
    cdef lsm_block c
    cdef public object owner
    cdef public Py_ssize_t number
    cdef public bint used
    cdef public object held
    cdef readonly Py_ssize_t charge
