"""The bytes that a filter probes: memory of its own, or a view of an immutable buffer."""

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
)
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from filters.kernels.native.wide cimport lsm_load64, lsm_popcount


cdef extern from "allocation.h":
    uint8_t *lsm_allocate(size_t size) nogil
    void lsm_release(uint8_t *memory) nogil


# A probe may load whole words, and so read beyond the last byte. Behind a view lies the checksum
# that every payload ends with; behind memory of our own lies this.
cdef Py_ssize_t PADDING = 16

cdef char *BYTES = b"B"  # a buffer's format


cdef class Payload:
    """Bytes with an owner; memory of our own starts on a cache line and can be written."""

    @staticmethod
    cdef Payload zeroed(Py_ssize_t size):
        """Memory of our own: so many bytes, all zero."""
        cdef Payload self = Payload.__new__(Payload)
        self.data = lsm_allocate(<size_t>(size + PADDING))
        if self.data == NULL:
            raise MemoryError(f"there is no memory for a filter of {size} bytes")
        self.size = size
        self.writable = True
        return self

    @staticmethod
    cdef Payload view(object buffer):
        """The bytes of a contiguous buffer, which nobody changes."""
        cdef Payload self = Payload.__new__(Payload)
        PyObject_GetBuffer(buffer, &self._foreign, PyBUF_SIMPLE)
        self._viewing = True
        self.data = <uint8_t *>self._foreign.buf
        self.size = self._foreign.len
        return self

    cdef Payload copy(self):
        """The same bytes in memory of our own."""
        cdef Payload copied = Payload.zeroed(self.size)
        memcpy(copied.data, self.data, <size_t>self.size)
        return copied

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if flags & PyBUF_WRITABLE:
            raise BufferError("the bytes of a filter are not for writing")
        buffer.obj = self
        buffer.buf = self.data
        buffer.len = self.size
        buffer.itemsize = 1
        buffer.readonly = 1
        buffer.ndim = 1
        buffer.format = BYTES if flags & PyBUF_FORMAT else NULL
        buffer.shape = &self.size if flags & PyBUF_ND else NULL
        buffer.strides = NULL
        buffer.suboffsets = NULL
        buffer.internal = NULL

    def __dealloc__(self):
        if self._viewing:
            PyBuffer_Release(&self._foreign)
        elif self.data != NULL:
            lsm_release(self.data)


cdef Py_ssize_t count_bits(Payload payload, Py_ssize_t size):
    """How many bits of the first so many bytes are set."""
    cdef Py_ssize_t i, words = size >> 3, bits = 0
    with nogil:
        for i in range(words):
            bits += lsm_popcount(lsm_load64(payload.data + 8 * i))
        for i in range(8 * words, size):
            bits += lsm_popcount(payload.data[i])
    return bits
