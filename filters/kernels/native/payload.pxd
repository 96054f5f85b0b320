"""The bytes that a filter probes."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t


cdef class Payload:
    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef readonly bint writable
    cdef bint _viewing
    cdef Py_buffer _foreign

    @staticmethod
    cdef Payload zeroed(Py_ssize_t size)

    @staticmethod
    cdef Payload view(object buffer)

    cdef Payload copy(self)


cdef Py_ssize_t count_bits(Payload payload, Py_ssize_t size)
