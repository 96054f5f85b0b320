"""Cursors over the visible entries of a view, in both directions, a window at a time."""

cimport cython

from lsm.kernels.native.merge cimport Merge, Source


# Where reading goes on: with a key or behind it; at an end, under no key; nowhere.
cdef enum Onward:
    FROM_KEY
    BEYOND_KEY
    FROM_END
    NOWHERE




@cython.final
cdef class Window:
    cdef public Py_ssize_t at
    cdef readonly Py_ssize_t end
    cdef readonly list items
    cdef bytes left
    cdef bytes right
    cdef Onward leftward
    cdef Onward rightward
    cdef Merge ascending
    cdef Merge descending
    cdef bint is_light               # whether its items may be kept a while
    cdef Py_ssize_t reach            # items of the window that is found from here, at most


@cython.final
cdef class Cursor:
    cdef Source source
    cdef public Window window
    cdef list spare                  # items of a window that was left, to be written over

    cdef void leave(self, Window window) noexcept
    cdef Window sought(self, bytes key)
    cpdef Window before_first(self)
    cpdef Window after_last(self)
    cpdef Window place_of(self, bytes key)
    cpdef Window next_window(self, Window window)
    cpdef Window previous_window(self, Window window)
