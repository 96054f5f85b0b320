# cython: freethreading_compatible=False
"""The user keys of a table, for whoever makes a filter of them; how is in ``table_keys.h``."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.string cimport memset

from filters.packed_keys import PackedKeys

from lsm.kernels.native.block_builder cimport lsm_buffer
from lsm.kernels.native.source cimport (
    LSM_STEP_BLOCK, LSM_STEP_ORDER, LSM_STEP_REFUSED, Source, lsm_source
)
from lsm.kernels.native.table cimport Table
from lsm.kernels.native.table_body cimport Taken, lsm_finished_block


cdef extern from "table_keys.h" nogil:
    ctypedef struct lsm_table_keys:
        bint has_keys
        lsm_buffer keys
        lsm_buffer key_ends
        lsm_buffer blocks
        uint64_t count
        uint64_t read_bytes
        uint64_t key_bytes
        uint64_t entries
        uint64_t all_key_bytes
        lsm_buffer smallest

    void lsm_table_keys_free(lsm_table_keys *self)
    int lsm_table_keys_collect(lsm_table_keys *self, lsm_source *source, uint64_t most)


@cython.final
cdef class TableKeys:
    """The keys of a table that is read from its first block to its last, and checked.

    CorruptionError where a block is damaged, or where keys do not ascend.
    """

    cdef lsm_table_keys c
    cdef Source source

    def __cinit__(self, Table table not None, comparator=None, bint with_keys=True):
        assert comparator is None or comparator.wrap is None, "the compiled kernel compares bytes"
        self.c.has_keys = with_keys
        self.source = Source.__new__(Source)
        self.source.tables = iter((table,))
        self.source.open_next()

    def __dealloc__(self):
        lsm_table_keys_free(&self.c)

    @property
    def num_entries(self):
        """How many entries were read, and taken."""
        return self.c.entries

    @property
    def key_bytes(self):
        """The bytes of their user keys."""
        return self.c.all_key_bytes

    @property
    def smallest(self):
        """The internal key of the first entry; no bytes if there is none."""
        return bytes_of(self.c.smallest)

    @property
    def largest(self):
        """The internal key of the last entry that was read."""
        return bytes_of(self.source.c.internal)

    def take(self, uint64_t most):
        """The user keys that come next, of about so many bytes, and the ends of their blocks.

        Of each block that is how many of these keys there are up to its end, and the offset behind
        it; a block that goes on comes last, with its own offset. There are no ends any more behind
        the last block, and no keys if none are wanted.
        """
        cdef int step
        # A library is asked at every block, and in between the GIL is not worth releasing.
        cdef bint keeps_gil = False
        while True:
            if keeps_gil:
                step = lsm_table_keys_collect(&self.c, &self.source.c, most)
            else:
                with nogil:
                    step = lsm_table_keys_collect(&self.c, &self.source.c, most)
            if step == LSM_STEP_BLOCK:
                self.source.read_block()
                keeps_gil = True
            elif step == LSM_STEP_ORDER:
                raise self.source.disorder()
            elif step == LSM_STEP_REFUSED:
                raise MemoryError(f"there is no memory for the keys of {self.source.table.file}")
            else:
                return self.hand_out()

    cdef tuple hand_out(self):
        """What was collected."""
        cdef lsm_finished_block *blocks = <lsm_finished_block *>self.c.blocks.bytes
        cdef size_t number, ended = self.c.blocks.size // sizeof(lsm_finished_block)
        cdef list ends = [(blocks[number].keys, blocks[number].offset) for number in range(ended)]
        cdef Taken keys, key_ends
        if self.c.count and (not ended or blocks[ended - 1].keys < self.c.count):
            ends.append((self.c.count, self.source.c.offsets[self.source.c.block - 1]))
        packed = []
        if self.c.key_ends.size:
            keys, key_ends = Taken.__new__(Taken), Taken.__new__(Taken)
            keys.c, key_ends.c = self.c.keys, self.c.key_ends
            memset(&self.c.keys, 0, sizeof(lsm_buffer))
            memset(&self.c.key_ends, 0, sizeof(lsm_buffer))
            packed = PackedKeys(keys, offsets=memoryview(key_ends).cast("q"))
        self.c.entries += self.c.count
        self.c.all_key_bytes += self.c.key_bytes
        self.c.blocks.size = 0
        self.c.count = self.c.read_bytes = self.c.key_bytes = 0
        return packed, ends


cdef inline bytes bytes_of(lsm_buffer buffer):
    return PyBytes_FromStringAndSize(<const char *>buffer.bytes, buffer.size)
