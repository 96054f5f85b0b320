# cython: freethreading_compatible=False
"""What programs write to: a database, or the part of it whose keys have a prefix."""

cimport cython
from cpython.bytes cimport PyBytes_CheckExact
from libc.stdint cimport uint8_t, uint64_t

from lsm.arguments import flag, key_bytes
from lsm.kernels.native.batch cimport Batch, operation_of
from lsm.kernels.native.lone_commit cimport commit_alone
from lsm.kernels.native.operations cimport (
    LSM_BATCH_HEADER, lsm_operation, lsm_operation_bound, lsm_operation_write
)
from lsm.kernels.native.readable cimport give_way
from lsm.kernels.native.reader cimport Reader

cdef enum:
    # An operation of so many bytes is written from here, and nothing is allocated.
    FEW_BYTES = 2048


@cython.auto_pickle(False)
cdef class Keyspace(Reader):
    """A reader that writes, too; ``_store`` is there as long as it is."""

    @cython.binding(True)
    def put(self, key, value, *, sync=False):
        """Set the key's value.

        When this returns, the system has it, and it survives the end of the process; with ``sync``
        it survives the loss of power, too.
        """
        put_entry(self, key, value, sync)

    @cython.binding(True)
    def delete(self, key, *, sync=False):
        """Delete the key, if it is there."""
        delete_entry(self, key, sync)

    def __setitem__(self, key, value):
        put_entry(self, key, value, False)

    def __delitem__(self, key):
        delete_entry(self, key, False)


cdef inline int put_entry(Keyspace self, key, value, object sync) except -1:
    """Set a key's value, whatever is taken for bytes."""
    if not PyBytes_CheckExact(key):
        key = key_bytes("key", key)
    if self._store.closed_by is not None:
        raise self._closed_error()
    if not PyBytes_CheckExact(value):
        value = key_bytes("value", value)
    return write(self, key, value, sync)


cdef inline int delete_entry(Keyspace self, key, object sync) except -1:
    """Delete a key, whatever is taken for bytes."""
    if not PyBytes_CheckExact(key):
        key = key_bytes("key", key)
    if self._store.closed_by is not None:
        raise self._closed_error()
    return write(self, key, None, sync)


cdef int write(Keyspace self, bytes key, bytes value, object sync) except -1:
    """Set a key's value, or delete it where that is None."""
    cdef uint8_t record[FEW_BYTES]
    cdef lsm_operation operation
    cdef uint8_t *end
    cdef uint64_t payload
    cdef Batch batch
    give_way(self._store)
    if self.prefix is not None:
        key = self.prefix + key
    operation_of(key, value, &operation)
    if sync is False and FEW_BYTES >= LSM_BATCH_HEADER + lsm_operation_bound(
        operation.key_length, operation.value_length
    ):
        end = lsm_operation_write(record + LSM_BATCH_HEADER, &operation)
        payload = <uint64_t>operation.key_length + operation.value_length
        if commit_alone(self._store, record, end - record, 1, payload):
            return 0
    batch = Batch.__new__(Batch)
    batch._store = self._store
    batch.add(key, value)
    self._store.write(batch, sync if sync is True else flag("sync", sync))
    return 0
