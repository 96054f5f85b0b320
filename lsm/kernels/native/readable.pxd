"""What readers read: the state of an open database that lookups and lone commits begin with."""

from libc.stdint cimport uint64_t

from lsm.kernels.native.iterator cimport Walkers


cdef class Readable:
    cdef public object view
    cdef public object tables
    cdef public object closed_by
    cdef public Walkers walkers
    cdef public object pending
    cdef public bint is_unhindered
    cdef public uint64_t unhindered_size
    cdef public uint64_t user_bytes
    cdef public uint64_t log_bytes
    cdef int working          # threads in the background
    cdef uint64_t turn        # the moment of the last turn that was given to one of them
    cdef uint64_t version

    cdef int take_turns(self) except -1


cdef inline int give_way(Readable store) except -1:
    """Let a background thread have its turn, if there is one and it is time."""
    return store.take_turns() if store.working else 0
