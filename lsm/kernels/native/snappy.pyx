"""Snappy in C, asked from Python: how is in ``snappy.h``."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdlib cimport free, malloc

from lsm.disk.coding import Fields
from lsm.disk.compression import LIMIT, SNAPPY, most
from lsm.errors import CorruptionError

cdef enum:
    LARGE = 1 << 16   # so many bytes are worth waiting for the global lock again


def compress(data):
    """The bytes in Snappy's raw form; ValueError for more than a block that is compressed has."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return compressed(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def decompress(data):
    """The bytes that were compressed so; CorruptionError for what no Snappy has written."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return decompressed(data, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef bytes compressed(const uint8_t *data, size_t size):
    cdef size_t table = LSM_SNAPPY_TABLE * sizeof(uint16_t), length
    if size > <size_t>LIMIT:
        raise ValueError(f"Snappy is asked for {size} bytes, allowed are {LIMIT}")
    cdef uint8_t *scratch = <uint8_t *>malloc(table + lsm_snappy_bound(size))
    if scratch == NULL:
        raise MemoryError(f"there is no memory to compress {size} bytes in")
    try:
        if size < <size_t>LARGE:
            length = lsm_snappy_compress(data, size, scratch + table, <uint16_t *>scratch)
        else:
            with nogil:
                length = lsm_snappy_compress(data, size, scratch + table, <uint16_t *>scratch)
        return PyBytes_FromStringAndSize(<const char *>scratch + table, length)
    finally:
        free(scratch)


cdef bytes decompressed(data, const uint8_t *stored, size_t size):
    cdef uint32_t length = 0
    cdef size_t at = 0
    cdef int is_right
    if not lsm_snappy_length(stored, size, &length, &at):
        Fields(data, "snappy data").varint32("uncompressed length")   # which says why not
    if length > <size_t>most(SNAPPY, size):
        raise CorruptionError(
            f"snappy data of {size} bytes claims to hold {length}, "
            f"allowed are {most(SNAPPY, size)}"
        )
    cdef bytes opened = PyBytes_FromStringAndSize(NULL, length)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(opened)
    if length < <uint32_t>LARGE:
        is_right = lsm_snappy_decompress(stored + at, size - at, out, length)
    else:
        with nogil:
            is_right = lsm_snappy_decompress(stored + at, size - at, out, length)
    if not is_right:
        raise CorruptionError(f"snappy data of {size} bytes is damaged")
    return opened
