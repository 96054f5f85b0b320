# cython: freethreading_compatible=False
"""One run of entries, read straight from memory or from files; how is in ``source.h``."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from lsm.disk.footer import Handle
from lsm.kernels.native.block import Block


@cython.final
cdef class Source:
    """One run, and what keeps its entries where they are."""

    def __dealloc__(self):
        self.release()
        lsm_source_free(&self.c)

    cdef void release(self) noexcept:
        """Let go of the file."""
        self.c.file = NULL
        if self.has_view:
            self.has_view = False
            PyBuffer_Release(&self.view)

    cdef bint open_next(self) except -1:
        """Go on to the next table, if there is one."""
        self.release()
        self.table = None
        self.table = next(self.tables, None)
        if self.table is None:
            return False
        self.c.offsets = self.table.offsets
        self.c.sizes = self.table._sizes
        self.c.block = 0
        self.c.block_count = self.table.index.count
        data = self.table.reader.mapped.data
        if PyObject_CheckBuffer(data):
            PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
            self.has_view = True
            self.c.file = <const uint8_t *>self.view.buf
            self.c.file_size = <size_t>self.view.len
        return True

    cdef int read_block(self) except -1:
        """Read the next block as readers do, which raises what is wrong with it."""
        cdef uint32_t number = self.c.block
        handle = Handle(self.table.offsets[number], self.table._sizes[number])
        cdef bytes contents = self.table.reader.block(handle)
        if not lsm_source_load(
            &self.c, <const uint8_t *>PyBytes_AS_STRING(contents), PyBytes_GET_SIZE(contents)
        ):
            Block(contents, None, f"{self.table.reader.name}: the data block at byte {handle.offset}")
            raise MemoryError(f"{self.table.reader.name}: there is no memory for a block of it")
        self.contents = contents
        return 0

    cdef object disorder(self):
        """The error that says that the block's keys do not ascend."""
        return self.table.reader.damaged(
            f"the data block at byte {self.table.offsets[self.c.block - 1]}: its keys do not "
            "ascend, or do not follow those of the block before"
        )
