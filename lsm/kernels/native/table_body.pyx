"""The body of a table that is being written; what it is made of is in ``table_body.h``."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t
from libc.string cimport memset

from filters.packed_keys import PackedKeys

from lsm.disk import compression
from lsm.kernels.native.block_builder cimport (
    Given, lsm_buffer_free, refuse, take_entry
)


@cython.final
@cython.no_gc
cdef class Taken:
    """Bytes that were taken out of a body."""

    def __dealloc__(self):
        lsm_buffer_free(&self.c)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.c.bytes, <Py_ssize_t>self.c.size, 1, flags)


@cython.final
@cython.no_gc
cdef class TableBody:
    """Data blocks and index of a table, from entries that come in order."""

    def __cinit__(
        self, size_t block_size, uint32_t restart_interval, int kind, comparator=None,
        bint with_keys=True,
    ):
        assert comparator is None or comparator.wrap is None, "the compiled kernel compares bytes"
        self.c.block_size = block_size
        self.c.block.interval = restart_interval
        self.c.compression = kind
        self.c.has_keys = with_keys
        self.c.descriptor = -1

    def __dealloc__(self):
        lsm_table_body_free(&self.c)

    @property
    def offset(self):
        """The bytes of all finished blocks."""
        return self.c.offset

    @property
    def size(self):
        """The same, or more where the keys take far more memory."""
        return lsm_table_body_size(&self.c)

    @property
    def num_entries(self):
        """How many entries were added."""
        return self.c.entries

    @property
    def smallest(self):
        """The internal key of the first entry; no bytes if there is none."""
        return bytes_of(self.c.smallest)

    @property
    def largest(self):
        """The internal key of the last entry of a finished block."""
        return bytes_of(self.c.largest)

    def drain_into(self, int descriptor):
        """Write finished blocks to the end of this file, many at a time, before they are taken."""
        self.c.descriptor = descriptor

    @property
    def drained(self):
        """How many bytes of blocks were written so."""
        return self.c.drained

    def add(self, list entries not None, Py_ssize_t at, end=None):
        """Add entries from an index on, up to another one, until the open block is finished.

        Returns the index of the first that was not added. Keys are the user's, as bytes.
        """
        cdef Py_ssize_t stop = len(entries) if end is None else min(<Py_ssize_t>end, len(entries))
        cdef Given given
        cdef int refused
        while at < stop:
            take_entry(entries[at], &given)
            refused = lsm_body_add(
                &self.c, given.key, given.key_length, given.version, given.value,
                given.value_length,
            )
            refuse(refused)
            at += 1
            if refused == LSM_BODY_COMPRESS:
                self.compress()
            if not lsm_body_is_open(&self.c):
                break
        return at

    def close_block(self):
        """Finish the open block, if there is one."""
        cdef int refused
        if lsm_body_is_open(&self.c):
            refused = lsm_body_close(&self.c)
            refuse(refused)
            if refused == LSM_BODY_COMPRESS:
                self.compress()

    def take(self):
        """The bytes of finished blocks that were neither taken nor drained yet."""
        cdef Taken finished = Taken.__new__(Taken)
        finished.c = self.c.finished
        memset(&self.c.finished, 0, sizeof(self.c.finished))
        return memoryview(finished)

    def take_keys(self):
        """The user keys of blocks that were finished since, and the blocks' ends.

        Of each block that is how many of these keys there are up to its end, and the offset behind
        it. There are no keys in a body without.
        """
        cdef Taken keys, key_ends
        cdef lsm_finished_block *blocks = <lsm_finished_block *>self.c.blocks.bytes
        cdef size_t number, count = self.c.blocks.size // sizeof(lsm_finished_block)
        cdef list ends = [(blocks[number].keys, blocks[number].offset) for number in range(count)]
        packed = []
        if count and self.c.has_keys:
            keys, key_ends = Taken.__new__(Taken), Taken.__new__(Taken)
            if not lsm_body_take_keys(&self.c, &keys.c, &key_ends.c):
                raise MemoryError("there is no memory for the keys of a table")
            packed = PackedKeys(keys, offsets=memoryview(key_ends).cast("q"))
        self.c.blocks.size = 0
        return packed, ends

    def index(self):
        """The contents of the index block, once all blocks are finished; once only."""
        refuse(lsm_table_body_index(&self.c))
        return bytes_of(self.c.index)

    cdef int compress(self) except -1:
        """Store the closed block, compressed by a library."""
        cdef bytes block = bytes_of(self.c.block.entries)
        cdef bytes stored
        kind, stored = compression.compress(self.c.compression, block)
        return refuse(lsm_body_store(
            &self.c, <const uint8_t *>PyBytes_AS_STRING(stored), PyBytes_GET_SIZE(stored), kind
        ))


cdef inline bytes bytes_of(lsm_buffer buffer):
    return PyBytes_FromStringAndSize(<const char *>buffer.bytes, buffer.size)
