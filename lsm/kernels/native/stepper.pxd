"""Who walks along a cursor: what iterators share, and the steps between entries."""

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


cdef class Stepper(Walker):
    cdef public bint _reverse


@cython.final
cdef class Walkers:
    cdef lsm_link ring

    cpdef add(self, Walker walker)
