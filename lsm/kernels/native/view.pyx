"""Views: the memtables and the version that together are the whole database."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdlib cimport calloc, free

from lsm.kernels.native.key_words cimport lsm_word
from lsm.kernels.native.memtable cimport Memtable
from lsm.kernels.native.sorted_keys cimport (
    lsm_sorted_keys, lsm_sorted_keys_free, lsm_sorted_keys_reserve, lsm_sorted_keys_seal
)
from lsm.kernels.native.table cimport TableFile
from lsm.kernels.native.tally cimport Tally
from lsm.kernels.native.version cimport MOST_BYTES


@cython.final
cdef class Levels:
    """A version's tables in arrays, for lookups; made once for a version, and kept with it."""

    def __cinit__(self, version):
        cdef uint32_t first = 0, number = 0
        below = [tables for tables in version.levels[1:] if tables]
        self.newest = len(version.levels[0])
        self.count = sum(map(len, version.levels))
        self._kept = []
        self.levels = <lsm_level *>calloc(len(below) or 1, sizeof(lsm_level))
        self.placed = <PyObject **>calloc(3 * self.count or 1, sizeof(PyObject *))
        self.lows = <Bound *>calloc(2 * self.count or 1, sizeof(Bound))
        if not (self.levels and self.placed and self.lows):
            raise MemoryError
        self.files = self.placed + self.count
        self.tallies = self.files + self.count
        self.highs = self.lows + self.count
        self._take(version.levels[0], 0)
        first = self.newest
        for tables in below:
            self._take(tables, first)
            self.level_count += 1
            self.levels[number].first = first
            if lsm_sorted_keys_reserve(&self.levels[number].highs, len(tables)):
                raise MemoryError
            self._seal(number)
            first += len(tables)
            number += 1

    cdef int _take(self, tables, uint32_t first) except -1:
        cdef uint32_t at = first
        cdef bytes low, high
        cdef TableFile file
        for placed in tables:
            low, high, file = placed.low, placed.high, placed.file
            self._kept += (placed, low, high, file)
            self.placed[at] = <PyObject *>placed
            self.files[at] = <PyObject *>file
            self.lows[at] = bound_of(low)
            self.highs[at] = bound_of(high)
            if placed.tally is not None:
                self.take_tally(at, placed.tally)
            at += 1
        return 0

    cdef int _seal(self, uint32_t number) except -1:
        cdef lsm_sorted_keys *highs = &self.levels[number].highs
        cdef uint32_t at, first = self.levels[number].first
        for at in range(highs.count):
            highs.keys[at] = self.highs[first + at].key
            highs.lengths[at] = self.highs[first + at].length
            highs.versions[at] = 0
        lsm_sorted_keys_seal(highs)
        return 0

    cdef int take_tally(self, uint32_t at, tally) except -1:
        """Count lookups in this table with this tally from now on."""
        cdef Tally taken = tally
        cdef PyObject *before = self.tallies[at]
        Py_INCREF(taken)
        self.tallies[at] = <PyObject *>taken
        Py_XDECREF(before)
        return 0

    def __dealloc__(self):
        cdef uint32_t number
        if self.placed != NULL and self.tallies != NULL:
            for number in range(self.count):
                Py_XDECREF(self.tallies[number])
        if self.levels != NULL:
            for number in range(self.level_count):
                lsm_sorted_keys_free(&self.levels[number].highs)
        free(self.levels)
        free(self.placed)
        free(self.lows)


cdef Bound bound_of(bytes key) except *:
    """The bound that a key is, which stays."""
    cdef Bound bound
    if PyBytes_GET_SIZE(key) > MOST_BYTES:
        raise MemoryError
    bound.key = <const uint8_t *>PyBytes_AS_STRING(key)
    bound.length = <uint32_t>PyBytes_GET_SIZE(key)
    bound.word = lsm_word(bound.key, bound.length)
    return bound


@cython.final
cdef class View:
    """The memtables, newest first, and the version beneath them: RocksDB's super version.

    A view is replaced as a whole, so that readers take it without a lock; the files of its tables
    are not removed as long as a reader holds it.
    """

    def __cinit__(self, tuple memtables not None, version):
        for each in memtables:
            if type(each) is not Memtable:
                raise TypeError(f"a compiled view has compiled memtables, not {type(each)!r}")
        self.memtables = memtables
        self.version = version
        if version.search is None:
            version.search = Levels(version)
        self.levels = version.search
