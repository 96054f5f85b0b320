"""What is read of a database by those who iterate: its ranges as cursors."""

cimport cython


@cython.final
cdef class Reading:
    cdef readonly object store
    cdef readonly bytes prefix
    cdef readonly object read_rank
    cdef readonly object pinned_db
