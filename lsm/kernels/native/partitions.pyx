"""The partitions of a table's filter: their last keys, and the filters that readers find here."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from filters.kernels.native cimport simd
from lsm.disk.footer import Handle
from lsm.kernels.native.filter_door cimport BY_DIGEST, FilterDoor
from lsm.kernels.native.key_words cimport lsm_compare_keys
from lsm.kernels.native.sorted_keys cimport (
    lsm_sorted_keys_free, lsm_sorted_keys_reserve, lsm_sorted_keys_seal
)
from lsm.kernels.native.version cimport MOST_BYTES

cdef enum:
    OVERHEAD = 300
    # What a partition takes beside its last key and its filter.
    EACH = 2 * 8 + 8 + 4 + 8 + 2 * 8 + 8 + sizeof(lsm_partition)


@cython.final
cdef class Partitions:
    """Which partition may have a key, and of each its filter once that was loaded."""

    def __cinit__(self, lasts, handles, wrap=None):
        assert wrap is None, "the compiled kernel compares bytes"
        cdef uint32_t number = 0
        cdef uint8_t *place
        cdef bytes last
        self._reserve(len(handles), sum(map(len, lasts)))
        place = self._keys
        for last, handle in zip(lasts, handles, strict=True):
            self.c.lasts.keys[number] = place
            self.c.lasts.lengths[number] = <uint32_t>PyBytes_GET_SIZE(last)
            self.c.lasts.versions[number] = 0
            memcpy(place, PyBytes_AS_STRING(last), PyBytes_GET_SIZE(last))
            place += PyBytes_GET_SIZE(last)
            self._places[2 * number] = handle.offset
            self._places[2 * number + 1] = handle.size
            number += 1
        lsm_sorted_keys_seal(&self.c.lasts)

    cdef int _reserve(self, size_t count, size_t key_bytes) except -1:
        """Room for so many partitions, of which none is in memory."""
        if key_bytes > MOST_BYTES or lsm_sorted_keys_reserve(&self.c.lasts, count):
            raise MemoryError
        self._keys = <uint8_t *>malloc(key_bytes or 1)
        self._places = <uint64_t *>malloc(2 * 8 * (count or 1))
        self.c.slots = <lsm_partition *>calloc(count or 1, sizeof(lsm_partition))
        self._filters = <PyObject **>calloc(count or 1, sizeof(PyObject *))
        if not (self._keys and self._places and self.c.slots and self._filters):
            raise MemoryError
        self.charge = OVERHEAD + EACH * count + key_bytes
        return 0

    def __dealloc__(self):
        cdef uint32_t number
        if self._filters != NULL:
            for number in range(self.c.lasts.count):
                if self._filters[number] != NULL:
                    (<FilterDoor>self._filters[number]).mark_at(NULL)
                    Py_DECREF(<object>self._filters[number])
        free(self._filters)
        free(self.c.slots)
        free(self._places)
        free(self._keys)
        lsm_sorted_keys_free(&self.c.lasts)

    def __len__(self):
        return self.c.lasts.count

    def ascend(self):
        """Whether the last keys do; several partitions may end in versions of one key."""
        cdef lsm_sorted_keys *lasts = &self.c.lasts
        cdef uint32_t number
        for number in range(1, lasts.count):
            if lsm_compare_keys(
                lasts.keys[number], lasts.lengths[number],
                lasts.keys[number - 1], lasts.lengths[number - 1],
            ) < 0:
                return False
        return True

    def find(self, bytes key not None):
        """The number of the partition that a key is in if it is in the table.

        As many as there are partitions for one behind all of them, of which nobody can tell.
        """
        if PyBytes_GET_SIZE(key) > MOST_BYTES:
            return self.c.lasts.count
        return lsm_partitions_find(
            &self.c, <const uint8_t *>PyBytes_AS_STRING(key), <uint32_t>PyBytes_GET_SIZE(key),
            simd.level(),
        )

    def handle(self, uint32_t number):
        """Where the filter of this number is in the file."""
        if number >= self.c.lasts.count:
            raise IndexError(number)
        return Handle(self._places[2 * number], self._places[2 * number + 1])

    cdef object found(self, uint32_t number):
        return None if self._filters[number] == NULL else <object>self._filters[number]

    def cached(self, uint32_t number):
        """The filter of this number, if readers find it here."""
        if number >= self.c.lasts.count:
            raise IndexError(number)
        return self.found(number)

    def place(self, uint32_t number, FilterDoor loaded):
        """Let readers find this filter under this number, or none."""
        if number >= self.c.lasts.count:
            raise IndexError(number)
        cdef PyObject *before = self._filters[number]
        self.c.slots[number].probe_digest = NULL
        if before != NULL:
            (<FilterDoor>before).mark_at(NULL)
        if loaded is not None:
            Py_INCREF(loaded)
            loaded.mark_at(&self.c.slots[number].used)
        self._filters[number] = NULL if loaded is None else <PyObject *>loaded
        if before != NULL:
            Py_DECREF(<object>before)

    cdef void offer_door(self, uint32_t number, loaded) noexcept:
        """Let lookups find the door of the filter in this place, if that is asked by digest."""
        cdef FilterDoor door = <FilterDoor>loaded
        cdef lsm_partition *slot = &self.c.slots[number]
        if self._filters[number] == <PyObject *>loaded and door.manner == BY_DIGEST:
            slot.filter = door.probe.self
            slot.digest_seed = door.probe.digest_seed
            slot.digest_kind = door.probe.digest_kind
            slot.probe_digest = door.probe.probe_digest

    def emptied(self):
        """The filters that readers have found here, and do not find any more."""
        cdef uint32_t number, count = self.c.lasts.count
        cdef list filters = [None] * count
        cdef PyObject **empty = <PyObject **>calloc(count or 1, sizeof(PyObject *))
        cdef PyObject **before = self._filters
        if empty == NULL:
            raise MemoryError
        # From here on nothing is allocated, so that nobody comes in between.
        self._filters = empty
        for number in range(count):
            if before[number] != NULL:
                (<FilterDoor>before[number]).mark_at(NULL)
                self.c.slots[number].probe_digest = NULL
                filters[number] = <object>before[number]
                Py_DECREF(<object>before[number])
        free(before)
        return [loaded for loaded in filters if loaded is not None]
