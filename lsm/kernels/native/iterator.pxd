"""Who walks along a cursor: what iterators share, and those that stand between entries."""

cimport cython
from cpython.ref cimport PyObject


# A walker's place among those of a database, which does not hold it; alone in a ring of its own.
ctypedef struct lsm_link:
    lsm_link *before
    lsm_link *behind
    PyObject *walker


cdef class Walker:
    cdef public object _cursor
    cdef public object _comparator
    cdef public bytes _prefix
    cdef public object _pinned_db
    cdef public object _why_closed
    cdef lsm_link link
    cdef object __weakref__


@cython.final
cdef class Iterator(Walker):
    cdef bint is_reverse


@cython.final
cdef class Walkers:
    cdef lsm_link ring

    cpdef add(self, Walker walker)


cdef Iterator new_iterator(cursor, comparator, bytes prefix, pinned_db, bint reverse)
