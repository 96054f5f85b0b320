"""What readers of databases share, of their parts and of snapshots: lookups, and iterators."""

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
)
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from lsm.arguments import flag, key_bytes, optional_key
from lsm.kernels.native.cursor cimport Cursor
from lsm.kernels.native.iterator cimport Iterator, new_iterator
from lsm.kernels.native.lookup cimport holds, lookup
from lsm.kernels.native.lookup_group cimport GROUP, lookup_group
from lsm.kernels.native.merge cimport Source, new_source
from lsm.kernels.native.readable cimport Readable, give_way
from lsm.kernels.native.version cimport rank_of, version_of
from lsm.kernels.native.view cimport View

from lsm.kernels.python.reader import cursor_over as readable_cursor_over
from lsm.refusals import no_length, no_pickle


@cython.auto_pickle(False)
cdef class Reader:
    """A base that reads all keys, or those with a prefix, at a read rank or as of now.

    Keys are given and got without the prefix. ``_store`` is None when this was closed. Iterators
    keep ``_pinned_db`` open, or the reader itself if that is None. ``_closed_error()`` is why there
    are no lookups any more, and ``_closed_iterator_error()`` why no iterators.
    """

    @property
    def _prefix(self):
        return self.prefix

    @_prefix.setter
    def _prefix(self, bytes prefix):
        self.prefix = prefix

    @property
    def _read_rank(self):
        return rank_of(self.version) if self.is_fixed else None

    @_read_rank.setter
    def _read_rank(self, rank):
        if rank is not None:
            version_of(rank, &self.version)
        self.is_fixed = rank is not None

    @cython.binding(True)
    def get(self, key, default=None, *, verify_checksums=False, fill_cache=True):
        """The key's value, or the default if it has none.

        Blocks are always checked when they enter memory, with ``verify_checksums`` or without. With
        ``fill_cache=False`` what has to be read for this does not push other things out.
        """
        if not PyBytes_CheckExact(key):
            key = key_bytes("key", key)
        if fill_cache is not True or verify_checksums is not False:
            fill_cache = flag("fill_cache", fill_cache)
            flag("verify_checksums", verify_checksums)
        value = value_of_key(self, key, fill_cache)
        return default if value is None else value

    @cython.binding(True)
    def get_many(self, keys, default=None):
        """The values of many keys as of one moment, in order; the default for those without."""
        cdef Readable store = opened(self)
        give_way(store)
        view = view_of(self, store)
        cdef uint64_t version = self.version if self.is_fixed else store.version
        cdef list values = [], group = []
        for key in keys:
            if not PyBytes_CheckExact(key):
                key = key_bytes("key", key)
            group.append(key if self.prefix is None else self.prefix + <bytes>key)
            if len(group) == GROUP:
                add_values(store, view, group, version, default, values)
                group.clear()
        add_values(store, view, group, version, default, values)
        return values

    def __contains__(self, key):
        if not PyBytes_CheckExact(key):
            key = key_bytes("key", key)
        return has_key(self, key)

    def __getitem__(self, key):
        whole = key if PyBytes_CheckExact(key) else key_bytes("key", key)
        value = value_of_key(self, whole, True)
        if value is None:
            raise KeyError(key)
        return value

    def __len__(self):
        raise no_length(self)

    def __bool__(self):
        return True

    def __reduce__(self):
        raise no_pickle(self)

    @cython.binding(True)
    def iterator(
        self, *, reverse=False, start=None, stop=None, include_start=True, include_stop=False,
        prefix=None, include_key=True, include_value=True, verify_checksums=False, fill_cache=True,
    ):
        """An iterator over a range of keys as it is now, in either direction.

        ``prefix`` stands for the range of all keys that begin with it. Blocks are checked when they
        enter memory, with ``verify_checksums`` or without.
        """
        cdef Readable store
        cdef Iterator iterator
        cdef tuple low = None, high = None
        reverse = flagged("reverse", reverse)
        include_key = flagged("include_key", include_key)
        include_value = flagged("include_value", include_value)
        flagged("verify_checksums", verify_checksums)
        fill_cache = flagged("fill_cache", fill_cache)
        start = optional_key("start", start) if start is not None else None
        stop = optional_key("stop", stop) if stop is not None else None
        include_start = flagged("include_start", include_start)
        include_stop = flagged("include_stop", include_stop)
        if prefix is not None and not PyBytes_CheckExact(prefix):
            prefix = key_bytes("prefix", prefix)
        store = self._store
        if store is None or store.view is None:
            raise self._closed_iterator_error()
        view = store.view
        if start is not None:
            low = (start, include_start)
        if stop is not None:
            high = (stop, include_stop)
        if prefix is not None:
            if low is not None or high is not None:
                raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
            low, high = bounds_of(prefix)
        iterator = new_iterator(
            cursor_of(
                store, view, self.prefix, self.version if self.is_fixed else store.version,
                low, high, fill_cache, include_key, include_value,
            ),
            store.comparator,
            b"" if self.prefix is None else self.prefix,
            self if self._pinned_db is None else self._pinned_db,
            reverse,
        )
        store.walkers.add(iterator)
        if store.closed_by is not None:  # by somebody who may not have found it there
            iterator.close()
            raise self._closed_iterator_error()
        return iterator

    def __iter__(self):
        return self.iterator()


cdef inline bint flagged(str name, value) except -1:
    """What ``flag`` makes of it."""
    if value is True or value is False:
        return value is True
    return flag(name, value)


cdef object value_of_key(Reader self, bytes key, bint fill_cache):
    """The value of a key, or None."""
    cdef Readable store = opened(self)
    give_way(store)
    # The view before the version: what a compaction drops may be visible to an older one only.
    view = view_of(self, store)
    if self.prefix is not None:
        key = self.prefix + key
    return value_in(store, view, key, self.version if self.is_fixed else store.version, fill_cache)


cdef bint has_key(Reader self, bytes key) except -1:
    """Whether a key has a value."""
    cdef Readable store = opened(self)
    cdef uint64_t version
    give_way(store)
    view = view_of(self, store)  # before the version, here as well
    version = self.version if self.is_fixed else store.version
    if self.prefix is not None:
        key = self.prefix + key
    if type(view) is View:
        return holds(<View>view, store.tables, key, version)
    return value_in(store, view, key, version, True) is not None


cdef inline Readable opened(Reader self):
    if self._store is None:
        raise self._closed_error()
    return self._store


cdef inline object view_of(Reader self, Readable store):
    if store.view is None:
        raise self._closed_error()
    return store.view


cdef int add_values(
    Readable store, object view, list keys, uint64_t version, object default, list values
) except -1:
    """Add what a view has for some keys."""
    cdef Py_ssize_t first = len(values)
    values += [default] * len(keys)
    if type(view) is View:
        return lookup_group(<View>view, store.tables, keys, version, values, first)
    for key in keys:
        value = value_in(store, view, key, version, True)
        if value is not None:
            values[first] = value
        first += 1
    return 0


cdef inline object value_in(
    Readable store, object view, bytes key, uint64_t version, bint fill_cache
):
    """What a view has for a key: a view of either kernel, since keys may have an order of theirs."""
    if type(view) is View:
        return lookup(<View>view, store.tables, key, version, fill_cache, None)
    wrap = store.comparator.wrap
    ordered = key if wrap is None else wrap(key)
    return store.kernel.find(view, store.tables, key, ordered, rank_of(version), fill_cache)


cpdef tuple bounds_of(bytes prefix):
    """The bounds of all keys with a prefix."""
    cdef Py_ssize_t length
    cdef const unsigned char *head
    cdef bytes stop
    if prefix is None:
        raise TypeError("a prefix is bytes, not None")
    length = PyBytes_GET_SIZE(prefix)
    head = <const unsigned char *>PyBytes_AS_STRING(prefix)
    while length and head[length - 1] == 255:
        length -= 1
    if length == 0:
        return (prefix, True), None
    stop = PyBytes_FromStringAndSize(NULL, length)
    memcpy(PyBytes_AS_STRING(stop), head, length - 1)
    PyBytes_AS_STRING(stop)[length - 1] = <char>(head[length - 1] + 1)
    return (prefix, True), (stop, False)


def cursor_over(
    Readable store not None, view, bytes prefix, read_rank, tuple low, tuple high,
    fill_cache, include_key, include_value,
):
    """A cursor over a range of the keys, or of those with a prefix, which its items leave out.

    It has what is visible at the read rank, or now.
    """
    cdef uint64_t version = store.version
    if read_rank is not None:
        version_of(read_rank, &version)
    return cursor_of(
        store, view, prefix, version, low, high, fill_cache, include_key, include_value
    )


cdef object cursor_of(
    Readable store, object view, bytes prefix, uint64_t version, tuple low, tuple high,
    bint fill_cache, bint include_key, bint include_value,
):
    """The same at a version. The view was looked at before that.

    What a compaction drops may be visible to older versions only. A view of the readable kernel has
    its cursor, since its keys may have an order of their own.
    """
    if type(view) is not View:
        return readable_cursor_over(
            store, view, prefix, rank_of(version), low, high, fill_cache, include_key,
            include_value,
        )
    if prefix is not None:
        first, end = bounds_of(prefix)
        low = first if low is None else (prefix + <bytes>low[0], low[1])
        high = end if high is None else (prefix + <bytes>high[0], high[1])
    if low is not None and high is not None and store.tables.filters.asks_ranges:
        view = store.tables.narrowed(view, low, high)
    return Cursor(
        new_source(
            <View>view, store.tables, version, fill_cache, low, high, include_key, include_value,
            0 if prefix is None else <uint32_t>PyBytes_GET_SIZE(prefix),
        )
    )
