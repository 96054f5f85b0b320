"""What is read of a database by those who iterate: its ranges as cursors."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from lsm.kernels.native.cursor cimport Cursor
from lsm.kernels.native.merge cimport Source
from lsm.kernels.native.view cimport View

from lsm.kernels.python.reading import readable_cursor


@cython.final
cdef class Reading:
    """The part of a database that is read: keys with a prefix, at a read rank or as of now.

    ``pinned_db`` is the database, which is not collected, and so not closed, as long as it is
    referred to.
    """

    def __cinit__(self, store, bytes prefix, read_rank, pinned_db):
        self.store = store
        self.prefix = prefix
        self.read_rank = read_rank
        self.pinned_db = pinned_db

    def cursor(self, view, tuple low, tuple high, fill_cache, include_key, include_value):
        """A cursor over a range of the keys, whose items have them without the prefix."""
        if type(view) is not View:
            return readable_cursor(self, view, low, high, fill_cache, include_key, include_value)
        if self.prefix is not None:
            first, end = bounds_of(self.prefix)
            low = first if low is None else (self.prefix + <bytes>low[0], low[1])
            high = end if high is None else (self.prefix + <bytes>high[0], high[1])
        # The view was looked at before the rank: what a compaction drops may be visible to an
        # older one only.
        rank = self.store.visible if self.read_rank is None else self.read_rank
        return Cursor(
            Source(
                view, self.store.tables, rank, fill_cache, low, high, include_key, include_value,
                0 if self.prefix is None else PyBytes_GET_SIZE(self.prefix),
            )
        )


def bounds_of(bytes prefix not None):
    """The bounds of all keys with a prefix."""
    cdef Py_ssize_t length = PyBytes_GET_SIZE(prefix)
    cdef const unsigned char *head = <const unsigned char *>PyBytes_AS_STRING(prefix)
    cdef bytes stop
    while length and head[length - 1] == 255:
        length -= 1
    if length == 0:
        return (prefix, True), None
    stop = PyBytes_FromStringAndSize(NULL, length)
    memcpy(PyBytes_AS_STRING(stop), head, length - 1)
    PyBytes_AS_STRING(stop)[length - 1] = <char>(head[length - 1] + 1)
    return (prefix, True), (stop, False)
