"""Getting values: the lookups of databases, of their parts and of snapshots."""

cimport cython
from cpython.bytes cimport PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t

from lsm.arguments import flag, key_bytes
from lsm.kernels.native.lookup cimport lookup
from lsm.kernels.native.lookup_group cimport GROUP, lookup_group
from lsm.kernels.native.readable cimport Readable
from lsm.kernels.native.version cimport rank_of, version_of
from lsm.kernels.native.view cimport View


@cython.auto_pickle(False)
cdef class Getter:
    """A base that looks keys up: under a prefix, at a read rank or as of now.

    ``_store`` is None when this was closed, and ``_closed_error()`` tells so then.
    """

    cdef public Readable _store
    cdef bytes prefix
    cdef uint64_t version
    cdef bint is_fixed

    @property
    def _prefix(self):
        return self.prefix

    @_prefix.setter
    def _prefix(self, bytes prefix not None):
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
        view = view_of(self, store)
        cdef uint64_t version = self.version if self.is_fixed else store.version
        cdef list values = [], group = []
        for key in keys:
            if not PyBytes_CheckExact(key):
                key = key_bytes("key", key)
            group.append(self.prefix + <bytes>key if self.prefix else key)
            if len(group) == GROUP:
                add_values(store, view, group, version, default, values)
                group.clear()
        add_values(store, view, group, version, default, values)
        return values

    def __contains__(self, key):
        if not PyBytes_CheckExact(key):
            key = key_bytes("key", key)
        return value_of_key(self, key, True) is not None


cdef object value_of_key(Getter self, bytes key, bint fill_cache):
    """The value of a key, or None."""
    cdef Readable store = opened(self)
    # The view before the version: what a compaction drops may be visible to an older one only.
    view = view_of(self, store)
    if PyBytes_GET_SIZE(self.prefix):
        key = self.prefix + key
    return value_in(store, view, key, self.version if self.is_fixed else store.version, fill_cache)


cdef inline Readable opened(Getter self):
    if self._store is None:
        raise self._closed_error()
    return self._store


cdef inline object view_of(Getter self, Readable store):
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
