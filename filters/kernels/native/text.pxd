"""Keys that are str, as bytes."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t


cdef extern from "text.h" nogil:
    enum: LSM_TEXT_ROOM
    const uint8_t *lsm_ascii_bytes(PyObject *key, size_t *size)
    const uint8_t *lsm_text_bytes(PyObject *text, uint8_t *room, size_t *size)
    void lsm_encode_texts(
        const uint8_t *characters, size_t count, size_t width, uint8_t *into, int64_t *ends
    )
