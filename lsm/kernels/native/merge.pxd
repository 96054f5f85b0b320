"""What the sources of a cursor have, merged: the streams of ``merge.h``, and who moves them."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from lsm.kernels.native.block cimport lsm_block
from lsm.kernels.native.memtable cimport lsm_node
from lsm.kernels.native.view cimport View


cdef extern from "merge.h" nogil:
    enum:
        LSM_HERE
        LSM_AT_END
        LSM_NO_MEMORY

    ctypedef struct lsm_stream:
        uint64_t word
        uint64_t version
        const uint8_t *key
        const uint8_t *value
        uint32_t key_length
        uint32_t value_length
        lsm_node **nodes
        size_t place
        size_t count
        const lsm_block *block
        uint32_t index
        void *held_table
        void *held_block
        int64_t sought
        uint32_t number
        uint32_t table
        uint32_t first_table
        uint32_t end_table

    ctypedef struct lsm_known_key:
        uint64_t word
        const uint8_t *bytes
        uint32_t length

    int lsm_compare_keys(
        const uint8_t *one, uint32_t one_length, const uint8_t *other, uint32_t other_length
    )
    void lsm_known_key_set(lsm_known_key *self, const uint8_t *bytes, uint32_t length)
    int lsm_stream_compare(const lsm_stream *self, const lsm_known_key *key)
    bint lsm_stream_is_at(const lsm_stream *self, const lsm_known_key *key)
    void lsm_copy_words(uint8_t *to, const uint8_t *source, size_t length)
    void lsm_stream_init(lsm_stream *self, uint32_t rank)
    void lsm_stream_free(lsm_stream *self)
    int lsm_stream_stand_on_node(lsm_stream *self)
    int lsm_stream_stand(lsm_stream *self, uint32_t index)
    int lsm_stream_up(lsm_stream *self)
    int lsm_stream_down(lsm_stream *self)
    void lsm_stream_prefetch_from(const lsm_block *block, uint32_t index, bint is_down)
    void lsm_stream_prefetch(const lsm_block *block)
    void lsm_stream_prefetch_entries(const lsm_block *block, bint is_down)
    void lsm_merge_settle(lsm_stream **order, uint32_t count, bint is_down)
    void lsm_merge_sort(lsm_stream **order, uint32_t count, bint is_down)
    void lsm_merge_drop(lsm_stream **order, uint32_t count)


cdef extern from "items.h":
    ctypedef struct lsm_shape:
        bint include_key
        bint include_value

    int lsm_put_item(
        list items, Py_ssize_t index, const lsm_shape *shape, const void *key,
        Py_ssize_t key_length, const void *value, Py_ssize_t value_length,
    ) except -1


cdef enum:
    FEW_STREAMS = 3
    FEW_KEY_BYTES = 64


cdef class Source:
    cdef readonly View view
    cdef readonly object tables
    cdef uint64_t version
    cdef bint is_blind               # no version is visible
    cdef bint fill_cache
    cdef lsm_shape shape
    cdef uint32_t cut                # bytes of each key that its item has not got
    cdef bint has_keys               # items have whole keys
    cdef bytes low
    cdef bytes high
    cdef bint low_included
    cdef bint high_included
    cdef lsm_known_key low_key       # unless `low` is None
    cdef lsm_known_key high_key
    cdef tuple runs                  # of the memtables, once they were asked for

    cdef tuple ordered_runs(self)


@cython.final
@cython.no_gc
cdef class Merge:
    cdef readonly bint is_over
    cdef bint is_light               # what was taken last has few bytes
    cdef Py_ssize_t count            # of the items that were taken last
    cdef bytes first                 # the key of the first item that was taken last
    cdef bytes last                  # and of the last one
    cdef bint is_down
    cdef tuple runs
    cdef size_t places               # so many streams there is room for
    cdef uint32_t made
    cdef uint32_t open
    cdef lsm_stream *streams
    cdef lsm_stream **order
    cdef lsm_stream few_streams[FEW_STREAMS]
    cdef lsm_stream *few_order[FEW_STREAMS]
    # The key that was decided last: its other versions are hidden behind that.
    cdef bint has_decided
    cdef lsm_known_key decided
    cdef uint8_t *buffer
    cdef size_t room
    cdef uint8_t few[FEW_KEY_BYTES]
    # On the way down its newest version so far, and what keeps the value there.
    cdef bint has_candidate
    cdef uint64_t version
    cdef const uint8_t *value
    cdef uint32_t value_length
    cdef object holder

    cdef list take(self, Source source, Py_ssize_t most, list spare)


cdef Source new_source(
    View view, tables, uint64_t version, bint fill_cache, tuple low, tuple high,
    bint include_key, bint include_value, uint32_t cut,
)
cdef Merge merge_from(Source source, bytes key, bint is_included, bint is_down, Merge used)
