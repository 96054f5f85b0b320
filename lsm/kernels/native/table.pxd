"""Open tables: an index, the blocks of it that are cached, and a filter."""

from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.block cimport Block, lsm_block
from lsm.kernels.native.cache_item cimport CacheItem
from lsm.kernels.native.filter_door cimport FilterDoor
from lsm.kernels.native.partitions cimport lsm_partitions
from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys


cdef extern from "index_block.h" nogil:
    ctypedef struct lsm_index_entry:
        const uint8_t *key
        uint32_t key_length
        uint64_t version
        uint64_t offset
        uint64_t size

    const uint8_t *lsm_index_end(const uint8_t *data, size_t size)
    const uint8_t *lsm_index_next(
        const uint8_t *at, const uint8_t *end, lsm_index_entry *entry
    )
    bint lsm_index_survey(
        const uint8_t *data, size_t size, size_t *count, size_t *key_bytes
    )


cdef class TableFile:
    cdef public object number
    cdef public object size
    cdef object table         # that is open, of either kernel, or None
    cdef bint was_used        # since somebody has looked, and so has its table
    # The door of its table's filter, where that is asked with a digest; else NULL. Here a lookup
    # that ends with a "no" finds it without a look at table or filter. Of one in partitions there
    # are these instead, each with a door of its own or NULL.
    cdef FilterDoor door
    cdef lsm_partitions *partitions
    cdef const void *filter
    cdef int (*probe_digest)(const void *filter, uint64_t digest) noexcept nogil
    cdef uint64_t digest_seed
    cdef public uint64_t missed
    cdef public uint64_t found
    cdef uint32_t digest_kind
    cdef bint had_the_last    # key that it was asked for, as the filter says

    cdef void offer_door(self, Table table) noexcept
    cdef void close_door(self) noexcept


cdef class Table(CacheItem):
    cdef public object reader
    cdef readonly TableFile file
    cdef readonly object owner
    cdef readonly object reference
    cdef readonly object charge
    cdef lsm_sorted_keys index
    cdef uint8_t *_keys
    cdef size_t _key_bytes
    cdef uint64_t *offsets
    cdef uint64_t *_sizes
    cdef PyObject **slots     # the blocks that readers find here
    cdef lsm_block *views     # of these the structs, side by side
    cdef FilterDoor loaded
    cdef object __weakref__

    cdef Block cached_block(self, uint32_t number)
    cdef uint32_t _seek(self, bytes key, uint64_t version) except? 0
    cdef int _read_index(self, reader) except -1
    cdef int _take_index(self, list entries) except -1
    cdef int _reserve_index(self, size_t count, size_t key_bytes) except -1
    cdef int _add_to_index(
        self, const uint8_t *key, uint32_t length, uint64_t version, uint64_t offset,
        uint64_t size,
    ) noexcept
