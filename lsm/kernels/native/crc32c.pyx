"""Checksums as compiled code takes them, asked from Python: how is in ``crc32c.h``."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


def crc32c(data, uint32_t value=0):
    """The checksum of the bytes; given the ``value`` of other bytes, that of those and these."""
    return checksum(data, value, lsm_crc32c)


def crc32c_portable(data, uint32_t value=0):
    """The same without the processor's instructions for it."""
    return checksum(data, value, lsm_crc32c_portable)


def mask(uint32_t value):
    """The form that is stored."""
    return lsm_crc32c_mask(value)


def has_instructions():
    """Whether the processor's own instructions take checksums here."""
    return bool(lsm_crc_has_instructions())


ctypedef uint32_t (*Taker)(uint32_t, const uint8_t *, size_t) noexcept nogil


cdef uint32_t checksum(data, uint32_t value, Taker take) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    value = take(value, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return value
