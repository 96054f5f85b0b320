"""Cursors over the visible entries of a view, in both directions, a window at a time."""

cimport cython
from cpython.ref cimport PyObject

from lsm.kernels.native.merge cimport Merge, Source, merge_from


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *item)


cdef enum:
    # A window's items: few for who has come for few, and more as the walk goes on.
    FIRST_AT_KEY = 1
    FIRST_AT_END = 12
    GROWTH = 4
    MOST = 64

cdef list NO_ITEMS = []


@cython.final
@cython.no_gc
@cython.freelist(16)
cdef class Window:
    """A run of consecutive visible entries, and where reading goes on from both of its ends.

    ``at`` is where its iterator stands among ``items``, what it makes of the entries. An empty
    window is only a position: entries begin on either side of it. ``ascending`` and ``descending``
    go on reading from its ends, once that was begun.
    """

    def vacated(self):
        """An empty window that entries on both sides of this one are found from."""
        cdef Window window = new_window(self.left, self.leftward, self.right, self.rightward)
        window.reach = self.reach
        return window


cdef inline Window new_window(bytes left, Onward leftward, bytes right, Onward rightward):
    cdef Window window = Window.__new__(Window)
    window.items = NO_ITEMS
    window.left = left
    window.leftward = leftward
    window.right = right
    window.rightward = rightward
    return window


cdef inline Onward toward(bytes key, bint is_included) noexcept:
    """How reading goes on from a bound."""
    if key is None:
        return FROM_END
    return FROM_KEY if is_included else BEYOND_KEY


@cython.final
cdef class Cursor:
    """Finds windows: the first one, and the nearest with entries on either side of another.

    An iterator's whole position is in ``window``, which is replaced as a whole: a step that raises
    leaves it as it was, and the merge it had begun is begun anew by the next step.
    """

    def __cinit__(self, Source source):
        self.source = source
        if source is None:
            self.window = new_window(None, NOWHERE, None, NOWHERE)
        else:
            self.window = self.before_first()

    cdef void leave(self, Window window) noexcept:
        """Keep the items of a window that nobody but the caller has, to write over them."""
        if window.is_light and Py_REFCNT(<PyObject *>window) == 1:
            if Py_REFCNT(<PyObject *>window.items) == 1:
                self.spare = window.items
                window.items = NO_ITEMS
                window.at = window.end = 0

    cpdef Window before_first(self):
        """An empty window before the first entry."""
        cdef Source source = self.source
        cdef Window window = new_window(
            None, NOWHERE, source.low, toward(source.low, source.low_included)
        )
        window.reach = FIRST_AT_END
        return window

    cpdef Window after_last(self):
        """An empty window behind the last entry."""
        cdef Source source = self.source
        cdef Window window = new_window(
            source.high, toward(source.high, source.high_included), None, NOWHERE
        )
        window.reach = FIRST_AT_END
        return window

    cpdef Window place_of(self, bytes key):
        """An empty window before the first entry from this key on."""
        cdef Source source = self.source
        cdef Window window
        if source.low is not None and not source.low < key:
            return self.before_first()
        if source.high is not None and source.high < key:
            return self.after_last()
        window = new_window(key, BEYOND_KEY, key, FROM_KEY)
        window.reach = FIRST_AT_KEY
        return window

    cdef Window sought(self, bytes key):
        """The window from a key on; an empty one at its place if there is none."""
        cdef Source source = self.source
        cdef Window window = self.window
        cdef Window found
        cdef Merge merge
        if (source.low is not None and not source.low < key) or (
            source.high is not None and source.high < key
        ):
            window = self.place_of(key)
            found = self.next_window(window)
            return window if found is None else found
        merge, window.ascending = window.ascending, None
        if merge is not None and Py_REFCNT(<PyObject *>merge) > 1:
            merge = None
        merge = merge_from(source, key, True, False, merge)
        found = taken(self, merge, FIRST_AT_KEY)
        if found.end == 0:
            found = new_window(key, BEYOND_KEY, None, NOWHERE)
            found.reach = FIRST_AT_KEY
        else:
            pass_on(found, merge)
        return found

    cpdef Window next_window(self, Window window):
        """The nearest window behind this one that has entries; None if there is none."""
        cdef Merge merge = window.ascending
        cdef Window found
        window.ascending = None  # it goes on from here once, or not at all
        if window.rightward == NOWHERE:
            return None
        if merge is None:
            merge = merge_from(
                self.source, window.right, window.rightward == FROM_KEY, False, None
            )
        found = taken(self, merge, window.reach)
        if found.end == 0:
            window.right = None
            window.rightward = NOWHERE
            return None
        pass_on(found, merge)
        return found

    cpdef Window previous_window(self, Window window):
        """The nearest window before this one that has entries; None if there is none."""
        cdef Merge merge = window.descending
        cdef Window found
        window.descending = None
        if window.leftward == NOWHERE:
            return None
        if merge is None:
            merge = merge_from(
                self.source, window.left, window.leftward == FROM_KEY, True, None
            )
        found = taken(self, merge, window.reach)
        if found.end == 0:
            window.left = None
            window.leftward = NOWHERE
            return None
        if merge.is_over:
            found.leftward = NOWHERE
        else:
            found.descending = merge
        return found


cdef inline void pass_on(Window found, Merge merge) noexcept:
    """Have a window go on from its right end with the merge that it was found by."""
    if merge.is_over:
        found.rightward = NOWHERE
    else:
        found.ascending = merge


cdef Window taken(Cursor cursor, Merge merge, Py_ssize_t most):
    """A window of so many items at most that a merge has next."""
    cdef list spare = cursor.spare
    cdef list items
    cdef Window window
    cursor.spare = None
    items = merge.take(cursor.source, most, spare)
    window = new_window(merge.first, BEYOND_KEY, merge.last, BEYOND_KEY)
    window.items = items
    window.end = len(items)
    window.is_light = merge.is_light
    window.reach = most * GROWTH if most * GROWTH < MOST else MOST
    return window


CLOSED = Cursor(None)
