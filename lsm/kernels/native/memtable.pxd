"""Memtables: what ``memtable.h`` offers, and the objects around it."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef extern from "memtable.h" nogil:
    ctypedef struct lsm_node:
        uint64_t version
        uint32_t key_length
        uint32_t value_length

    ctypedef struct lsm_arena:
        size_t memory

    ctypedef struct lsm_run:
        lsm_node **nodes
        size_t count

    ctypedef struct lsm_memtable:
        lsm_arena *arena
        uint64_t seed
        size_t slot_count
        size_t added_count
        size_t added_room
        size_t promised
        size_t count
        lsm_node *last

    ctypedef struct lsm_slot:
        pass

    ctypedef struct lsm_found:
        uint64_t version
        const uint8_t *value
        uint32_t value_length

    const uint8_t *lsm_node_key(const lsm_node *node)
    const uint8_t *lsm_node_value(const lsm_node *node)
    bint lsm_node_precedes(const lsm_node *node, const lsm_node *other)

    void lsm_arena_free(lsm_arena *self)

    bint lsm_run_sort(lsm_run *self)
    size_t lsm_run_seek(
        const lsm_run *self, const uint8_t *key, uint32_t length, uint64_t version
    )
    size_t lsm_run_seek_behind(
        const lsm_run *self, const uint8_t *key, uint32_t length, uint64_t version
    )

    bint lsm_memtable_find(
        const lsm_memtable *self, const uint8_t *key, uint32_t length, uint64_t version,
        lsm_found *found,
    )
    ctypedef struct lsm_measure:
        size_t count
        size_t size
        size_t payload

    bint lsm_batch_measure(
        const uint8_t *at, const uint8_t *end, uint32_t count, lsm_measure *found
    )
    lsm_node *lsm_memtable_prepare(
        lsm_memtable *self, const uint8_t *at, const uint8_t *end, uint64_t sequence,
        const lsm_measure *measured, lsm_node **last,
    )
    void lsm_memtable_withdraw(
        lsm_memtable *self, lsm_arena *arena, const lsm_node *first, size_t count, size_t size
    )
    size_t lsm_memtable_memory(const lsm_memtable *self)
    const double LSM_MEMORY_SHARE
    bint lsm_memtable_is_full(const lsm_memtable *self, size_t capacity)
    void lsm_memtable_link(lsm_memtable *self, lsm_node *first, size_t count)
    void lsm_memtable_copy_added(const lsm_memtable *self, lsm_node **nodes)
    void lsm_memtable_forget_added(lsm_memtable *self)
    bint lsm_memtable_order(
        lsm_memtable *self, const lsm_run **runs, size_t run_count, size_t total, lsm_run *ordered
    )
    void lsm_memtable_free(lsm_memtable *self)


cdef class Arena:
    """The memory of all nodes of a memtable; whoever has a node in hand keeps it."""

    cdef lsm_arena c


@cython.final
@cython.no_gc
cdef class Run:
    """Nodes in the order of (key, rank), which never change."""

    cdef lsm_run c
    cdef Arena arena


@cython.final
cdef class Prepared:
    """The nodes of a batch, one behind the other, that are not in the memtable yet."""

    cdef Memtable memtable
    cdef Arena arena
    cdef lsm_node *first
    cdef lsm_node *last
    cdef lsm_measure measured
    cdef bint is_added


cdef class Memtable:
    """Entries sorted by key, in memory that Python's collector does not look at."""

    cdef lsm_memtable c
    cdef Arena arena
    cdef readonly size_t size
    cdef size_t capacity
    cdef public object log
    cdef tuple _runs
    cdef object __weakref__

    cdef bint is_full(self) noexcept
    cdef void grow_by(self, const lsm_measure *measured) noexcept
    cdef tuple runs(self)
    cdef Run whole(self)
    cdef Run sorted_apart(self)
    cdef int order(self, bint whole) except -1
