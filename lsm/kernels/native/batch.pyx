# cython: freethreading_compatible=False
"""Write batches, which are the records of a log as they will be written; see ``operations.h``.

An operation is added in one go, with the GIL: whoever is interrupted has added it or has not.
"""

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
)
from libc.stdint cimport UINT32_MAX
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from lsm.arguments import key_bytes
from lsm.kernels.native.lone_commit cimport commit_alone
from lsm.kernels.native.operations cimport (
    LSM_BATCH_HEADER, LSM_DELETE, LSM_PUT, lsm_operation_bound, lsm_operation_write
)
from lsm.kernels.native.readable cimport give_way
from lsm.kernels.python.batch import too_long
from lsm.refusals import no_pickle

cdef enum:
    FIRST_ROOM = 256


@cython.auto_pickle(False)
cdef class Batch:
    """Puts and deletes in the order they came, of keys that get a prefix.

    ``_store`` is the database that they are for: once it is closed, nothing is collected any more.
    """

    def __dealloc__(self):
        free(self.record)

    def __reduce__(self):
        raise no_pickle(self)

    @property
    def _prefix(self):
        return b"" if self.prefix is None else self.prefix

    @_prefix.setter
    def _prefix(self, bytes prefix):
        self.prefix = prefix or None

    @property
    def count(self):
        """How many operations were collected."""
        return self.operations

    @property
    def payload(self):
        """How many bytes their keys and values have."""
        return self.payload_bytes

    @cython.binding(True)
    def put(self, key, value):
        """Add an operation that sets the key's value."""
        if not PyBytes_CheckExact(key):
            key = key_bytes("key", key)
        check_open(self)
        if not PyBytes_CheckExact(value):
            value = key_bytes("value", value)
        self.add(key, value)

    @cython.binding(True)
    def delete(self, key):
        """Add an operation that deletes the key."""
        if not PyBytes_CheckExact(key):
            key = key_bytes("key", key)
        check_open(self)
        self.add(key, None)

    @cython.binding(True)
    def append(self, source):
        """Add another batch's operations as they are, that one's prefix included."""
        cdef Batch other
        cdef size_t added
        if not isinstance(source, Batch):
            raise TypeError(f"source is a WriteBatch, not {type(source).__name__}")
        check_open(self)
        other = source
        if other.operations:
            added = other.size - LSM_BATCH_HEADER
            memcpy(self.more(added), other.record + LSM_BATCH_HEADER, added)
            self.size += added
            self.operations += other.operations
            self.payload_bytes += other.payload_bytes

    @cython.binding(True)
    def clear(self):
        """Drop the operations that were collected so far."""
        check_open(self)
        free(self.record)
        self.record = NULL
        self.size = self.room = 0
        self.operations = self.payload_bytes = 0

    @cython.binding(True)
    def approximate_size(self):
        """The bytes the batch would take in the log."""
        check_open(self)
        return self.size or LSM_BATCH_HEADER

    def record_to_stamp(self):
        """The record of all operations, with a header of zeros."""
        if self.record == NULL:
            return bytes(LSM_BATCH_HEADER)
        memset(self.record, 0, LSM_BATCH_HEADER)
        return PyBytes_FromStringAndSize(<const char *>self.record, self.size)

    def commit_alone(self):
        """Write all operations at once, if nothing is in the way; whether that was so."""
        give_way(self._store)
        return self.record != NULL and commit_alone(
            self._store, self.record, self.size, self.operations, self.payload_bytes
        )

    cdef uint8_t *more(self, uint64_t size) except NULL:
        """Room for so many more bytes."""
        cdef uint64_t needed = size + (self.size or LSM_BATCH_HEADER)
        cdef uint8_t *record
        if needed > self.room:
            needed = max(FIRST_ROOM, needed + needed / 2)
            record = <uint8_t *>realloc(self.record, needed)
            if record == NULL:
                raise MemoryError(f"there is no memory for a batch of {needed} bytes")
            self.record = record
            self.room = needed
        if self.size == 0:
            self.size = LSM_BATCH_HEADER
        return self.record + self.size

    cdef int add(self, bytes key, bytes value) except -1:
        cdef lsm_operation operation
        cdef uint8_t *place
        if self.prefix is not None:
            key = self.prefix + key
        operation_of(key, value, &operation)
        place = self.more(lsm_operation_bound(operation.key_length, operation.value_length))
        self.size = lsm_operation_write(place, &operation) - self.record
        self.operations += 1
        self.payload_bytes += <uint64_t>operation.key_length + operation.value_length
        return 0


cdef int operation_of(bytes key, bytes value, lsm_operation *operation) except -1:
    """The operation that sets a key's value, or deletes it where that is None."""
    operation.kind = LSM_DELETE if value is None else LSM_PUT
    operation.key = <const uint8_t *>PyBytes_AS_STRING(key)
    operation.key_length = checked_length(key)
    operation.value = NULL
    operation.value_length = 0
    if value is not None:
        operation.value = <const uint8_t *>PyBytes_AS_STRING(value)
        operation.value_length = checked_length(value)
    return 0


cdef inline int check_open(Batch self) except -1:
    if self._store.closed_by is not None:
        raise self._store.closed_error()
    return 0


cdef uint32_t checked_length(object field) except? 0:
    """The length of a key or value, which the format has 32 bits for."""
    if PyBytes_GET_SIZE(field) > UINT32_MAX:
        raise too_long(PyBytes_GET_SIZE(field))
    return <uint32_t>PyBytes_GET_SIZE(field)
