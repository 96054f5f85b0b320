"""Who walks along a cursor: what iterators share, and those that stand between entries.

A step within a window calls nothing: an interruption finds it taken, and its item given, or
neither. The cursors of databases with an order of their own are the readable kernel's.
"""

from types import GenericAlias

cimport cython
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.ref cimport PyObject

from lsm.arguments import key_bytes
from lsm.kernels.native.cursor cimport Cursor, Window

from lsm.kernels.native.cursor import CLOSED as _closed
from lsm.refusals import no_pickle


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *item)


cdef object CLOSED = _closed
cdef str WHY_CLOSED = "Database or iterator is closed"
# Stands for an item where there is none; None is one.
cdef object AT_END = object()


cdef class Walker:
    """Walker(cursor, comparator, prefix, pinned_db)\n--\n
    A base with a cursor, which is ``CLOSED`` when this was closed; ``_why_closed`` says why.

    ``_pinned_db`` stays open as long as this is in use. An operation that raises leaves a walker at
    its position, and can be tried again.
    """

    def __cinit__(self):
        self._cursor = CLOSED
        self._why_closed = WHY_CLOSED
        self._prefix = b""
        self.link.before = self.link.behind = &self.link
        self.link.walker = <PyObject *>self

    def __init__(self, cursor, comparator, bytes prefix not None, pinned_db):
        begin(self, cursor, comparator, prefix, pinned_db)

    def __dealloc__(self):
        self.link.before.behind = self.link.behind
        self.link.behind.before = self.link.before

    @cython.binding(True)
    def close(self):
        """Release the view; every further use except closing is a RuntimeError."""
        self._cursor = CLOSED
        self._pinned_db = None

    @cython.binding(True)
    def abandon(self, str reason):
        """Close, with this reason in the RuntimeError of every further use."""
        self._why_closed = reason
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
        return False

    def __reduce__(self):
        raise no_pickle(self)

    def _open(self):
        return opened(self)

    def _found(self, find, window):
        """The window that ``find``, of the cursor, finds beside another one."""
        try:
            return find(window)
        except Exception:
            opened(self)  # if it was closed meanwhile, that is why
            raise

    def _place_of(self, target):
        """The place of a key that was given without the prefix."""
        return place_of(self, target)


cdef inline int begin(Walker self, cursor, comparator, bytes prefix, pinned_db) except -1:
    """Have a walker walk along a cursor."""
    self._comparator = comparator
    self._prefix = prefix
    self._pinned_db = pinned_db
    self._cursor = cursor
    return 0


cdef inline object opened(Walker self):
    """The cursor of a walker that was not closed."""
    if self._cursor is CLOSED:
        raise RuntimeError(self._why_closed)
    return self._cursor


cdef inline object whole_key(Walker self, target):
    """A key that was given without the prefix, with it."""
    if not PyBytes_CheckExact(target):
        target = key_bytes("target", target)
    return self._prefix + target if PyBytes_GET_SIZE(self._prefix) else target


cdef object place_of(Walker self, target):
    """The place of a key that was given without the prefix."""
    target = whole_key(self, target)
    if type(self._cursor) is not Cursor and self._comparator.wrap is not None:
        target = self._comparator.wrap(target)
    cursor = opened(self)
    if type(cursor) is Cursor:
        return (<Cursor>cursor).place_of(target)
    return cursor.place_of(target)


@cython.final
cdef class Iterator(Walker):
    """Iterator(cursor, comparator, prefix, pinned_db, reverse)\n--\n
    Iterates over a range of the database, as it was when the iterator was made.

    It stands between two entries: ``next()`` gives the one behind and steps over it, ``prev()`` the
    one before. So one after the other gives the same entry twice. A reverse iterator begins at the
    end, and ``next()`` and ``prev()`` change places.
    """

    def __init__(self, cursor, comparator, bytes prefix not None, pinned_db, bint reverse):
        begin_iterator(self, cursor, comparator, prefix, pinned_db, reverse)

    @classmethod
    def __class_getitem__(cls, item):
        return GenericAlias(cls, item)

    def __iter__(self):
        return self

    def __next__(self):
        """The entry behind, which is stepped over."""
        item = step_left(self) if self.is_reverse else step_right(self)
        if item is AT_END:
            raise StopIteration
        return item

    @cython.binding(True)
    def prev(self):
        """The entry before; StopIteration at the start of the range."""
        item = step_right(self) if self.is_reverse else step_left(self)
        if item is AT_END:
            raise StopIteration
        return item

    @cython.binding(True)
    def seek_to_start(self):
        """Stand before the first entry of the range."""
        cursor = opened(self)
        cursor.window = cursor.before_first()

    @cython.binding(True)
    def seek_to_stop(self):
        """Stand behind the last entry of the range."""
        cursor = opened(self)
        cursor.window = cursor.after_last()

    @cython.binding(True)
    @cython.always_allow_keywords(True)
    def seek(self, target):
        """Stand before the first entry of the range from this key on."""
        # The first entry is read at once, so that this is where damage shows.
        if type(self._cursor) is Cursor:
            seek_key(self, <Cursor>self._cursor, target)
            return
        place = place_of(self, target)
        cursor = opened(self)
        found = beside(self, cursor, place, True)
        cursor.window = place if found is None else found


cdef inline int begin_iterator(
    Iterator self, cursor, comparator, bytes prefix, pinned_db, bint reverse
) except -1:
    """Have an iterator stand at the beginning, or at the end."""
    begin(self, cursor, comparator, prefix, pinned_db)
    self.is_reverse = reverse
    if reverse:
        cursor.window = cursor.after_last()
    return 0


cdef Iterator new_iterator(cursor, comparator, bytes prefix, pinned_db, bint reverse):
    """The same as Iterator(...), for those who are compiled."""
    cdef Iterator self = Iterator.__new__(Iterator)
    begin_iterator(self, cursor, comparator, prefix, pinned_db, reverse)
    return self


cdef int seek_key(Iterator self, Cursor cursor, target) except -1:
    """Stand before the first entry from a key on."""
    cdef Window before, found
    cdef bytes key = whole_key(self, target)
    opened(self)
    try:
        found = cursor.sought(key)
    except Exception:
        opened(self)  # if it was closed meanwhile, that is why
        raise
    before = cursor.window
    cursor.window = found
    cursor.leave(before)
    return 0


cdef inline object step_right(Iterator self):
    """The item on the right, which is stepped over, or AT_END."""
    cdef PyObject *window
    while True:
        if type(self._cursor) is Cursor:
            window = <PyObject *>(<Cursor>self._cursor).window
            if (<Window>window).at < (<Window>window).end:
                (<Window>window).at += 1
                return (<Window>window).items[(<Window>window).at - 1]
            if not enter_right(self, <Cursor>self._cursor):
                return AT_END
        else:
            found = self._cursor.window
            at = found.at
            if at < found.end:
                item = found.items[at]
                found.at = at + 1
                return item
            if not enter_readable(self, True):
                return AT_END


cdef inline object step_left(Iterator self):
    """The same on the left."""
    cdef PyObject *window
    while True:
        if type(self._cursor) is Cursor:
            window = <PyObject *>(<Cursor>self._cursor).window
            if (<Window>window).at > 0:
                (<Window>window).at -= 1
                return (<Window>window).items[(<Window>window).at]
            if not enter_left(self, <Cursor>self._cursor):
                return AT_END
        else:
            found = self._cursor.window
            at = found.at
            if at > 0:
                item = found.items[at - 1]
                found.at = at - 1
                return item
            if not enter_readable(self, False):
                return AT_END


# If a reentrant step has left the window meanwhile, a step goes on from where that has led.


cdef bint enter_right(Iterator self, Cursor cursor) except -1:
    """Enter the window behind the one it stands at the end of; False if there is none."""
    cdef Window window = cursor.window
    cdef Window found
    opened(self)
    found = beside(self, cursor, window, True)
    if cursor.window is window and window.at == window.end:
        if found is None:
            return False
        cursor.window = found
        cursor.leave(window)
    return True


cdef bint enter_left(Iterator self, Cursor cursor) except -1:
    """Enter the window before the one it stands at the beginning of; False if there is none."""
    cdef Window window = cursor.window
    cdef Window found
    opened(self)
    found = beside(self, cursor, window, False)
    if cursor.window is window and window.at == 0:
        if found is None:
            return False
        found.at = found.end
        cursor.window = found
        cursor.leave(window)
    return True


cdef bint enter_readable(Iterator self, bint is_right) except -1:
    """The same with a cursor of the readable kernel."""
    cdef object cursor = opened(self)
    cdef object window = cursor.window
    cdef object found = beside(self, cursor, window, is_right)
    if cursor.window is window and window.at == (window.end if is_right else 0):
        if found is None:
            return False
        if not is_right:
            found.at = found.end
        cursor.window = found
    return True


cdef object beside(Iterator self, object cursor, object window, bint is_right):
    """The nearest window beside another one that has entries, or None."""
    try:
        if type(cursor) is Cursor:
            if is_right:
                return (<Cursor>cursor).next_window(<Window>window)
            return (<Cursor>cursor).previous_window(<Window>window)
        return cursor.next_window(window) if is_right else cursor.previous_window(window)
    except Exception:
        opened(self)  # if it was closed meanwhile, that is why
        raise


@cython.final
cdef class Walkers:
    """The walkers of a database, known by links in a ring, which leave by themselves."""

    def __cinit__(self):
        self.ring.before = self.ring.behind = &self.ring

    def __dealloc__(self):
        cdef lsm_link *link = self.ring.behind
        cdef lsm_link *behind
        while link != &self.ring:
            behind = link.behind
            link.before = link.behind = link
            link = behind

    cpdef add(self, Walker walker):
        """Know a walker from now on."""
        cdef lsm_link *link = &walker.link
        link.before.behind = link.behind
        link.behind.before = link.before
        link.before = self.ring.before
        link.behind = &self.ring
        link.before.behind = link.behind.before = link

    def alive(self):
        """Those that are still there."""
        cdef list found = []
        cdef lsm_link *link = self.ring.behind
        # No code of others runs here. Who is being deallocated has no references, and gets none.
        while link != &self.ring:
            if Py_REFCNT(link.walker) > 0:
                found.append(<object>link.walker)
            link = link.behind
        return found

    def __len__(self):
        cdef Py_ssize_t count = 0
        cdef lsm_link *link = self.ring.behind
        while link != &self.ring:
            count += 1
            link = link.behind
        return count
